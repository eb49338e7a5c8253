/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.c: products in the order of AMX in plain C, matrices in planes, and the choice of a kernel
 * (tiles.h). */
#include "kern/tiles/tiles.h"
#include "kern/bf16.h"
#include "kern/kern.h"
#include "kern/tiles/planes.h"
#include "base/debug_log.h"
#include "base/half.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STRIP = NEAP__TILE_COLUMNS, DEPTH = NEAP__TILE_DEPTH, PLANES = NEAP__TILE_PLANES };

/* The planes of x. */
static void split(uint16_t *plane, float x, int planes)
{
	for (int p = 0; p < planes; p++) {
		plane[p] = neap__bf16_round(x);
		float part = neap__bits_float((uint32_t)plane[p] << 16);
		x = isfinite(part) ? x - part : 0;
	}
}

/* Two rows of w at a time, a strip after the other; a row behind the last one is zeros. */
void neap__planes_pack(uint32_t *to, const float *w, int rows, int n, int planes)
{
	size_t plane = neap__planes_words((uint64_t)rows, (uint64_t)n, 1);

	for (int from = 0; from < n; from += STRIP)
		for (int k = 0; k < rows; k += 2, to += STRIP) {
			const float *row = w + (size_t)k * n + from;
			neap__plane_words first = neap__plane_load(row, n - from), second = {0};
			if (k + 1 < rows)
				second = neap__plane_load(row + n, n - from);
			for (int p = 0; p < planes; p++) {
				neap__plane_words pairs = neap__plane_take(&first);
				pairs |= neap__plane_take(&second) >> 16;
				memcpy(to + (size_t)p * plane, &pairs, sizeof pairs);
			}
		}
}

/* A row of w at a time, which becomes a column; columns behind the last one are zeros. */
void neap__planes_pack_turned(uint32_t *to, const float *w, int rows, int n, int planes)
{
	size_t depth = ((size_t)n + 1) / 2,
	       plane = neap__planes_words((uint64_t)n, (uint64_t)rows, 1);

	memset(to, 0, plane * (size_t)planes * sizeof *to);
	for (int i = 0; i < rows; i++)
		for (int k = 0; k < n; k += NEAP__PLANE_LANES) {
			uint32_t *column = to + (size_t)(i / STRIP) * depth * STRIP +
					   (size_t)(k / 2) * STRIP + i % STRIP;
			neap__plane_words x = neap__plane_load(w + (size_t)i * n + k, n - k);
			for (int p = 0; p < planes; p++, column += plane) {
				neap__plane_pairs pairs = neap__plane_join(neap__plane_take(&x));
				for (int pair = 0; pair < NEAP__PLANE_LANES / 2 && k + 2 * pair < n;
					pair++)
					column[(size_t)pair * STRIP] = pairs[pair];
			}
		}
}

static float flushed(float x)
{
	return fabsf(x) < 0x1p-126F ? copysignf(0, x) : x;
}

/* Sums of two floats that are subnormal are exact, so nothing is rounded before it is flushed. */
float neap__tile_sum(float sum, float even, float odd)
{
	return flushed(flushed(sum) + flushed(even + odd));
}

/* Terms [from, from + depth) of a sample in planes; returns how many planes these are. */
static int terms_of(uint16_t (*x)[DEPTH], const struct neap__planes *m,
	const struct neap__sample_rows *sample, int from, int depth)
{
	uint16_t parts[PLANES];

	memset(x, 0, PLANES * sizeof *x);
	if (!sample->v) {
		for (int k = 0; k < sample->count; k++)
			if (sample->id[k] >= from && sample->id[k] < from + depth)
				x[0][sample->id[k] - from] = neap__bf16_round(1);
		return 1;
	}
	for (int k = 0; k < depth; k++) {
		split(parts, sample->v[from + k], m->planes);
		for (int p = 0; p < m->planes; p++)
			x[p][k] = parts[p];
	}
	return m->planes;
}

/* One block of one column: `column` are pairs of a plane, x the factors. */
static float add_block(float sum, const uint32_t *column, const uint16_t *x, int depth)
{
	float chain[2] = {0, 0};

	for (int k = 0; k < depth; k++) {
		uint32_t pair = column[(size_t)(k / 2) * STRIP];
		chain[k & 1] =
			neap__bf16_add(chain[k & 1], x[k], (uint16_t)(k & 1 ? pair : pair >> 16));
	}
	return neap__tile_sum(sum, chain[0], chain[1]);
}

static void product(
	const struct neap__planes *m, const struct neap__sample_rows *sample, int samples)
{
	size_t depth = ((size_t)m->rows + 1) / 2;

	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int from = 0; from < m->rows; from += DEPTH) {
			uint16_t x[PLANES][DEPTH];
			int block = m->rows - from < DEPTH ? m->rows - from : DEPTH;
			int planes = terms_of(x, m, s, from, block);
			for (int i = 0; i < m->columns; i++) {
				const uint32_t *column = m->w +
							 (size_t)(i / STRIP) * depth * STRIP +
							 (size_t)from / 2 * STRIP + i % STRIP;
				for (int p = 0; p < m->planes; p++, column += m->plane)
					for (int q = 0; q < planes && q < m->planes - p; q++)
						s->out[i] =
							add_block(s->out[i], column, x[q], block);
			}
		}
}

const struct neap__tile_ops neap__tiles_model = {"model", product};

/* A product of the check: two blocks and a part of one, strips and samples that fill no tile. */
enum { ROWS = 75, COLUMNS = 70, SAMPLES = 19, WORDS = PLANES * 5 * 38 * STRIP };

struct tile_check {
	float w[ROWS * COLUMNS], v[SAMPLES * ROWS], out[2][SAMPLES * COLUMNS];
	uint16_t id[ROWS];
	uint32_t packed[WORDS];
	uint64_t drawn;
};

/*
 * A number of either sign whose exponent is in a range of about `span` below `top`: near the
 * smallest normal number for some seeds, so that the handling of subnormal numbers is compared.
 */
static float some_number(struct tile_check *c, int top, int span)
{
	c->drawn = c->drawn * 6364136223846793005U + 1442695040888963407U;
	uint32_t bits = (uint32_t)(c->drawn >> 32);
	float x = neap__bits_float((bits & 0x807FFFFFU) | 0x3F800000U);

	return ldexpf(x, top - (int)(c->drawn >> 24 & 0xFF) % span);
}

static void fill_check(struct tile_check *c, int is_tiny)
{
	int top = is_tiny ? -55 : 4, span = is_tiny ? 30 : 12;

	for (int i = 0; i < ROWS * COLUMNS; i++)
		c->w[i] = some_number(c, top, span);
	for (int i = 0; i < SAMPLES * ROWS; i++)
		c->v[i] = some_number(c, top, span);
	for (int i = 0; i < SAMPLES * COLUMNS; i++)
		c->out[0][i] = c->out[1][i] = some_number(c, is_tiny ? -115 : top, span);
	for (int i = 0; i < ROWS; i++)
		c->id[i] = (uint16_t)i;
}

/* One product of both; 1: the same bits. */
static int agree(
	struct tile_check *c, const struct neap__tile_ops *ops, int planes, int has_numbers)
{
	struct neap__planes m = neap__planes_of(c->packed, ROWS, COLUMNS, planes);
	const struct neap__tile_ops *both[] = {ops, &neap__tiles_model};

	neap__planes_pack(c->packed, c->w, ROWS, COLUMNS, planes);
	for (int o = 0; o < 2; o++) {
		struct neap__sample_rows sample[SAMPLES];
		for (int s = 0; s < SAMPLES; s++)
			sample[s] = (struct neap__sample_rows){
				.id = c->id + s, /* all units from one on */
				.v = has_numbers ? c->v + (size_t)s * ROWS : NULL,
				.count = ROWS - s,
				.out = c->out[o] + (size_t)s * COLUMNS};
		both[o]->product(&m, sample, SAMPLES);
	}
	return memcmp(c->out[0], c->out[1], sizeof c->out[0]) == 0;
}

int neap__tiles_agree(const struct neap__tile_ops *ops)
{
	struct tile_check *c = calloc(1, sizeof *c);
	int rc = c != NULL;

	for (int i = 0; rc && i < 8; i++) {
		fill_check(c, i & 1);
		rc = agree(c, ops, i & 2 ? PLANES : 1, i < 4);
	}
	free(c);
	return rc;
}

static const struct neap__tile_ops *chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
#ifdef __x86_64__
	chosen = &neap__tiles_avx512;
#ifdef NEAP__HAS_AMX_ASSEMBLER
	if (!neap__isa_take_amx())
		return;
	if (neap__tiles_agree(&neap__tiles_amx))
		chosen = &neap__tiles_amx;
	else
		neap__debug("products in tiles: AMX of this processor gives other bits than the "
			    "model in plain C, so AVX-512 computes them");
#endif
#endif
}

const struct neap__tile_ops *neap__tiles_get(enum neap__isa isa)
{
	if (isa == NEAP__ISA_LOWERED)
		return &neap__tiles_model;
	if (isa != NEAP__ISA_AVX512 || !neap__isa_works(isa))
		return NULL;
	pthread_once(&once, choose);
	return chosen;
}

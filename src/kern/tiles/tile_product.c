/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile_product.c: the products of tiles.h in tiles of 16 samples and strips of 16 columns, with the
 * instructions of tile_registers.h. Up to WIDE strips are computed together, so that sums of
 * several tiles are in flight, since each waits for the one before. Compiled once for AMX and once
 * for AVX-512; tests compile it with the emulation in plain C.
 */
#include "kern/kern.h"
#include "kern/tiles/planes.h"
#include "kern/tiles/tile_registers.h"

enum {
	HIGH = TILE_ROWS, /* samples at a time */
	STRIP = NEAP__TILE_COLUMNS,
	WIDE = 4,    /* strips at a time: sums in half of the registers */
	DEPTH = 256, /* terms at a time: the factors of three planes take 24 KiB of stack */
	PAIRS = DEPTH / 2,
	BLOCK = NEAP__TILE_DEPTH / 2, /* pairs of a block */
	PLANES = NEAP__TILE_PLANES
};

/* Registers: the sums of WIDE strips, factors and weights of a block, the same of a part of one. */
#define FACTORS 4
#define WEIGHTS 5
#define LAST_FACTORS 6
#define LAST_WEIGHTS 7

/* Samples that are computed together. */
struct tile_work {
	const struct neap__planes *m;
	const struct neap__sample_rows *sample;
	int samples, planes; /* planes of the factors */
	int passed[HIGH];    /* rows of lists that are in terms before */
	uint32_t x[PLANES][HIGH][PAIRS];
	float sum[WIDE][HIGH][STRIP];
};

/* Terms [k, k + depth) of a sample whose factors are numbers. */
static void fill_numbers(struct tile_work *b, int s, int k, int depth)
{
	const float *v = (const float *)b->sample[s].v + k;

	for (int i = 0; i < depth; i += NEAP__PLANE_LANES) {
		neap__plane_words x = neap__plane_load(v + i, depth - i);
		for (int p = 0; p < b->planes; p++) {
			neap__plane_pairs pairs = neap__plane_join(neap__plane_take(&x));
			memcpy(&b->x[p][s][i / 2], &pairs, sizeof pairs);
		}
	}
}

/* The same of a sample that is a list of rows. */
static void fill_list(struct tile_work *b, int s, int k, int depth)
{
	const struct neap__sample_rows *sample = &b->sample[s];
	const uint32_t one = 0x3F80;
	uint32_t *x = b->x[0][s];
	int at = b->passed[s];

	memset(x, 0, sizeof b->x[0][s]);
	for (; at < sample->count && sample->id[at] < k + depth; at++)
		x[(sample->id[at] - k) / 2] |= one << ((sample->id[at] - k) & 1 ? 0 : 16);
	b->passed[s] = at;
}

/* The second factor of an odd last row is one that changes no sum. */
static void fill(struct tile_work *b, int k, int depth)
{
	for (int s = 0; s < b->samples; s++) {
		if (b->sample[s].v)
			fill_numbers(b, s, k, depth);
		else
			fill_list(b, s, k, depth);
		for (int p = 0; p < b->planes && depth % 2; p++)
			b->x[p][s][depth / 2] |= NEAP__BF16_NONE;
	}
}

static void load_sums(struct tile_work *b, int column, int wide)
{
	for (int w = 0; w < wide; w++)
		for (int s = 0; s < b->samples; s++) {
			int from = column + w * STRIP, left = b->m->columns - from;
			const float *out = (const float *)b->sample[s].out + from;
			if (left >= STRIP) {
				memcpy(b->sum[w][s], out, sizeof b->sum[w][s]);
				continue;
			}
			memset(b->sum[w][s], 0, sizeof b->sum[w][s]);
			memcpy(b->sum[w][s], out, (size_t)left * sizeof *out);
		}
}

static void store_sums(struct tile_work *b, int column, int wide)
{
	for (int w = 0; w < wide; w++)
		for (int s = 0; s < b->samples; s++) {
			int from = column + w * STRIP, left = b->m->columns - from;
			float *out = (float *)b->sample[s].out + from;
			if (left >= STRIP)
				memcpy(out, b->sum[w][s], sizeof b->sum[w][s]);
			else
				memcpy(out, b->sum[w][s], (size_t)left * sizeof *out);
		}
}

/* Strip `w` of those that are computed together += a block; `from` is its first word. */
#define MULTIPLY(w, x, y)                                                                          \
	do {                                                                                       \
		if (wide > (w)) {                                                                  \
			TILE_LOAD(t, y, from + (size_t)(w)*strip, STRIP * sizeof *from);           \
			TILE_MULTIPLY(t, w, x, y);                                                 \
		}                                                                                  \
	} while (0)

/* One block of WIDE strips, of all products of planes. at: its first pair in x, w its words. */
#define ADD_BLOCK(x_register, w_register)                                                          \
	do {                                                                                       \
		for (int p = 0; p < b->m->planes; p++)                                             \
			for (int q = 0; q < b->planes && q < b->m->planes - p; q++) {              \
				const uint32_t *from = w + (size_t)p * b->m->plane;                \
				if (b->planes > 1 || p == 0)                                       \
					TILE_LOAD(t, x_register, &b->x[q][0][at],                  \
						PAIRS * sizeof(uint32_t));                         \
				MULTIPLY(0, x_register, w_register);                               \
				MULTIPLY(1, x_register, w_register);                               \
				MULTIPLY(2, x_register, w_register);                               \
				MULTIPLY(3, x_register, w_register);                               \
			}                                                                          \
	} while (0)

/* Terms [k, k + depth) of `wide` strips from a column on. */
static void add_strips(
	struct neap__tiles *t, struct tile_work *b, int column, int wide, int k, int depth)
{
	size_t strip = ((size_t)b->m->rows + 1) / 2 * STRIP;
	const uint32_t *w = b->m->w + (size_t)column / STRIP * strip + (size_t)k / 2 * STRIP;
	int end = (depth + 1) / 2, at = 0;

	load_sums(b, column, wide);
	TILE_LOAD(t, 0, b->sum[0], sizeof b->sum[0][0]);
	if (wide > 1)
		TILE_LOAD(t, 1, b->sum[1], sizeof b->sum[1][0]);
	if (wide > 2)
		TILE_LOAD(t, 2, b->sum[2], sizeof b->sum[2][0]);
	if (wide > 3)
		TILE_LOAD(t, 3, b->sum[3], sizeof b->sum[3][0]);
	for (; at + BLOCK <= end; at += BLOCK, w += BLOCK * STRIP)
		ADD_BLOCK(FACTORS, WEIGHTS);
	if (at < end)
		ADD_BLOCK(LAST_FACTORS, LAST_WEIGHTS);
	TILE_STORE(t, 0, b->sum[0], sizeof b->sum[0][0]);
	if (wide > 1)
		TILE_STORE(t, 1, b->sum[1], sizeof b->sum[1][0]);
	if (wide > 2)
		TILE_STORE(t, 2, b->sum[2], sizeof b->sum[2][0]);
	if (wide > 3)
		TILE_STORE(t, 3, b->sum[3], sizeof b->sum[3][0]);
	store_sums(b, column, wide);
}

static void shape(struct tile_shapes *shapes, int r, int rows, int words_of_row)
{
	shapes->rows[r] = (uint8_t)rows;
	shapes->bytes[r] = (uint16_t)(words_of_row * (int)sizeof(uint32_t));
}

/* Up to HIGH samples, all lists or all numbers. */
static void add_samples(struct tile_work *b)
{
	int last = (b->m->rows % NEAP__TILE_DEPTH + 1) / 2; /* pairs of a last part of a block */
	struct neap__tiles t;

	memset(&t.shapes, 0, sizeof t.shapes);
	t.shapes.palette = 1;
	for (int r = 0; r < WIDE; r++)
		shape(&t.shapes, r, b->samples, STRIP);
	shape(&t.shapes, FACTORS, b->samples, BLOCK);
	shape(&t.shapes, WEIGHTS, BLOCK, STRIP);
	if (last) {
		shape(&t.shapes, LAST_FACTORS, b->samples, last);
		shape(&t.shapes, LAST_WEIGHTS, last, STRIP);
	}
	TILES_BEGIN(&t);
	for (int k = 0; k < b->m->rows; k += DEPTH) {
		int depth = b->m->rows - k < DEPTH ? b->m->rows - k : DEPTH;
		fill(b, k, depth);
		for (int column = 0; column < b->m->columns; column += WIDE * STRIP) {
			int strips = (b->m->columns - column + STRIP - 1) / STRIP;
			add_strips(&t, b, column, strips < WIDE ? strips : WIDE, k, depth);
		}
	}
	TILES_END(&t);
}

static void product(
	const struct neap__planes *m, const struct neap__sample_rows *sample, int samples)
{
	struct tile_work b;

	b.m = m;
	while (samples > 0) {
		int is_list = sample->v == NULL, n = 0;
		for (; n < samples && n < HIGH && (sample[n].v == NULL) == is_list; n++)
			b.passed[n] = 0;
		b.sample = sample;
		b.samples = n;
		b.planes = is_list ? 1 : m->planes;
		add_samples(&b);
		sample += n;
		samples -= n;
	}
}

#if defined NEAP__TILES_AMX
const struct neap__tile_ops neap__tiles_amx = {"amx", product};
#elif defined NEAP__TILES_AVX512
const struct neap__tile_ops neap__tiles_avx512 = {"avx512", product};
#else
extern const struct neap__tile_ops neap__tiles_emulated;
const struct neap__tile_ops neap__tiles_emulated = {"emulated", product};
#endif

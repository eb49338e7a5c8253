/* SPDX-License-Identifier: Apache-2.0 */
/* bf16.c: the arithmetic of bfloat16 products in plain C, and weights in pairs of rows (bf16.h). */
#include "kern/bf16.h"
#include "kern/kern.h"
#include "base/half.h"

#include <math.h>
#include <string.h>

enum { STRIP = 16 }; /* columns of a strip of the model */

/* x, or a zero of its sign for a subnormal one. */
static uint32_t flushed(uint32_t bits)
{
	return bits & 0x7F800000U ? bits : bits & 0x80000000U;
}

uint16_t neap__bf16_round(float x)
{
	uint32_t bits = flushed(neap__float_bits(x));

	if ((bits & 0x7FFFFFFFU) > 0x7F800000U)
		return (uint16_t)(bits >> 16 | 0x40); /* a quiet NaN */
	return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float neap__bf16_add(float sum, uint16_t a, uint16_t b)
{
	/* The scale of the second look: a result near 2^-126 has terms of at most 2^-100. */
	const float least = 0x1p-126F, scale = 0x1p32F;
	float x = neap__bits_float(flushed((uint32_t)a << 16)),
	      y = neap__bits_float(flushed((uint32_t)b << 16));
	float before = neap__bits_float(flushed(neap__float_bits(sum))), after = fmaf(x, y, before);

	/*
	 * At 2^-126, fmaf may have rounded up what is smaller with 24 bits of precision; the
	 * processor decides by these 24 bits.
	 */
	if (fabsf(after) <= least) {
		float scaled = fmaf(x * scale, y, before * scale);
		if (fabsf(scaled) < least * scale)
			return copysignf(0, scaled);
	}
	return after;
}

/* Two factors, the first one in the upper half. */
static uint32_t pair_of(uint16_t first, uint16_t second)
{
	return (uint32_t)first << 16 | second;
}

void neap__bf16_pack(uint32_t *pairs, const float *w, int rows, int n, int strip)
{
	for (int from = 0; from < n; from += strip)
		for (int k = 0; k < rows; k += 2, pairs += strip) {
			int most = n - from < strip ? n - from : strip;
			const float *first = w + (size_t)k * n + from;
			memset(pairs, 0, (size_t)strip * sizeof *pairs);
			for (int i = 0; i < most; i++)
				pairs[i] = pair_of(neap__bf16_round(first[i]),
					k + 1 < rows ? neap__bf16_round(first[n + i]) : 0);
		}
}

void neap__bf16_pack_turned(uint32_t *pairs, const float *w, int rows, int n, int strip)
{
	size_t depth = ((size_t)n + 1) / 2;

	for (int from = 0; from < rows; from += strip, pairs += depth * strip) {
		int most = rows - from < strip ? rows - from : strip;
		memset(pairs, 0, depth * strip * sizeof *pairs);
		for (int j = 0; j < most; j++) {
			const float *row = w + (size_t)(from + j) * n;
			for (int k = 0; k < n; k += 2)
				pairs[(size_t)(k / 2) * strip + j] =
					pair_of(neap__bf16_round(row[k]),
						k + 1 < n ? neap__bf16_round(row[k + 1]) : 0);
		}
	}
}

/* The half of a word of pairs that row k is in. */
static uint16_t half_of(uint32_t pair, int k)
{
	return (uint16_t)(k & 1 ? pair : pair >> 16);
}

static void product(
	const struct neap__pairs *m, const struct neap__sample_rows *sample, int samples)
{
	size_t depth = ((size_t)m->rows + 1) / 2;

	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < m->rows; k++) {
			uint16_t factor = neap__bf16_round(s->v[k]);
			for (int i = 0; i < m->columns; i++) {
				const uint32_t *strip = m->w + (size_t)(i / STRIP) * depth * STRIP;
				uint16_t w = half_of(strip[(size_t)(k / 2) * STRIP + i % STRIP], k);
				s->out[i] = neap__bf16_add(s->out[i], factor, w);
			}
		}
}

static void outer(float *g, const struct neap__outer *o)
{
	for (int e = 0; e < o->count; e++)
		for (int k = o->from; k < o->to; k++) {
			float *row = g + (size_t)k * o->columns;
			uint16_t x = neap__bf16_round(o->x[e][k]);
			for (int i = o->left; i < o->right; i++)
				row[i] = neap__bf16_add(row[i], x, neap__bf16_round(o->y[e][i]));
		}
}

const struct neap__bf16_ops neap__bf16_model = {STRIP, product, outer};

/* SPDX-License-Identifier: Apache-2.0 */
/* mma_model.c: what an mma instruction of a warp computes here (mma_model.h). */
#include "mma_model.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

enum { LANES = 32, ROWS = 16, COLUMNS = 8, TERMS_MOST = 16 };

/* To nearest, ties to even; a NaN becomes 0x7fff. */
static uint32_t bf16_of(float x)
{
	uint32_t bits = neap__float_bits(x);

	if (isnan(x))
		return 0x7fff;
	return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}

uint32_t mma_bf16_pair(float low, float high)
{
	return bf16_of(high) << 16 | bf16_of(low);
}

uint32_t mma_tf32(float x)
{
	return isnan(x) ? 0x7fffffffu : (neap__float_bits(x) + 0x1000u) & ~0x1fffu;
}

/* Towards zero. */
static float truncated(double x)
{
	float y = (float)x;

	if (isfinite(y) && fabs((double)y) > fabs(x))
		y = neap__bits_float(neap__float_bits(y) - 1);
	return y;
}

/* The PTX manual's "matrix fragments" of m16n8k16 (.bf16) and m16n8k8 (.tf32). */
static void gather(float rows[ROWS][TERMS_MOST], float columns[TERMS_MOST][COLUMNS],
	enum mma_kind kind, const uint32_t *const *a, const uint32_t *const *b)
{
	for (int lane = 0; lane < LANES; lane++) {
		int line = lane >> 2, pair = lane & 3;
		for (int i = 0; i < 4; i++) {
			int row = line + (i & 1) * 8, half = i >> 1;
			if (kind == MMA_KIND_TF32) {
				rows[row][pair + half * 4] = neap__bits_float(a[lane][i]);
				continue;
			}
			rows[row][2 * pair + half * 8] = neap__bits_float(a[lane][i] << 16);
			rows[row][2 * pair + half * 8 + 1] =
				neap__bits_float(a[lane][i] & 0xffff0000u);
		}
		for (int half = 0; half < 2; half++) {
			if (kind == MMA_KIND_TF32) {
				columns[pair + half * 4][line] = neap__bits_float(b[lane][half]);
				continue;
			}
			columns[2 * pair + half * 8][line] = neap__bits_float(b[lane][half] << 16);
			columns[2 * pair + half * 8 + 1][line] =
				neap__bits_float(b[lane][half] & 0xffff0000u);
		}
	}
}

void mma_model(
	enum mma_kind kind, float *const *d, const uint32_t *const *a, const uint32_t *const *b)
{
	const int terms = kind == MMA_KIND_TF32 ? 8 : 16;
	float rows[ROWS][TERMS_MOST], columns[TERMS_MOST][COLUMNS];

	gather(rows, columns, kind, a, b);
	for (int lane = 0; lane < LANES; lane++)
		for (int i = 0; i < 4; i++) {
			int row = (lane >> 2) + (i >> 1) * 8, column = (lane & 3) * 2 + (i & 1);
			double sum = (double)d[lane][i];
			for (int k = 0; k < terms; k++)
				sum += (double)rows[row][k] * (double)columns[k][column];
			d[lane][i] = truncated(sum);
		}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dots.c: dot products of a matrix's rows with one vector a sample. Each is one chain of fused sums
 * over the columns, WIDE of them side by side, in whatever tile it is made: the bits of a sample do
 * not depend on the other samples.
 *
 * Where samples ask for the same rows, a tile of ROWS rows and SAMPLES samples stays in registers:
 * ROWS + SAMPLES loads feed ROWS * SAMPLES products, and a row is read once. Where the rows differ,
 * ROWS_ALONE rows of one sample go side by side, which hides the latency of their sums; rows then
 * go in blocks (row_blocks.h).
 */
#include "kern/row_blocks.h"
#include "kern/vector.h"

enum {
	ROWS = 4, /* what add_reduced takes */
	SAMPLES = NEAP__VECTOR == 64 ? 4 : 2,
	ROWS_ALONE = 8
};

/* a[s][r] = row[r] . x[s], before its lanes are added up */
INLINE void tile(vec a[][ROWS], const real *const *row, const real *const *x, int n)
{
	int i = 0;

	EACH_REGISTER(int s = 0; s < SAMPLES; s++)
	EACH_REGISTER(int r = 0; r < ROWS; r++)
	a[s][r] = (vec){0};
	for (; i + WIDE <= n; i += WIDE) {
		vec w[ROWS];
		EACH_REGISTER(int r = 0; r < ROWS; r++)
		w[r] = load(row[r] + i);
		EACH_REGISTER(int s = 0; s < SAMPLES; s++)
		{
			vec y = load(x[s] + i);
			EACH_REGISTER(int r = 0; r < ROWS; r++)
			a[s][r] = multiply_add(w[r], y, a[s][r]);
		}
	}
	if (i == n)
		return;
	EACH_REGISTER(int s = 0; s < SAMPLES; s++)
	{
		vec y = load_part(x[s] + i, n - i);
		EACH_REGISTER(int r = 0; r < ROWS; r++)
		a[s][r] = multiply_add(load_part(row[r] + i, n - i), y, a[s][r]);
	}
}

/* Up to SAMPLES samples, `rows` rows from k on; what is missing repeats the first. */
static void few_samples(const struct neap__matrix *m, const struct neap__sample_rows *sample,
	int samples, int k, int rows)
{
	const real *x[SAMPLES], *row[ROWS];
	vec a[SAMPLES][ROWS];
	int n = m->columns;

	EACH_REGISTER(int s = 0; s < SAMPLES; s++)
	x[s] = sample[s < samples ? s : 0].in;
	EACH_REGISTER(int r = 0; r < ROWS; r++)
	row[r] = m->w + (size_t)sample->id[r < rows ? k + r : k] * n;
	tile(a, row, x, n);
	EACH_REGISTER(int s = 0; s < SAMPLES; s++)
	if (s < samples && rows == ROWS)
		add_reduced(sample[s].out + k, a[s]);
	else
		EACH_REGISTER(int r = 0; r < ROWS; r++)
	if (s < samples && r < rows)
		sample[s].out[k + r] += reduce(a[s][r]);
}

/* A row goes past all samples while it is near. */
static void dots_same(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	for (int k = 0; k < sample->count; k += ROWS) {
		int rows = sample->count - k < ROWS ? sample->count - k : ROWS;
		for (int s = 0; s < samples; s += SAMPLES)
			few_samples(m, sample + s, samples - s < SAMPLES ? samples - s : SAMPLES, k,
				rows);
	}
}

/* A tile of one sample; `tile` rows, of which the last may repeat the first. */
INLINE void one_sample(const struct neap__matrix *m, const struct neap__sample_rows *sample, int k,
	int rows, int tile)
{
	const real *row[ROWS_ALONE], *x = sample->in;
	vec a[ROWS_ALONE];
	int n = m->columns, i = 0;

	EACH_REGISTER(int r = 0; r < tile; r++)
	{
		row[r] = m->w + (size_t)sample->id[r < rows ? k + r : k] * n;
		a[r] = (vec){0};
	}
	for (; i + WIDE <= n; i += WIDE) {
		vec y = load(x + i);
		EACH_REGISTER(int r = 0; r < tile; r++)
		a[r] = multiply_add(load(row[r] + i), y, a[r]);
	}
	if (i < n) {
		vec y = load_part(x + i, n - i);
		EACH_REGISTER(int r = 0; r < tile; r++)
		a[r] = multiply_add(load_part(row[r] + i, n - i), y, a[r]);
	}
	EACH_REGISTER(int q = 0; q < tile; q += ROWS)
	if (q + ROWS <= rows && q + ROWS <= tile)
		add_reduced(sample->out + k + q, a + q);
	else
		EACH_REGISTER(int r = q; r < q + ROWS; r++)
	if (r < rows && r < tile)
		sample->out[k + r] += reduce(a[r]);
}

/* Rows [k, to) of one share's list. */
static void some_rows(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int k, int to)
{
	for (; to - k >= ROWS_ALONE; k += ROWS_ALONE)
		one_sample(m, sample, k, ROWS_ALONE, ROWS_ALONE);
	if (to - k > ROWS)
		one_sample(m, sample, k, to - k, ROWS_ALONE);
	else if (to - k > 1)
		one_sample(m, sample, k, to - k, ROWS);
	else if (to > k)
		one_sample(m, sample, k, 1, 1);
}

void NEAP_V(neap__dots)(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	int same = 1;

	for (int s = 1; s < samples; s++)
		same &= sample[s].id == sample->id && sample[s].count == sample->count;
	if (same && samples > 1) {
		dots_same(m, sample, samples);
		return;
	}
	neap__blocks(m, sample, samples, some_rows);
}

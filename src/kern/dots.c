/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dots: dot products of a matrix's rows with one vector a sample. Each is one chain of
 * fused sums over the columns, WIDE of them side by side, whatever the tile it is made
 * in: the bits of a sample do not depend on its neighbours.
 *
 * Where samples ask for the same rows, a tile of ROWS rows and SAMPLES samples stays in
 * registers: ROWS + SAMPLES loads feed ROWS * SAMPLES products, and a row is fetched
 * once. Where they differ, ROWS_ALONE rows of one sample go side by side, which hides the
 * latency of their sums; rows go in blocks that stay in the near cache until every
 * sample has had its own of them.
 */
#include "kern/vector.h"

enum {
	ROWS = 4, /* what add_reduced takes */
	SAMPLES = NEAP__VECTOR == 64 ? 4 : 2,
	ROWS_ALONE = 8,
	BLOCK_BYTES = 128 * 1024
};

/* a[s][r] = row[r] . x[s], before the lanes are added up */
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

/* Up to SAMPLES shares, `rows` rows from k on; what is missing repeats the first. */
static void few_samples(
	const struct neap__matrix *m, const struct neap__share *share, int shares, int k, int rows)
{
	const real *x[SAMPLES], *row[ROWS];
	vec a[SAMPLES][ROWS];
	int n = m->columns;

	EACH_REGISTER(int s = 0; s < SAMPLES; s++)
	x[s] = share[s < shares ? s : 0].in;
	EACH_REGISTER(int r = 0; r < ROWS; r++)
	row[r] = m->w + (size_t)share->id[r < rows ? k + r : k] * n;
	tile(a, row, x, n);
	EACH_REGISTER(int s = 0; s < SAMPLES; s++)
	if (s < shares && rows == ROWS)
		add_reduced(share[s].out + k, a[s]);
	else
		EACH_REGISTER(int r = 0; r < ROWS; r++)
	if (s < shares && r < rows)
		share[s].out[k + r] += reduce(a[s][r]);
}

/* A row goes past all samples while it is near. */
static void dots_same(const struct neap__matrix *m, const struct neap__share *share, int shares)
{
	for (int k = 0; k < share->count; k += ROWS) {
		int rows = share->count - k < ROWS ? share->count - k : ROWS;
		for (int s = 0; s < shares; s += SAMPLES)
			few_samples(
				m, share + s, shares - s < SAMPLES ? shares - s : SAMPLES, k, rows);
	}
}

/* Up to ROWS_ALONE rows of one share from k on; what is missing repeats the first. */
static void one_sample(
	const struct neap__matrix *m, const struct neap__share *share, int k, int rows)
{
	const real *row[ROWS_ALONE], *x = share->in;
	vec a[ROWS_ALONE];
	int n = m->columns, i = 0;

	EACH_REGISTER(int r = 0; r < ROWS_ALONE; r++)
	{
		row[r] = m->w + (size_t)share->id[r < rows ? k + r : k] * n;
		a[r] = (vec){0};
	}
	for (; i + WIDE <= n; i += WIDE) {
		vec y = load(x + i);
		EACH_REGISTER(int r = 0; r < ROWS_ALONE; r++)
		a[r] = multiply_add(load(row[r] + i), y, a[r]);
	}
	if (i < n) {
		vec y = load_part(x + i, n - i);
		EACH_REGISTER(int r = 0; r < ROWS_ALONE; r++)
		a[r] = multiply_add(load_part(row[r] + i, n - i), y, a[r]);
	}
	EACH_REGISTER(int q = 0; q < ROWS_ALONE; q += ROWS)
	if (q + ROWS <= rows)
		add_reduced(share->out + k + q, a + q);
	else
		EACH_REGISTER(int r = q; r < q + ROWS; r++)
	if (r < rows)
		share->out[k + r] += reduce(a[r]);
}

/* Block after block of rows, in each all samples; at most MOST. */
enum { MOST = 64 };
static void dots_few(const struct neap__matrix *m, const struct neap__share *share, int shares)
{
	int at[MOST] = {0}, left = 0;
	int rows = BLOCK_BYTES / (int)sizeof(real) / m->columns + 1;

	for (int s = 0; s < shares; s++)
		left += share[s].count;
	for (int end = rows; left > 0; end += rows)
		for (int s = 0; s < shares; s++) {
			int to = at[s];
			while (to < share[s].count && share[s].id[to] < end)
				to++;
			left -= to - at[s];
			for (; at[s] < to; at[s] += ROWS_ALONE)
				one_sample(m, share + s, at[s],
					to - at[s] < ROWS_ALONE ? to - at[s] : ROWS_ALONE);
			at[s] = to;
		}
}

void NEAP_V(neap__dots)(const struct neap__matrix *m, const struct neap__share *share, int shares)
{
	int same = 1;

	for (int s = 1; s < shares; s++)
		same &= share[s].id == share->id && share[s].count == share->count;
	if (same && shares > 1) {
		dots_same(m, share, shares);
		return;
	}
	for (int s = 0; s < shares; s += MOST)
		dots_few(m, share + s, shares - s < MOST ? shares - s : MOST);
}

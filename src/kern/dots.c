/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dots: dot products of a matrix's rows with one vector a sample. Each is one chain of
 * fused sums over the columns, WIDE of them side by side, whatever the tile it is made
 * in: the bits of a sample do not depend on its neighbours.
 *
 * Where samples ask for the same rows, a tile of ROWS rows and SAMPLES samples stays in
 * registers: ROWS + SAMPLES loads feed ROWS * SAMPLES products, and a row is fetched
 * once. Where they differ, PAIRS products of a row and a sample go side by side, which
 * hides their latency; rows go in blocks that stay in the near cache until every
 * sample has had its own of them.
 */
#include "kern/vector.h"

enum {
	SAMPLES = 4,
	ROWS = NEAP__VECTOR == 64 ? 6 : 3, /* 12 or 24 sums in 16 or 32 registers */
	PAIRS = 6,
	BLOCK_BYTES = 64 * 1024
};

/* sum[r][s] = row[r] . x[s] */
INLINE void tile(real sum[][SAMPLES], const real *const *row, int rows, const real *const *x, int n)
{
	vec a[ROWS][SAMPLES];
	int i = 0;

	EACH_REGISTER(int r = 0; r < rows; r++)
	EACH_REGISTER(int s = 0; s < SAMPLES; s++)
	a[r][s] = (vec){0};
	for (; i + WIDE <= n; i += WIDE)
		EACH_REGISTER(int r = 0; r < rows; r++)
		{
			vec w = load(row[r] + i);
			EACH_REGISTER(int s = 0; s < SAMPLES; s++)
			a[r][s] = multiply_add(w, load(x[s] + i), a[r][s]);
		}
	if (i < n)
		EACH_REGISTER(int r = 0; r < rows; r++)
		{
			vec w = load_part(row[r] + i, n - i);
			EACH_REGISTER(int s = 0; s < SAMPLES; s++)
			a[r][s] = multiply_add(w, load_part(x[s] + i, n - i), a[r][s]);
		}
	EACH_REGISTER(int r = 0; r < rows; r++)
	EACH_REGISTER(int s = 0; s < SAMPLES; s++)
	sum[r][s] = reduce(a[r][s]);
}

static void full_tile(real sum[][SAMPLES], const real *const *row, const real *const *x, int n)
{
	tile(sum, row, ROWS, x, n);
}

static void one_row(real sum[][SAMPLES], const real *const *row, const real *const *x, int n)
{
	tile(sum, row, 1, x, n);
}

/* Up to SAMPLES shares, rows [from, to) of their list; missing ones repeat the first. */
static void few_samples(
	const struct neap__matrix *m, const struct neap__share *share, int shares, int from, int to)
{
	const real *x[SAMPLES];
	real sum[ROWS][SAMPLES];
	int n = m->columns;

	for (int s = 0; s < SAMPLES; s++)
		x[s] = share[s < shares ? s : 0].in;
	for (int k = from, rows; k < to; k += rows) {
		const real *row[ROWS];
		rows = to - k < ROWS ? 1 : ROWS;
		for (int r = 0; r < rows; r++)
			row[r] = m->w + (size_t)share->id[k + r] * n;
		if (rows == ROWS)
			full_tile(sum, row, x, n);
		else
			one_row(sum, row, x, n);
		for (int s = 0; s < shares; s++)
			for (int r = 0; r < rows; r++)
				share[s].out[k + r] += sum[r][s];
	}
}

/* A row goes past all samples while it is near. */
static void dots_same(const struct neap__matrix *m, const struct neap__share *share, int shares)
{
	for (int from = 0; from < share->count; from += ROWS) {
		int to = from + ROWS < share->count ? from + ROWS : share->count;
		for (int s = 0; s < shares; s += SAMPLES)
			few_samples(m, share + s, shares - s < SAMPLES ? shares - s : SAMPLES, from,
				to);
	}
}

/* Products that wait until there are PAIRS of them. */
struct pairs {
	int count;
	const real *row[PAIRS], *x[PAIRS];
	real *out[PAIRS];
};

static void flush(struct pairs *p, int n)
{
	vec a[PAIRS];
	const real *row[PAIRS], *x[PAIRS];
	int i = 0;

	EACH_REGISTER(int k = 0; k < PAIRS; k++)
	{
		row[k] = p->row[k < p->count ? k : 0];
		x[k] = p->x[k < p->count ? k : 0];
		a[k] = (vec){0};
	}
	for (; i + WIDE <= n; i += WIDE)
		EACH_REGISTER(int k = 0; k < PAIRS; k++)
	a[k] = multiply_add(load(row[k] + i), load(x[k] + i), a[k]);
	if (i < n)
		EACH_REGISTER(int k = 0; k < PAIRS; k++)
	a[k] = multiply_add(load_part(row[k] + i, n - i), load_part(x[k] + i, n - i), a[k]);
	EACH_REGISTER(int k = 0; k < PAIRS; k++)
	if (k < p->count)
		*p->out[k] += reduce(a[k]);
	p->count = 0;
}

/* Block after block of rows, in each all samples; at most MOST. */
enum { MOST = 64 };
static void dots_few(const struct neap__matrix *m, const struct neap__share *share, int shares)
{
	struct pairs pairs = {0};
	int at[MOST] = {0}, left = 0, n = m->columns;
	int rows = BLOCK_BYTES / (int)sizeof(real) / n + 1;

	for (int s = 0; s < shares; s++)
		left += share[s].count;
	for (int end = rows; left > 0; end += rows)
		for (int s = 0; s < shares; s++) {
			int k = at[s];
			for (; k < share[s].count && share[s].id[k] < end; k++) {
				pairs.row[pairs.count] = m->w + (size_t)share[s].id[k] * n;
				pairs.x[pairs.count] = share[s].in;
				pairs.out[pairs.count] = share[s].out + k;
				if (++pairs.count == PAIRS)
					flush(&pairs, n);
			}
			left -= k - at[s];
			at[s] = k;
		}
	if (pairs.count)
		flush(&pairs, n);
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

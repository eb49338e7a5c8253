/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_adds.c: rows of weights added to samples, and rows of gradients. Of spikes, TOGETHER rows of
 * the list are added at a time, so that the sums are read and written once for them, element by
 * element in the list's order; of few columns the sums stay in registers. Of numbers, one row
 * follows the other, its products fused with the sums.
 */
#include "kern/row_blocks.h"
#include "kern/vector.h"

enum { TOGETHER = 8, NARROW = 3 /* whole vectors of a row whose sums stay in registers */ };

INLINE void add_ones(real *y, const struct neap__matrix *m, const uint16_t *id, int rows)
{
	const real *row[TOGETHER];
	int n = m->columns, i = 0;

	EACH_REGISTER(int r = 0; r < rows; r++)
	row[r] = m->w + (size_t)id[r] * n;
	for (; i + WIDE <= n; i += WIDE) {
		vec a = load(y + i);
		EACH_REGISTER(int r = 0; r < rows; r++)
		a += load(row[r] + i);
		store(y + i, a);
	}
	if (i == n)
		return;
	vec a = load_part(y + i, n - i);
	EACH_REGISTER(int r = 0; r < rows; r++)
	a += load_part(row[r] + i, n - i);
	store_part(y + i, a, n - i);
}

/* Rows of `full` vectors and a part: the sums stay in registers. */
INLINE void add_narrow(const struct neap__matrix *m, const struct neap__sample_rows *sample, int k,
	int to, int full)
{
	int n = m->columns, left = n - full * WIDE;
	real *y = sample->out;
	vec a[NARROW + 1];

	EACH_REGISTER(int i = 0; i < full; i++)
	a[i] = load(y + i * WIDE);
	a[full] = load_part(y + full * WIDE, left);
	for (; k < to; k++) {
		const real *row = m->w + (size_t)sample->id[k] * n;
		EACH_REGISTER(int i = 0; i < full; i++)
		a[i] += load(row + i * WIDE);
		a[full] += load_part(row + full * WIDE, left);
	}
	EACH_REGISTER(int i = 0; i < full; i++)
	store(y + i * WIDE, a[i]);
	store_part(y + full * WIDE, a[full], left);
}

static void add_spikes(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int k, int to)
{
	const uint16_t *id = sample->id;

	for (; k + TOGETHER <= to; k += TOGETHER)
		add_ones(sample->out, m, id + k, TOGETHER);
	if (to - k >= 4) {
		add_ones(sample->out, m, id + k, 4);
		k += 4;
	}
	if (to - k >= 2) {
		add_ones(sample->out, m, id + k, 2);
		k += 2;
	}
	if (to > k)
		add_ones(sample->out, m, id + k, 1);
}

INLINE void add_row(real *y, const real *row, real factor, int n)
{
	vec v = (vec){0} + factor;
	int i = 0;

	for (; i + WIDE <= n; i += WIDE)
		store(y + i, multiply_add(v, load(row + i), load(y + i)));
	if (i < n)
		store_part(y + i,
			multiply_add(v, load_part(row + i, n - i), load_part(y + i, n - i)), n - i);
}

static void add_list(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int k, int to)
{
	if (sample->v) {
		for (; k < to; k++)
			add_row(sample->out, m->w + (size_t)sample->id[k] * m->columns,
				sample->v[k], m->columns);
		return;
	}
	switch (m->columns / WIDE) {
	case 0:
		add_narrow(m, sample, k, to, 0);
		break;
	case 1:
		add_narrow(m, sample, k, to, 1);
		break;
	case 2:
		add_narrow(m, sample, k, to, 2);
		break;
	case NARROW:
		add_narrow(m, sample, k, to, NARROW);
		break;
	default:
		add_spikes(m, sample, k, to);
	}
}

void NEAP_V(neap__adds)(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	neap__blocks(m, sample, samples, add_list);
}

void NEAP_V(neap__grads)(
	real *g, const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	int n = m->columns;

	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < s->count; k++)
			if (s->v)
				add_row(g + (size_t)s->id[k] * n, s->in, s->v[k], n);
			else
				NEAP_V(neap__sum)(g + (size_t)s->id[k] * n, s->in, n);
}

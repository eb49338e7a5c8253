/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filters.c: products with shared weights (struct neap__filter). The weights are few and stay in a
 * near cache, so that samples follow each other. Of rows of at most NARROW vectors, the number of
 * vectors is known to the compiler; wider rows go in parts of NARROW vectors.
 */
#include "kern/vector.h"

enum { NARROW = 4 };

/* y[vectors, and a part of `left`] += a x; without `a` where ones is 1: the same bits as a sum. */
INLINE void add_vectors(real *y, const real *x, real a, int ones, int vectors, int left)
{
	vec factor = spread(a);

	EACH_REGISTER(int i = 0; i < vectors; i++)
	store(y + i * WIDE, ones ? load(y + i * WIDE) + load(x + i * WIDE)
				 : multiply_add(factor, load(x + i * WIDE), load(y + i * WIDE)));
	if (!left)
		return;
	vec from = load_part(x + vectors * WIDE, left), to = load_part(y + vectors * WIDE, left);
	store_part(y + vectors * WIDE, ones ? to + from : multiply_add(factor, from, to), left);
}

/* Of rows of n columns: n / WIDE is `vectors` where that is at most NARROW. */
INLINE void add_row(real *y, const real *x, real a, int ones, int n, int vectors)
{
	if (vectors <= NARROW) {
		add_vectors(y, x, a, ones, vectors, n - vectors * WIDE);
		return;
	}
	for (; n >= NARROW * WIDE; n -= NARROW * WIDE, y += NARROW * WIDE, x += NARROW * WIDE)
		add_vectors(y, x, a, ones, NARROW, 0);
	for (; n >= WIDE; n -= WIDE, y += WIDE, x += WIDE)
		add_vectors(y, x, a, ones, 1, 0);
	if (n)
		add_vectors(y, x, a, ones, 0, n);
}

/*
 * For each output of a sample and each of its taps, adds a row of w to the sums (`gradient` 0), or
 * numbers of `in` to a row of g.
 */
INLINE void add_taps(real *g, const struct neap__matrix *m, const struct neap__sample_rows *s,
	int ones, int gradient, int vectors)
{
	const struct neap__filter *w = m->filter;
	int n = m->columns;

	for (int k = 0; k < s->count; k++) {
		const struct neap__filter_unit u = w->unit[s->id[k]];
		const struct neap__filter_tap *tap = w->tap + w->start[u.place],
					      *end = w->tap + w->start[u.place + 1];
		real a = ones ? 1 : (real)w->factor * (s->v ? s->v[k] : (real)1);
		size_t row = (size_t)u.row * (size_t)n;
		for (; tap < end; tap++) {
			size_t at = row + (size_t)tap->row * (size_t)n;
			if (gradient)
				add_row(g + at, s->in + u.at + tap->at, a, ones, n, vectors);
			else
				add_row(s->out + u.at + tap->at, m->w + at, a, ones, n, vectors);
		}
	}
}

INLINE void add_list(real *g, const struct neap__matrix *m, const struct neap__sample_rows *s,
	int ones, int gradient)
{
	switch (m->columns / WIDE) {
	case 0:
		add_taps(g, m, s, ones, gradient, 0);
		break;
	case 1:
		add_taps(g, m, s, ones, gradient, 1);
		break;
	case 2:
		add_taps(g, m, s, ones, gradient, 2);
		break;
	case 4:
		add_taps(g, m, s, ones, gradient, 4);
		break;
	default:
		add_taps(g, m, s, ones, gradient, NARROW + 1);
	}
}

void NEAP_V(neap__filter_adds)(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		if (!s->v && m->filter->factor == 1)
			add_list(NULL, m, s, 1, 0);
		else
			add_list(NULL, m, s, 0, 0);
}

void NEAP_V(neap__filter_grads)(
	real *g, const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		if (!s->v && m->filter->factor == 1)
			add_list(g, m, s, 1, 1);
		else
			add_list(g, m, s, 0, 1);
}

/* a += row . x, lane by lane */
INLINE vec dot_row(vec a, const real *row, const real *x, int n)
{
	int i = 0;

	for (; i + WIDE <= n; i += WIDE)
		a = multiply_add(load(row + i), load(x + i), a);
	return i < n ? multiply_add(load_part(row + i, n - i), load_part(x + i, n - i), a) : a;
}

/* Two sums of taps in turn, which hides the latency of an addition; lanes are added up at the end.
 */
void NEAP_V(neap__filter_dots)(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	const struct neap__filter *w = m->filter;
	int n = m->columns;

	for (const struct neap__sample_rows *s = sample; s < sample + samples; s++)
		for (int k = 0; k < s->count; k++) {
			const struct neap__filter_unit u = w->unit[s->id[k]];
			const struct neap__filter_tap *tap = w->tap + w->start[u.place],
						      *end = w->tap + w->start[u.place + 1];
			const real *rows = m->w + (size_t)u.row * (size_t)n, *x = s->in + u.at;
			vec a = {0}, b = {0};
			for (; tap + 2 <= end; tap += 2) {
				a = dot_row(
					a, rows + (size_t)tap[0].row * (size_t)n, x + tap[0].at, n);
				b = dot_row(
					b, rows + (size_t)tap[1].row * (size_t)n, x + tap[1].at, n);
			}
			if (tap < end)
				a = dot_row(a, rows + (size_t)tap->row * (size_t)n, x + tap->at, n);
			s->out[k] += (real)w->factor * reduce(a + b);
		}
}

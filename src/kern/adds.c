/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adds: rows of weights that arrive at samples. Spikes: the rows of a list go four at a
 * time, so that the sums are read and written once for four; element by element in the
 * list's order. Numbers: one row after the other, its products fused with the sums.
 */
#include "kern/vector.h"

enum { TOGETHER = 4 };

static void add_ones(real *y, const struct neap__matrix *m, const uint16_t *id, int rows)
{
	const real *row[TOGETHER];
	int n = m->columns, i = 0;

	EACH_REGISTER(int r = 0; r < TOGETHER; r++)
	row[r] = m->w + (size_t)id[r < rows ? r : 0] * n;
	if (rows == TOGETHER)
		for (; i + WIDE <= n; i += WIDE) {
			vec a = load(y + i);
			EACH_REGISTER(int r = 0; r < TOGETHER; r++)
			a += load(row[r] + i);
			store(y + i, a);
		}
	for (; i + WIDE <= n; i += WIDE) {
		vec a = load(y + i);
		for (int r = 0; r < rows; r++)
			a += load(row[r] + i);
		store(y + i, a);
	}
	if (i == n)
		return;
	vec a = load_part(y + i, n - i);
	for (int r = 0; r < rows; r++)
		a += load_part(row[r] + i, n - i);
	store_part(y + i, a, n - i);
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

void NEAP_V(neap__adds)(const struct neap__matrix *m, const struct neap__share *share, int shares)
{
	int n = m->columns;

	for (const struct neap__share *s = share; s < share + shares; s++)
		if (s->v)
			for (int k = 0; k < s->count; k++)
				add_row(s->out, m->w + (size_t)s->id[k] * n, s->v[k], n);
		else
			for (int k = 0; k < s->count; k += TOGETHER)
				add_ones(s->out, m, s->id + k,
					s->count - k < TOGETHER ? s->count - k : TOGETHER);
}

void NEAP_V(neap__grads)(
	real *g, const struct neap__matrix *m, const struct neap__share *share, int shares)
{
	int n = m->columns;

	for (const struct neap__share *s = share; s < share + shares; s++)
		for (int k = 0; k < s->count; k++)
			if (s->v)
				add_row(g + (size_t)s->id[k] * n, s->in, s->v[k], n);
			else
				NEAP_V(neap__sum)(g + (size_t)s->id[k] * n, s->in, n);
}

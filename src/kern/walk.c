/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: membranes of a strip of units over many steps, all incoming spikes known. The
 * strip's membranes stay in registers and its weights in a near cache; every sum is made
 * in the order in which one step after the other makes it, and never fused, so that the
 * bits are the same.
 */
#include "kern/vector.h"

struct strip {
	vec v[NEAP__WALK_VECTORS];
};

/* Adds the rows of the list, in its order. */
static inline void gather(struct strip *u, const real *w, const struct neap__events *e)
{
	const vec *rows = (const vec *)(const void *)w;
	vec a = u->v[0], b = u->v[1], c = u->v[2], d = u->v[3];
	vec p = u->v[4], q = u->v[5], r = u->v[6], s = u->v[7];
	for (int k = 0; k < e->count; k++) {
		const vec *row = rows + (size_t)e->id[k] * NEAP__WALK_VECTORS;
		a += row[0];
		b += row[1];
		c += row[2];
		d += row[3];
		p += row[4];
		q += row[5];
		r += row[6];
		s += row[7];
	}
	u->v[0] = a;
	u->v[1] = b;
	u->v[2] = c;
	u->v[3] = d;
	u->v[4] = p;
	u->v[5] = q;
	u->v[6] = r;
	u->v[7] = s;
}

/* What a unit that spiked becomes. */
static inline void reset(struct strip *u, const mask *m, const struct neap__walk *w)
{
	int fixed = w->reset == NEAP__WALK_ZERO || w->reset == NEAP__WALK_HARD;
	vec to = (vec){0} + (w->reset == NEAP__WALK_HARD ? w->to : 0);
	for (int i = 0; i < NEAP__WALK_VECTORS; i++) {
		mask yes = (mask)(fixed ? to : u->v[i] - w->theta);
		u->v[i] = (vec)((m[i] & yes) | (~m[i] & (mask)u->v[i]));
	}
}

void NEAP_V(neap__walk)(const struct neap__walk *w, int strip)
{
	enum { UNITS = NEAP__WALK_VECTORS * WIDE };
	int from = strip * UNITS, n = w->n - from < UNITS ? w->n - from : UNITS;
	int late = w->reset == NEAP__WALK_ZERO || w->reset == NEAP__WALK_SUBTRACT;
	const real *in = w->in + (size_t)strip * w->in_rows * UNITS;
	const real *own = w->own ? w->own + (size_t)strip * w->n * UNITS : NULL;
	real padded[UNITS] = {0};
	struct strip u, bias;
	mask m[NEAP__WALK_VECTORS];

	memcpy(padded, w->bias + from, (size_t)n * sizeof(real));
	memcpy(&bias, padded, sizeof bias);
	memset(padded, 0, sizeof padded);
	for (int k = 0; late && k < w->spiked->count; k++)
		if (w->spiked->id[k] >= from && w->spiked->id[k] < from + UNITS)
			padded[w->spiked->id[k] - from] = 1;
	memcpy(&u, padded, sizeof u);
	for (int i = 0; i < NEAP__WALK_VECTORS; i++)
		m[i] = (mask)(u.v[i] > (vec){0});
	memcpy(padded, w->u + from, (size_t)n * sizeof(real));
	memset(padded + n, 0, (size_t)(UNITS - n) * sizeof(real));
	memcpy(&u, padded, sizeof u);
	for (int t = 0; t < w->steps; t++) {
		for (int i = 0; i < NEAP__WALK_VECTORS; i++)
			u.v[i] = w->beta * u.v[i] + bias.v[i];
		gather(&u, in, &w->arriving[t]);
		if (own)
			gather(&u, own, &w->spiked[t]);
		memcpy(w->out + (size_t)t * w->stride + from, &u, sizeof u);
		if (late)
			reset(&u, m, w);
		for (int i = 0; i < NEAP__WALK_VECTORS; i++)
			m[i] = (mask)(u.v[i] > (vec){0} + w->theta);
		if (!late)
			reset(&u, m, w);
	}
	memcpy(padded, &u, sizeof u);
	memcpy(w->u + from, padded, (size_t)n * sizeof(real));
}

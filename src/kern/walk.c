/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: membranes of a strip of units over many steps, all incoming spikes known. The
 * strip's membranes stay in registers and its weights in a near cache; every sum is made
 * in the order in which one step after the other makes it, so the bits are the same.
 */
#include "kern/kern.h"

#include <string.h>

enum { LANES = 8, WIDTH = 16 / sizeof(real) };

typedef real vec __attribute__((vector_size(16)));
#ifdef NEAP_REAL_DOUBLE
typedef int64_t mask __attribute__((vector_size(16)));
#else
typedef int32_t mask __attribute__((vector_size(16)));
#endif

_Static_assert(LANES *WIDTH == NEAP__STRIP, "a strip is LANES vectors");

struct strip {
	vec v[LANES];
};

/* Adds the rows of the list, in its order. */
static inline void gather(struct strip *u, const vec *w, const struct neap__events *e)
{
	vec a = u->v[0], b = u->v[1], c = u->v[2], d = u->v[3];
	vec p = u->v[4], q = u->v[5], r = u->v[6], s = u->v[7];
	for (int k = 0; k < e->count; k++) {
		const vec *row = w + (size_t)e->id[k] * LANES;
		a += row[0];
		b += row[1];
		c += row[2];
		d += row[3];
		p += row[4];
		q += row[5];
		r += row[6];
		s += row[7];
	}
	*u = (struct strip){{a, b, c, d, p, q, r, s}};
}

static inline vec either(mask m, vec yes, vec no)
{
	return (vec)((m & (mask)yes) | (~m & (mask)no));
}

/* Units that spiked before the first step. */
static void first_marks(mask *m, const struct neap__events *before, int from)
{
	real one[NEAP__STRIP] = {0};
	for (int k = 0; k < before->count; k++)
		if (before->id[k] >= from && before->id[k] < from + NEAP__STRIP)
			one[before->id[k] - from] = 1;
	for (int i = 0; i < LANES; i++) {
		vec v;
		memcpy(&v, one + i * WIDTH, sizeof v);
		m[i] = (mask)(v > (vec){0});
	}
}

static inline void reset_late(struct strip *u, const mask *m, const struct neap__walk *w)
{
	for (int i = 0; i < LANES; i++)
		u->v[i] = either(
			m[i], w->reset == NEAP__WALK_ZERO ? (vec){0} : u->v[i] - w->theta, u->v[i]);
}

static inline void reset_at_once(struct strip *u, const mask *m, const struct neap__walk *w)
{
	vec to = (vec){0} + w->to;
	for (int i = 0; i < LANES; i++)
		u->v[i] = either(
			m[i], w->reset == NEAP__WALK_HARD ? to : u->v[i] - w->theta, u->v[i]);
}

void neap__walk_strip(const struct neap__walk *w, int strip)
{
	int from = strip * NEAP__STRIP, n = w->n - from < NEAP__STRIP ? w->n - from : NEAP__STRIP;
	int late = w->reset == NEAP__WALK_ZERO || w->reset == NEAP__WALK_SUBTRACT;
	const vec *in =
		(const vec *)(const void *)(w->in + (size_t)strip * w->in_rows * NEAP__STRIP);
	const vec *own =
		w->own ? (const vec *)(const void *)(w->own + (size_t)strip * w->n * NEAP__STRIP)
		       : NULL;
	real padded[NEAP__STRIP] = {0};
	struct strip u, bias;
	mask m[LANES];

	memcpy(padded, w->u + from, (size_t)n * sizeof(real));
	memcpy(&u, padded, sizeof u);
	memcpy(padded, w->bias + from, (size_t)n * sizeof(real));
	memcpy(&bias, padded, sizeof bias);
	if (late)
		first_marks(m, w->spiked, from);
	for (int t = 0; t < w->steps; t++) {
		for (int i = 0; i < LANES; i++)
			u.v[i] = w->beta * u.v[i] + bias.v[i];
		gather(&u, in, &w->arriving[t]);
		if (own)
			gather(&u, own, &w->spiked[t]);
		memcpy(w->out + (size_t)t * w->stride + from, &u, sizeof u);
		if (late)
			reset_late(&u, m, w);
		for (int i = 0; i < LANES; i++)
			m[i] = (mask)(u.v[i] > (vec){0} + w->theta);
		if (!late)
			reset_at_once(&u, m, w);
	}
	memcpy(padded, &u, sizeof u);
	memcpy(w->u + from, padded, (size_t)n * sizeof(real));
}

/* Row by row within a strip, so that a strip's weights lie together. */
void neap__walk_pack(real *packed, const real *w, int rows, int n)
{
	for (int from = 0; from < n; from += NEAP__STRIP)
		for (int j = 0; j < rows; j++, packed += NEAP__STRIP) {
			int most = n - from < NEAP__STRIP ? n - from : NEAP__STRIP;
			memset(packed, 0, NEAP__STRIP * sizeof(real));
			memcpy(packed, w + (size_t)j * n + from, (size_t)most * sizeof(real));
		}
}

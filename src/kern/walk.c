/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: membranes of a strip of units over many steps, all incoming spikes known. The
 * membranes stay in registers and the strip's weights in a near cache; every sum is made
 * in the order in which one step after the other makes it, and never fused, so that the
 * bits are the same. A strip has as many vectors as keep the adders busy, and no more, so
 * that its weights take little of the cache.
 */
#include "kern/lanes.h"

enum { V = NEAP__WALK_VECTORS, UNITS = V * WIDE };

struct strip {
	int from, n; /* units */
	const real *rows;
	vec bias[V];
	mask there[V];
};

INLINE struct strip strip_of(const struct neap__walk *w, int strip)
{
	struct strip s = {.from = strip * UNITS};

	s.n = w->n - s.from < UNITS ? w->n - s.from : UNITS;
	s.rows = w->w + (size_t)strip * w->rows * UNITS;
	EACH_REGISTER(int i = 0; i < V; i++)
	{
		s.bias[i] = load_some(w->bias + s.from, i, s.n);
		s.there[i] = first_lanes(s.n - i * WIDE);
	}
	return s;
}

/* The lanes of units from `from` on whose bits are set. */
INLINE mask marked(const uint64_t *bits, int from)
{
	mask set;

	EACH_REGISTER(int i = 0; i < WIDE; i++)
	set[i] = (lane)(bits[from / 64] >> (from % 64 + i) & 1);
	return -set;
}

/* What a unit that spiked becomes: `to` where `fixed` is set. */
struct reset {
	vec theta, to;
	mask fixed;
};

INLINE vec reset(vec u, mask spiked, struct reset r)
{
	mask yes = (r.fixed & (mask)r.to) | (~r.fixed & (mask)(u - r.theta));
	return (vec)((spiked & yes) | (~spiked & (mask)u));
}

INLINE void go(
	const struct neap__walk *w, const struct neap__walker *q, int strip, int late, int listed)
{
	struct strip s = strip_of(w, strip);
	int fixed = w->reset == NEAP__WALK_ZERO || w->reset == NEAP__WALK_HARD, most = w->most;
	struct reset r = {(vec){0} + w->theta, (vec){0} + (w->reset == NEAP__WALK_HARD ? w->to : 0),
		(mask){0} - fixed};
	vec beta = spread(w->beta), cut = spread(w->cut), u[V];
	const uint32_t *from = q->from;
	real *value = (real *)q->value + (listed ? 0 : s.from);
	real *near = listed ? q->near : value; /* steps are as far apart as those of the values */
	mask spiked[V];

	EACH_REGISTER(int i = 0; i < V; i++)
	{
		u[i] = load_some((const real *)q->u + s.from, i, s.n);
		spiked[i] = late ? marked(q->spiked, s.from + i * WIDE) : (mask){0};
	}
	for (int t = 0; t < q->steps; t++, value += w->stride, near += w->stride) {
		EACH_REGISTER(int i = 0; i < V; i++)
		u[i] = beta * u[i] + s.bias[i];
		for (const uint32_t *end = from + q->count[t]; from < end; from++)
			EACH_REGISTER(int i = 0; i < V; i++)
		u[i] += load((const real *)(const void *)((const char *)s.rows + *from) + i * WIDE);
		EACH_REGISTER(int i = 0; i < V && !listed; i++)
		store(value + i * WIDE, u[i]);
		EACH_REGISTER(int i = 0; i < V && late; i++)
		u[i] = reset(u[i], spiked[i], r);
		if (listed) {
			int count = q->kept[t], at = count < most ? count : most, more = 0;
			EACH_REGISTER(int i = 0; i < V; i++)
			{
				vec x = u[i] - r.theta;
				more += keep_lanes((uint16_t *)(void *)near + at + more,
					value + at + more, u[i],
					(x <= cut) & (x >= -cut) & s.there[i], s.from + i * WIDE);
			}
			q->kept[t] = count + more;
		}
		EACH_REGISTER(int i = 0; i < V; i++)
		{
			spiked[i] = u[i] > r.theta;
			u[i] = late ? u[i] : reset(u[i], spiked[i], r);
		}
	}
	EACH_REGISTER(int i = 0; i < V; i++)
	store_some((real *)q->u + s.from, i, s.n, u[i]);
}

void NEAP_V(neap__walk)(const struct neap__walk *w, const struct neap__walker *q, int strip)
{
	int late = w->reset == NEAP__WALK_ZERO || w->reset == NEAP__WALK_SUBTRACT;

	if (late && q->near)
		go(w, q, strip, 1, 1);
	else if (late)
		go(w, q, strip, 1, 0);
	else if (q->near)
		go(w, q, strip, 0, 1);
	else
		go(w, q, strip, 0, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * membranes.c: many steps of a strip of units, where all incoming spikes are known.
 *
 * Currents are the sums of the rows that arrive. They stay in registers and the strip's weights in
 * a near cache. Rows are added in the order of their list, so that the bits are those of one step
 * after the other.
 *
 * Membranes follow from the currents. They stay in registers; every sum is made as one step after
 * the other makes it, and is never fused, so that the bits are the same. A walk keeps either all
 * membranes, or those inside the support, one after the other for all steps; `collect` puts
 * together what the strips kept of a step.
 */
#include "kern/lanes.h"

enum { V = NEAP__WALK_VECTORS, UNITS = V * WIDE, ROW = UNITS * sizeof(real) };

/* A bit for each unit of a strip. */
#if NEAP__LANES * 4 == 64
typedef uint64_t units;
#elif NEAP__LANES * 4 == 32
typedef uint32_t units;
#elif NEAP__LANES * 4 == 16
typedef uint16_t units;
#else
typedef uint8_t units;
#endif
_Static_assert(sizeof(units) * 8 == UNITS, "a bit for each unit");

/* The mask of bits [from, from + WIDE). */
INLINE mask marked(uint64_t bits, int from)
{
	mask set;

	EACH_REGISTER(int i = 0; i < WIDE; i++)
	set[i] = (lane)(bits >> (from + i) & 1);
	return -set;
}

/* The membranes after a reset of the units that spiked. */
INLINE vec reset(enum neap__membrane_walk_reset kind, vec u, mask spiked, vec theta, vec to)
{
	switch (kind) {
	case NEAP__WALK_ZERO:
		return (vec)(~spiked & (mask)u);
	case NEAP__WALK_HARD:
		return (vec)((~spiked & (mask)u) | (spiked & (mask)to));
	case NEAP__WALK_SUBTRACT:
	case NEAP__WALK_SOFT:
	default:
		return u - (vec)(spiked & (mask)theta);
	}
}

/* `listed`: membranes inside the support alone are kept. A copy for each reset and either form. */
INLINE int walk_strip(const struct neap__membrane_walk *w, const struct neap__walker *walker,
	enum neap__membrane_walk_reset kind, int listed)
{
	int delayed = kind == NEAP__WALK_SUBTRACT || kind == NEAP__WALK_ZERO, most = walker->most,
	    kept = 0, lost = 0;
	vec beta = spread(w->beta), theta = spread(w->theta), cut = spread(w->cut), u[V];
	vec to = spread(w->to);
	uint64_t present = walker->units < 64 ? ((uint64_t)1 << walker->units) - 1 : ~(uint64_t)0;
	const real *sums = walker->sums;
	real *value = walker->value;
	mask spiked[V];

	EACH_REGISTER(int i = 0; i < V; i++)
	{
		u[i] = load_some(walker->u, i, walker->units);
		spiked[i] = delayed ? marked(walker->spiked, i * WIDE) : (mask){0};
	}
	for (int t = 0; t < walker->steps; t++, sums += UNITS) {
		uint64_t near = 0;
		EACH_REGISTER(int i = 0; i < V; i++)
		u[i] = beta * u[i] + load(sums + i * WIDE);
		EACH_REGISTER(int i = 0; i < V && !listed; i++)
		store(value + t * UNITS + i * WIDE, u[i]);
		EACH_REGISTER(int i = 0; i < V && delayed; i++)
		u[i] = reset(kind, u[i], spiked[i], theta, to);
		lost |= kept > most;
		kept = kept < most ? kept : most;
		EACH_REGISTER(int i = 0; i < V && listed; i++)
		{
			vec x = u[i] - theta;
			uint64_t bits = bits_of(absolute(x) <= cut) & (present >> (i * WIDE));
			near |= bits << (i * WIDE);
			kept += keep_lanes(value + kept, u[i], bits);
		}
		if (listed) {
			((units *)walker->near)[t] = (units)near;
			walker->near_count[t] += __builtin_popcountll(near);
		}
		EACH_REGISTER(int i = 0; i < V; i++)
		{
			spiked[i] = u[i] > theta;
			u[i] = delayed ? u[i] : reset(kind, u[i], spiked[i], theta, to);
		}
	}
	EACH_REGISTER(int i = 0; i < V; i++)
	store_some(walker->u, i, walker->units, u[i]);
	return lost ? most + 1 : kept;
}

int NEAP_V(neap__membrane_walk)(
	const struct neap__membrane_walk *w, const struct neap__walker *walker)
{
	switch (w->reset) {
	case NEAP__WALK_SUBTRACT:
		return walker->near ? walk_strip(w, walker, NEAP__WALK_SUBTRACT, 1)
				    : walk_strip(w, walker, NEAP__WALK_SUBTRACT, 0);
	case NEAP__WALK_ZERO:
		return walker->near ? walk_strip(w, walker, NEAP__WALK_ZERO, 1)
				    : walk_strip(w, walker, NEAP__WALK_ZERO, 0);
	case NEAP__WALK_HARD:
		return walker->near ? walk_strip(w, walker, NEAP__WALK_HARD, 1)
				    : walk_strip(w, walker, NEAP__WALK_HARD, 0);
	case NEAP__WALK_SOFT:
	default:
		return walker->near ? walk_strip(w, walker, NEAP__WALK_SOFT, 1)
				    : walk_strip(w, walker, NEAP__WALK_SOFT, 0);
	}
}

int NEAP_V(neap__collect)(uint16_t *id, real *value, struct neap__found *strip, int strips, int t)
{
	int count = 0, at = 0;

	for (struct neap__found *s = strip; s < strip + strips; s++) {
		int here = __builtin_popcountll(((const units *)s->near)[t]);
		for (int k = 0; k < here; k += WIDE)
			store(value + count + k, load(s->value + k));
		s->value += here;
		count += here;
	}
	for (int s = 0; s < strips; s++) {
		uint64_t near = ((const units *)strip[s].near)[t];
		EACH_REGISTER(int i = 0; i < V; i++)
		at += list_lanes(id + at, near >> (i * WIDE) & (~(uint64_t)0 >> (64 - WIDE)),
			s * UNITS + i * WIDE);
	}
	return count;
}

INLINE void add_steps(const real *strip, const struct neap__arrivals *a, int begun)
{
	const uint16_t *row = a->row;
	real *sums = a->sums;
	vec begin[V], sum[V];

	EACH_REGISTER(int i = 0; i < V; i++)
	begin[i] = begun ? (vec){0} : load_some(a->begin, i, a->units);
	for (int t = 0; t < a->steps; t++, sums += UNITS) {
		EACH_REGISTER(int i = 0; i < V; i++)
		sum[i] = begun ? load(sums + i * WIDE) : begin[i];
		for (const uint16_t *end = row + a->count[t]; row < end; row++) {
			const char *at = (const char *)strip + (size_t)*row * ROW;
			EACH_REGISTER(int i = 0; i < V; i++)
			sum[i] += load((const real *)(const void *)at + i * WIDE);
		}
		EACH_REGISTER(int i = 0; i < V; i++)
		store(sums + i * WIDE, sum[i]);
	}
}

void NEAP_V(neap__currents)(const real *strip, const struct neap__arrivals *a)
{
	if (a->begin)
		add_steps(strip, a, 0);
	else
		add_steps(strip, a, 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * currents.c: what arrives at a strip of units over many steps, where all incoming spikes are
 * known. The sums stay in registers and the strip's weights in a near cache. Rows are added in the
 * order of their list, so that the bits are those of one step after the other.
 */
#include "kern/vector.h"

enum { V = NEAP__WALK_VECTORS, UNITS = V * WIDE, ROW = UNITS * sizeof(real) };

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

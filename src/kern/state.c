/* SPDX-License-Identifier: Apache-2.0 */
/* state.c: passes over the membranes of a layer; comparisons give a vector's result as bits. */
#include "kern/lanes.h"

#if NEAP__INTRINSICS == 32 && !defined NEAP_REAL_DOUBLE
uint64_t NEAP_V(neap__set_lanes)[1 << NEAP__LANES];

void NEAP_V(neap__state_begin)(void)
{
	for (unsigned bits = 0; bits < 1 << NEAP__LANES; bits++) {
		uint64_t set = 0;
		int count = 0;
		for (uint64_t i = 0; i < NEAP__LANES; i++)
			if (bits >> i & 1)
				set |= i << (8 * count++);
		NEAP_V(neap__set_lanes)[bits] = set;
	}
}
#else
void NEAP_V(neap__state_begin)(void)
{
}
#endif

int NEAP_V(neap__spikes)(uint16_t *id, const real *u, int n, real theta)
{
	int count = 0, i = 0;

	for (; i + WIDE <= n; i += WIDE)
		count += list_lanes(id + count, bits_above(load(u + i), spread(theta)), i);
	for (; i < n; i++)
		if (u[i] > theta)
			id[count++] = (uint16_t)i;
	return count;
}

int NEAP_V(neap__support)(uint16_t *id, uint16_t *near, real *value, int *nnear, const real *u,
	int n, real theta, real cut)
{
	int count = 0, inside = 0, i = 0;

	for (; i + WIDE <= n; i += WIDE) {
		vec v = load(u + i), x = v - theta;
		uint64_t bits = bits_of(absolute(x) <= cut);
		count += list_lanes(id + count, bits_above(v, spread(theta)), i);
		list_lanes(near + inside, bits, i);
		inside += keep_lanes(value + inside, v, bits);
	}
	for (; i < n; i++) {
		real x = u[i] - theta;
		if (u[i] > theta)
			id[count++] = (uint16_t)i;
		if (x <= cut && x >= -cut) {
			near[inside] = (uint16_t)i;
			value[inside++] = u[i];
		}
	}
	*nnear = inside;
	return count;
}

void NEAP_V(neap__decay)(real *u, real beta, const real *b, int n)
{
	int i = 0;

	for (; i + WIDE <= n; i += WIDE)
		store(u + i, beta * load(u + i) + load(b + i));
	for (; i < n; i++)
		u[i] = beta * u[i] + b[i];
}

void NEAP_V(neap__scale)(real *x, real a, int n)
{
	int i = 0;

	for (; i + WIDE <= n; i += WIDE)
		store(x + i, a * load(x + i));
	for (; i < n; i++)
		x[i] *= a;
}

void NEAP_V(neap__sum)(real *y, const real *x, int n)
{
	int i = 0;

	for (; i + WIDE <= n; i += WIDE)
		store(y + i, load(y + i) + load(x + i));
	for (; i < n; i++)
		y[i] += x[i];
}

/* Exact conversions and one addition per number: the bits of any vector width. */
void NEAP_V(neap__fold)(double *restrict total, real *restrict part, int64_t n)
{
	typedef double wide __attribute__((vector_size(WIDE * sizeof(double))));
	typedef double wide_at __attribute__((
		vector_size(WIDE * sizeof(double)), aligned(sizeof(double)), may_alias));
	int64_t i = 0;

	for (; i + WIDE <= n; i += WIDE) {
		wide_at *to = (wide_at *)(void *)(total + i);
		*to = *to + __builtin_convertvector(load(part + i), wide);
		store(part + i, (vec){0});
	}
	for (; i < n; i++) {
		total[i] += (double)part[i];
		part[i] = 0;
	}
}

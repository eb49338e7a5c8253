/* SPDX-License-Identifier: Apache-2.0 */
/* state: passes over the membranes of a layer: comparisons of a vector at once, as bits. */
#include "kern/lanes.h"

enum { TILE = 64 };

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
	int count = 0;

	for (int base = 0; base < n; base += TILE) {
		uint64_t bits = 0;
		int i = base, end = n - base < TILE ? n : base + TILE;
		for (; i + WIDE <= end; i += WIDE)
			bits |= bits_of(load(u + i) > theta) << (i - base);
		for (; i < end; i++)
			bits |= (uint64_t)(u[i] > theta) << (i - base);
		count = put_bits(id, count, bits, base);
	}
	return count;
}

int NEAP_V(neap__support)(uint16_t *id, uint16_t *near, real *value, int *nnear, const real *u,
	int n, real theta, real cut)
{
	int count = 0, inside = 0;

	for (int base = 0; base < n; base += TILE) {
		uint64_t bits = 0;
		int i = base, end = n - base < TILE ? n : base + TILE;
		for (; i + WIDE <= end; i += WIDE) {
			vec v = load(u + i), x = v - theta;
			bits |= bits_of(v > theta) << (i - base);
			inside += keep_lanes(
				near + inside, value + inside, v, (x <= cut) & (x >= -cut), i);
		}
		if (i < end) {
			vec v = load_part(u + i, end - i), x = v - theta;
			mask there = first_lanes(end - i);
			bits |= bits_of((v > theta) & there) << (i - base);
			inside += keep_lanes(near + inside, value + inside, v,
				(x <= cut) & (x >= -cut) & there, i);
		}
		count = put_bits(id, count, bits, base);
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

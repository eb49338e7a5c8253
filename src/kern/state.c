/* SPDX-License-Identifier: Apache-2.0 */
/* state: passes over the membranes of a layer: comparisons of a vector at once, as bits. */
#include "kern/vector.h"

enum { TILE = 64 };

/* Bit i: lane i is set. */
INLINE uint64_t bits_of(mask m)
{
#if NEAP__VECTOR == 64 && defined NEAP_REAL_DOUBLE
	return _mm512_movepi64_mask((__m512i)m);
#elif NEAP__VECTOR == 64
	return _mm512_movepi32_mask((__m512i)m);
#elif NEAP__VECTOR == 32 && defined NEAP_REAL_DOUBLE
	return (uint64_t)_mm256_movemask_pd((__m256d)m);
#elif NEAP__VECTOR == 32
	return (uint64_t)_mm256_movemask_ps((__m256)m);
#else
	uint64_t bits = 0;
	for (int i = 0; i < WIDE; i++)
		bits |= (uint64_t)(m[i] & 1) << i;
	return bits;
#endif
}

INLINE int put_bits(uint16_t *id, int count, uint64_t bits, int base)
{
	for (; bits; bits &= bits - 1)
		id[count++] = (uint16_t)(base + __builtin_ctzll(bits));
	return count;
}

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

int NEAP_V(neap__support)(
	uint16_t *id, uint16_t *near, int *nnear, const real *u, int n, real theta, real cut)
{
	int count = 0, inside = 0;

	for (int base = 0; base < n; base += TILE) {
		uint64_t bits = 0, close = 0;
		int i = base, end = n - base < TILE ? n : base + TILE;
		for (; i + WIDE <= end; i += WIDE) {
			vec v = load(u + i), x = v - theta;
			bits |= bits_of(v > theta) << (i - base);
			close |= bits_of((x <= cut) & (x >= -cut)) << (i - base);
		}
		for (; i < end; i++) {
			real x = u[i] - theta;
			bits |= (uint64_t)(u[i] > theta) << (i - base);
			close |= (uint64_t)((x <= cut) & (x >= -cut)) << (i - base);
		}
		count = put_bits(id, count, bits, base);
		inside = put_bits(near, inside, close, base);
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

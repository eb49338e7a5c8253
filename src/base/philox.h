/* SPDX-License-Identifier: Apache-2.0 */
/*
 * philox.h: counter-based random numbers, Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011). A number is a function of (seed, stream, a, b):
 * there is no state, so numbers can be drawn in any order on any thread.
 */
#ifndef NEAP_BASE_PHILOX_H
#define NEAP_BASE_PHILOX_H

#include <math.h>
#include <stdint.h>

/* Users of one seed draw from streams of their own. */
enum neap__random_stream {
	NEAP__STREAM_WEIGHTS = 1,
	NEAP__STREAM_MASK,
	NEAP__STREAM_SHUFFLE,
	NEAP__STREAM_SPLIT,
	NEAP__STREAM_RANDMAN,
	NEAP__STREAM_DROPOUT,
	NEAP__STREAM_AUGMENT,
	NEAP__STREAM_TEST,
	NEAP__STREAM_PLAN,
	NEAP__STREAM_CODING,
	NEAP__STREAM_UNITS,
	NEAP__STREAM_VOLLEYS,
};

struct neap__philox4 {
	uint32_t v[4];
};

static inline struct neap__philox4 neap__philox(
	uint64_t seed, uint32_t stream, uint32_t a, uint64_t b)
{
	uint32_t c0 = (uint32_t)b, c1 = (uint32_t)(b >> 32), c2 = a, c3 = stream;
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0;
		uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		c0 = n0;
		c2 = n2;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return (struct neap__philox4){{c0, c1, c2, c3}};
}

static inline uint64_t neap__random_u64(uint64_t seed, uint32_t stream, uint32_t a, uint64_t b)
{
	struct neap__philox4 r = neap__philox(seed, stream, a, b);
	return (uint64_t)r.v[1] << 32 | r.v[0];
}

/* Uniform in [0, 1), 53 bits. */
static inline double neap__random_uniform(uint64_t seed, uint32_t stream, uint32_t a, uint64_t b)
{
	return (double)(neap__random_u64(seed, stream, a, b) >> 11) * 0x1p-53;
}

/* Standard normal (Box and Muller). */
static inline double neap__random_normal(uint64_t seed, uint32_t stream, uint32_t a, uint64_t b)
{
	struct neap__philox4 r = neap__philox(seed, stream, a, b);
	uint64_t x = (uint64_t)r.v[1] << 32 | r.v[0], y = (uint64_t)r.v[3] << 32 | r.v[2];
	double u = ((double)(x >> 11) + 1.0) * 0x1p-53, v = (double)(y >> 11) * 0x1p-53;
	return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* Uniform in 0..n-1, n >= 1 (multiply-shift; bias below n / 2^64). */
static inline uint64_t neap__random_below(
	uint64_t seed, uint32_t stream, uint32_t a, uint64_t b, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)neap__random_u64(seed, stream, a, b) * n) >> 64);
}

#endif

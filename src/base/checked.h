/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checked.h: arithmetic on sizes that may come from a file. A function returns 0 and sets *out, or
 * returns NEAP_EOVERFLOW without a detail line, since the caller knows what the number is.
 */
#ifndef NEAP_BASE_CHECKED_H
#define NEAP_BASE_CHECKED_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

static inline int neap__add_u64(uint64_t *out, uint64_t a, uint64_t b)
{
	return __builtin_add_overflow(a, b, out) ? NEAP_EOVERFLOW : 0;
}

static inline int neap__mul_u64(uint64_t *out, uint64_t a, uint64_t b)
{
	return __builtin_mul_overflow(a, b, out) ? NEAP_EOVERFLOW : 0;
}

static inline int neap__mul_size(size_t *out, size_t a, size_t b)
{
	return __builtin_mul_overflow(a, b, out) ? NEAP_EOVERFLOW : 0;
}

/* These two answer UINT64_MAX instead of overflowing. */
static inline uint64_t neap__sat_add(uint64_t a, uint64_t b)
{
	uint64_t out;
	return __builtin_add_overflow(a, b, &out) ? UINT64_MAX : out;
}

static inline uint64_t neap__sat_mul(uint64_t a, uint64_t b)
{
	uint64_t out;
	return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

/* The next multiple of `to`, a power of two, from `a` on; UINT64_MAX instead of overflowing. */
static inline uint64_t neap__round_up(uint64_t a, uint64_t to)
{
	return a > UINT64_MAX - (to - 1) ? UINT64_MAX : (a + to - 1) & ~(to - 1);
}

#endif

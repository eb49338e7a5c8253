/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes.h: floats as sums of bfloat16 planes (tiles.h), 16 at a time, in vectors of the compiler:
 * the same on all processors.
 */
#ifndef NEAP_KERN_PLANES_H
#define NEAP_KERN_PLANES_H

#include <stdint.h>
#include <string.h>

enum { NEAP__PLANE_LANES = 16 };

typedef uint32_t neap__plane_words __attribute__((vector_size(64)));
typedef float neap__plane_floats __attribute__((vector_size(64)));
typedef uint64_t neap__plane_halves __attribute__((vector_size(64)));
typedef uint32_t neap__plane_pairs __attribute__((vector_size(32)));

/* neap__bf16_round of all lanes, in their upper halves. */
static inline __attribute__((always_inline)) neap__plane_words neap__plane_round(
	neap__plane_words bits)
{
	neap__plane_words is_small = (neap__plane_words)((bits & 0x7F800000U) == 0);

	bits = (bits & ~is_small) | (bits & is_small & 0x80000000U);
	neap__plane_words is_nan = (neap__plane_words)((bits & 0x7FFFFFFFU) > 0x7F800000U);
	neap__plane_words rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000U;

	return (rounded & ~is_nan) | (((bits & 0xFFFF0000U) | 0x400000U) & is_nan);
}

/* Returns the next plane of *x, and subtracts it; 0 is left of what is not finite. */
static inline __attribute__((always_inline)) neap__plane_words neap__plane_take(
	neap__plane_words *x)
{
	neap__plane_words part = neap__plane_round(*x);
	neap__plane_words is_finite = (neap__plane_words)((part & 0x7F800000U) != 0x7F800000U);

	*x = (neap__plane_words)((neap__plane_floats)*x - (neap__plane_floats)part) & is_finite;
	return part;
}

/* Up to NEAP__PLANE_LANES floats; zeros behind them. */
static inline __attribute__((always_inline)) neap__plane_words neap__plane_load(
	const float *from, int count)
{
	neap__plane_words x;

	if (count >= NEAP__PLANE_LANES) {
		memcpy(&x, from, sizeof x);
		return x;
	}
	memset(&x, 0, sizeof x);
	memcpy(&x, from, (size_t)count * sizeof *from);
	return x;
}

/* The pairs of neighbours of a plane: the first number in the upper half. */
static inline __attribute__((always_inline)) neap__plane_pairs neap__plane_join(
	neap__plane_words part)
{
	neap__plane_halves both = (neap__plane_halves)part;

	return __builtin_convertvector((both & 0xFFFF0000U) | both >> 48, neap__plane_pairs);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vector.h: the few operations that vector kernels are written in. Their files are
 * compiled once for each instruction set, with its flags and -DNEAP__ISA=its name;
 * NEAP_V(name) is the name a function carries there.
 */
#ifndef NEAP_KERN_VECTOR_H
#define NEAP_KERN_VECTOR_H

#include "kern/kern.h"

#include <string.h>

#define NEAP__PASTE_(name, isa) name##_##isa
#define NEAP__PASTE(name, isa) NEAP__PASTE_(name, isa)
#define NEAP_V(name) NEAP__PASTE(NEAP__PASTE(name, NEAP__ISA), NEAP__PRECISION_NAME)
#ifdef NEAP_REAL_DOUBLE
#define NEAP__PRECISION_NAME double
typedef int64_t lane;
#else
#define NEAP__PRECISION_NAME float
typedef int32_t lane;
#endif

#if defined NEAP__ISA_IS_avx512
#define NEAP__VECTOR 64
#elif defined NEAP__ISA_IS_avx2
#define NEAP__VECTOR 32
#else
#define NEAP__VECTOR 16
#endif
#if NEAP__VECTOR > 16
#include <immintrin.h>
#endif
#ifdef NEAP_REAL_DOUBLE
#define NEAP__LANES (NEAP__VECTOR / 8)
#else
#define NEAP__LANES (NEAP__VECTOR / 4)
#endif

/* Vectors, and the same wherever a number may lie. */
typedef real vec __attribute__((vector_size(NEAP__VECTOR)));
typedef real vec_at __attribute__((vector_size(NEAP__VECTOR), aligned(sizeof(real)), may_alias));
typedef lane mask __attribute__((vector_size(NEAP__VECTOR)));
enum { WIDE = NEAP__LANES }; /* numbers in one */

/* Loops over registers: the compiler must see through them. */
#define EACH_REGISTER _Pragma("GCC unroll 16") for
#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const real *p)
{
	return *(const vec_at *)(const void *)p;
}

INLINE void store(real *p, vec v)
{
	*(vec_at *)(void *)p = v;
}

/* The first `count` < WIDE numbers; zeros behind them, and nothing there is touched. */
INLINE vec load_part(const real *p, int count)
{
	vec v = {0};
	for (int i = 0; i < count; i++)
		v[i] = p[i];
	return v;
}

INLINE void store_part(real *p, vec v, int count)
{
	for (int i = 0; i < count; i++)
		p[i] = v[i];
}

/* a b + c, rounded once where the machine can. */
INLINE vec multiply_add(vec a, vec b, vec c)
{
#if NEAP__VECTOR == 64 && defined NEAP_REAL_DOUBLE
	return (vec)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif NEAP__VECTOR == 64
	return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif NEAP__VECTOR == 32 && defined NEAP_REAL_DOUBLE
	return (vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif NEAP__VECTOR == 32
	return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
	return a * b + c;
#endif
}

/* The vector with its halves, or the halves of parts of 2 `by` numbers, changed over. */
#define SWAP_2(v, by) __builtin_shufflevector(v, v, (by) ^ 0, (by) ^ 1)
#define SWAP_4(v, by) __builtin_shufflevector(v, v, (by) ^ 0, (by) ^ 1, (by) ^ 2, (by) ^ 3)
#define SWAP_8(v, by)                                                                              \
	__builtin_shufflevector(v, v, (by) ^ 0, (by) ^ 1, (by) ^ 2, (by) ^ 3, (by) ^ 4, (by) ^ 5,  \
		(by) ^ 6, (by) ^ 7)
#define SWAP_16(v, by)                                                                             \
	__builtin_shufflevector(v, v, (by) ^ 0, (by) ^ 1, (by) ^ 2, (by) ^ 3, (by) ^ 4, (by) ^ 5,  \
		(by) ^ 6, (by) ^ 7, (by) ^ 8, (by) ^ 9, (by) ^ 10, (by) ^ 11, (by) ^ 12,           \
		(by) ^ 13, (by) ^ 14, (by) ^ 15)

/* The sum of a vector's numbers: halves upon each other. */
INLINE real reduce(vec v)
{
#if NEAP__LANES == 16
	v += SWAP_16(v, 8);
	v += SWAP_16(v, 4);
	v += SWAP_16(v, 2);
	v += SWAP_16(v, 1);
#elif NEAP__LANES == 8
	v += SWAP_8(v, 4);
	v += SWAP_8(v, 2);
	v += SWAP_8(v, 1);
#elif NEAP__LANES == 4
	v += SWAP_4(v, 2);
	v += SWAP_4(v, 1);
#else
	v += SWAP_2(v, 1);
#endif
	return v[0];
}

/* The vector kernels, each in the file of its name. */
void NEAP_V(neap__dots)(const struct neap__matrix *m, const struct neap__share *share, int shares);
void NEAP_V(neap__walk)(const struct neap__walk *walk, int strip);
enum { NEAP__WALK_VECTORS = 8 }; /* in a strip of the walk */

#endif

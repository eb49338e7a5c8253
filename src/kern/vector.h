/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vector.h: the few operations that vector kernels are written in. Their files are compiled once
 * for each instruction set, with its flags and -DNEAP__ISA=its name; NEAP_V(name) is the name that
 * a function carries there.
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
#define NEAP__FUSED __builtin_fma
typedef int64_t lane;
#else
#define NEAP__PRECISION_NAME float
#define NEAP__FUSED __builtin_fmaf
typedef int32_t lane;
#endif

#if defined NEAP__ISA_IS_avx512
#define NEAP__VECTOR 64
#elif defined NEAP__ISA_IS_avx2
#define NEAP__VECTOR 32
#else
#define NEAP__VECTOR 16
#endif
/* The width of intrinsics; without AVX-512's, the compiler lowers its kernels lane by lane. */
#if NEAP__VECTOR == 64 && !defined __AVX512F__
#define NEAP__INTRINSICS 0
#else
#define NEAP__INTRINSICS NEAP__VECTOR
#endif
#if NEAP__INTRINSICS > 16
#include <immintrin.h>
#endif
#ifdef NEAP_REAL_DOUBLE
#define NEAP__LANES (NEAP__VECTOR / 8)
#else
#define NEAP__LANES (NEAP__VECTOR / 4)
#endif

/* A vector, a vector at any address of a number, and a mask: all ones or zeros in each lane. */
typedef real vec __attribute__((vector_size(NEAP__VECTOR)));
typedef real vec_at __attribute__((vector_size(NEAP__VECTOR), aligned(sizeof(real)), may_alias));
typedef lane mask __attribute__((vector_size(NEAP__VECTOR)));
enum { WIDE = NEAP__LANES }; /* numbers in a vector */

/*
 * A loop over an array of vectors: unrolled, so that the compiler keeps the array in registers.
 * Lowered lane by lane it does not fit in them, and unrolled code takes ten times as long to
 * compile.
 */
#if NEAP__INTRINSICS
#define EACH_REGISTER _Pragma("GCC unroll 16") for
#else
#define EACH_REGISTER for
#endif
#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const real *p)
{
	return *(const vec_at *)(const void *)p;
}

INLINE void store(real *p, vec v)
{
	*(vec_at *)(void *)p = v;
}

/* All ones in the first `count` lanes. */
INLINE mask first_lanes(int count)
{
	mask lanes;
	EACH_REGISTER(int i = 0; i < WIDE; i++)
	lanes[i] = i;
	return lanes < (mask){0} + (lane)count;
}

/* The first `count` < WIDE numbers, zeros behind them; reads and writes no others. */
INLINE vec load_part(const real *p, int count)
{
#if NEAP__INTRINSICS == 64 && defined NEAP_REAL_DOUBLE
	return (vec)_mm512_maskz_loadu_pd((__mmask8)((1U << count) - 1), p);
#elif NEAP__INTRINSICS == 64
	return (vec)_mm512_maskz_loadu_ps((__mmask16)((1U << count) - 1), p);
#elif NEAP__INTRINSICS == 32 && defined NEAP_REAL_DOUBLE
	return (vec)_mm256_maskload_pd(p, (__m256i)first_lanes(count));
#elif NEAP__INTRINSICS == 32
	return (vec)_mm256_maskload_ps(p, (__m256i)first_lanes(count));
#else
	vec v = {0};
	for (int i = 0; i < count; i++)
		v[i] = p[i];
	return v;
#endif
}

INLINE void store_part(real *p, vec v, int count)
{
#if NEAP__INTRINSICS == 64 && defined NEAP_REAL_DOUBLE
	_mm512_mask_storeu_pd(p, (__mmask8)((1U << count) - 1), (__m512d)v);
#elif NEAP__INTRINSICS == 64
	_mm512_mask_storeu_ps(p, (__mmask16)((1U << count) - 1), (__m512)v);
#elif NEAP__INTRINSICS == 32 && defined NEAP_REAL_DOUBLE
	_mm256_maskstore_pd(p, (__m256i)first_lanes(count), (__m256d)v);
#elif NEAP__INTRINSICS == 32
	_mm256_maskstore_ps(p, (__m256i)first_lanes(count), (__m256)v);
#else
	for (int i = 0; i < count; i++)
		p[i] = v[i];
#endif
}

/* Vector i of a row of `columns` numbers. */
INLINE vec load_some(const real *p, int i, int columns)
{
	int left = columns - i * WIDE;
	return left >= WIDE ? load(p + i * WIDE)
	       : left > 0   ? load_part(p + i * WIDE, left)
			    : (vec){0};
}

INLINE void store_some(real *p, int i, int columns, vec v)
{
	int left = columns - i * WIDE;
	if (left >= WIDE)
		store(p + i * WIDE, v);
	else if (left > 0)
		store_part(p + i * WIDE, v, left);
}

/* One number in every lane. */
INLINE vec spread(real x)
{
#if NEAP__INTRINSICS == 64 && defined NEAP_REAL_DOUBLE
	return (vec)_mm512_set1_pd(x);
#elif NEAP__INTRINSICS == 64
	return (vec)_mm512_set1_ps(x);
#elif NEAP__INTRINSICS == 32 && defined NEAP_REAL_DOUBLE
	return (vec)_mm256_set1_pd(x);
#elif NEAP__INTRINSICS == 32
	return (vec)_mm256_set1_ps(x);
#else
	vec v;
	EACH_REGISTER(int i = 0; i < WIDE; i++)
	v[i] = x;
	return v;
#endif
}

/* a b + c, rounded once where the instruction set can. */
INLINE vec multiply_add(vec a, vec b, vec c)
{
#if NEAP__INTRINSICS == 64 && defined NEAP_REAL_DOUBLE
	return (vec)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif NEAP__INTRINSICS == 64
	return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif NEAP__INTRINSICS == 32 && defined NEAP_REAL_DOUBLE
	return (vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif NEAP__INTRINSICS == 32
	return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif NEAP__VECTOR == 64
	EACH_REGISTER(int i = 0; i < WIDE; i++)
	c[i] = NEAP__FUSED(a[i], b[i], c[i]);
	return c;
#else
	return a * b + c;
#endif
}

/* The vector whose lane i is lane i ^ by of v. */
#if NEAP__LANES == 16
#define SWAP(v, by)                                                                                \
	__builtin_shufflevector(v, v, (by) ^ 0, (by) ^ 1, (by) ^ 2, (by) ^ 3, (by) ^ 4, (by) ^ 5,  \
		(by) ^ 6, (by) ^ 7, (by) ^ 8, (by) ^ 9, (by) ^ 10, (by) ^ 11, (by) ^ 12,           \
		(by) ^ 13, (by) ^ 14, (by) ^ 15)
#elif NEAP__LANES == 8
#define SWAP(v, by)                                                                                \
	__builtin_shufflevector(v, v, (by) ^ 0, (by) ^ 1, (by) ^ 2, (by) ^ 3, (by) ^ 4, (by) ^ 5,  \
		(by) ^ 6, (by) ^ 7)
#elif NEAP__LANES == 4
#define SWAP(v, by) __builtin_shufflevector(v, v, (by) ^ 0, (by) ^ 1, (by) ^ 2, (by) ^ 3)
#else
#define SWAP(v, by) __builtin_shufflevector(v, v, (by) ^ 0, (by) ^ 1)
#endif

/* The sum of a vector's numbers: halves are added until one is left. */
INLINE real reduce(vec v)
{
#if NEAP__LANES == 16
	v += SWAP(v, 8);
#endif
#if NEAP__LANES >= 8
	v += SWAP(v, 4);
#endif
#if NEAP__LANES >= 4
	v += SWAP(v, 2);
#endif
	v += SWAP(v, 1);
	return v[0];
}

/* to[0..3] += the sums of four vectors, each with the bits that reduce gives. */
INLINE void add_reduced(real *to, const vec *v)
{
#if NEAP__LANES == 8 && !defined NEAP_REAL_DOUBLE
	vec a = v[0], b = v[1], c = v[2], d = v[3];
	vec ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
		 __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
	vec cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 8, 9, 10, 11) +
		 __builtin_shufflevector(c, d, 4, 5, 6, 7, 12, 13, 14, 15);
	vec acbd = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
		   __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
	acbd += SWAP(acbd, 1);
	__m128 sum = _mm256_castps256_ps128(
		(__m256)__builtin_shufflevector(acbd, acbd, 0, 4, 2, 6, 0, 4, 2, 6));
	_mm_storeu_ps(to, _mm_add_ps(_mm_loadu_ps(to), sum));
#elif NEAP__LANES == 16
	vec a = v[0], b = v[1], c = v[2], d = v[3];
	vec ab = __builtin_shufflevector(
			 a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
		 __builtin_shufflevector(
			 a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
	vec cd = __builtin_shufflevector(
			 c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
		 __builtin_shufflevector(
			 c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
	vec abcd = __builtin_shufflevector(
			   ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
		   __builtin_shufflevector(
			   ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
	abcd += SWAP(abcd, 2);
	abcd += SWAP(abcd, 1);
	typedef real four
		__attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));
	*(four *)(void *)to += __builtin_shufflevector(abcd, abcd, 0, 4, 8, 12);
#elif NEAP__LANES == 4
	vec a = v[0], b = v[1], c = v[2], d = v[3];
	vec ab = __builtin_shufflevector(a, b, 0, 1, 4, 5) +
		 __builtin_shufflevector(a, b, 2, 3, 6, 7);
	vec cd = __builtin_shufflevector(c, d, 0, 1, 4, 5) +
		 __builtin_shufflevector(c, d, 2, 3, 6, 7);
	store(to, load(to) + (__builtin_shufflevector(ab, cd, 0, 2, 4, 6) +
				     __builtin_shufflevector(ab, cd, 1, 3, 5, 7)));
#else
	EACH_REGISTER(int i = 0; i < 4; i++)
	to[i] += reduce(v[i]);
#endif
}

/* The vector kernels; kern.h says what their entries do. */
void NEAP_V(neap__adds)(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples);
void NEAP_V(neap__grads)(
	real *g, const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples);
void NEAP_V(neap__dots)(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples);
void NEAP_V(neap__filter_adds)(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples);
void NEAP_V(neap__filter_grads)(
	real *g, const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples);
void NEAP_V(neap__filter_dots)(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples);
void NEAP_V(neap__gather)(real *g, int columns, const struct neap__scatter *scatter);
void NEAP_V(neap__product)(
	const struct neap__strips *m, const struct neap__sample_rows *sample, int samples);
extern const int NEAP_V(neap__product_columns);
void NEAP_V(neap__outer)(real *g, const struct neap__outer *outer);
void NEAP_V(neap__sigmoid_rows)(real *x, int n);
void NEAP_V(neap__tanh_rows)(real *x, int n);
int NEAP_V(neap__spikes)(uint16_t *id, const real *u, int n, real theta);
int NEAP_V(neap__support)(uint16_t *id, uint16_t *near, real *value, int *nnear, const real *u,
	int n, real theta, real cut);
int NEAP_V(neap__leak_step)(struct neap__leak_step *s);
void NEAP_V(neap__decay)(real *u, real beta, const real *b, int n);
void NEAP_V(neap__scale)(real *x, real a, int n);
void NEAP_V(neap__sum)(real *y, const real *x, int n);
void NEAP_V(neap__fold)(double *restrict total, real *restrict part, int64_t n);
real NEAP_V(neap__ceiling_read)(const real *x, int64_t count);
int NEAP_V(neap__ceiling_products)(real *out, int64_t rounds);
void NEAP_V(neap__currents)(const real *strip, const struct neap__arrivals *arrivals);
int NEAP_V(neap__membrane_walk)(
	const struct neap__membrane_walk *walk, const struct neap__walker *walker);
int NEAP_V(neap__collect)(uint16_t *id, real *value, struct neap__found *strip, int strips, int t);
enum { NEAP__WALK_VECTORS = 4 }; /* of a strip that walks: as many sums as hide an addition */
/* Fills in the table of lanes.h, before its first use. */
void NEAP_V(neap__state_begin)(void);

#endif

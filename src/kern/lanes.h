/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h: the lanes of a vector whose bit is set: as bits, as a list of units, and their numbers.
 */
#ifndef NEAP_KERN_LANES_H
#define NEAP_KERN_LANES_H

#include "kern/vector.h"

/* Bit i: lane i is set. */
INLINE uint64_t bits_of(mask m)
{
#if NEAP__INTRINSICS == 64 && defined NEAP_REAL_DOUBLE
	return _mm512_movepi64_mask((__m512i)m);
#elif NEAP__INTRINSICS == 64
	return _mm512_movepi32_mask((__m512i)m);
#elif NEAP__INTRINSICS == 32 && defined NEAP_REAL_DOUBLE
	return (uint64_t)_mm256_movemask_pd((__m256d)m);
#elif NEAP__INTRINSICS == 32
	return (uint64_t)_mm256_movemask_ps((__m256)m);
#else
	uint64_t bits = 0;
	for (int i = 0; i < WIDE; i++)
		bits |= (uint64_t)(m[i] & 1) << i;
	return bits;
#endif
}

/* Bit i: lane i of a is above that of b. */
INLINE uint64_t bits_above(vec a, vec b)
{
#if NEAP__INTRINSICS == 64 && !defined NEAP_REAL_DOUBLE
	return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ);
#else
	return bits_of(a > b);
#endif
}

/* v - amount in each lane whose bit is set, v in the others. */
INLINE vec subtract_at(vec v, vec amount, uint64_t bits)
{
#if NEAP__INTRINSICS == 64 && defined NEAP_REAL_DOUBLE
	return (vec)_mm512_mask_sub_pd((__m512d)v, (__mmask8)bits, (__m512d)v, (__m512d)amount);
#elif NEAP__INTRINSICS == 64
	return (vec)_mm512_mask_sub_ps((__m512)v, (__mmask16)bits, (__m512)v, (__m512)amount);
#else
	mask lanes;
	EACH_REGISTER(int i = 0; i < WIDE; i++)
	lanes[i] = (lane)1 << i;
	mask at = (((mask){0} + (lane)(bits & (((uint64_t)1 << WIDE) - 1))) & lanes) != 0;
	return v - (vec)(at & (mask)amount);
#endif
}

/* |x| */
INLINE vec absolute(vec x)
{
	return (vec)((mask)x & ~(mask)spread((real)-0.0));
}

/* Appends base + i to id[count] for each bit i; returns the new count. */
INLINE int put_bits(uint16_t *id, int count, uint64_t bits, int base)
{
	for (; bits; bits &= bits - 1)
		id[count++] = (uint16_t)(base + __builtin_ctzll(bits));
	return count;
}

#if NEAP__INTRINSICS == 32 && !defined NEAP_REAL_DOUBLE
/* [bits] the numbers of the lanes whose bits are set, a byte each; state.c fills it in. */
extern uint64_t NEAP_V(neap__set_lanes)[1 << NEAP__LANES];
#endif

/*
 * Lists base + i for each lane i that is set; returns how many. Writes up to NEAP__SPARE more
 * behind them.
 */
INLINE int list_lanes(uint16_t *id, uint64_t bits, int base)
{
#if NEAP__INTRINSICS == 64 && !defined NEAP_REAL_DOUBLE
	__m512i all = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	__m512i at = _mm512_maskz_compress_epi32((__mmask16)bits, all);
	_mm256_storeu_si256((__m256i_u *)(void *)id,
		_mm512_cvtepi32_epi16(_mm512_add_epi32(at, _mm512_set1_epi32(base))));
	return __builtin_popcountll(bits);
#elif NEAP__INTRINSICS == 32 && !defined NEAP_REAL_DOUBLE
	__m128i at = _mm_cvtepu8_epi16(
		_mm_loadl_epi64((const __m128i_u *)(const void *)&NEAP_V(neap__set_lanes)[bits]));
	_mm_storeu_si128((__m128i_u *)(void *)id, _mm_add_epi16(at, _mm_set1_epi16((short)base)));
	return __builtin_popcountll(bits);
#else
	return put_bits(id, 0, bits, base);
#endif
}

/* The same of the numbers of these lanes. */
INLINE int keep_lanes(real *value, vec v, uint64_t bits)
{
#if NEAP__INTRINSICS == 64 && !defined NEAP_REAL_DOUBLE
	store(value, (vec)_mm512_maskz_compress_ps((__mmask16)bits, (__m512)v));
	return __builtin_popcountll(bits);
#elif NEAP__INTRINSICS == 32 && !defined NEAP_REAL_DOUBLE
	__m256i at = _mm256_cvtepu8_epi32(
		_mm_loadl_epi64((const __m128i_u *)(const void *)&NEAP_V(neap__set_lanes)[bits]));
	store(value, (vec)_mm256_permutevar8x32_ps((__m256)v, at));
	return __builtin_popcountll(bits);
#else
	int count = 0;
	for (; bits; bits &= bits - 1)
		value[count++] = v[__builtin_ctzll(bits)];
	return count;
#endif
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile_registers.h: the instructions of AMX that tile_product.c uses, as macros, and two emulations
 * of them. A tile is a register of up to 16 rows of up to 16 words of 32 bits, whose numbers of
 * rows and words TILES_BEGIN sets.
 *
 * NEAP__TILES_AMX: the instructions, as text for the assembler, so that no option of a compiler
 * is needed; each clobbers memory, so that compilers move no access of memory across them.
 * NEAP__TILES_AVX512: sums in vectors, with subnormal numbers taken as zeros by the processor.
 * Else: plain C with neap__bf16_add, for tests.
 *
 * `struct neap__tiles *t`, a local variable, holds the registers of emulations. Operands r, a, b
 * and c are literal numbers of registers. A stride is in bytes.
 */
#ifndef NEAP_KERN_TILE_REGISTERS_H
#define NEAP_KERN_TILE_REGISTERS_H

#include <stdint.h>
#include <string.h>
#include "kern/bf16.h"
#include "kern/tiles/tiles.h"

enum { TILES = 8, TILE_ROWS = 16, TILE_WORDS = 16 };

/* The operand of LDTILECFG (Intel SDM, volume 1, 18.2): palette 1 has 8 tiles of 1 KiB. */
struct tile_shapes {
	uint8_t palette, first_row, reserved[14];
	uint16_t bytes[16]; /* of a row */
	uint8_t rows[16];
};
_Static_assert(sizeof(struct tile_shapes) == 64, "LDTILECFG reads 64 bytes");

/* The registers. */
struct neap__tiles {
	struct tile_shapes shapes;
#ifndef NEAP__TILES_AMX
	uint32_t word[TILES][TILE_ROWS][TILE_WORDS];
	uint32_t control; /* MXCSR as it was */
#endif
};

#ifdef NEAP__TILES_AMX

#define TILES_BEGIN(t) __asm__ volatile("ldtilecfg %0" ::"m"((t)->shapes) : "memory")
#define TILES_END(t) __asm__ volatile("tilerelease" ::: "memory")
#define TILE_LOAD(t, r, from, stride)                                                              \
	do {                                                                                       \
		(void)(t);                                                                         \
		__asm__ volatile("tileloadd (%0,%1,1), %%tmm" #r ::"r"(from), "r"((long)(stride))  \
				 : "memory");                                                      \
	} while (0)
#define TILE_STORE(t, r, to, stride)                                                               \
	do {                                                                                       \
		(void)(t);                                                                         \
		__asm__ volatile(                                                                  \
			"tilestored %%tmm" #r ", (%0,%1,1)" ::"r"(to), "r"((long)(stride))         \
			: "memory");                                                               \
	} while (0)
/* c += a b, where words are pairs of bfloat16 numbers. */
#define TILE_MULTIPLY(t, c, a, b)                                                                  \
	__asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory")

#else

#define TILES_BEGIN(t) tiles_begin(t)
#define TILES_END(t) tiles_end(t)
#define TILE_LOAD(t, r, from, stride) tile_load(t, r, from, stride)
#define TILE_STORE(t, r, to, stride) tile_store(t, r, to, stride)
#define TILE_MULTIPLY(t, c, a, b) tile_multiply(t, c, a, b)

/* Rows of a tile, most of which are whole: these are copied without a call. */
static inline void tile_copy(void *to, const void *from, size_t bytes)
{
	if (bytes == sizeof(uint32_t[TILE_WORDS]))
		memcpy(to, from, sizeof(uint32_t[TILE_WORDS]));
	else
		memcpy(to, from, bytes);
}

/* Zeros outside of the tile's shape. */
static inline void tile_load(struct neap__tiles *t, int r, const void *from, size_t stride)
{
	int rows = t->shapes.rows[r];

	if (rows < TILE_ROWS || t->shapes.bytes[r] < sizeof t->word[r][0])
		memset(t->word[r], 0, sizeof t->word[r]);
	for (int row = 0; row < rows; row++)
		tile_copy(t->word[r][row], (const char *)from + (size_t)row * stride,
			t->shapes.bytes[r]);
}

static inline void tile_store(struct neap__tiles *t, int r, void *to, size_t stride)
{
	for (int row = 0; row < t->shapes.rows[r]; row++)
		tile_copy((char *)to + (size_t)row * stride, t->word[r][row], t->shapes.bytes[r]);
}

#ifdef NEAP__TILES_AVX512
#include <immintrin.h>

/* Results and operands that are subnormal become zeros. Numbers come from memory that the compiler
 * cannot have read before the change. */
static inline void tiles_begin(struct neap__tiles *t)
{
	uint32_t control;

	__asm__ volatile("stmxcsr %0" : "=m"(t->control)::"memory");
	control = (t->control & ~(uint32_t)_MM_ROUND_MASK) | _MM_FLUSH_ZERO_ON |
		  _MM_DENORMALS_ZERO_ON | _MM_MASK_MASK;
	__asm__ volatile("ldmxcsr %0" ::"m"(control) : "memory");
}

static inline void tiles_end(struct neap__tiles *t)
{
	__asm__ volatile("ldmxcsr %0" ::"m"(t->control) : "memory");
}

/* Eight rows at a time: their chains take 16 registers. */
static inline void tile_multiply(struct neap__tiles *t, int c, int a, int b)
{
	enum { HALF = TILE_ROWS / 2 };
	const __m512i upper = _mm512_set1_epi32((int)0xFFFF0000);
	int depth = t->shapes.bytes[a] / 4;
	__m512 first[TILE_ROWS], second[TILE_ROWS]; /* factors of pairs, row by row */

	for (int row = 0; row < TILE_ROWS; row++) {
		__m512i x = _mm512_loadu_si512(t->word[a][row]);
		first[row] = (__m512)_mm512_and_si512(x, upper);
		second[row] = (__m512)_mm512_slli_epi32(x, 16);
	}
	for (int row = 0; row < t->shapes.rows[c]; row += HALF) {
		const float *x = (const float *)&first[row], *y = (const float *)&second[row];
		__m512 even[HALF], odd[HALF];
		for (int i = 0; i < HALF; i++)
			even[i] = odd[i] = _mm512_setzero_ps();
		for (int k = 0; k < depth; k++) {
			__m512i w = _mm512_loadu_si512(t->word[b][k]);
			__m512 u = (__m512)_mm512_and_si512(w, upper);
			__m512 v = (__m512)_mm512_slli_epi32(w, 16);
#pragma GCC unroll 8
			for (int i = 0; i < HALF; i++) {
				even[i] = _mm512_fmadd_ps(
					_mm512_set1_ps(x[i * TILE_WORDS + k]), u, even[i]);
				odd[i] = _mm512_fmadd_ps(
					_mm512_set1_ps(y[i * TILE_WORDS + k]), v, odd[i]);
			}
		}
#pragma GCC unroll 8
		for (int i = 0; i < HALF; i++) {
			float *sum = (float *)(void *)t->word[c][row + i];
			_mm512_storeu_ps(sum, _mm512_add_ps(_mm512_loadu_ps(sum),
						      _mm512_add_ps(even[i], odd[i])));
		}
	}
}

#else

static inline void tiles_begin(struct neap__tiles *t)
{
	(void)t;
}

static inline void tiles_end(struct neap__tiles *t)
{
	(void)t;
}

/* The operation of the manual: chains of the two halves of words over all words of a row of a. */
static inline void tile_multiply(struct neap__tiles *t, int c, int a, int b)
{
	for (int row = 0; row < t->shapes.rows[c]; row++)
		for (int i = 0; i < t->shapes.bytes[c] / 4; i++) {
			float low = 0, high = 0, sum;
			for (int k = 0; k < t->shapes.bytes[a] / 4; k++) {
				uint32_t x = t->word[a][row][k], w = t->word[b][k][i];
				low = neap__bf16_add(low, (uint16_t)x, (uint16_t)w);
				high = neap__bf16_add(
					high, (uint16_t)(x >> 16), (uint16_t)(w >> 16));
			}
			memcpy(&sum, &t->word[c][row][i], sizeof sum);
			sum = neap__tile_sum(sum, low, high);
			memcpy(&t->word[c][row][i], &sum, sizeof sum);
		}
}

#endif
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bf16.h: products of numbers rounded to bfloat16 (8 bits of exponent, 8 of precision), with sums
 * in float: the arithmetic of the instruction VDPBF16PS (Intel SDM, volume 2), one product at a
 * time.
 *
 * Two factors go in a word of 32 bits, the first in its upper half: the instruction adds the
 * product of the upper halves first, hence a sum is one chain in the order of its terms, and pairs
 * may begin at any term. Where a last pair has one term, the other product is -0 x +0, which
 * changes no sum.
 */
#ifndef NEAP_KERN_BF16_H
#define NEAP_KERN_BF16_H

#include <stddef.h>
#include <stdint.h>

struct neap__outer;
struct neap__sample_rows;

/* The factor that makes a product of a pair vanish: -0; the other is +0. */
enum { NEAP__BF16_NONE = 0x8000 };

/* A dense matrix in strips of columns: [strip][pair of rows][columns], padded with zeros. */
struct neap__pairs {
	const uint32_t *w;
	int rows, columns;
};

/* As `product` and `outer` of struct neap__kernels, with factors that are rounded to bfloat16. */
struct neap__bf16_ops {
	int columns; /* of a strip */
	void (*product)(
		const struct neap__pairs *m, const struct neap__sample_rows *sample, int samples);
	void (*outer)(float *g, const struct neap__outer *outer);
};

/*
 * The nearest bfloat16, ties to even; subnormal numbers become zeros. NaN stays NaN. As the
 * instruction VCVTNEPS2BF16.
 */
uint16_t neap__bf16_round(float x);

/*
 * sum + a b of two bfloat16 factors, rounded once, to nearest; subnormal numbers, factors and
 * sum, are taken as zeros, and a result that is subnormal before it is rounded to its place
 * becomes zero.
 */
float neap__bf16_add(float sum, uint16_t a, uint16_t b);

/* Copies w[rows][n] into strips of pairs of rows; the same of w turned: n rows of `rows` numbers.
 */
void neap__bf16_pack(uint32_t *pairs, const float *w, int rows, int n, int strip);
void neap__bf16_pack_turned(uint32_t *pairs, const float *w, int rows, int n, int strip);

/* In plain C: the specification, and what NEAP_ISA=lowered computes with. */
extern const struct neap__bf16_ops neap__bf16_model;
#ifdef __x86_64__
/* bf16_product.c: for processors with AVX512-BF16. */
extern const struct neap__bf16_ops neap__bf16_avx512;
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiles.h: products of bfloat16 numbers in the order of sums of the instruction TDPBF16PS of AMX
 * (Intel SDM, volume 2, "TDPBF16PS"). It differs from the order of bf16.h, in which the
 * instruction VDPBF16PS adds one term after the other.
 *
 * Terms form blocks of NEAP__TILE_DEPTH, the last of which has what is left. In a block, terms 0,
 * 2, 4, ... are one chain of fused sums that begins with +0, and terms 1, 3, 5, ... another; the
 * sum of the two is added to the result. All sums are rounded to nearest, ties to even, and
 * subnormal numbers are taken as zeros, as in bf16.h.
 *
 * Floats are multiplied as sums of planes: x = x0 + x1 + x2 + rest, where x0 is x rounded to
 * bfloat16, x1 is x - x0 rounded, and x2 is x - x0 - x1 rounded. The rest is 0 unless numbers are
 * below 2^-110: three planes hold 24 bits. Planes behind one that is not finite are 0. Of the
 * products of planes i and j those with i + j < planes are computed; the others are smaller than
 * the rounding of floats. (Henry, Tang and Heinecke, Leveraging the bfloat16 artificial
 * intelligence datatype for higher-precision computations, IEEE ARITH 2019.)
 */
#ifndef NEAP_KERN_TILES_H
#define NEAP_KERN_TILES_H

#include <stddef.h>
#include <stdint.h>
#include "sys/isa.h"

struct neap__sample_rows;

enum {
	NEAP__TILE_DEPTH = 32,	 /* terms of a block */
	NEAP__TILE_COLUMNS = 16, /* columns of a strip */
	NEAP__TILE_PLANES = 3	 /* at most */
};

/*
 * A dense matrix in planes, each in strips of columns: [plane][strip][pair of rows][columns],
 * padded with zeros. Pairs are those of bf16.h.
 */
struct neap__planes {
	const uint32_t *w;
	size_t plane; /* words from a plane to the next */
	int rows, columns, planes;
};

struct neap__tile_ops {
	const char *name; /* "amx", "avx512", "model" */
	/*
	 * out[columns] += sum over rows k of x[k] * row k. x[k] is v[k], of as many planes as the
	 * matrix has; where v is NULL, x[k] is 1 for the rows id[count], and 0 for others. In each
	 * block of rows, planes i of the matrix are in ascending order, and within it planes j of
	 * x.
	 */
	void (*product)(
		const struct neap__planes *m, const struct neap__sample_rows *sample, int samples);
};

/* Words of such a matrix of rows x columns. */
static inline uint64_t neap__planes_words(uint64_t rows, uint64_t columns, int planes)
{
	uint64_t strips = (columns + NEAP__TILE_COLUMNS - 1) / NEAP__TILE_COLUMNS;

	return (uint64_t)planes * strips * ((rows + 1) / 2) * NEAP__TILE_COLUMNS;
}

/* A whole matrix, and columns [from, from + count) of it; `from` is the first of a strip. */
static inline struct neap__planes neap__planes_of(
	const uint32_t *w, int rows, int columns, int planes)
{
	return (struct neap__planes){
		w, neap__planes_words((uint64_t)rows, (uint64_t)columns, 1), rows, columns, planes};
}
static inline struct neap__planes neap__planes_part(
	const struct neap__planes *m, int from, int count)
{
	size_t strip = ((size_t)m->rows + 1) / 2 * NEAP__TILE_COLUMNS;
	struct neap__planes part = *m;

	part.w += (size_t)from / NEAP__TILE_COLUMNS * strip;
	part.columns = count;
	return part;
}

/* Fills a matrix in planes with w[rows][n]; the same of w turned: n rows of `rows` numbers. */
void neap__planes_pack(uint32_t *to, const float *w, int rows, int n, int planes);
void neap__planes_pack_turned(uint32_t *to, const float *w, int rows, int n, int planes);

/* A result of a block: sum + (even + odd). */
float neap__tile_sum(float sum, float even, float odd);

/* In plain C: the specification. */
extern const struct neap__tile_ops neap__tiles_model;
#ifdef __x86_64__
/* tile_product.c, for processors with AVX-512: sums in vectors. */
extern const struct neap__tile_ops neap__tiles_avx512;
#ifdef NEAP__HAS_AMX_ASSEMBLER
/* The same with AMX, after neap__isa_take_amx(). */
extern const struct neap__tile_ops neap__tiles_amx;
#endif
#endif

/* 1: some small products have the bits of the model. */
int neap__tiles_agree(const struct neap__tile_ops *ops);

/*
 * What computes such products for an instruction set: the model for lowered, AMX or vectors for
 * avx512, which have the same bits; NULL for others. AMX is used if the processor has it, Linux
 * permits it, and neap__tiles_agree().
 */
const struct neap__tile_ops *neap__tiles_get(enum neap__isa isa);

#endif

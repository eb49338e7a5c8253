/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kern.h: the inner loops of a net, as a table of functions, one table for each precision and
 * instruction set. The reference table is plain C and is the specification. Tables of instruction
 * sets override entries: dot products may add up their columns in another order and fuse products
 * with sums; everything else keeps the bits of the reference.
 *
 * A matrix has one row an input unit, so that a spike of unit j adds row j, and a gradient at unit
 * j is a dot product with row j. A call serves all samples of a group, so that a row is read once
 * for all samples that need it. The results of a sample do not depend on the other samples.
 */
#ifndef NEAP_KERN_KERN_H
#define NEAP_KERN_KERN_H

#include <stddef.h>
#include <stdint.h>
#include <neap/net.h>
#include "kern/bf16.h"
#include "kern/events.h"
#include "kern/real.h"
#include "sys/isa.h"

/*
 * Shared weights: which rows of a matrix a unit's output enters, and where in the sums each row is
 * added. Units at the same place of a plane have the same taps; a tap adds row unit.row + tap.row
 * of w, from column unit.at + tap.at of the sums on. Convolutions and pooling are such tables
 * (nn/filter.h).
 */
struct neap__filter_unit {
	uint16_t place, row, at;
};
struct neap__filter_tap {
	uint16_t row, at;
};
struct neap__filter {
	const struct neap__filter_unit *unit; /* [units] */
	const uint32_t *start;		      /* [places + 1] the taps of a place */
	const struct neap__filter_tap *tap;   /* [start[places]] */
	double factor;			      /* multiplies all products: of average pooling */
};

/* A borrowed matrix: dense rows of `columns` values, compressed rows, or dense rows that are
 * shared.
 */
struct neap__matrix {
	const real *w;
	int columns;
	const uint32_t *row_start;	   /* [rows + 1]; NULL when dense */
	const uint16_t *column;		   /* [count]; NULL when dense */
	const struct neap__filter *filter; /* NULL: rows are not shared, and belong to units */
};

/* A sample of a group in a product. */
struct neap__sample_rows {
	const uint16_t *id; /* rows, ascending; units where rows are shared */
	const real *v;	    /* [count] their factors; NULL: ones */
	int count;
	real *out;	/* add: [columns]; dot: [count] */
	const real *in; /* dot, grad: [columns] */
};

/*
 * Products of a matrix with samples[samples]. Where rows are shared, a unit's row stands for its
 * taps in their order, and out and in have as many numbers as the taps reach.
 */
struct neap__row_ops {
	/* out[columns] += sum over k < count of v[k] * row id[k]. In order of k. */
	void (*add)(
		const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples);
	/* out[k] += row id[k] . in */
	void (*dot)(
		const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples);
	/* row id[k] of g += v[k] * in. In order of the samples. g is shaped as m. */
	void (*grad)(real *g, const struct neap__matrix *m, const struct neap__sample_rows *sample,
		int samples);
};

/* Sums of rows: row[k] of g gets row from[e] of x for all e of [start[k], start[k + 1]). */
struct neap__scatter {
	int rows;
	const uint16_t *row;   /* ascending */
	const uint32_t *start; /* [rows + 1] */
	const uint32_t *from;  /* [start[rows]] rows of x */
	int source_rows;       /* rows of x */
	const real *x;	       /* [source_rows][stride] */
	size_t stride;	       /* numbers from one row of x to the next */
	real *strip;	       /* scratch: NEAP__STRIP_BYTES a row of x, aligned to 64 */
};
enum { NEAP__STRIP_BYTES = 512 }; /* eight vectors of the widest instruction set */

/* A dense matrix in strips of columns: [strip][row][product_columns], padded with zeros. */
struct neap__strips {
	const real *w;
	int rows, columns;
};

/*
 * Outer products of many steps: row k of g, from <= k < to, gets x[e][k] * y[e] for all e,
 * in its columns [left, right).
 */
struct neap__outer {
	int columns, count, from, to, left, right;
	const real *const *x; /* [count] -> [to] */
	const real *const *y; /* [count] -> [right] */
	real *room;	      /* scratch: neap__outer_room numbers, aligned to 64 bytes */
};
enum {
	NEAP__OUTER_DEPTH = 256, /* terms that are packed at a time: a strip of them stays near */
	NEAP__OUTER_STRIP = 48,	 /* the most columns of a strip, over all instruction sets */
	NEAP__OUTER_HIGH = 8	 /* the most rows of a tile in registers */
};

/* Numbers of scratch for tiles of so many rows. */
static inline uint64_t neap__outer_room(uint64_t rows)
{
	return NEAP__OUTER_DEPTH * (NEAP__OUTER_STRIP + NEAP__OUTER_HIGH + rows);
}

/* A surrogate derivative of the step at u = theta; zero beyond |u - theta| > cut. */
struct neap__slope {
	real theta, width, height, cut;
};

/* Rows of the surrogate tables, by enum neap_surrogate. */
#define NEAP_X(choice, name, meaning) +1
enum { NEAP__SURROGATES = 0 NEAP_SURROGATE_TABLE(NEAP_X) };
#undef NEAP_X

/* Resets: `subtract` and `zero` come one step later, `hard` and `soft` at once (nn/cells/lif.c). */
enum neap__membrane_walk_reset {
	NEAP__WALK_SUBTRACT,
	NEAP__WALK_ZERO,
	NEAP__WALK_HARD,
	NEAP__WALK_SOFT
};

/* Rows of a strip of weights that arrive at its units in each of many steps. */
struct neap__arrivals {
	int steps, units;      /* units of the strip that exist */
	const uint16_t *count; /* [steps] */
	const uint16_t *row;   /* rows of all steps, step after step */
	const real *begin;     /* [units] what sums begin with; NULL: with what they hold */
	real *sums;	       /* [steps][walk_units] */
};

/* Constants of a walk: in each step units decay by beta, get their sums, and are reset. */
struct neap__membrane_walk {
	enum neap__membrane_walk_reset reset;
	real beta, theta, to, cut; /* to: reset_value; cut: of struct neap__slope */
};

/* A strip of units of one sample that walks over many steps. */
struct neap__walker {
	int steps, units;
	const real *sums; /* [steps][walk_units] what arrives */
	uint64_t spiked;  /* a bit a unit: spiked in the step before the first */
	real *u;	  /* [units] membranes, moved on, resets done */
	/*
	 * [steps][walk_units] before the reset; or, where near is not NULL, one step after the
	 * other those alone that the threshold sees within cut: at most `most` of them, and
	 * NEAP__STRIP_SPARE numbers more may be written.
	 */
	real *value;
	void *near;	 /* [steps] walk_units bits: which these are */
	int *near_count; /* [steps] how many they are is added */
	int most;
};

/* What a strip kept of many steps, from a step on: membranes inside the support. */
struct neap__found {
	const void *near; /* [steps] */
	const real *value;
};
enum {
	NEAP__SPARE = 16, /* entries that a kernel may write behind a list: a vector of floats */
	NEAP__STRIP_SPARE = 64 /* the same behind what a strip keeps: the most units of a strip */
};

/* Rows of weights that one source of a layer adds in a step. */
struct neap__step_rows {
	const real *w;	    /* dense, as wide as the layer */
	const uint16_t *id; /* [count] */
	int count;
};

/*
 * A step of one sample through a layer of units that leak by one factor: u = beta u + (bias + rows
 * of all sources, one after the other), then amount is subtracted from the units that spiked in
 * the step before. Lists those with u > theta, and where near is not NULL those with
 * |u - theta| <= cut and their u; NEAP__SPARE more of each may be written.
 */
enum { NEAP__STEP_SOURCES = 4 };
struct neap__leak_step {
	int n, sources;
	struct neap__step_rows source[NEAP__STEP_SOURCES];
	const real *bias; /* [n] */
	real *u;	  /* [n] */
	real beta, amount, theta, cut;
	int nspiked, nnear, own; /* own: the source whose rows are those of `spiked`; -1: none */
	const uint16_t *spiked;	 /* [nspiked] */
	uint16_t *id, *near;
	real *value;
};

struct neap__kernels {
	const char *name;
	struct neap__row_ops rows[3]; /* dense, compressed, shared */
	/* Rows of g, dense, of so many columns: every sum in the order of `from`. */
	void (*gather)(real *g, int columns, const struct neap__scatter *scatter);
	/* out[columns] += sum over k < rows of v[k] * row k. In order of k. */
	void (*product)(
		const struct neap__strips *m, const struct neap__sample_rows *sample, int samples);
	int product_columns; /* of its strips */
	/* Both with factors rounded to bfloat16; NULL: in double, or not with this instruction set.
	 */
	const struct neap__bf16_ops *bf16;
	/* In order of e. */
	void (*outer)(real *g, const struct neap__outer *outer);
	/* In place (sigmoid.h). */
	void (*sigmoids)(real *x, int n);
	void (*tanhs)(real *x, int n);
	/* u = beta u + b */
	void (*decay)(real *u, real beta, const real *b, int n);
	/* x = a x */
	void (*scale)(real *x, real a, int n);
	/* y += x */
	void (*sum)(real *y, const real *x, int n);
	/* Lists the units with u > theta, ascending; returns how many. May write NEAP__SPARE more.
	 */
	int (*spikes)(uint16_t *id, const real *u, int n, real theta);
	/* The same, and the units with |u - theta| <= cut and their u; NEAP__SPARE more of each. */
	int (*support)(uint16_t *id, uint16_t *near, real *value, int *nnear, const real *u, int n,
		real theta, real cut);
	/* Returns how many units spike; nnear is set. NULL in the reference table. */
	int (*leak_step)(struct neap__leak_step *step);
	/* out[k] = surrogate at u[k]; and its integral from minus infinity. */
	void (*slope[NEAP__SURROGATES])(
		real *out, const real *u, int n, const struct neap__slope *s);
	void (*integral[NEAP__SURROGATES])(
		real *out, const real *u, int n, const struct neap__slope *s);
	/* total += part; part = 0 */
	void (*fold)(double *total, real *part, int64_t n);
	/* Units of a strip, at most 64. */
	int walk_units;
	/* sums[t] += the rows of step t, in their order. */
	void (*currents)(const real *strip, const struct neap__arrivals *arrivals);
	/* Returns how many membranes were kept; more than `most`: some were lost. */
	int (*walk)(const struct neap__membrane_walk *walk, const struct neap__walker *walker);
	/*
	 * Lists the units that all strips kept of step t and their membranes, which are the first
	 * in `value` of each strip; moves `value` behind them. Returns how many. Membranes are
	 * written before units, NEAP__SPARE more of both.
	 */
	int (*collect)(uint16_t *id, real *value, struct neap__found *strip, int strips, int t);
	/*
	 * For benchmarks (roofline.c): the sum of numbers read once; and rounds of products with
	 * sums in registers, as many a round as are returned.
	 */
	real (*ceiling_read)(const real *x, int64_t count);
	int (*ceiling_products)(real *out, int64_t rounds);
};

/* pack.c: copies w[rows][n] into strips of columns: packed[strips][rows][strip], padded with zeros.
 */
#define neap__pack NEAP_R(neap__pack)
void neap__pack(real *packed, const real *w, int rows, int n, int strip);
/* The same of rows [first, first + rows) of a packed matrix that has `all` rows. */
#define neap__pack_part NEAP_R(neap__pack_part)
void neap__pack_part(real *packed, const real *w, int rows, int n, int strip, int first, int all);
/* As neap__pack, of w turned: n rows of `rows` numbers. */
#define neap__pack_turned NEAP_R(neap__pack_turned)
void neap__pack_turned(real *packed, const real *w, int rows, int n, int strip);

/* dispatch.c: the table of an instruction set that this machine has. */
#define neap__kernels_get NEAP_R(neap__kernels_get)
const struct neap__kernels *neap__kernels_get(enum neap__isa isa);

/* reference.c: the plain table. */
#define neap__kernels_reference NEAP_R(neap__kernels_reference)
extern const struct neap__kernels neap__kernels_reference;

/* vector.c, once an instruction set: overrides entries of a full table. */
#define NEAP__DECLARE_VECTOR(isa) void NEAP_R(neap__vector_##isa)(struct neap__kernels * kernels);
NEAP__DECLARE_VECTOR(plain)
NEAP__DECLARE_VECTOR(avx2)
NEAP__DECLARE_VECTOR(avx512)
NEAP__DECLARE_VECTOR(lowered) /* avx512's without its instructions (sys/isa.h) */

/* surrogate.c: rows of the reference table. */
#define NEAP_X(choice, name, meaning)                                                              \
	void NEAP_R(neap__slope_##name)(                                                           \
		real * out, const real *u, int n, const struct neap__slope *s);                    \
	void NEAP_R(neap__integral_##name)(                                                        \
		real * out, const real *u, int n, const struct neap__slope *s);
NEAP_SURROGATE_TABLE(NEAP_X)
#undef NEAP_X

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_products.c: seconds of the dense products of an LSTM layer of UNITS units, in float on
 * one thread, beside the same products in OpenBLAS. Forward is weights times the outputs of some
 * samples, backward is transposed weights times the gradients of their inputs, gradient is the
 * outer products of TERMS outputs and such gradients. neap's weights are in strips beforehand,
 * which a net does once a batch. Measurements of both libraries alternate. The products of
 * --precision bf16 have rows of their own, without a target.
 */
#include "bench/kernel_products.h"
#include "base/fail.h"
#include "bench/blas.h"
#include "kern/kern.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { UNITS = 512, WIDE = 4 * UNITS, TERMS = 1024, SAMPLES_MOST = 32, PARTS = 256 };

#define SPELL 0.01 /* seconds a measurement takes at least */

enum product_kind { FORWARD, BACKWARD, GRADIENT };

struct product_work {
	const struct neap__kernels *kernels;
	struct neap__blas blas;
	real *w, *strips, *x,
		*y; /* [UNITS][WIDE], the same in strips, [TERMS][UNITS], [TERMS][WIDE] */
	real *room;
	const real *xs[TERMS], *ys[TERMS];
	struct neap__sample_rows share[SAMPLES_MOST];
	struct neap__strips m;
	enum product_kind kind;
	int samples;
	int is_rounded; /* factors are rounded to bfloat16 */
};

static void ours(void *work)
{
	struct product_work *b = work;
	if (b->kind != GRADIENT && b->is_rounded) {
		struct neap__pairs m = {(const void *)b->strips, b->m.rows, b->m.columns};
		b->kernels->bf16->product(&m, b->share, b->samples);
		return;
	}
	if (b->kind != GRADIENT) {
		b->kernels->product(&b->m, b->share, b->samples);
		return;
	}
	for (int from = 0; from < UNITS; from += PARTS) {
		struct neap__outer o = {.columns = WIDE,
			.count = b->samples,
			.from = from,
			.to = from + PARTS,
			.right = WIDE,
			.x = b->xs,
			.y = b->ys,
			.room = b->room};
		(b->is_rounded ? b->kernels->bf16->outer : b->kernels->outer)(b->w, &o);
	}
}

static void theirs(void *work)
{
	struct product_work *b = work;
	if (b->kind == FORWARD)
		b->blas.gemm(&b->blas, b->samples, WIDE, UNITS, b->x, 0, b->w, 0, b->y);
	else if (b->kind == BACKWARD)
		b->blas.gemm(&b->blas, b->samples, UNITS, WIDE, b->y, 0, b->w, 1, b->x);
	else
		b->blas.gemm(&b->blas, UNITS, WIDE, b->samples, b->x, 1, b->y, 0, b->w);
}

static void prepare(struct product_work *b, enum product_kind kind, int samples)
{
	int rows = kind == BACKWARD ? WIDE : UNITS, columns = kind == BACKWARD ? UNITS : WIDE;

	for (size_t i = 0; i < (size_t)UNITS * WIDE; i++)
		b->w[i] = (real)1e-6;
	for (size_t i = 0; i < (size_t)TERMS * WIDE; i++)
		b->y[i] = (real)1e-6;
	for (size_t i = 0; i < (size_t)TERMS * UNITS; i++)
		b->x[i] = (real)1e-6;
	if (b->is_rounded)
		(kind == BACKWARD ? neap__bf16_pack_turned : neap__bf16_pack)(
			(void *)b->strips, b->w, UNITS, WIDE, b->kernels->bf16->columns);
	else
		(kind == BACKWARD ? neap__pack_turned : neap__pack)(
			b->strips, b->w, UNITS, WIDE, b->kernels->product_columns);
	b->m = (struct neap__strips){b->strips, rows, columns};
	b->kind = kind;
	b->samples = samples;
	for (int s = 0; s < SAMPLES_MOST; s++) {
		real *x = b->x + (size_t)s * UNITS, *y = b->y + (size_t)s * WIDE;
		b->share[s] = (struct neap__sample_rows){
			.v = kind == BACKWARD ? y : x, .out = kind == BACKWARD ? x : y};
	}
	for (int e = 0; e < TERMS; e++) {
		b->xs[e] = b->x + (size_t)e * UNITS;
		b->ys[e] = b->y + (size_t)e * WIDE;
	}
}

static int report(struct neap__bench *bench, const struct product_work *b,
	struct neap_bench_row *row, double *samples, int runs, const char *whose)
{
	double flops = 2.0 * b->samples * UNITS * WIDE;

	neap__bench_sample(row, samples, runs);
	snprintf(row->what, sizeof row->what, "%.3g Gflop/s; %s", flops / row->value / 1e9, whose);
	row->nmore = 1;
	row->more[0].name = "flops_per_second";
	row->more[0].value = flops / row->value;
	return neap__bench_row(bench, row);
}

static int rows_of(
	struct neap__bench *bench, struct product_work *b, enum product_kind kind, int samples)
{
	static const char *const kinds[] = {"forward", "backward", "gradient"};
	struct neap_bench_row row = {.unit = "s", .target = NAN}, peer = row;
	double mine[NEAP__BENCH_RUNS_MOST], other[NEAP__BENCH_RUNS_MOST];
	int runs = neap__bench_runs(bench, 5);

	snprintf(row.name, sizeof row.name, "%s%s product %s %d", b->kernels->name,
		b->is_rounded ? " bf16" : "", kinds[kind], samples);
	snprintf(peer.name, sizeof peer.name, "%s product %s %d, OpenBLAS", b->kernels->name,
		kinds[kind], samples);
	if (!neap__bench_wants(bench, row.name))
		return 0;
	prepare(b, kind, samples);
	for (int i = 0; i < runs; i++) {
		mine[i] = neap__bench_seconds(ours, b, SPELL);
		other[i] = b->blas.library && !b->is_rounded ? neap__bench_seconds(theirs, b, SPELL)
							     : 0;
	}
	if (b->blas.library && !b->is_rounded) {
		NEAP_TRY(report(bench, b, &peer, other, runs, b->blas.name));
		row.target = peer.value;
	}
	return report(bench, b, &row, mine, runs, "weights in strips");
}

static real *numbers(size_t count)
{
	return aligned_alloc(64, (count * sizeof(real) + 63) / 64 * 64);
}

static int all_rows(struct neap__bench *bench, struct product_work *b, int is_rounded)
{
	static const int samples[] = {4, 8, 32};

	b->is_rounded = is_rounded;
	for (int i = 0; i < 3; i++)
		NEAP_TRY(rows_of(bench, b, FORWARD, samples[i]));
	for (int i = 0; i < 3; i++)
		NEAP_TRY(rows_of(bench, b, BACKWARD, samples[i]));
	return rows_of(bench, b, GRADIENT, TERMS);
}

int neap__bench_products(struct neap__bench *bench, enum neap__isa isa)
{
	struct product_work *b = calloc(1, sizeof *b);
	int rc = b ? 0 : neap__fail_errno(ENOMEM, "benchmark kernels");

	if (rc < 0)
		return rc;
	b->kernels = neap__kernels_get(isa);
	b->w = numbers((size_t)UNITS * WIDE);
	b->strips = numbers((size_t)(WIDE + NEAP__OUTER_STRIP) * (UNITS + NEAP__OUTER_STRIP));
	b->x = numbers((size_t)TERMS * UNITS);
	b->y = numbers((size_t)TERMS * WIDE);
	b->room = numbers(neap__outer_room(PARTS));
	if (!b->w || !b->strips || !b->x || !b->y || !b->room)
		rc = neap__fail_errno(ENOMEM, "benchmark kernels");
	neap__blas_open(&b->blas);
	if (rc == 0)
		rc = all_rows(bench, b, 0);
	if (rc == 0 && b->kernels->bf16 && isa != NEAP__ISA_LOWERED)
		rc = all_rows(bench, b, 1);
	neap__blas_close(&b->blas);
	free(b->w);
	free(b->strips);
	free(b->x);
	free(b->y);
	free(b->room);
	free(b);
	return rc;
}

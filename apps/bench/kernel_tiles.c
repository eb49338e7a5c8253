/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_tiles.c: seconds of the products of --products tiles, with AMX or else AVX-512, of a
 * UNITS x UNITS matrix with SAMPLES samples, on one thread; and of the sums over lists in their
 * place, at the activity from which on tiles are used (nn/core/products.h). Products are dense, so
 * that their time does not depend on the activity.
 */
#include "bench/kernel_tiles.h"
#include "base/fail.h"
#include "kern/kern.h"
#include "kern/tiles/tiles.h"
#include "nn/core/products.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { UNITS = 512, SAMPLES = 16 };

#define SPELL 0.01 /* seconds a measurement takes at least */

struct tile_bench {
	const struct neap__tile_ops *ops;
	const struct neap__kernels *kernels;
	real w[UNITS * UNITS], v[UNITS], out[SAMPLES][UNITS];
	uint16_t id[UNITS];
	uint32_t packed[NEAP__TILE_PLANES * UNITS / 2 * UNITS];
	struct neap__planes planes;
	struct neap__matrix rows;
	struct neap__sample_rows sample[SAMPLES];
	int is_dot;
};

static void in_tiles(void *work)
{
	struct tile_bench *b = work;
	b->ops->product(&b->planes, b->sample, SAMPLES);
}

static void over_lists(void *work)
{
	struct tile_bench *b = work;
	(b->is_dot ? b->kernels->rows[0].dot : b->kernels->rows[0].add)(
		&b->rows, b->sample, SAMPLES);
}

/* Lists of so many eighths of the units; 0: factors that are numbers. */
static void prepare(struct tile_bench *b, int planes, int eighths)
{
	int count = 0;

	neap__planes_pack(b->packed, b->w, UNITS, UNITS, planes);
	b->planes = neap__planes_of(b->packed, UNITS, UNITS, planes);
	for (int k = 0; k < UNITS; k++)
		if (!eighths || k % 8 < eighths)
			b->id[count++] = (uint16_t)k;
	for (int s = 0; s < SAMPLES; s++)
		b->sample[s] = (struct neap__sample_rows){.id = b->id,
			.v = eighths ? NULL : b->v,
			.count = count,
			.out = b->out[s],
			.in = b->v};
}

static int measure(struct neap__bench *bench, struct tile_bench *b, void (*fn)(void *work),
	const char *name, const char *whose)
{
	struct neap_bench_row row = {.unit = "s", .target = NAN};
	double seconds[NEAP__BENCH_RUNS_MOST];
	int runs = neap__bench_runs(bench, 5);

	snprintf(row.name, sizeof row.name, "avx512 %s %d", name, SAMPLES);
	if (!neap__bench_wants(bench, row.name))
		return 0;
	for (int i = 0; i < runs; i++)
		seconds[i] = neap__bench_seconds(fn, b, SPELL);
	neap__bench_sample(&row, seconds, runs);
	snprintf(row.what, sizeof row.what, "%d x %d numbers; %s", UNITS, UNITS, whose);
	return neap__bench_row(bench, &row);
}

static int all_rows(struct neap__bench *bench, struct tile_bench *b)
{
	const char *by = b->ops->name;

	prepare(b, 1, 0);
	NEAP_TRY(measure(bench, b, in_tiles, "tiles bf16", by));
	prepare(b, NEAP__TILE_PLANES, NEAP__ADD_EIGHTHS);
	NEAP_TRY(measure(bench, b, in_tiles, "tiles spikes", by));
	NEAP_TRY(measure(bench, b, over_lists, "tiles spikes, lists", "1 of 8 units spike"));
	prepare(b, NEAP__TILE_PLANES, 0);
	NEAP_TRY(measure(bench, b, in_tiles, "tiles gradients", by));
	prepare(b, NEAP__TILE_PLANES, NEAP__DOT_EIGHTHS);
	b->is_dot = 1;
	return measure(bench, b, over_lists, "tiles gradients, lists", "of 6 of 8 units");
}

int neap__bench_tiles(struct neap__bench *bench)
{
	const struct neap__tile_ops *ops = neap__tiles_get(NEAP__ISA_AVX512);
	struct tile_bench *b = ops ? aligned_alloc(64, (sizeof *b + 63) / 64 * 64) : NULL;

	if (!ops)
		return 0; /* no row */
	if (!b)
		return neap__fail_errno(ENOMEM, "benchmark kernels");
	b->ops = ops;
	b->kernels = neap__kernels_get(NEAP__ISA_AVX512);
	b->rows = (struct neap__matrix){.w = b->w, .columns = UNITS};
	b->is_dot = 0;
	for (int i = 0; i < UNITS * UNITS; i++)
		b->w[i] = (real)1e-6;
	for (int i = 0; i < UNITS; i++)
		b->v[i] = (real)1e-6;
	for (int i = 0; i < SAMPLES * UNITS; i++)
		b->out[i / UNITS][i % UNITS] = 0;
	int rc = all_rows(bench, b);
	free(b);
	return rc;
}

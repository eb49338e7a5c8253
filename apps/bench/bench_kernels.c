/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_kernels.c: the inner loops of a net's step against the roofline of this machine. A
 * kernel works on a group of SAMPLES samples and a square matrix of N rows. An event is a row of
 * N numbers for one sample: a spike that arrives (forward), a unit inside the support of the
 * surrogate (dots), or a spike whose weight gradients are added (grads, STEPS steps at once).
 *
 * The attainable time is the longest of three: each distinct row read once from where the matrix
 * fits, every event's row read from a near cache (grads: from where the strips of STEPS steps
 * fit), and the products in registers. The three rates are measured on one thread right before
 * the kernel.
 */
#include "bench/benchmark.h"
#include "base/fail.h"
#include "base/philox.h"
#include "kern/kern.h"
#include "bench/kernel_products.h"
#include "bench/kernel_tiles.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SAMPLES = 8,
	STEPS = 64,
	TURNS = 16, /* different lists, one after the other */
	LARGEST = 4096,
	NEAR = 16 * 1024,	       /* bytes in a near cache for certain */
	STRIPS = STEPS * SAMPLES * 256 /* of what grads adds: kern/gather.c */
};

#define ATTAINED 0.6 /* of what is attainable, at least */
#define SPELL 0.002  /* seconds a measurement takes at least */

static const int sizes[] = {256, 512, 1024, 4096};
static const double activities[] = {0.005, 0.02, 0.1, 0.5};
enum { SIZES = 4, ACTIVITIES = 4 };

struct kernel_work {
	const struct neap__kernels *kernels;
	struct neap__matrix m;
	real *w, *x, *out; /* [N][N], [STEPS * SAMPLES][N], the same */
	uint16_t *id;	   /* [TURNS][SAMPLES][N] */
	struct neap__sample_rows share[TURNS][SAMPLES];
	uint16_t *row; /* of the grads' bundle */
	uint32_t *start, *from;
	real *strip;
	struct neap__scatter bundle;
	int n, turn, near;
	double events, rows; /* of a call; rows: distinct ones */
};

struct ceilings {
	double near, far, products; /* bytes, bytes and flops a second */
};

static void forward(void *work)
{
	struct kernel_work *b = work;
	b->kernels->rows[0].add(&b->m, b->share[b->turn++ % TURNS], SAMPLES);
}

static void dots(void *work)
{
	struct kernel_work *b = work;
	b->kernels->rows[0].dot(&b->m, b->share[b->turn++ % TURNS], SAMPLES);
}

static void grads(void *work)
{
	struct kernel_work *b = work;
	b->kernels->gather(b->w, b->n, &b->bundle);
}

static void read_near(void *work)
{
	struct kernel_work *b = work;
	b->out[0] += b->kernels->ceiling_read(b->x, b->near / (int)sizeof(real));
}

static void read_far(void *work)
{
	struct kernel_work *b = work;
	b->out[0] += b->kernels->ceiling_read(b->w, (int64_t)b->n * b->n);
}

static void multiply(void *work)
{
	struct kernel_work *b = work;
	b->out[0] = 0;
	b->kernels->ceiling_products(b->out, 1000);
}

/* Seconds a call, the least of three spells. */
static double seconds_of(struct kernel_work *b, void (*fn)(void *work))
{
	double best = INFINITY;

	fn(b);
	for (int spell = 0; spell < 3; spell++)
		best = fmin(best, neap__bench_seconds(fn, b, SPELL));
	return best;
}

static struct ceilings measure(struct kernel_work *b)
{
	int lanes = b->kernels->ceiling_products(b->out, 1);
	return (struct ceilings){.near = b->near / seconds_of(b, read_near),
		.far = (double)b->n * b->n * sizeof(real) / seconds_of(b, read_far),
		.products = 2.0 * 1000 * lanes / seconds_of(b, multiply)};
}

static double draw(uint64_t at)
{
	return neap__random_uniform(1, NEAP__STREAM_TEST, 7, at);
}

/* Lists of an activity; 1: every sample has the same list, of all units. */
static void make_lists(struct kernel_work *b, double activity)
{
	uint64_t drawn = 0;
	char seen[LARGEST];

	b->near = NEAR;
	b->events = b->rows = 0;
	for (int turn = 0; turn < TURNS; turn++) {
		memset(seen, 0, sizeof seen);
		for (int s = 0; s < SAMPLES; s++) {
			uint16_t *id = b->id + ((size_t)turn * SAMPLES + s) * b->n;
			int count = 0;
			if (activity >= 1)
				id = b->id;
			for (int i = 0; i < b->n; i++) {
				if (activity < 1 && draw(drawn++) >= activity)
					continue;
				id[count++] = (uint16_t)i;
				b->rows += !seen[i];
				seen[i] = 1;
			}
			b->events += count;
			b->share[turn][s] = (struct neap__sample_rows){.id = id,
				.count = count,
				.in = b->x + (size_t)s * b->n,
				.out = b->out + (size_t)s * b->n};
		}
	}
	b->events /= TURNS;
	b->rows /= TURNS;
}

/* Spikes of STEPS steps of all samples, by row. */
static void make_bundle(struct kernel_work *b, double activity)
{
	uint64_t drawn = 0;
	uint32_t events = 0;

	b->bundle = (struct neap__scatter){.row = b->row,
		.start = b->start,
		.from = b->from,
		.source_rows = STEPS * SAMPLES,
		.x = b->x,
		.stride = (size_t)b->n,
		.strip = b->strip};
	for (int i = 0; i < b->n; i++) {
		uint32_t before = events;
		b->start[b->bundle.rows] = events;
		for (uint32_t s = 0; s < STEPS * SAMPLES; s++)
			if (draw(drawn++) < activity)
				b->from[events++] = s;
		if (events > before)
			b->row[b->bundle.rows++] = (uint16_t)i;
	}
	b->start[b->bundle.rows] = events;
	b->near = STRIPS;
	b->events = events;
	b->rows = b->bundle.rows;
}

static int report(struct neap__bench *bench, struct kernel_work *b, const char *name,
	void (*fn)(void *work), double fetches, int judged)
{
	struct neap_bench_row row = {.unit = "s", .target = NAN};
	double samples[NEAP__BENCH_RUNS_MOST], attained[NEAP__BENCH_RUNS_MOST];
	int runs = neap__bench_runs(bench, 3);
	double bytes = (double)b->n * sizeof(real), flops = 2 * b->events * b->n;
	struct ceilings c = {0};

	snprintf(row.name, sizeof row.name, "%s", name);
	for (int i = 0; i < runs; i++) {
		c = measure(b);
		samples[i] = seconds_of(b, fn);
		double least = fmax(b->events * bytes / c.near, b->rows * bytes * fetches / c.far);
		least = fmax(least, flops / c.products);
		attained[i] = least / samples[i];
	}
	struct neap_bench_row share = row;
	neap__bench_sample(&row, samples, runs);
	neap__bench_sample(&share, attained, runs);
	if (judged)
		row.target = row.value * share.value / ATTAINED;
	snprintf(row.what, sizeof row.what,
		"%.0f%% of attainable; %.3g events/s, %.3g GB/s, %.3g Gflop/s", 100 * share.value,
		b->events / row.value, b->events * bytes / row.value / 1e9,
		flops / row.value / 1e9);
	row.nmore = 6;
	row.more[0].name = "attained";
	row.more[0].value = share.value;
	row.more[1].name = "events_per_second";
	row.more[1].value = b->events / row.value;
	row.more[2].name = "bytes_per_second";
	row.more[2].value = b->events * bytes / row.value;
	row.more[3].name = "near_ceiling";
	row.more[3].value = c.near;
	row.more[4].name = "far_ceiling";
	row.more[4].value = c.far;
	row.more[5].name = "flops_ceiling";
	row.more[5].value = c.products;
	return neap__bench_row(bench, &row);
}

/* The share of units from which on dense products take less time than sparse ones. */
static int crossing(struct neap__bench *bench, struct kernel_work *b, const char *name)
{
	struct neap_bench_row row = {.unit = "ratio", .target = NAN};
	double samples[NEAP__BENCH_RUNS_MOST];
	int runs = neap__bench_runs(bench, 3);

	for (int i = 0; i < runs; i++) {
		make_lists(b, 1);
		double dense = seconds_of(b, dots);
		for (samples[i] = 0.05; samples[i] < 1; samples[i] += 0.05) {
			make_lists(b, samples[i]);
			if (seconds_of(b, dots) >= dense)
				break;
		}
	}
	snprintf(row.name, sizeof row.name, "%s", name);
	snprintf(row.what, sizeof row.what, "share of units from which on dense dots are faster");
	neap__bench_sample(&row, samples, runs);
	return neap__bench_row(bench, &row);
}

static int rows_of(struct neap__bench *bench, struct kernel_work *b, int widest)
{
	static const struct {
		const char *name;
		void (*fn)(void *work);
		double fetches; /* of a row, written back included */
	} kernels[] = {{"forward", forward, 1}, {"dots", dots, 1}, {"grads", grads, 2}};
	char name[48];

	for (int k = 0; k < 3; k++)
		for (int a = 0; a < ACTIVITIES; a++) {
			snprintf(name, sizeof name, "%s %s %d %g%%", b->kernels->name,
				kernels[k].name, b->n, 100 * activities[a]);
			if (!neap__bench_wants(bench, name))
				continue;
			if (kernels[k].fn == grads)
				make_bundle(b, activities[a]);
			else
				make_lists(b, activities[a]);
			NEAP_TRY(report(bench, b, name, kernels[k].fn, kernels[k].fetches,
				widest && (b->n == 512 || b->n == LARGEST)));
		}
	snprintf(name, sizeof name, "%s dense dots %d", b->kernels->name, b->n);
	if (neap__bench_wants(bench, name)) {
		make_lists(b, 1);
		NEAP_TRY(report(bench, b, name, dots, 1, widest && b->n == 512));
	}
	snprintf(name, sizeof name, "%s dense from %d", b->kernels->name, b->n);
	return neap__bench_wants(bench, name) ? crossing(bench, b, name) : 0;
}

static int prepare(struct kernel_work *b, int n)
{
	size_t all = (size_t)n * n, wide = (size_t)STEPS * SAMPLES * n;

	b->n = n;
	b->m = (struct neap__matrix){.columns = n};
	b->w = aligned_alloc(64, all * sizeof *b->w);
	b->x = aligned_alloc(64, wide * sizeof *b->x);
	b->out = aligned_alloc(64, wide * sizeof *b->out);
	b->id = malloc((size_t)TURNS * SAMPLES * n * sizeof *b->id);
	b->row = malloc((size_t)n * sizeof *b->row);
	b->start = malloc(((size_t)n + 1) * sizeof *b->start);
	b->strip = aligned_alloc(64, (size_t)STEPS * SAMPLES * NEAP__STRIP_BYTES);
	b->from = malloc((size_t)n * STEPS * SAMPLES * sizeof *b->from);
	if (!b->w || !b->x || !b->out || !b->id || !b->row || !b->start || !b->from || !b->strip)
		return neap__fail_errno(ENOMEM, "benchmark kernels");
	for (size_t i = 0; i < all; i++)
		b->w[i] = (real)1e-6;
	for (size_t i = 0; i < wide; i++)
		b->x[i] = b->out[i] = (real)1e-6;
	b->m.w = b->w;
	return 0;
}

static void release(struct kernel_work *b)
{
	free(b->w);
	free(b->x);
	free(b->out);
	free(b->id);
	free(b->row);
	free(b->start);
	free(b->from);
	free(b->strip);
	memset(b, 0, sizeof *b);
}

static int run(struct neap__bench *bench)
{
	struct kernel_work *b = calloc(1, sizeof *b);
	enum neap__isa widest;
	int rc = b ? neap__isa_choose(&widest) : neap__fail_errno(ENOMEM, "benchmark kernels");

	for (int isa = NEAP__ISA_PLAIN; isa < NEAP__ISAS && rc == 0; isa++)
		for (int i = 0; i < SIZES && rc == 0 && neap__isa_works((enum neap__isa)isa); i++) {
			rc = prepare(b, sizes[i]);
			b->kernels = neap__kernels_get((enum neap__isa)isa);
			if (rc == 0)
				rc = rows_of(bench, b, isa == (int)widest);
			release(b);
		}
	free(b);
	for (int isa = NEAP__ISA_PLAIN; isa < NEAP__ISAS && rc == 0; isa++)
		if (neap__isa_works((enum neap__isa)isa))
			rc = neap__bench_products(bench, (enum neap__isa)isa);
	return rc == 0 ? neap__bench_tiles(bench) : rc;
}

const struct neap__benchmark neap__bench_kernels = {
	.name = "kernels",
	.about = "a net's inner loops against what this machine can read and multiply",
	.run = run,
};

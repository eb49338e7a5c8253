/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_arena.c: the first sweep in a fresh arena, whose pages are made while it runs, over the
 * later ones in the same arena. Steps write and read their tape once, as fast as memory goes, which
 * is where fresh pages show most; in some rows they pass over it several times.
 */
#include "bench/benchmark.h"

#include <math.h>
#include <neap/sweep.h>
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "sys/clock.h"

#define STATE 4096
#define LATER 4 /* sweeps after the first */
#define MOST 1.2

/* A chain whose steps fill their tape with a number, and add it up. */
struct filled_tapes {
	size_t tape;
	int passes; /* over the tape in a step */
	double sum;
};

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	uint64_t *x = state;
	(void)user, (void)first;
	*x += (uint64_t)(t1 - t0);
	return 0;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *done)
{
	const struct filled_tapes *m = user;
	uint64_t *x = state;
	(void)first;
	*used = 0;
	for (*done = t0; *done < t1 && room - *used >= m->tape; ++*done, *used += m->tape)
		for (int k = 0; k < m->passes; k++)
			memset((char *)tape + *used, (int)(*x += 1), m->tape);
	return 0;
}

static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	(void)user, (void)state;
	memset(adjoint, 0, STATE);
	*loss = 0;
	return 0;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct filled_tapes *m = user;
	const uint64_t *x = tape;
	size_t words = (size_t)(t1 - t0) * m->tape / sizeof *x;
	uint64_t sum = 0;
	(void)adjoint;
	for (int k = 0; k < m->passes; k++)
		for (size_t i = 0; i < words; i++)
			sum += x[i] ^ (uint64_t)k;
	m->sum += (double)sum;
	return 0;
}

/* Seconds of the first sweep over the mean of the later ones in one arena. */
static int measure(double *ratio, double *seconds, struct filled_tapes *model, int64_t steps)
{
	const struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.state_bytes = STATE,
		.adjoint_bytes = STATE,
		.tape_bytes = model->tape};
	const struct neap_sweep_options options = {
		.size = sizeof options, .steps = steps, .strategy = "bptt"};
	struct neap_sweep *sweep;
	double later = 0, loss;

	NEAP_TRY(neap_sweep_create(&sweep, &ops, model, &options));
	int rc = 0;
	for (int i = 0; rc == 0 && i <= LATER; i++) {
		double from = neap__seconds();
		rc = neap_sweep_run(sweep, NULL, NULL, &loss, NULL);
		if (i == 0)
			*seconds = neap__seconds() - from;
		else
			later += (neap__seconds() - from) / LATER;
	}
	neap_sweep_free(sweep);
	*ratio = later > 0 ? *seconds / later : NAN;
	return rc;
}

static int compare(struct neap__bench *bench, uint64_t arena, size_t tape, int passes)
{
	struct neap_bench_row row = {.unit = "ratio", .target = MOST, .nmore = 1};
	double ratio[NEAP__BENCH_RUNS_MOST], seconds[NEAP__BENCH_RUNS_MOST];
	struct filled_tapes model = {.tape = tape, .passes = passes};
	int runs = neap__bench_runs(bench, 5);

	snprintf(row.name, sizeof row.name, "%llu MiB, tapes of %zu KiB, %d pass%s",
		(unsigned long long)(arena >> 20), tape >> 10, passes, passes > 1 ? "es" : "");
	snprintf(row.what, sizeof row.what, "first sweep over %d later ones in the same arena",
		LATER);
	if (!neap__bench_wants(bench, row.name))
		return 0;
	for (int i = 0; i < runs; i++) {
		NEAP_TRY(measure(&ratio[i], &seconds[i], &model, (int64_t)(arena / tape)));
		NEAP_TRY(neap__bench_stopped(bench));
	}
	row.more[0].name = "first_seconds";
	row.more[0].value = seconds[0];
	neap__bench_sample(&row, ratio, runs);
	return neap__bench_row(bench, &row);
}

static int run(struct neap__bench *bench)
{
	NEAP_TRY(compare(bench, (uint64_t)1 << 28, 65536, 1));
	NEAP_TRY(compare(bench, (uint64_t)1 << 30, 1 << 20, 1));
	NEAP_TRY(compare(bench, (uint64_t)1 << 30, 1 << 20, 4));
	return compare(bench, (uint64_t)1 << 30, 65536, 16);
}

const struct neap__benchmark neap__bench_arena = {
	"arena", "the first sweep in a fresh arena beside later ones", run};

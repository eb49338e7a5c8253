/* SPDX-License-Identifier: Apache-2.0 */
/*
 * benchmark.h: the table of named benchmarks behind run_bench.h, and the functions that
 * benchmarks share. To add a benchmark: a new file bench_NAME.c with its run function, and a
 * line in NEAP__BENCHMARK_TABLE.
 */
#ifndef NEAP_BENCH_BENCHMARK_H
#define NEAP_BENCH_BENCHMARK_H

#include "bench/run_bench.h"

/* A benchmark at work: options, and where rows go. */
struct neap__bench {
	struct neap_bench_options options;
	int (*row)(void *user, const struct neap_bench_row *row);
	void *user;
	int rows; /* handed out */
};

struct neap__benchmark {
	const char *name;
	const char *about; /* one line */
	int (*run)(struct neap__bench *bench);
};

/* X(row), in the order of `neap bench`. The row neap__bench_NAME stands in bench_NAME.c. */
#define NEAP__BENCHMARK_TABLE(X)                                                                   \
	X(neap__bench_planner)                                                                     \
	X(neap__bench_auto)                                                                        \
	X(neap__bench_store)                                                                       \
	X(neap__bench_arena)                                                                       \
	X(neap__bench_kernels)                                                                     \
	X(neap__bench_cells)

#define NEAP__X(row) extern const struct neap__benchmark row;
NEAP__BENCHMARK_TABLE(NEAP__X)
#undef NEAP__X

#define NEAP__BENCH_RUNS_MOST 101

/* Is a row of that name asked for? */
int neap__bench_wants(const struct neap__bench *bench, const char *name);
/* Runs asked for, else `usual`. */
int neap__bench_runs(const struct neap__bench *bench, int usual);
/* Sets median, least, most and runs of a row from n >= 1 samples, which it sorts. */
void neap__bench_sample(struct neap_bench_row *row, double *samples, int n);
/* Seconds of fn(work), called again and again for `spell` seconds at least. */
double neap__bench_seconds(void (*fn)(void *work), void *work, double spell);
/* NEAP_EINTERRUPTED if the caller wants an end. */
int neap__bench_stopped(const struct neap__bench *bench);
/* Sets `met` and hands the row out. */
int neap__bench_row(struct neap__bench *bench, struct neap_bench_row *row);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_bench.h: named benchmarks; a benchmark hands out its rows as they are measured.
 *
 *     static int print(void *user, const struct neap_bench_row *row)
 *     {
 *             printf("%s %s: %g %s\n", row->name, row->what, row->value, row->unit);
 *             return 0;
 *     }
 *     neap_bench_run("planner", NULL, print, NULL);
 */
#ifndef NEAP_BENCH_RUN_BENCH_H
#define NEAP_BENCH_RUN_BENCH_H

#include <stdint.h>
#include <neap/status.h>

/* How a benchmark is run; all zero: as it stands. */
struct neap_bench_options {
	int runs;	       /* of each row, the median counts; 0: the benchmark's own number */
	const char *only;      /* rows whose name begins so; NULL: all. Borrowed */
	const char *directory; /* on the disk to measure; NULL: /var/tmp. Borrowed */
	/* Asked between measurements; non-zero ends them with NEAP_EINTERRUPTED. May be NULL. */
	int (*interrupted)(void *user);
	void *interrupted_user;
};

#define NEAP_BENCH_MORE 8

/* One measurement, or one comparison. */
struct neap_bench_row {
	char name[48];		 /* what was measured */
	char what[112];		 /* on which problem */
	const char *unit;	 /* "s", "bytes", "ratio": of value, low, high and target. Static */
	double value, low, high; /* median, least and most of `runs` measurements */
	double target;		 /* value is to be at most this; NAN: there is none */
	int runs;
	int met; /* value <= target, or no target */
	/* Numbers beside it, names static; count of them in `nmore`. */
	int nmore;
	struct {
		const char *name;
		double value;
	} more[NEAP_BENCH_MORE];
};

/* The benchmarks, in table order; NULL beyond the end. */
const char *neap_bench_name(int index);
/* One line about a benchmark; NULL when there is none of that name. */
const char *neap_bench_about(const char *name);
/*
 * Runs a benchmark (options may be NULL) and hands each row to `row`, which returns 0
 * or a negative code that ends it. 0, NEAP_EUSAGE for an unknown name or one without
 * rows that begin with options->only, or the first code of what was measured.
 */
int neap_bench_run(const char *name, const struct neap_bench_options *options,
	int (*row)(void *user, const struct neap_bench_row *row), void *user);

#endif

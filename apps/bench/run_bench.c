/* SPDX-License-Identifier: Apache-2.0 */
/* run_bench.c: finds a benchmark, runs it, and makes rows of its samples. */
#include "bench/benchmark.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "sys/clock.h"

static const struct neap__benchmark *const benchmarks[] = {
#define NEAP__X(row) &row,
	NEAP__BENCHMARK_TABLE(NEAP__X)
#undef NEAP__X
		NULL,
};

static const struct neap__benchmark *find(const char *name)
{
	for (int i = 0; name && benchmarks[i]; i++)
		if (strcmp(benchmarks[i]->name, name) == 0)
			return benchmarks[i];
	return NULL;
}

const char *neap_bench_name(int index)
{
	for (int i = 0; benchmarks[i]; i++)
		if (i == index)
			return benchmarks[i]->name;
	return NULL;
}

const char *neap_bench_about(const char *name)
{
	const struct neap__benchmark *row = find(name);
	return row ? row->about : NULL;
}

int neap__bench_wants(const struct neap__bench *bench, const char *name)
{
	const char *only = bench->options.only;
	return !only || strncmp(name, only, strlen(only)) == 0;
}

int neap__bench_runs(const struct neap__bench *bench, int usual)
{
	int runs = bench->options.runs > 0 ? bench->options.runs : usual;
	return runs < NEAP__BENCH_RUNS_MOST ? runs : NEAP__BENCH_RUNS_MOST;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void neap__bench_sample(struct neap_bench_row *row, double *samples, int n)
{
	qsort(samples, (size_t)n, sizeof *samples, ascending);
	row->runs = n;
	row->low = samples[0];
	row->high = samples[n - 1];
	row->value = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

double neap__bench_seconds(void (*fn)(void *work), void *work, double spell)
{
	double from = neap__seconds(), passed = 0;
	int calls = 0;

	for (int more = 1; passed < spell; more *= 2) {
		for (int i = 0; i < more; i++)
			fn(work);
		calls += more;
		passed = neap__seconds() - from;
	}
	return passed / calls;
}

int neap__bench_stopped(const struct neap__bench *bench)
{
	const struct neap_bench_options *o = &bench->options;
	if (o->interrupted && o->interrupted(o->interrupted_user))
		return neap__fail(NEAP_EINTERRUPTED, "interrupted");
	return 0;
}

int neap__bench_row(struct neap__bench *bench, struct neap_bench_row *row)
{
	row->met = isnan(row->target) || row->value <= row->target;
	bench->rows++;
	NEAP_TRY(bench->row(bench->user, row));
	return neap__bench_stopped(bench);
}

int neap_bench_run(const char *name, const struct neap_bench_options *options,
	int (*row)(void *user, const struct neap_bench_row *row), void *user)
{
	struct neap__bench bench = {.row = row, .user = user};
	const struct neap__benchmark *found = find(name);
	if (!found)
		return neap__fail(NEAP_EUSAGE, "unknown benchmark '%s'", name ? name : "(none)");
	if (options)
		bench.options = *options;
	if (bench.options.runs < 0)
		return neap__fail(
			NEAP_EUSAGE, "runs is %d; it must not be negative", bench.options.runs);
	NEAP_TRY(found->run(&bench));
	if (bench.rows == 0 && bench.options.only)
		return neap__fail(NEAP_EUSAGE,
			"benchmark %s: no row begins with '%s'. Run it without --only to list the "
			"rows",
			name, bench.options.only);
	return 0;
}

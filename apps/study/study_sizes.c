/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_sizes.c: peak of fast memory of store-all and of `double` over the size of the net, for
 * sequences of 128, 500 and 900 steps. Sweeps run once, since their times do not count.
 */
#include <math.h>
#include <stdio.h>
#include "base/fail.h"
#include "study/experiment.h"
#include "study/net_cases.h"

#define MIB 1048576.0

static const struct sizes_task {
	int64_t steps;
	int batch;
} tasks[] = {{128, 120}, {500, 60}, {900, 60}};
enum { TASKS = sizeof tasks / sizeof tasks[0] };

/* Remote chunks of sqrt(T) steps, in them the chunks that take the least. */
static struct neap_params params_of(const struct neap_problem *p)
{
	double ratio = (double)p->chain.state / (double)p->chain.tape;
	double root = ceil(sqrt((double)p->chain.steps));
	return (struct neap_params){.remote_chunk = (int64_t)root,
		.chunk = (int64_t)fmin(root, fmax(1, round(sqrt(root * ratio))))};
}

static int run(struct neap__study *study, const struct neap__netcase *net, const char *strategy,
	const struct neap_params *params)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_plan plan = {.size = sizeof plan};
	NEAP_TRY(neap__net_sweep(&stats, &plan, study, net, strategy, params, 0));
	return neap__study_row(study, "%s,%lld,%d,%d,%llu,%llu,%llu", strategy,
		(long long)net->steps, net->batch, net->units, (unsigned long long)plan.peak_bytes,
		(unsigned long long)stats.peak_measured, (unsigned long long)plan.slow_bytes);
}

static int measure(struct neap__study *study)
{
	int sizes = (int)neap__study_scaled(study, 3, 6, 1);
	for (int i = 0; i < TASKS; i++)
		for (int k = 0; k < sizes; k++) {
			const struct neap__netcase net = {.units = 64 << k,
				.batch = tasks[i].batch,
				.steps = tasks[i].steps,
				.dense = 1};
			struct neap_problem p = {.size = sizeof p};
			int rc = neap__study_point(study, "T=%lld B=%d N=%d", (long long)net.steps,
				net.batch, net.units);
			NEAP_TRY(rc);
			if (rc == 0)
				continue;
			NEAP_TRY(neap__net_sizes(&p, study, &net));
			const struct neap_params params = params_of(&p);
			NEAP_TRY(run(study, &net, "bptt", NULL));
			NEAP_TRY(run(study, &net, "double", &params));
			NEAP_TRY(neap__study_done(study));
		}
	return 0;
}

static void series(struct neap__study *study, struct neap__figure *f, const char *strategy,
	int64_t steps, const char *column, const char *key, int look)
{
	neap__figure_series(f, strategy, 0, key, look);
	for (int i = 0; i < neap__points_count(study->points); i++)
		if (neap__row_is(study, i, "strategy", strategy) &&
			neap__row_number(study, i, "steps") == (double)steps)
			neap__figure_xy(f, neap__row_number(study, i, "units"),
				neap__row_number(study, i, column) / MIB);
}

static void draw_panels(struct neap__study *study, struct neap__figure *f)
{
	static const char *const names[] = {"bptt", "double"};
	char title[80];

	for (int i = 0; i < TASKS; i++) {
		snprintf(title, sizeof title, "T = %lld, batches of %d", (long long)tasks[i].steps,
			tasks[i].batch);
		neap__figure_panel(
			f, title, "units N", "fast memory (MiB)", NEAP__LOG_X | NEAP__LOG_Y);
		for (int k = 0; k < 2; k++) {
			series(study, f, names[k], tasks[i].steps, "peak_bytes", "", NEAP__LINE);
			series(study, f, names[k], tasks[i].steps, "peak_measured",
				k ? NULL : "bptt (store-all)", NEAP__MARKS);
		}
	}
}

static int draw(struct neap__study *study)
{
	struct neap__figure f;
	double share[2] = {INFINITY, 0}, at[2][2] = {{0}}; /* least, most; steps and units */

	neap__text_add(&study->report,
		"Measured peaks of sweeps of `lif:Nr,li` with dense tapes. `double` uses "
		"remote chunks of sqrt(T) steps in a file, which contain chunks of "
		"sqrt(sqrt(T) S/A) steps (S, A: bytes of a state and a tape). Lines are planned "
		"values, marks are measured.\n\n| steps "
		"| batch | units | store-all | `double` | `double` / store-all | slow "
		"memory |\n|---|---|---|---|---|---|---|\n");
	for (int i = 0; i + 1 < neap__points_count(study->points); i += 2) {
		double all = neap__row_number(study, i, "peak_measured");
		double least = neap__row_number(study, i + 1, "peak_measured");
		neap__text_add(&study->report,
			"| %s | %s | %s | %.2f MiB | %.2f MiB | %.1f%% | %.1f MiB |\n",
			neap__row_text(study, i, "steps"), neap__row_text(study, i, "batch"),
			neap__row_text(study, i, "units"), all / MIB, least / MIB,
			100 * least / all, neap__row_number(study, i + 1, "slow_bytes") / MIB);
		for (int k = 0; k < 2; k++)
			if (k ? least / all > share[k] : least / all < share[k]) {
				share[k] = least / all;
				at[k][0] = neap__row_number(study, i, "steps");
				at[k][1] = neap__row_number(study, i, "units");
			}
	}
	neap__figure_begin(&f, "sizes");
	draw_panels(study, &f);
	return neap__study_figure(study, &f,
		"`double` needs %.1f%% (T = %g, N = %g) to %.1f%% (T = %g, N = %g) of the memory "
		"of "
		"store-all.",
		100 * share[0], at[0][0], at[0][1], 100 * share[1], at[1][0], at[1][1]);
}

const struct neap__experiment neap__study_sizes = {"sizes",
	"fast memory of double and store-all as functions of network size",
	"strategy,steps,batch,units,peak_bytes,peak_measured,slow_bytes", measure, draw};

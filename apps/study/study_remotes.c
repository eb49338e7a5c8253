/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_remotes.c: memory and time of `double` over the steps R of its remote chunk. With S bytes
 * of state and A bytes of tape, local chunks of sqrt(R S/A) steps take the least memory: a peak of
 * 2 sqrt(R S A) bytes and a state.
 */
#include <math.h>
#include <stdio.h>
#include "base/fail.h"
#include "study/experiment.h"
#include "study/net_cases.h"

#define UNITS 128
#define BATCH 8
#define MIB 1048576.0
#define MOST 8

static int run(struct neap__study *study, int64_t steps)
{
	const struct neap__netcase net = {
		.units = UNITS, .batch = BATCH, .steps = steps, .dense = 1};
	struct neap_compare_case cases[MOST];
	struct neap_compare_result result = {.size = sizeof result};
	struct neap_compare_options o;
	struct neap__netroom room;
	struct neap_problem p = {.size = sizeof p};
	int64_t remote = 16;
	int count = 0, rc = 0;

	NEAP_TRY(neap__net_sizes(&p, study, &net));
	double ratio = (double)p.chain.state / (double)p.chain.tape;
	for (; count < MOST && remote <= steps; count++, remote *= 2) {
		int64_t chunk = (int64_t)fmax(1, round(sqrt((double)remote * ratio)));
		cases[count] = (struct neap_compare_case){.strategy = "double",
			.params = {.remote_chunk = remote,
				.chunk = chunk < remote ? chunk : remote},
			.least = 1};
	}
	neap__net_options(&o, &room, study, &net);
	o.sweep.memory = 8 << 20; /* to calibrate in */
	o.repeats = (int)neap__study_scaled(study, 5, 9, 1);
	o.cases = cases;
	o.cases_count = count;
	NEAP_TRY(neap_compare(&result, &o));
	for (int i = 0; rc == 0 && i < result.runs_count; i++) {
		const struct neap_params *params = &result.runs[i].plan.params;
		char before[96];
		snprintf(before, sizeof before, "%lld,%lld,%llu,%llu,",
			(long long)params->remote_chunk, (long long)params->chunk,
			(unsigned long long)p.chain.state, (unsigned long long)p.chain.tape);
		rc = neap__net_row(study, before, &net, &result, &result.runs[i]);
	}
	neap_compare_result_free(&result);
	return rc;
}

static int measure(struct neap__study *study)
{
	int64_t steps = neap__study_scaled(study, 4096, 16384, 256);
	int rc = neap__study_point(study, "T=%lld", (long long)steps);
	if (rc <= 0)
		return rc;
	NEAP_TRY(run(study, steps));
	return neap__study_done(study);
}

static void series(struct neap__study *study, struct neap__figure *f, const char *column,
	double unit, const char *key, int look)
{
	neap__figure_series(f, "double", 0, key, look);
	for (int i = 0; i < neap__points_count(study->points); i++)
		if (neap__row_is(study, i, "strategy", "double"))
			neap__figure_xy(f, neap__row_number(study, i, "remote_chunk"),
				neap__row_number(study, i, column) / unit);
}

/* The first or the last row that ran with a remote chunk. */
static int row_of(const struct neap__study *study, int last)
{
	int found = -1;
	for (int i = 0; i < neap__points_count(study->points); i++)
		if (neap__row_is(study, i, "strategy", "double") &&
			isfinite(neap__row_number(study, i, "seconds")) && (found < 0 || last))
			found = i;
	return found;
}

/* A row of the table for each point of `double`, and the formula's curve. */
static void add_points(struct neap__study *study, struct neap__figure *f)
{
	for (int i = 0; i < neap__points_count(study->points); i++) {
		double s = neap__row_number(study, i, "state"),
		       a = neap__row_number(study, i, "tape");
		double r = neap__row_number(study, i, "remote_chunk");
		double formula = (2 * sqrt(r * s * a) + s) / MIB;
		if (!neap__row_is(study, i, "strategy", "double"))
			continue;
		neap__figure_xy(f, r, formula);
		neap__text_add(&study->report,
			"| %s | %s | %.3f MiB | %.3f MiB | %.2f MiB | %.3g ms | %.3g ms | %.1f%% "
			"|\n",
			neap__row_text(study, i, "remote_chunk"), neap__row_text(study, i, "chunk"),
			neap__row_number(study, i, "peak_measured") / MIB, formula,
			neap__row_number(study, i, "slow_bytes") / MIB,
			1e3 * neap__row_number(study, i, "seconds"),
			1e3 * neap__row_number(study, i, "predicted"),
			100 * neap__row_number(study, i, "overhead"));
	}
}

static int draw(struct neap__study *study)
{
	struct neap__figure f;

	neap__text_add(&study->report,
		"`lif:%dr,li`, batches of %d, %s steps. `double` with remote chunks of R "
		"steps, which contain chunks of sqrt(R S/A) steps (S, A: bytes of a "
		"state and a tape). The formula for the peak is 2 sqrt(R S A) + S, "
		"including the live state.\n\n| R | chunk | fast memory | formula | slow "
		"memory | time | predicted | overhead "
		"|\n|---|---|---|---|---|---|---|---|\n",
		UNITS, BATCH, neap__row_text(study, 0, "steps"));
	neap__figure_begin(&f, "remotes");
	neap__figure_panel(&f, "Peak of fast memory", "steps per remote chunk", "MiB",
		NEAP__LOG_X | NEAP__LOG_Y);
	neap__figure_series(&f, NULL, 0, "2 sqrt(R S A) + S", NEAP__LINE | NEAP__DASHED);
	add_points(study, &f);
	series(study, &f, "peak_bytes", MIB, "double, planned", NEAP__LINE);
	series(study, &f, "peak_measured", MIB, "double, measured", NEAP__MARKS);
	neap__figure_panel(&f, "Time of a batch", "steps per remote chunk", "milliseconds",
		NEAP__LOG_X | NEAP__ZERO_Y);
	series(study, &f, "predicted", 1e-3, "double, predicted", NEAP__LINE);
	series(study, &f, "seconds", 1e-3, "double, measured", NEAP__MARKS);
	int first = row_of(study, 0), last = row_of(study, 1);
	if (first < 0 || last < 0)
		return neap__study_figure(study, &f, "No length ran.");
	return neap__study_figure(study, &f,
		"From R = %s to R = %s, fast memory grows %.2g times and the time changes by "
		"%+.0f%%.",
		neap__row_text(study, first, "remote_chunk"),
		neap__row_text(study, last, "remote_chunk"),
		neap__row_number(study, last, "peak_measured") /
			neap__row_number(study, first, "peak_measured"),
		100 * (neap__row_number(study, last, "seconds") /
				      neap__row_number(study, first, "seconds") -
			      1));
}

const struct neap__experiment neap__study_remotes = {"remotes",
	"memory and time of double as functions of the remote chunk length",
	"remote_chunk,chunk,state,tape," NEAP__NET_COLUMNS, measure, draw};

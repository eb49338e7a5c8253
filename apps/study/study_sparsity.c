/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_sparsity.c: which strategy is the fastest at which activity, with dense and with sparse
 * tapes. Activities go from a fraction of a percent to a half; the budget is the memory that
 * store-all takes for a tenth of the steps with dense tapes.
 *
 * The scale of the weights sets the activity. In the last two cases recurrent weights are strong,
 * so that units make each other spike in bursts.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "study/experiment.h"
#include "study/net_cases.h"

#define UNITS 256
#define BATCH 8
#define MIB 1048576.0

static const struct activity {
	const char *label;
	double scale, recurrent, threshold;
	int level; /* of the least study that has it: 0 full, 1 quick, 2 tiny */
} activities[] = {
	{"quiet", 0.8, 0, 0, 1},
	{"low", 1.2, 0, 0, 0},
	{"middle", 2, 0, 0, 2},
	{"high", 4, 0, 0, 0},
	{"loud", 10, 0, 0, 1},
	{"saturated", 2, 0, 0.05, 1},
	{"bursts", 1, 2, 0, 2},
	{"storms", 2, 6, 0, 0},
};
enum { ACTIVITIES = sizeof activities / sizeof activities[0] };

static const char *const strategies[] = {
	"bptt", "standard", "double", "revolve", "stream", "replay", "auto", NULL};

static int run(struct neap__study *study, const struct activity *a, int dense)
{
	struct neap__netcase net = {.units = UNITS,
		.batch = BATCH,
		.steps = neap__study_scaled(study, 1000, 10000, 120),
		.dense = 1,
		.scale = a->scale,
		.recurrent = a->recurrent,
		.threshold = a->threshold};
	struct neap_compare_result result = {.size = sizeof result};
	struct neap_compare_options o;
	struct neap__netroom room;
	struct neap_problem p = {.size = sizeof p};
	char before[96];
	int rc = 0;

	NEAP_TRY(neap__net_sizes(&p, study, &net));
	net.dense = dense;
	neap__net_options(&o, &room, study, &net);
	o.sweep.memory = (uint64_t)net.steps / 10 * p.chain.tape;
	o.strategies = strategies;
	o.repeats = (int)neap__study_scaled(study, 3, 5, 1);
	NEAP_TRY(neap_compare(&result, &o));
	snprintf(before, sizeof before, "%s,%.4g,%.4g,%llu,", a->label, 100 * result.spikes,
		100 * result.support, (unsigned long long)result.problem.chain.tape);
	for (int i = 0; rc == 0 && i < result.runs_count; i++)
		rc = neap__net_row(study, before, &net, &result, &result.runs[i]);
	neap_compare_result_free(&result);
	return rc < 0 ? rc : neap__study_done(study);
}

static int measure(struct neap__study *study)
{
	for (int i = 0; i < ACTIVITIES; i++)
		for (int dense = 0; dense < 2; dense++) {
			if (activities[i].level < neap__study_scaled(study, 1, 0, 2))
				continue;
			int rc = neap__study_point(
				study, "%s %s", activities[i].label, dense ? "dense" : "sparse");
			NEAP_TRY(rc);
			if (rc > 0)
				NEAP_TRY(run(study, &activities[i], dense));
		}
	return 0;
}

/* A row of a point; -1: it did not run. */
static int row_of(const struct neap__study *s, int activity, int dense, const char *strategy)
{
	for (int i = 0; i < neap__points_count(s->points); i++)
		if (neap__row_is(s, i, "activity", activities[activity].label) &&
			neap__row_is(s, i, "tapes", dense ? "fixed" : "vary") &&
			neap__row_is(s, i, "strategy", strategy) &&
			isfinite(neap__row_number(s, i, "seconds")))
			return i;
	return -1;
}

/* The fastest of the named strategies, measured. */
static int fastest(const struct neap__study *s, int activity, int dense)
{
	int best = -1;
	for (int k = 0; strategies[k]; k++) {
		int i = neap_strategy_traits(strategies[k]) & NEAP_STRATEGY_CHOOSES
				? -1
				: row_of(s, activity, dense, strategies[k]);
		if (i >= 0 && (best < 0 || neap__row_number(s, i, "seconds") <
						   neap__row_number(s, best, "seconds")))
			best = i;
	}
	return best;
}

static void add_over(struct neap__study *s, int row)
{
	if (row < 0)
		neap__text_add(&s->report, " does not fit |");
	else
		neap__text_add(
			&s->report, " %+.0f%% |", 100 * neap__row_number(s, row, "overhead"));
}

static int64_t overflows(const struct neap__study *s, int activity, int dense)
{
	int64_t count = 0;
	for (int k = 0; strategies[k]; k++) {
		int i = row_of(s, activity, dense, strategies[k]);
		count += i >= 0 ? (int64_t)neap__row_number(s, i, "overflows") : 0;
	}
	return count;
}

static void table(struct neap__study *s, int dense)
{
	neap__text_add(&s->report,
		"\n%s tapes:\n\n| activity | spikes | non-zero surrogate | tape | "
		"store-all, no limit |",
		dense ? "Dense" : "Sparse");
	for (int k = 0; strategies[k]; k++)
		neap__text_add(&s->report, " `%s` |", strategies[k]);
	neap__text_add(
		&s->report, " fastest except `auto` | overflows |\n|---|---|---|---|---|---|---|");
	for (int k = 0; strategies[k]; k++)
		neap__text_add(&s->report, "---|");
	neap__text_add(&s->report, "\n");
	for (int a = 0; a < ACTIVITIES; a++) {
		int all = row_of(s, a, dense, "reference"), best = fastest(s, a, dense);
		if (all < 0)
			continue;
		neap__text_add(&s->report, "| %s | %s%% | %s%% | %.2f KiB | %.1f MiB |",
			activities[a].label, neap__row_text(s, all, "spikes"),
			neap__row_text(s, all, "support"), neap__row_number(s, all, "tape") / 1024,
			neap__row_number(s, all, "peak_measured") / MIB);
		for (int k = 0; strategies[k]; k++)
			add_over(s, row_of(s, a, dense, strategies[k]));
		neap__text_add(&s->report, " `%s` | %lld |\n",
			best < 0 ? "none" : neap__row_text(s, best, "strategy"),
			(long long)overflows(s, a, dense));
	}
}

static void panel(struct neap__study *s, struct neap__figure *f, int dense)
{
	neap__figure_panel(f, dense ? "Dense tapes" : "Sparse tapes",
		"spikes per unit and step (%)", "milliseconds per batch",
		NEAP__LOG_X | NEAP__LOG_Y);
	for (int k = 0; strategies[k]; k++) {
		int outside = k == 0; /* bptt runs outside the budget, as the reference */
		neap__figure_series(
			f, strategies[k], 0, outside ? "store-all, no limit" : NULL, NEAP__MARKS);
		for (int a = 0; a < ACTIVITIES; a++) {
			int i = row_of(s, a, dense, outside ? "reference" : strategies[k]);
			if (i >= 0)
				neap__figure_xy(f, neap__row_number(s, i, "spikes"),
					1e3 * neap__row_number(s, i, "seconds"));
		}
	}
}

static int draw(struct neap__study *study)
{
	struct neap__figure f;
	neap__text_add(&study->report,
		"`lif:%dr,li`, batches of %d, %s steps, all in %.2f MiB, 1/10 of the "
		"memory of store-all with dense tapes. The rows differ in the scales of "
		"the weights and in the threshold, and so in the number of spikes. "
		"`replay` stores the spikes and rebuilds the tapes from them. The "
		"overhead is relative to store-all with the same kind of tapes, which is "
		"not limited to this budget. If a sparse tape is larger than planned and "
		"does not fit, its step is recomputed; `overflows` is the number of "
		"these tapes in the sweeps of all strategies.\n",
		UNITS, BATCH, neap__row_text(study, 0, "steps"),
		neap__row_number(study, 0, "memory") / MIB);
	table(study, 0);
	table(study, 1);
	neap__figure_begin(&f, "sparsity");
	panel(study, &f, 0);
	panel(study, &f, 1);
	return neap__study_figure(study, &f,
		"Sparse tapes store only what the backward step reads: spikes, and units "
		"with a non-zero surrogate gradient.");
}

const struct neap__experiment neap__study_sparsity = {"sparsity",
	"spiking activity with dense and sparse tapes: store, recompute or "
	"offload",
	"activity,spikes,support,tape," NEAP__NET_COLUMNS, measure, draw};

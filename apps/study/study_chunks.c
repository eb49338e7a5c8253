/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_chunks.c: memory and time of `hierarchical` and `double` over the steps of a chunk and the
 * number of local checkpoints, each pair in the least memory that it needs.
 */
#include <math.h>
#include <stdio.h>
#include "base/fail.h"
#include "study/experiment.h"
#include "study/net_cases.h"

#define UNITS 128
#define BATCH 8
#define MIB 1048576.0
#define MOST 6

static const struct chunked {
	const char *strategy;
	int remote; /* the k checkpoints make up a remote chunk; else they travel together */
} chunked[] = {{"hierarchical", 0}, {"double", 1}};
enum { CHUNKED = sizeof chunked / sizeof chunked[0] };

struct grid {
	int chunks, counts;
	int64_t chunk[MOST], count[MOST];
};

static struct grid grid_of(const struct neap__study *study)
{
	struct grid g = {.chunks = (int)neap__study_scaled(study, 4, 6, 2),
		.counts = (int)neap__study_scaled(study, 4, 5, 1)};
	for (int i = 0; i < MOST; i++) {
		g.chunk[i] = (int64_t)8 << i;
		g.count[i] = (int64_t)1 << i;
	}
	return g;
}

static int run(struct neap__study *study, const struct chunked *x, int64_t steps)
{
	const struct neap__netcase net = {
		.units = UNITS, .batch = BATCH, .steps = steps, .dense = 1};
	struct neap_compare_case cases[MOST * MOST];
	struct neap_compare_result result = {.size = sizeof result};
	struct neap_compare_options o;
	struct neap__netroom room;
	const struct grid g = grid_of(study);
	int count = 0, rc = 0;

	for (int i = 0; i < g.chunks; i++)
		for (int k = 0; k < g.counts; k++) {
			struct neap_params params = {.chunk = g.chunk[i]};
			if (x->remote)
				params.remote_chunk = g.chunk[i] * g.count[k];
			else
				params.checkpoints = g.count[k];
			cases[count++] = (struct neap_compare_case){
				.strategy = x->strategy, .params = params, .least = 1};
		}
	neap__net_options(&o, &room, study, &net);
	o.sweep.memory = 8 << 20; /* to calibrate in */
	o.repeats = (int)neap__study_scaled(study, 3, 7, 1);
	o.cases = cases;
	o.cases_count = count;
	o.no_reference = 1;
	NEAP_TRY(neap_compare(&result, &o));
	for (int i = 0; rc == 0 && i < result.runs_count; i++) {
		char before[64];
		snprintf(before, sizeof before, "%lld,%lld,", (long long)g.chunk[i / g.counts],
			(long long)g.count[i % g.counts]);
		rc = neap__net_row(study, before, &net, &result, &result.runs[i]);
	}
	neap_compare_result_free(&result);
	return rc;
}

static int measure(struct neap__study *study)
{
	int64_t steps = neap__study_scaled(study, 2000, 8000, 300);
	for (int i = 0; i < CHUNKED; i++) {
		int rc = neap__study_point(study, "%s", chunked[i].strategy);
		NEAP_TRY(rc);
		if (rc == 0)
			continue;
		NEAP_TRY(run(study, &chunked[i], steps));
		NEAP_TRY(neap__study_done(study));
	}
	return 0;
}

/* Steps between transfers, chunk times checkpoints, of the pairs whose memory is compared. */
#define SPAN 64

/* Half way, on a scale of ratios, between the least and the most memory of the pairs. */
static double budget_of(const struct neap__study *study, const char *strategy)
{
	double least = INFINITY, most = 0;
	for (int i = 0; i < neap__points_count(study->points); i++)
		if (neap__row_is(study, i, "strategy", strategy)) {
			least = fmin(least, neap__row_number(study, i, "peak_bytes"));
			most = fmax(most, neap__row_number(study, i, "peak_bytes"));
		}
	return sqrt(least * most);
}

static int counts(const struct neap__study *study, int row, const char *strategy, int times)
{
	if (!neap__row_is(study, row, "strategy", strategy))
		return 0;
	if (times)
		return neap__row_number(study, row, "peak_bytes") <= budget_of(study, strategy);
	return neap__row_number(study, row, "chunk") * neap__row_number(study, row, "count") ==
	       SPAN;
}

/* The row with the least in a column, of those that count; -1: there is none. */
static int best(
	const struct neap__study *study, const char *strategy, const char *column, int times)
{
	int found = -1;
	for (int i = 0; i < neap__points_count(study->points); i++) {
		double value = neap__row_number(study, i, column);
		if (counts(study, i, strategy, times) && isfinite(value) &&
			(found < 0 || value < neap__row_number(study, found, column)))
			found = i;
	}
	return found;
}

static void add_best(struct neap__study *study, const char *strategy, int times)
{
	const char *measured = times ? "seconds" : "peak_measured";
	int model = best(study, strategy, times ? "predicted" : "peak_bytes", times);
	int real = best(study, strategy, measured, times);
	double unit = times ? 1e-3 : MIB;
	const char *name = times ? "ms" : "MiB";
	char what[64];

	if (model < 0 || real < 0)
		return;
	if (times)
		snprintf(what, sizeof what, "time in %.3g MiB", budget_of(study, strategy) / MIB);
	else
		snprintf(what, sizeof what, "memory with c k = %d", SPAN);
	double there = neap__row_number(study, model, measured);
	double least = neap__row_number(study, real, measured);
	neap__text_add(&study->report,
		"| `%s` | %s | c = %s, k = %s | %.4g %s | c = %s, k = %s | %.4g %s | %+.1f%% |\n",
		strategy, what, neap__row_text(study, model, "chunk"),
		neap__row_text(study, model, "count"), there / unit, name,
		neap__row_text(study, real, "chunk"), neap__row_text(study, real, "count"),
		least / unit, name, 100 * (there / least - 1));
}

static void mark(struct neap__study *study, struct neap__figure *f, int row, const char *column,
	double unit, int shade, const char *label)
{
	if (row < 0)
		return;
	neap__figure_series(f, NULL, shade, label, NEAP__RING);
	neap__figure_xy(f, neap__row_number(study, row, "chunk"),
		neap__row_number(study, row, column) / unit);
}

static void panel(
	struct neap__study *study, struct neap__figure *f, const char *strategy, int times)
{
	const struct grid g = grid_of(study);
	const char *model = times ? "predicted" : "peak_bytes";
	const char *real = times ? "seconds" : "peak_measured";
	double unit = times ? 1e-3 : MIB;
	char title[96], key[32];

	snprintf(title, sizeof title, "%s: %s", strategy, times ? "time" : "peak of fast memory");
	neap__figure_panel(f, title, "c: steps per chunk", times ? "milliseconds" : "MiB",
		NEAP__LOG_X | (times ? 0 : NEAP__LOG_Y));
	for (int k = 0; k < g.counts; k++)
		for (int measured = 0; measured < 2; measured++) {
			snprintf(key, sizeof key, "k = %lld", (long long)g.count[k]);
			neap__figure_series(f, NULL, k, measured ? key : "",
				measured ? NEAP__MARKS : NEAP__LINE);
			for (int i = 0; i < neap__points_count(study->points); i++)
				if (neap__row_is(study, i, "strategy", strategy) &&
					neap__row_number(study, i, "count") == (double)g.count[k])
					neap__figure_xy(f, neap__row_number(study, i, "chunk"),
						neap__row_number(
							study, i, measured ? real : model) /
							unit);
		}
	mark(study, f, best(study, strategy, model, times), real, unit, 5, "best by the model");
	mark(study, f, best(study, strategy, real, times), real, unit, 6, "best measured");
}

static int end_figure(struct neap__study *study, struct neap__figure *f, const char *strategy)
{
	int model = best(study, strategy, "predicted", 1),
	    real = best(study, strategy, "seconds", 1);
	if (model < 0 || real < 0)
		return neap__study_figure(study, f, "No pair ran.");
	if (model == real)
		return neap__study_figure(study, f,
			"In at most %.3g MiB, `%s` is the fastest with c = %s and k = %s, as "
			"predicted.",
			budget_of(study, strategy) / MIB, strategy,
			neap__row_text(study, real, "chunk"), neap__row_text(study, real, "count"));
	return neap__study_figure(study, f,
		"In at most %.3g MiB, `%s` is the fastest with c = %s and k = %s; the predicted "
		"pair, c = %s and k = %s, is %.1f%% slower.",
		budget_of(study, strategy) / MIB, strategy, neap__row_text(study, real, "chunk"),
		neap__row_text(study, real, "count"), neap__row_text(study, model, "chunk"),
		neap__row_text(study, model, "count"),
		100 * (neap__row_number(study, model, "seconds") /
				      neap__row_number(study, real, "seconds") -
			      1));
}

static int draw(struct neap__study *study)
{
	struct neap__figure f;
	neap__text_add(&study->report,
		"`lif:%dr,li`, batches of %d, %s steps. c is the number of steps between "
		"two checkpoints (the chunk length). `hierarchical` offloads k "
		"checkpoints at a time. `double` offloads a checkpoint every c k steps "
		"(a remote chunk) and divides a remote chunk into k chunks, with "
		"checkpoints in fast memory. Each pair (c, k) runs in the least memory "
		"that it needs. Longer chunks store more tapes; more checkpoints need more fast "
		"memory and save transfers. Lines are predicted, marks are measured. The table "
		"compares two pairs: the one with the smallest predicted memory or time, "
		"and the one with the smallest measured value. It has the measured "
		"values of both.\n\n| strategy | minimised | smallest prediction | "
		"measured value | smallest measurement | measured value | difference "
		"|\n|---|---|---|---|---|---|---|\n",
		UNITS, BATCH, neap__row_text(study, 0, "steps"));
	for (int i = 0; i < CHUNKED; i++) {
		add_best(study, chunked[i].strategy, 0);
		add_best(study, chunked[i].strategy, 1);
	}
	for (int i = 0; i < CHUNKED; i++) {
		char name[32];
		snprintf(name, sizeof name, "chunks-%s", chunked[i].strategy);
		neap__figure_begin(&f, name);
		panel(study, &f, chunked[i].strategy, 0);
		panel(study, &f, chunked[i].strategy, 1);
		NEAP_TRY(end_figure(study, &f, chunked[i].strategy));
	}
	return 0;
}

const struct neap__experiment neap__study_chunks = {"chunks",
	"chunk length and number of local checkpoints", "chunk,count," NEAP__NET_COLUMNS, measure,
	draw};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_device.c: time, memory and energy of a batch on a device, over the steps T and over the
 * units N of a net: figures 2 to 5 of arXiv 2412.11810 (a batch of several spiking neural networks
 * on IPUs), for the memory of a device as local memory and pinned memory of the host as remote
 * memory. The strategies have the parameters and budgets of study_length.c.
 */
#include <math.h>
#include <stdio.h>
#include "base/fail.h"
#include "study/experiment.h"
#include "study/net_cases.h"

/* Of tiny studies: an emulator of a device runs them in seconds. */
#define BATCH 64
#define TINY_BATCH 3
#define UNITS 512
#define TINY_UNITS 10
#define STEPS 1000
#define TINY_STEPS 70

static const char *const shown[] = {
	"reference", "standard", "remote", "hierarchical", "double", "auto", NULL};
enum { CASES = 5 };

static int64_t most_units(const struct neap__study *study)
{
	return neap__study_scaled(study, UNITS, UNITS, TINY_UNITS);
}

static int64_t most_steps(const struct neap__study *study)
{
	return neap__study_scaled(study, STEPS, STEPS, TINY_STEPS);
}

static int run(struct neap__study *study, const char *axis, const struct neap__netcase *net)
{
	struct neap_compare_result result = {.size = sizeof result};
	struct neap_compare_case cases[CASES];
	struct neap_compare_options o;
	struct neap__netroom room;
	struct neap_problem p = {.size = sizeof p};
	struct neap_plan plan = {.size = sizeof plan};
	int rc = 0;

	NEAP_TRY(neap__net_sizes(&p, study, net));
	NEAP_TRY(neap__plan_least(&plan, &p, "standard", NULL));
	neap__net_options(&o, &room, study, net);
	o.sweep.memory = p.memory;
	o.repeats = (int)neap__study_scaled(study, 3, 7, 1);
	o.energy = (double)neap__study_scaled(study, 1000, 3000, 1) / 1000;
	cases[0] = (struct neap_compare_case){.strategy = "standard"};
	cases[1] = (struct neap_compare_case){
		.strategy = "remote", .params = neap__least_chunks(&p, 0, 0), .least = 1};
	cases[2] = (struct neap_compare_case){
		.strategy = "hierarchical", .params = neap__least_chunks(&p, 4, 0), .least = 1};
	cases[3] = (struct neap_compare_case){
		.strategy = "double", .params = neap__least_chunks(&p, 0, 1), .least = 1};
	cases[4] = (struct neap_compare_case){.strategy = "auto"};
	o.cases = cases;
	o.cases_count = CASES;
	NEAP_TRY(neap_compare(&result, &o));
	for (int i = 0; rc == 0 && i < result.runs_count; i++) {
		char before[160], joules[32];
		snprintf(before, sizeof before, "%s,%s,%d,%llu,%llu,%llu,", axis,
			neap__study_number(joules, result.joules[i]), result.batch,
			(unsigned long long)result.device.planned,
			(unsigned long long)result.device.allocated,
			(unsigned long long)result.device.measured);
		rc = neap__net_row(study, before, net, &result, &result.runs[i]);
	}
	neap_compare_result_free(&result);
	NEAP_TRY(rc);
	return neap__study_done(study);
}

static int measure(struct neap__study *study)
{
	static const int64_t steps[] = {300, 1000, 3000, 10000, 30000};
	static const int units[] = {128, 512, 2048, 256, 1024, 4096};
	const int tiny = study->options.scale == NEAP_STUDY_TINY;
	struct neap__netcase net = {.batch = tiny ? TINY_BATCH : BATCH, .dense = 1};
	int rc;

	for (int i = 0; i < neap__study_scaled(study, 3, 5, 1); i++) {
		net.units = (int)most_units(study);
		net.steps = tiny ? TINY_STEPS : steps[i];
		NEAP_TRY(rc = neap__study_point(study, "T=%lld", (long long)net.steps));
		if (rc > 0)
			NEAP_TRY(run(study, "T", &net));
	}
	for (int i = 0; i < neap__study_scaled(study, 3, 6, 1); i++) {
		net.units = tiny ? TINY_UNITS / 2 : units[i];
		net.steps = most_steps(study);
		NEAP_TRY(rc = neap__study_point(study, "N=%d", net.units));
		if (rc > 0)
			NEAP_TRY(run(study, "N", &net));
	}
	return 0;
}

/* Two panels of a figure, over T and over N. */
static void panels(struct neap__study *study, struct neap__figure *f, const char *what,
	const char *unit, const struct neap__curve curve[4])
{
	const int flags = NEAP__LOG_X | NEAP__LOG_Y;
	char title[120];

	snprintf(title, sizeof title, "%s, N = %lld", what, (long long)most_units(study));
	neap__figure_panel(f, title, "steps T", unit, flags);
	neap__curves_draw(study, f, shown, &curve[0], curve[1].y ? &curve[1] : NULL);
	snprintf(title, sizeof title, "%s, T = %lld", what, (long long)most_steps(study));
	neap__figure_panel(f, title, "units N", unit, flags);
	neap__curves_draw(study, f, shown, &curve[2], curve[3].y ? &curve[3] : NULL);
}

/* A number of the longest sequence with a strategy. */
static double longest(const struct neap__study *study, const char *strategy, const char *column)
{
	int row = neap__row_at_end(study, "T", "steps", strategy, 1);
	return row < 0 ? NAN : neap__row_number(study, row, column);
}

static int draw_time(struct neap__study *study)
{
	static const struct neap__curve curves[4] = {{"T", "steps", "seconds", 1e-6, 1},
		{"T", "steps", "predicted", 1e-6, 1}, {"N", "units", "seconds", 1e-6, 1},
		{"N", "units", "predicted", 1e-6, 1}};
	struct neap__figure f;

	neap__figure_begin(&f, "device-time");
	panels(study, &f, "Time of a batch", "microseconds per step", curves);
	return neap__study_figure(study, &f,
		"At T = %g, `standard` takes %.3g times as long as store-all, `double` %.3g times "
		"and "
		"`auto` %.3g times.",
		longest(study, "reference", "steps"), 1 + longest(study, "standard", "overhead"),
		1 + longest(study, "double", "overhead"), 1 + longest(study, "auto", "overhead"));
}

static int draw_memory(struct neap__study *study)
{
	static const struct neap__curve curves[4] = {{"T", "steps", "peak_measured", 1048576, 0},
		{"T", "steps", "peak_bytes", 1048576, 0},
		{"N", "units", "peak_measured", 1048576, 0},
		{"N", "units", "peak_bytes", 1048576, 0}};
	struct neap__figure f;
	double all = longest(study, "reference", "peak_measured");

	neap__figure_begin(&f, "device-memory");
	panels(study, &f, "Peak of states and tapes in device memory", "MiB", curves);
	return neap__study_figure(study, &f,
		"At T = %g, `standard` takes %.3g%% of the device memory of store-all, `double` "
		"%.3g%% "
		"and `auto` %.3g%%.",
		longest(study, "reference", "steps"),
		100 * longest(study, "standard", "peak_measured") / all,
		100 * longest(study, "double", "peak_measured") / all,
		100 * longest(study, "auto", "peak_measured") / all);
}

static int draw_energy(struct neap__study *study)
{
	static const struct neap__curve curves[4] = {
		{"T", "steps", "joules", 1e-3, 1}, {0}, {"N", "units", "joules", 1e-3, 1}, {0}};
	double all = longest(study, "reference", "joules"), best = longest(study, "auto", "joules");
	struct neap__figure f;

	if (!isfinite(all) || !isfinite(best)) {
		neap__text_add(&study->report, "\nThe device does not count its energy.\n");
		return 0;
	}
	neap__figure_begin(&f, "device-energy");
	panels(study, &f, "Energy of a batch", "millijoules per step", curves);
	return neap__study_figure(study, &f,
		"At T = %g, a batch takes %.3g J with store-all and %.3g J with `auto`.",
		longest(study, "reference", "steps"), all, best);
}

static void add_table(struct neap__study *study)
{
	neap__text_add(&study->report, "\n| point | strategy | time | predicted | peak | planned | "
				       "budget | offloaded | energy "
				       "|\n|---|---|---|---|---|---|---|---|---|\n");
	for (int i = 0; i < neap__points_count(study->points); i++) {
		char energy[32] = "-";
		if (!isfinite(neap__row_number(study, i, "seconds")))
			continue;
		if (isfinite(neap__row_number(study, i, "joules")))
			snprintf(energy, sizeof energy, "%.3g J",
				neap__row_number(study, i, "joules"));
		neap__text_add(&study->report,
			"| %s | `%s` | %.3g ms | %.3g ms | %.3f MiB | %.3f MiB | %.3f MiB | %.2f "
			"MiB | %s "
			"|\n",
			neap__row_text(study, i, "point"), neap__row_text(study, i, "strategy"),
			1e3 * neap__row_number(study, i, "seconds"),
			1e3 * neap__row_number(study, i, "predicted"),
			neap__row_number(study, i, "peak_measured") / 1048576,
			neap__row_number(study, i, "peak_bytes") / 1048576,
			neap__row_number(study, i, "memory") / 1048576,
			neap__row_number(study, i, "slow_bytes") / 1048576, energy);
	}
}

static int draw(struct neap__study *study)
{
	neap__text_add(&study->report,
		"Batches of %s sequences on the device. `lif:%lldr,li` as a function of T, and "
		"networks of N units at T = %lld. Peaks are states and tapes in device memory; "
		"checkpoints are offloaded to slow memory. `remote` and `hierarchical` (which "
		"offloads k = 4 checkpoints at a time) use chunks of sqrt(T S/A) steps, where S "
		"and "
		"A are the bytes of a state and of a tape. `double` offloads a checkpoint every "
		"sqrt(T) steps; in such a remote chunk it stores checkpoints in device memory "
		"every "
		"sqrt(sqrt(T) S/A) steps. These three strategies run in the least memory that "
		"suffices for their chunks, `standard` and `auto` in the least memory in which "
		"`standard` runs. Marks are measured (medians). Lines are predicted: the planned "
		"peak, and the time that follows from the times of steps, launches and transfers "
		"measured beforehand. Energy is that of the whole device, over passes in a row.\n",
		neap__row_text(study, 0, "batch"), (long long)most_units(study),
		(long long)most_steps(study));
	NEAP_TRY(draw_time(study));
	NEAP_TRY(draw_memory(study));
	NEAP_TRY(draw_energy(study));
	add_table(study);
	return 0;
}

const struct neap__experiment neap__study_device = {"device",
	"time, device memory and energy as functions of sequence length and network size",
	"axis,joules,batch,device_planned,device_allocated,device_measured," NEAP__NET_COLUMNS,
	measure, draw};

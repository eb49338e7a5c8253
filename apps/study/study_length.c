/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_length.c: time of a batch and peak of fast memory over the steps T, and over the units of
 * a net at T = 300. Strategies that cut the chain into chunks have the parameters of least memory;
 * the others have the budget that `standard` needs.
 */
#include <math.h>
#include "base/fail.h"
#include "study/experiment.h"
#include "study/net_cases.h"

#define BATCH 16
#define UNITS 256
#define STEPS 300

/* The strategies that have the least memory of `standard`, which is the first. */
static const char *const sharing[] = {
	"standard", "revolve", "mixed", "disk-revolve", "async", "stream", "auto"};
static const struct length_cut {
	const char *strategy;
	int64_t checkpoints;
	int remote; /* chunks within remote chunks of sqrt(T) steps */
} cutting[] = {{"remote", 0, 0}, {"hierarchical", 4, 0}, {"double", 0, 1}};
enum { SHARING = sizeof sharing / sizeof sharing[0], CUTTING = sizeof cutting / sizeof cutting[0] };
static const char *const shown[] = {"reference", "standard", "remote", "hierarchical", "double",
	"revolve", "async", "stream", "auto", NULL};

static int run_point(struct neap__study *study, const char *axis, const struct neap__netcase *net)
{
	struct neap_compare_case cases[SHARING + CUTTING];
	struct neap_compare_options o;
	struct neap__netroom room;
	struct neap_problem p = {.size = sizeof p};
	struct neap_plan plan = {.size = sizeof plan};

	NEAP_TRY(neap__net_sizes(&p, study, net));
	NEAP_TRY(neap__plan_least(&plan, &p, "standard", NULL));
	neap__net_options(&o, &room, study, net);
	o.sweep.memory = p.memory;
	o.repeats = (int)neap__study_scaled(study, 3, 7, 1);
	for (int i = 0; i < SHARING; i++)
		cases[i] = (struct neap_compare_case){.strategy = sharing[i]};
	for (int i = 0; i < CUTTING; i++)
		cases[SHARING + i] = (struct neap_compare_case){.strategy = cutting[i].strategy,
			.params = neap__least_chunks(&p, cutting[i].checkpoints, cutting[i].remote),
			.least = 1};
	o.cases = cases;
	o.cases_count = SHARING + CUTTING;
	NEAP_TRY(neap__net_rows(study, axis, net, &o));
	return neap__study_done(study);
}

static int measure(struct neap__study *study)
{
	static const int64_t steps[] = {100, 300, 1000, 3000, 10000, 30000};
	static const int units[] = {64, 128, 256, 512, 1024, 2048};
	int64_t most = neap__study_scaled(study, 3, 6, 1);
	int rc;
	for (int i = 0; i < most; i++) {
		const struct neap__netcase net = {
			.units = UNITS, .batch = BATCH, .steps = steps[i], .dense = 1};
		NEAP_TRY(rc = neap__study_point(study, "T=%lld", (long long)steps[i]));
		if (rc > 0)
			NEAP_TRY(run_point(study, "T,", &net));
	}
	for (int i = 0; i < most; i++) {
		const struct neap__netcase net = {
			.units = units[i], .batch = BATCH, .steps = STEPS, .dense = 1};
		NEAP_TRY(rc = neap__study_point(study, "N=%d", units[i]));
		if (rc > 0)
			NEAP_TRY(run_point(study, "N,", &net));
	}
	return 0;
}

/* How many times the memory of a strategy grows from the shortest sequence to the longest one. */
static double growth(
	const struct neap__study *study, const char *strategy, double *from, double *to)
{
	int first = neap__row_at_end(study, "T", "steps", strategy, 0);
	int last = neap__row_at_end(study, "T", "steps", strategy, 1);

	*from = first < 0 ? NAN : neap__row_number(study, first, "steps");
	*to = first < 0 ? NAN : neap__row_number(study, last, "steps");
	return first < 0 ? NAN
			 : neap__row_number(study, last, "peak_measured") /
				   neap__row_number(study, first, "peak_measured");
}

static int draw(struct neap__study *study)
{
	static const struct neap__curve time[2] = {
		{"T", "steps", "seconds", 1e-6, 1}, {"T", "steps", "predicted", 1e-6, 1}};
	static const struct neap__curve memory[2] = {{"T", "steps", "peak_measured", 1048576, 0},
		{"T", "steps", "peak_bytes", 1048576, 0}};
	static const struct neap__curve units[2] = {{"N", "units", "peak_measured", 1048576, 0},
		{"N", "units", "peak_bytes", 1048576, 0}};
	static const struct neap__curve price[2] = {
		{"N", "units", "seconds", 1e-6, 1}, {"N", "units", "predicted", 1e-6, 1}};
	struct neap__figure f;
	const int flags = NEAP__LOG_X | NEAP__LOG_Y;

	neap__text_add(&study->report,
		"Batches of %d sequences, with `lif:%dr,li` as a function of T, and with "
		"networks of N units at T = %d. Tapes are dense: they store values of "
		"all units, so they have one size. S and A are the bytes of a state and "
		"of a tape. `remote` and `hierarchical` (which offloads k = 4 "
		"checkpoints at a time) use chunks of sqrt(T S/A) steps. `double` "
		"offloads a checkpoint every sqrt(T) steps; in such a remote chunk it "
		"stores checkpoints in fast memory every sqrt(sqrt(T) S/A) steps. These "
		"three strategies run in the least memory that suffices for their "
		"chunks, the others in the least memory in which `standard` runs. Marks "
		"are measured (medians). Lines are predicted: the planned peak, and the "
		"time that follows from the times of steps and transfers measured "
		"beforehand. The last table of this report lists the marks that deviate from their "
		"line.\n",
		BATCH, UNITS, STEPS);
	neap__figure_begin(&f, "length");
	neap__figure_panel(
		&f, "Time of a batch, N = 256", "steps T", "microseconds per step", flags);
	neap__curves_draw(study, &f, shown, &time[0], &time[1]);
	neap__figure_panel(&f, "Peak of fast memory, N = 256", "steps T", "MiB", flags);
	neap__curves_draw(study, &f, shown, &memory[0], &memory[1]);
	neap__figure_panel(&f, "Peak of fast memory, T = 300", "units N", "MiB", flags);
	neap__curves_draw(study, &f, shown, &units[0], &units[1]);
	neap__figure_panel(
		&f, "Time of a batch, T = 300", "units N", "microseconds per step", flags);
	neap__curves_draw(study, &f, shown, &price[0], &price[1]);
	double from = NAN, to = NAN;
	double all = growth(study, "reference", &from, &to);
	double root = growth(study, "standard", &from, &to);
	double twice = growth(study, "double", &from, &to);
	return neap__study_figure(study, &f,
		"From T = %g to T = %g, fast memory grows %.3g times for store-all, %.3g times for "
		"`standard` and %.3g times for `double`.",
		from, to, all, root, twice);
}

const struct neap__experiment neap__study_length = {"length",
	"time and fast memory as functions of sequence length and network size",
	"axis," NEAP__NET_COLUMNS, measure, draw};

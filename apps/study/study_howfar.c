/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_howfar.c: the longest sequence and the largest net that each strategy reaches within a
 * fixed budget at overheads of 10, 50 and 100%. They are planned from sizes and costs measured
 * here. Those at 10% are run as well, and so are nets of 10, 100 and more times the length and of
 * 4 times the width that store-all reaches.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "study/experiment.h"
#include "study/net_cases.h"

#define BATCH 8
#define UNITS 128
#define SHORT 200 /* steps that store-all holds in the budget */
#define NARROW 64 /* units that store-all holds in the budget, at LONG steps */
#define LONG 1000
#define SHORT_TINY 40 /* in a test */
#define LONG_TINY 200
#define MOST 16384 /* times SHORT */
#define MOST_TINY 256
#define RUN 1000 /* the same, of those at 10% that are run, and times NARROW */
#define RUN_WIDE 32
#define RUN_QUICK 32 /* in a short study */
#define RUN_WIDE_QUICK 8
#define RUN_TINY 8 /* in a test */
#define RUN_WIDE_TINY 2
#define EFFORT 100 /* simulations of a search */
#define WIDTHS_MOST 8
#define MIB 1048576.0

static const double allowed[] = {0.1, 0.5, 1.0};
static const char *const strategies[] = {"bptt", "standard", "remote", "hierarchical", "double",
	"revolve", "mixed", "disk-revolve", "async", "stream", "auto", NULL};

/* Sweeps that run, in the memory that store-all takes for SHORT steps or NARROW units. */
static const struct howfar_run {
	const char *label, *strategy; /* NULL: all of the table */
	int wide, times;	      /* as many units, or steps, as store-all's */
	int scale;		      /* from which on, enum neap_study_scale: TINY, QUICK, FULL */
} runs[] = {
	{"10x longer", NULL, 0, 10, NEAP_STUDY_TINY},
	{"4x larger", NULL, 1, 4, NEAP_STUDY_QUICK},
	{"100x longer", "auto", 0, 100, NEAP_STUDY_QUICK},
	{"1000x longer", "auto", 0, 1000, NEAP_STUDY_FULL},
	{"10000x longer", "auto", 0, 10000, NEAP_STUDY_FULL},
};

static int short_steps(const struct neap__study *study)
{
	return (int)neap__study_scaled(study, SHORT, SHORT, SHORT_TINY);
}

static int long_steps(const struct neap__study *study)
{
	return (int)neap__study_scaled(study, LONG, LONG, LONG_TINY);
}

/* The longest sequence that is looked for, in steps. */
static double most_steps(const struct neap__study *study)
{
	return (double)short_steps(study) *
	       (double)neap__study_scaled(study, MOST, MOST, MOST_TINY);
}

/* Sets the chain of a size; problem->memory stays. */
typedef int make_chain(void *user, struct neap_problem *problem, double size);

static int fits(make_chain *make, void *user, const char *strategy, double size, double limit)
{
	const struct neap_params params = {.effort = EFFORT};
	struct neap_problem p = {.size = sizeof p};
	struct neap_plan plan = {.size = sizeof plan};
	NEAP_TRY(make(user, &p, size));
	NEAP_TRY(neap_plan_make(&plan, &p, strategy, &params));
	double least = (double)p.chain.steps * (p.chain.record + p.chain.backward);
	return plan.feasible && plan.makespan <= (1 + limit) * least * (1 + 1e-9);
}

/* The largest size in [low, most] that fits, by doubling, then halving to 1%; 0: not even low. */
static int largest(double *size, make_chain *make, void *user, const char *strategy, double low,
	double most, double limit)
{
	int rc = fits(make, user, strategy, low, limit);
	*size = 0;
	if (rc <= 0)
		return rc;
	double high = low;
	while (rc > 0 && high < most) {
		low = high;
		high = fmin(2 * high, most);
		NEAP_TRY(rc = fits(make, user, strategy, high, limit));
	}
	if (rc > 0)
		low = high;
	while (rc == 0 && high - low > fmax(1, 0.01 * low)) {
		double middle = floor((low + high) / 2);
		int ok = fits(make, user, strategy, middle, limit);
		NEAP_TRY(ok);
		*(ok ? &low : &high) = middle;
	}
	*size = low;
	return 0;
}

static int make_long(void *user, struct neap_problem *problem, double steps)
{
	*problem = *(const struct neap_problem *)user;
	problem->chain.steps = (int64_t)steps;
	return 0;
}

/* Sizes and costs of nets of several widths; those between lie on lines of logarithms. */
struct widths {
	int count;
	double units[WIDTHS_MOST];
	struct neap_problem chain[WIDTHS_MOST];
	uint64_t memory;
};

static double between(double x, double x0, double y0, double x1, double y1)
{
	return y0 * pow(y1 / y0, log(x / x0) / log(x1 / x0));
}

static uint64_t bytes_between(double x, double x0, uint64_t y0, double x1, uint64_t y1)
{
	double bytes = between(x, x0, (double)y0, x1, (double)y1);
	return (uint64_t)ceil((bytes - 0.01) / 64) * 64;
}

static int make_wide(void *user, struct neap_problem *problem, double units)
{
	const struct widths *w = user;
	int i = 0;
	while (i + 2 < w->count && units > w->units[i + 1])
		i++;
	const struct neap_chain *a = &w->chain[i].chain, *b = &w->chain[i + 1].chain;
	double x0 = w->units[i], x1 = w->units[i + 1];
	*problem = w->chain[0];
	problem->memory = w->memory;
	struct neap_chain *c = &problem->chain;
	c->state = bytes_between(units, x0, a->state, x1, b->state);
	c->live = 0;
	c->adjoint = bytes_between(units, x0, a->adjoint, x1, b->adjoint);
	c->tape = bytes_between(units, x0, a->tape, x1, b->tape);
	c->tape_max = 0;
	c->log = 0;
	c->advance = between(units, x0, a->advance, x1, b->advance);
	c->record = between(units, x0, a->record, x1, b->record);
	c->backward = between(units, x0, a->backward, x1, b->backward);
	return 0;
}

/* A row of what was not run. */
static int add_planned(struct neap__study *study, const char *what, double limit, double size,
	const char *strategy, uint64_t memory)
{
	return neap__study_row(study, "%s,%g,%.0f,%s,,,,fixed,%llu,,,,,,,,,,,,,,", what, limit,
		size, strategy, (unsigned long long)memory);
}

static int table(struct neap__study *study, const char *what, make_chain *make, void *user,
	double low, double most, uint64_t memory)
{
	for (int i = 0; strategies[i]; i++)
		for (size_t k = 0; k < sizeof allowed / sizeof allowed[0]; k++) {
			double size;
			NEAP_TRY(largest(&size, make, user, strategies[i], low, most, allowed[k]));
			NEAP_TRY(add_planned(study, what, allowed[k], size, strategies[i], memory));
		}
	return neap__study_done(study);
}

static int plan_lengths(struct neap__study *study)
{
	const struct neap__netcase net = {
		.units = UNITS, .batch = BATCH, .steps = short_steps(study), .dense = 1};
	struct neap_problem p = {.size = sizeof p};
	struct neap_plan plan = {.size = sizeof plan};
	NEAP_TRY(neap__net_chain(&p, study, &net));
	NEAP_TRY(neap__plan_least(&plan, &p, "bptt", NULL));
	return table(
		study, "steps", make_long, &p, short_steps(study), most_steps(study), p.memory);
}

static int plan_widths(struct neap__study *study)
{
	struct widths w = {0};
	struct neap_plan plan = {.size = sizeof plan};
	int64_t count = neap__study_scaled(study, 3, 6, 2);
	for (w.count = 0; w.count < count; w.count++) {
		const struct neap__netcase net = {.units = NARROW << w.count,
			.batch = BATCH,
			.steps = short_steps(study),
			.dense = 1};
		w.units[w.count] = net.units;
		NEAP_TRY(neap__net_chain(&w.chain[w.count], study, &net));
		w.chain[w.count].chain.steps = long_steps(study);
	}
	NEAP_TRY(neap__plan_least(&plan, &w.chain[0], "bptt", NULL));
	w.memory = w.chain[0].memory;
	return table(study, "units", make_wide, &w, NARROW, 32 * NARROW, w.memory);
}

/* The row of the table: what a strategy reaches at an overhead. */
static double reached(const struct neap__study *s, const char *what, const char *strategy,
	double limit, uint64_t *memory)
{
	for (int i = 0; i < neap__points_count(s->points); i++)
		if (neap__row_is(s, i, "what", what) && neap__row_is(s, i, "strategy", strategy) &&
			neap__row_number(s, i, "allowed") == limit) {
			*memory = (uint64_t)neap__row_number(s, i, "memory");
			return neap__row_number(s, i, "size");
		}
	return NAN;
}

static int enough(const struct neap__study *study, int scale)
{
	return scale == NEAP_STUDY_TINY ||
	       (scale == NEAP_STUDY_QUICK && study->options.scale != NEAP_STUDY_TINY) ||
	       study->options.scale == NEAP_STUDY_FULL;
}

/* Repeats of a sweep: other work on the machine disturbs short sweeps most. */
static int repeats_of(const struct neap__study *study, const struct neap__netcase *net)
{
	double work = (double)net->steps * net->units * net->units;
	int most = (int)neap__study_scaled(study, 5, 25, 1);
	return work < 2e8 ? most : work < 2e9 ? (most + 4) / 5 : (most + 8) / 9; /* 25, 5, 3 */
}

/* A strategy (NULL: all), and store-all beside it, at that many steps or units. */
static int run_size(
	struct neap__study *study, const char *before, const char *strategy, int wide, int64_t size)
{
	struct neap_compare_case cases[sizeof strategies / sizeof strategies[0]];
	const struct neap__netcase net = {.units = wide ? (int)size : UNITS,
		.batch = BATCH,
		.steps = wide ? long_steps(study) : size,
		.dense = 1};
	struct neap_compare_options o;
	struct neap__netroom room;
	uint64_t memory = 0;
	int count = 0;

	reached(study, wide ? "units" : "steps", "bptt", allowed[0], &memory);
	for (int i = 0; strategies[i]; i++)
		if (!strategy || strcmp(strategies[i], strategy) == 0)
			cases[count++] = (struct neap_compare_case){.strategy = strategies[i]};
	neap__net_options(&o, &room, study, &net);
	o.sweep.memory = memory;
	o.cases = cases;
	o.cases_count = count;
	o.repeats = repeats_of(study, &net);
	return neap__net_rows(study, before, &net, &o);
}

/* A short study runs the strategy alone that stands for the fastest. */
static int is_run(const struct neap__study *study, const char *strategy)
{
	return study->options.scale == NEAP_STUDY_FULL ||
	       neap_strategy_traits(strategy) & NEAP_STRATEGY_CHOOSES;
}

/* Runs a strategy at a size, and at smaller ones until the measured overhead is 10%. */
static int run_down(struct neap__study *study, const char *strategy, int wide, double size)
{
	const double least = wide ? NARROW : short_steps(study);
	const char *what = wide ? "largest" : "longest";
	char before[64];

	for (;;) {
		snprintf(before, sizeof before, "%s,%g,%.0f,", what, allowed[0], size);
		NEAP_TRY(run_size(study, before, strategy, wide, (int64_t)size));
		int last = neap__points_count(study->points) - 1;
		if (neap__row_number(study, last, "overhead") <= allowed[0] || size <= least)
			return neap__study_done(study);
		size = fmax(least, floor(size / (wide ? sqrt(2) : 2)));
	}
}

/* Times store-all's steps or units that are run at most. */
static int most_run(const struct neap__study *study, int wide)
{
	return wide ? (int)neap__study_scaled(study, RUN_WIDE_QUICK, RUN_WIDE, RUN_WIDE_TINY)
		    : (int)neap__study_scaled(study, RUN_QUICK, RUN, RUN_TINY);
}

/* From what was planned within 10%, the steps at most so many times store-all's. */
static int run_reached(struct neap__study *study, int wide)
{
	for (int i = 0; strategies[i]; i++) {
		const char *what = wide ? "largest" : "longest", *strategy = strategies[i];
		uint64_t memory = 0;

		if (!is_run(study, strategy))
			continue;
		int rc = neap__study_point(study, "%s at 10%% %s", what, strategy);
		NEAP_TRY(rc);
		if (rc == 0)
			continue;
		double size =
			reached(study, wide ? "units" : "steps", strategy, allowed[0], &memory);
		if (size > 0) {
			size = fmin(
				size, (wide ? NARROW : short_steps(study)) * most_run(study, wide));
			NEAP_TRY(run_down(study, strategy, wide, size));
			continue;
		}
		NEAP_TRY(add_planned(study, what, allowed[0], 0, strategy, memory));
		NEAP_TRY(neap__study_done(study));
	}
	return 0;
}

static int measure(struct neap__study *study)
{
	int rc = neap__study_point(study, "longest");
	NEAP_TRY(rc > 0 ? plan_lengths(study) : rc);
	NEAP_TRY(rc = neap__study_point(study, "largest"));
	NEAP_TRY(rc > 0 ? plan_widths(study) : rc);
	NEAP_TRY(run_reached(study, 0));
	NEAP_TRY(run_reached(study, 1));
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
		if (!enough(study, runs[i].scale))
			continue;
		NEAP_TRY(rc = neap__study_point(study, "%s", runs[i].label));
		if (rc > 0) {
			const struct howfar_run *r = &runs[i];
			char before[64];
			snprintf(before, sizeof before, "%s,,%d,", r->label, r->times);
			NEAP_TRY(run_size(study, before, r->strategy, r->wide,
				(int64_t)(r->wide ? NARROW : short_steps(study)) * r->times));
			NEAP_TRY(neap__study_done(study));
		}
	}
	return 0;
}

/* "12.5x", beyond the search "more than". */
static void add_times(
	struct neap__study *s, const char *what, const char *strategy, double base, double most)
{
	for (size_t k = 0; k < sizeof allowed / sizeof allowed[0]; k++) {
		uint64_t memory;
		double size = reached(s, what, strategy, allowed[k], &memory);
		if (!(size > 0))
			neap__text_add(&s->report, " none |");
		else
			neap__text_add(
				&s->report, " %s%.3gx |", size >= most ? "over " : "", size / base);
	}
}

/* The row of the largest run of a strategy within 10%; -1: none. */
static int run_of(const struct neap__study *s, const char *what, const char *strategy)
{
	int best = -1;
	for (int i = 0; i < neap__points_count(s->points); i++)
		if (neap__row_is(s, i, "what", what) && neap__row_is(s, i, "strategy", strategy) &&
			neap__row_number(s, i, "overhead") <= allowed[0] &&
			(best < 0 ||
				neap__row_number(s, i, "size") > neap__row_number(s, best, "size")))
			best = i;
	return best;
}

static void add_claim(struct neap__study *s, int row, const char *column, double base)
{
	if (row < 0) {
		neap__text_add(&s->report, " none | | | |");
		return;
	}
	double size = neap__row_number(s, row, column);
	neap__text_add(&s->report, " %.0f (%.3gx) | %+.1f%% | %.2f MiB | %.2f MiB |", size,
		size / base, 100 * neap__row_number(s, row, "overhead"),
		neap__row_number(s, row, "peak_measured") / MIB,
		neap__row_number(s, row, "resident") / MIB);
}

/* The row of store-all that was measured with a run. */
static void add_beside(struct neap__study *s, const char *what)
{
	int row = run_of(s, what, "auto"), all = row;
	while (all > 0 && !neap__row_is(s, all, "strategy", "reference"))
		all--;
	if (row < 0)
		neap__text_add(&s->report, " | | | |");
	else
		neap__text_add(&s->report, " %s | | %.2f MiB | %.2f MiB |",
			neap__row_text(s, row, strcmp(what, "longest") == 0 ? "steps" : "units"),
			neap__row_number(s, all, "peak_measured") / MIB,
			neap__row_number(s, all, "resident") / MIB);
}

static void add_claims(struct neap__study *s)
{
	neap__text_add(&s->report,
		"\nMeasured: the longest sequence and the largest network with at most "
		"10%% overhead over store-all. Each strategy first runs at its planned "
		"limit, which is capped at %d times the steps and %d times the units of "
		"store-all. If the measured overhead is greater than 10%%, it runs with "
		"half the steps, or with 0.7 times the units, until the overhead is at "
		"most 10%%. `arena` is the measured peak of the sweep's memory; "
		"`resident` is the growth of the whole process during the sweep. The "
		"last row is store-all at the size that `auto` reaches.\n\n| strategy | "
		"longest: steps | overhead | arena | resident | largest: units | "
		"overhead | arena | resident |\n|---|---|---|---|---|---|---|---|---|\n",
		most_run(s, 0), most_run(s, 1));
	for (int i = 0; strategies[i]; i++) {
		if (!is_run(s, strategies[i]))
			continue;
		neap__text_add(&s->report, "| `%s` |", strategies[i]);
		add_claim(s, run_of(s, "longest", strategies[i]), "steps", short_steps(s));
		add_claim(s, run_of(s, "largest", strategies[i]), "units", NARROW);
		neap__text_add(&s->report, "\n");
	}
	neap__text_add(&s->report, "| store-all |");
	add_beside(s, "longest");
	add_beside(s, "largest");
	neap__text_add(&s->report, "\n");
}

static void add_runs(struct neap__study *s)
{
	neap__text_add(&s->report,
		"\nMeasured: fixed sizes in the same memory as above, with store-all "
		"(`reference`) in as much memory as it needs. `arena` is the measured "
		"peak of the sweep's memory; `resident` is the growth of the whole "
		"process during the sweep; neither includes the inputs. `overhead` "
		"compares the measured time with the measured time of store-all. "
		"`predicted` is computed from step times measured just before and after "
		"each sweep, not from the times of the planned table.\n\n| size | strategy | steps "
		"| "
		"units | arena | resident | slow memory | time "
		"per sweep | predicted | overhead "
		"|\n|---|---|---|---|---|---|---|---|---|---|\n");
	for (int i = 0; i < neap__points_count(s->points); i++) {
		double seconds = neap__row_number(s, i, "seconds");
		double overhead = neap__row_number(s, i, "overhead");
		char over[32] = "";
		if (!isfinite(seconds) || neap__row_is(s, i, "what", "longest") ||
			neap__row_is(s, i, "what", "largest"))
			continue;
		if (isfinite(overhead))
			snprintf(over, sizeof over, "%.1f%%", 100 * overhead);
		neap__text_add(&s->report,
			"| %s | `%s` | %s | %s | %.2f MiB | %.2f MiB | %.1f MiB | %.3g s | %.3g s "
			"| "
			"%s |\n",
			neap__row_text(s, i, "what"), neap__row_text(s, i, "strategy"),
			neap__row_text(s, i, "steps"), neap__row_text(s, i, "units"),
			neap__row_number(s, i, "peak_measured") / MIB,
			neap__row_number(s, i, "resident") / MIB,
			neap__row_number(s, i, "slow_bytes") / MIB, seconds,
			neap__row_number(s, i, "predicted"), over);
	}
}

static void add_table(struct neap__study *study)
{
	uint64_t memory = 0, narrow = 0;
	const double longest = most_steps(study), widest = 32 * NARROW;

	reached(study, "steps", "bptt", allowed[0], &memory);
	reached(study, "units", "bptt", allowed[0], &narrow);
	neap__text_add(&study->report,
		"Planned: the factors by which a strategy can lengthen a sequence (with "
		"`lif:%dr,li`, in the %.2f MiB that store-all needs for %d steps) and "
		"increase the number of units (at %d steps, in the %.2f MiB that "
		"store-all needs for %d units), if the overhead is limited to 10, 50 or "
		"100%%. The plans use sizes, step times and transfer times measured on "
		"this machine, batches of %d and dense tapes. Step times were measured "
		"once, with %d steps and several numbers of units; between them, the "
		"logarithm of the time is interpolated linearly in the logarithm of the "
		"number of units. The search stops at 16,384 times the steps and 32 times the "
		"units (`over` "
		"in the table).\n\n| strategy | longer, 10%% | 50%% | 100%% | larger, "
		"10%% | 50%% | 100%% |\n|---|---|---|---|---|---|---|\n",
		UNITS, (double)memory / MIB, short_steps(study), long_steps(study),
		(double)narrow / MIB, NARROW, BATCH, short_steps(study));
	for (int i = 0; strategies[i]; i++) {
		neap__text_add(&study->report, "| `%s` |", strategies[i]);
		add_times(study, "steps", strategies[i], short_steps(study), longest);
		add_times(study, "units", strategies[i], NARROW, widest);
		neap__text_add(&study->report, "\n");
	}
}

/* Sizes that a budget allows against the overhead: longer sequences (0) or larger nets (1). */
static void draw_panels(struct neap__study *study, struct neap__figure *f)
{
	uint64_t memory = 0;

	for (int wide = 0; wide < 2; wide++) {
		neap__figure_panel(f,
			wide ? "Largest net in a fixed budget, planned"
			     : "Longest sequence in a fixed budget, planned",
			"overhead allowed (%)",
			wide ? "units, relative to store-all" : "steps, relative to store-all",
			NEAP__LOG_Y);
		for (int i = 0; strategies[i]; i++) {
			neap__figure_series(f, strategies[i], 0, NULL, NEAP__MARKS | NEAP__LINE);
			for (size_t k = 0; k < sizeof allowed / sizeof allowed[0]; k++) {
				double size = reached(study, wide ? "units" : "steps",
					strategies[i], allowed[k], &memory);
				if (size > 0)
					neap__figure_xy(f, 100 * allowed[k],
						size / (wide ? NARROW : short_steps(study)));
			}
		}
	}
}

static int draw(struct neap__study *study)
{
	struct neap__figure f;
	uint64_t memory = 0;
	const double longest = most_steps(study);
	const char *best = "none";
	double most = 0, automatic = 0;

	add_table(study);
	add_claims(study);
	add_runs(study);
	neap__figure_begin(&f, "howfar");
	draw_panels(study, &f);
	for (int i = 0; strategies[i]; i++) {
		double times = reached(study, "steps", strategies[i], allowed[0], &memory) /
			       short_steps(study);
		if (neap_strategy_traits(strategies[i]) & NEAP_STRATEGY_CHOOSES)
			automatic = times;
		else if (times > most)
			most = times, best = strategies[i];
	}
	char measured[64] = "";
	int row = run_of(study, "longest", "auto");
	if (row >= 0)
		snprintf(measured, sizeof measured, " (the measured search stopped at %.3g times)",
			neap__row_number(study, row, "steps") / short_steps(study));
	return neap__study_figure(study, &f,
		"With an overhead of %.0f%%, plans of `auto` make sequences %s%.*f times longer in "
		"the same memory%s; of the fixed strategies, plans of `%s` reach the most, %.*f "
		"times.",
		100 * allowed[0],
		automatic >= longest / short_steps(study) * (1 - 1e-9) ? "at least " : "",
		automatic < 100, automatic, measured, best, most < 100, most);
}

const struct neap__experiment neap__study_howfar = {"howfar",
	"longest sequence and largest network with a fixed memory budget",
	"what,allowed,size," NEAP__NET_COLUMNS, measure, draw};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_async.c: overhead of `async`, whose states leave while steps are computed (arXiv
 * 1806.01117), beside `revolve` without slow memory, `disk-revolve`, which waits for slow memory,
 * and `auto`, over the number of steps, the bytes of a state and the seconds of a step, with a few
 * slots.
 *
 * Steps keep a processor busy for a given time; transfers go to a file in the slow directory. The
 * axis "tau" has plans alone, with transfers of tau steps each, where constant intervals can be
 * slower than no transfers at all.
 */
#include <errno.h>
#include <math.h>
#include <neap/machine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "base/fail.h"
#include "study/experiment.h"
#include "study/synthetic.h"
#include "measure/copy_cost.h"

#define ADJOINT 64 /* bytes */
#define MIB 1048576.0

static const char *const strategies[] = {"revolve", "disk-revolve", "async", "auto", NULL};
static const int slots[] = {5, 10, 20};
enum { SLOTS = sizeof slots / sizeof slots[0], TRANSFERS = 31, COPIES = 5 };

struct async_setting {
	const char *axis;
	int64_t steps;
	uint64_t state;
	double advance; /* seconds a step; record and backward take as long */
	int slots;
	double tau; /* a transfer, in steps; 0: the file's, measured */
};

static struct neap_problem problem_of(const struct async_setting *s)
{
	struct neap_problem p = {.size = sizeof p,
		.chain = {.steps = s->steps,
			.state = s->state,
			.tape = s->state,
			.adjoint = ADJOINT,
			.advance = s->advance,
			.record = s->advance,
			.backward = s->advance},
		.ntiers = 1};
	double rate = (double)s->state / (s->tau * s->advance);
	p.memory = (uint64_t)(s->slots + 2) * s->state + ADJOINT;
	p.tiers[0] = (struct neap_tier_spec){.name = "slow",
		.capacity = NEAP_INFINITE,
		.write_rate = rate,
		.read_rate = rate,
		.flags = NEAP_TIER_DUPLEX};
	return p;
}

/* Of a makespan over a sweep that keeps every tape. */
static double overhead(const struct async_setting *s, double seconds)
{
	return seconds / (2 * s->advance * (double)s->steps) - 1;
}

static int row(struct neap__study *study, const struct async_setting *s,
	const struct neap_plan *plan, double transfer, uint64_t memory, double predicted,
	const char *measured)
{
	return neap__study_row(study, "%s,%s,%s,%lld,%llu,%g,%d,%.6g,%llu,%llu,%llu,%.6g,%.6g,%s",
		s->axis, plan->strategy, plan->chosen, (long long)s->steps,
		(unsigned long long)s->state, s->advance, s->slots, transfer,
		(unsigned long long)memory, (unsigned long long)plan->peak_bytes,
		(unsigned long long)plan->slow_bytes, predicted, overhead(s, predicted), measured);
}

static int planned(struct neap__study *study, const struct async_setting *s)
{
	const struct neap_problem p = problem_of(s);
	for (int i = 0; strategies[i]; i++) {
		struct neap_plan plan = {.size = sizeof plan};
		NEAP_TRY(neap_plan_make(&plan, &p, strategies[i], NULL));
		if (plan.feasible)
			NEAP_TRY(row(study, s, &plan, s->tau, p.memory, plan.makespan, ",,,,"));
	}
	return neap__study_done(study);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/*
 * Sets the tier's rates from single transfers, one at a time as sweeps with one buffer move
 * them: the upper quartile of the seconds from request to end, so that plans are not too hopeful.
 * The median time of a request itself is the tier's `cpu_fixed`.
 */
static int time_transfers(struct neap_tier *tier, const struct async_setting *s, char *data)
{
	double seconds[2][TRANSFERS], issue[2 * TRANSFERS];
	for (int i = 0; i < 2 * TRANSFERS; i++) {
		int write = i % 2 == 0;
		int64_t ticket;
		neap__synthetic_spend(neap_clock(), fmin(3 * s->advance, 1e-3));
		double start = neap_clock();
		NEAP_TRY(write ? neap_tier_put(tier, 0, 0, data, s->state, &ticket)
			       : neap_tier_get(tier, 0, 0, data, s->state, &ticket));
		issue[i] = neap_clock() - start;
		NEAP_TRY(neap_tier_wait(tier, ticket));
		seconds[write][i / 2] = neap_clock() - start;
	}
	for (int write = 0; write < 2; write++)
		qsort(seconds[write], TRANSFERS, sizeof(double), by_value);
	qsort(issue, (size_t)2 * TRANSFERS, sizeof(double), by_value);
	neap_tier_set_rates(tier, (double)s->state / seconds[1][TRANSFERS * 3 / 4],
		(double)s->state / seconds[0][TRANSFERS * 3 / 4], 0);
	neap_tier_set_cpu(tier, 0, issue[TRANSFERS]);
	return 0;
}

static int measure_tier(struct neap_tier *tier, const struct async_setting *s)
{
	char *data = aligned_alloc(4096, (size_t)neap__round_up(s->state, 4096));
	if (!data)
		return neap__fail_errno(ENOMEM, "a state");
	memset(data, 1, s->state);
	int rc = neap_tier_format(tier, s->state, 1, NULL);
	if (rc == 0)
		rc = time_transfers(tier, s, data);
	free(data);
	return rc;
}

static int run(struct neap__study *study, const struct async_setting *s, struct neap_tier *tier)
{
	struct neap_timing slot_write, slot_read;
	struct neap_tier_spec spec;
	double forward = 0;

	NEAP_TRY(measure_tier(tier, s));
	NEAP_TRY(neap__copy_cost_measure(
		&slot_write, &slot_read, NULL, s->state, UINT64_MAX, COPIES));
	const struct neap__synthetic model = {.steps = s->steps,
		.state = s->state,
		.tape = s->state,
		.adjoint = ADJOINT,
		.advance = s->advance,
		.record = s->advance,
		.backward = s->advance,
		.slot_write = slot_write.median,
		.slot_read = slot_read.median,
		.forward = &forward};
	int repeats = (int)neap__study_scaled(study, 3, 5, 1);
	neap_tier_describe(tier, s->state, &spec);
	double transfer = neap_tier_seconds(&spec, 1, s->state) / s->advance;
	for (int i = 0; strategies[i]; i++) {
		/* Without tiers there is no staging either. */
		int alone = !(neap_strategy_traits(strategies[i]) & NEAP_STRATEGY_TIERS);
		uint64_t memory =
			(uint64_t)(s->slots + 2) * s->state + ADJOINT + (alone ? 0 : spec.staging);
		struct neap_sweep_stats stats = {.size = sizeof stats};
		struct neap_plan plan = {.size = sizeof plan};
		char measured[160];
		NEAP_TRY(neap__synthetic_run(&stats, &plan, &model, memory, strategies[i], NULL,
			alone ? NULL : tier, repeats));
		snprintf(measured, sizeof measured, "%llu,%.6g,%.6g,%.6g,%.6g",
			(unsigned long long)stats.peak_measured, stats.seconds,
			overhead(s, stats.seconds), forward, stats.stall);
		NEAP_TRY(row(study, s, &plan, transfer, memory, stats.predicted, measured));
	}
	return neap__study_done(study);
}

static int point(struct neap__study *study, const struct async_setting *s, struct neap_tier *tier)
{
	int rc = neap__study_point(study, "%s T=%lld S=%llu f=%g c=%d tau=%g", s->axis,
		(long long)s->steps, (unsigned long long)s->state, s->advance, s->slots, s->tau);
	if (rc <= 0)
		return rc;
	return s->tau > 0 ? planned(study, s) : run(study, s, tier);
}

static int points(struct neap__study *study, struct neap_tier *tier)
{
	static const int64_t steps[] = {100, 30, 300, 1000, 3000};
	static const uint64_t states[] = {1 << 18, 1 << 16, 1 << 14, 1 << 20, 1 << 12};
	static const double advances[] = {1e-4, 3e-5, 3e-4, 1e-5, 1e-3};
	static const double taus[] = {1, 2, 5, 10, 20, 50, 100, 200, 500};
	int64_t n = neap__study_scaled(study, 4, 5, 1);

	for (int c = 0; c < SLOTS; c++)
		for (int64_t i = 0; i < n; i++)
			NEAP_TRY(point(study,
				&(struct async_setting){
					"steps", steps[i], 1 << 16, 1e-4, slots[c], 0},
				tier));
	for (int64_t i = 0; i < n; i++)
		NEAP_TRY(point(study, &(struct async_setting){"state", 300, states[i], 1e-4, 10, 0},
			tier));
	for (int64_t i = 0; i < n; i++)
		NEAP_TRY(point(study,
			&(struct async_setting){"compute", 300, 1 << 16, advances[i], 10, 0},
			tier));
	for (int c = 0; c < SLOTS; c++)
		for (size_t i = 0; i < sizeof taus / sizeof taus[0]; i++)
			NEAP_TRY(point(study,
				&(struct async_setting){
					"tau", 300, 1 << 20, 1e-3, slots[c], taus[i]},
				tier));
	return 0;
}

static int measure(struct neap__study *study)
{
	struct neap_tier *tier;
	NEAP_TRY(neap_tier_open_file(&tier, study->options.slow, NULL));
	int rc = points(study, tier);
	neap_tier_close(tier);
	return rc;
}

/* One panel: overheads of rows of an axis with so many slots, in the order of x. */
struct panel {
	const char *axis, *x, *title, *label;
	double unit;
	int slots, flags;
};

static double next_x(const struct neap__study *study, const struct panel *p, double after)
{
	double next = INFINITY;
	for (int i = 0; i < neap__points_count(study->points); i++) {
		double x = neap__row_number(study, i, p->x);
		if (neap__row_is(study, i, "axis", p->axis) && x > after)
			next = fmin(next, x);
	}
	return next;
}

static void series(struct neap__study *study, struct neap__figure *f, const struct panel *p,
	const char *strategy, const char *column, const char *key, int look)
{
	neap__figure_series(f, strategy, 0, key, look);
	for (double x = next_x(study, p, 0); isfinite(x); x = next_x(study, p, x))
		for (int i = 0; i < neap__points_count(study->points); i++)
			if (neap__row_is(study, i, "axis", p->axis) &&
				neap__row_is(study, i, "strategy", strategy) &&
				neap__row_number(study, i, "slots") == p->slots &&
				neap__row_number(study, i, p->x) == x)
				neap__figure_xy(
					f, x / p->unit, 100 * neap__row_number(study, i, column));
}

static void draw_panel(struct neap__study *study, struct neap__figure *f, const struct panel *p)
{
	int runs = strcmp(p->axis, "tau") != 0;
	neap__figure_panel(f, p->title, p->label, "overhead (%)", p->flags);
	for (int i = 0; strategies[i]; i++) {
		series(study, f, p, strategies[i], "predicted_overhead", runs ? "" : NULL,
			NEAP__LINE | (runs ? 0 : NEAP__MARKS));
		if (runs)
			series(study, f, p, strategies[i], "overhead", NULL, NEAP__MARKS);
	}
}

/* Counts where `async` takes longer than `revolve`, and what `auto` does there. */
static void say_losses(struct neap__study *study)
{
	int lost = 0, worse = 0, all = 0;
	double most = 0, at = 0, with = 0;
	for (int i = 0; i + 3 < neap__points_count(study->points); i++) {
		if (!neap__row_is(study, i, "axis", "tau") ||
			!neap__row_is(study, i, "strategy", "revolve"))
			continue;
		double revolve = neap__row_number(study, i, "predicted");
		double disk = neap__row_number(study, i + 1, "predicted");
		double plain = neap__row_number(study, i + 2, "predicted");
		double automatic = neap__row_number(study, i + 3, "predicted");
		all++;
		worse += automatic > fmin(fmin(revolve, disk), plain) * (1 + 1e-9);
		if (plain <= revolve)
			continue;
		lost++;
		if (plain / revolve > most) {
			most = plain / revolve;
			at = neap__row_number(study, i, "transfer");
			with = neap__row_number(study, i, "slots");
		}
	}
	neap__text_add(&study->report,
		"\nPlans for 300 steps and different transfer times tau (in units of the "
		"time of a step): `async` is slower than `revolve` in %d of %d plans",
		lost, all);
	if (lost)
		neap__text_add(&study->report, ", by up to %.0f%% (at tau = %g and slots = %g)",
			100 * (most - 1), at, with);
	neap__text_add(
		&study->report, "; `auto` is slower than the best of the three in %d.\n", worse);
}

static void add_table(struct neap__study *study)
{
	neap__text_add(&study->report,
		"\nThe measured cases with 10 slots:\n\n| steps | state | time per step | slots | "
		"transfer time, in steps | "
		"strategy | fast memory | slow memory | forward | backward | stall | "
		"overhead | predicted "
		"|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (int i = 0; i < neap__points_count(study->points); i++) {
		double seconds = neap__row_number(study, i, "seconds");
		double forward = neap__row_number(study, i, "forward");
		if (!isfinite(seconds) || (neap__row_is(study, i, "axis", "steps") &&
						  neap__row_number(study, i, "slots") != 10))
			continue;
		neap__text_add(&study->report,
			"| %s | %.3g KiB | %.0f us | %s | %.2g | `%s` | %.2f MiB | %.1f MiB | %.3g "
			"ms | %.3g ms | %.2g ms | %.1f%% | %.1f%% |\n",
			neap__row_text(study, i, "steps"),
			neap__row_number(study, i, "state") / 1024,
			1e6 * neap__row_number(study, i, "advance"),
			neap__row_text(study, i, "slots"), neap__row_number(study, i, "transfer"),
			neap__row_text(study, i, "strategy"),
			neap__row_number(study, i, "peak_measured") / MIB,
			neap__row_number(study, i, "slow_bytes") / MIB, 1e3 * forward,
			1e3 * (seconds - forward), 1e3 * neap__row_number(study, i, "stall"),
			100 * neap__row_number(study, i, "overhead"),
			100 * neap__row_number(study, i, "predicted_overhead"));
	}
}

/* The measured overhead of a strategy, in percent, at a place of a panel. */
static double overhead_at(
	const struct neap__study *study, const struct panel *p, const char *strategy, double x)
{
	for (int i = 0; i < neap__points_count(study->points); i++)
		if (neap__row_is(study, i, "axis", p->axis) &&
			neap__row_is(study, i, "strategy", strategy) &&
			neap__row_number(study, i, "slots") == p->slots &&
			neap__row_number(study, i, p->x) == x)
			return 100 * neap__row_number(study, i, "overhead");
	return NAN;
}

/* Ends the figure over the steps; the finding is about the panel p. */
static int draw_lengths(struct neap__study *study, struct neap__figure *f, const struct panel *p)
{
	double first = next_x(study, p, 0), last = first;
	for (double x = first; isfinite(x); x = next_x(study, p, x))
		last = x;
	return neap__study_figure(study, f,
		"From T = %g to T = %g with %d slots, the overhead changes from %.0f%% to %.0f%% "
		"for `revolve` and from %.0f%% to %.0f%% for `async`.",
		first, last, p->slots, overhead_at(study, p, "revolve", first),
		overhead_at(study, p, "revolve", last), overhead_at(study, p, "async", first),
		overhead_at(study, p, "async", last));
}

/* The cases of an axis with 10 slots, and in how many `async` has less overhead than `revolve`. */
static int count_less(
	const struct neap__study *study, const char *axis, const char *column, int *all)
{
	int less = 0;
	*all = 0;
	for (int i = 0; i + 2 < neap__points_count(study->points); i++) {
		if (!neap__row_is(study, i, "strategy", "revolve") ||
			!neap__row_is(study, i, "axis", axis) ||
			neap__row_number(study, i, "slots") != 10)
			continue;
		++*all;
		less += neap__row_number(study, i + 2, column) < neap__row_number(study, i, column);
	}
	return less;
}

/* Ends the figure over the other axes. */
static int draw_sizes(struct neap__study *study, struct neap__figure *f)
{
	int states, times, taus;
	int by_state = count_less(study, "state", "overhead", &states);
	int by_time = count_less(study, "compute", "overhead", &times);
	int by_tau = count_less(study, "tau", "predicted_overhead", &taus);
	return neap__study_figure(study, f,
		"With 10 slots, `async` has less overhead than `revolve` for %d of %d sizes of a "
		"state and %d of %d times of a step (measured), and for %d of %d transfer times "
		"(planned).",
		by_state, states, by_time, times, by_tau, taus);
}

static int draw(struct neap__study *study)
{
	static const struct panel lengths[SLOTS] = {
		{"steps", "steps", "5 slots", "steps T", 1, 5, NEAP__LOG_X | NEAP__ZERO_Y},
		{"steps", "steps", "10 slots", "steps T", 1, 10, NEAP__LOG_X | NEAP__ZERO_Y},
		{"steps", "steps", "20 slots", "steps T", 1, 20, NEAP__LOG_X | NEAP__ZERO_Y}};
	static const struct panel others[] = {
		{"state", "state", "10 slots, T = 300, 100 us per step", "state size (KiB)", 1024,
			10, NEAP__LOG_X | NEAP__ZERO_Y},
		{"compute", "advance", "10 slots, T = 300, 64 KiB per state",
			"time per step (microseconds)", 1e-6, 10, NEAP__LOG_X | NEAP__ZERO_Y},
		{"tau", "transfer", "10 slots, T = 300, planned",
			"tau: transfer time of a state, in steps", 1, 10,
			NEAP__LOG_X | NEAP__ZERO_Y}};
	struct neap__figure f;

	neap__text_add(&study->report,
		"Synthetic steps, which occupy a processor for 100 us forward and 100 us "
		"backward. A state has 64 KiB, or 1 MiB in the plans with a given "
		"transfer time tau. A panel whose axis shows the time of a step or the "
		"size of a state varies this value. A tape is as large as a state. Fast "
		"memory contains the given number of checkpoints (slots) in addition to "
		"the current state. The overhead is relative to a sweep that stores "
		"every tape. Marks are measured (medians). Lines are predicted, from the "
		"upper quartile of the times of single transfers that were measured just "
		"before the sweep. `revolve` uses no slow memory, `disk-revolve` waits "
		"for every transfer, and `async` writes a state as often as the channel "
		"permits.\n");
	say_losses(study);
	neap__figure_begin(&f, "async");
	for (int c = 0; c < SLOTS; c++)
		draw_panel(study, &f, &lengths[c]);
	NEAP_TRY(draw_lengths(study, &f, &lengths[1]));
	neap__figure_begin(&f, "async-sizes");
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		draw_panel(study, &f, &others[i]);
	NEAP_TRY(draw_sizes(study, &f));
	add_table(study);
	return 0;
}

const struct neap__experiment neap__study_async = {"async",
	"checkpoints written to slow memory while steps are computed",
	"axis,strategy,chosen,steps,state,advance,slots,transfer,memory,peak_bytes,slow_bytes,"
	"predicted,predicted_overhead,peak_measured,seconds,overhead,forward,stall",
	measure, draw};

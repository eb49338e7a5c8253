/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calibrate_sweep.c: what a model's steps, copies of its state and slow tiers cost here. Steps are
 * timed within sweeps over the first of them, which call the model as any sweep does: so many steps
 * as take a tenth of the time that is given, in long calls and in short ones, whose difference is
 * the cost of a call. The median of five sweeps counts.
 */
#include <neap/sweep.h>
#include "sweep/sweep_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/struct_size.h"
#include "store/tier_cost.h"
#include "store/tier_state.h"
#include "sys/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* All values are chosen: a calibration takes SECONDS, shared between what it measures. */
#define SECONDS 2.0	/* where the caller gives none */
#define SWEEP_SHARE 0.1 /* of the time: a sweep that is long enough */
#define TIERS_SHARE 0.4 /* of the time: for all tiers */
#define REPEATS 5
#define TIER_REPEATS 3
#define STEPS_MOST (1 << 20)
#define LONG_CALL 64	/* steps */
#define CALL_STEPS 8192 /* of sweeps that tell the cost of a call */
#define STEP_LONG 1e-4	/* seconds: compared with such a step no call counts */

struct sweep_calibration {
	struct neap_step_ops ops;
	void *user;
	struct neap_sweep_options options; /* of the sweeps that are timed */
	const void *x0;
	double seconds;
	int strategy;  /* of sweeps: a row of the table below */
	int64_t steps; /* of a sweep: it ends there, or where the model says so before */
	/* What the model gathered before. */
	unsigned char *gathered;
	int64_t bytes, room, taken;
};

static int keep(void *to, const void *bytes, size_t count)
{
	struct sweep_calibration *c = to;
	if (neap__grow(&c->gathered, &c->room, c->bytes + (int64_t)count, 1) < 0)
		return neap__fail_errno(ENOMEM, "what the model gathered");
	memcpy(c->gathered + c->bytes, bytes, count);
	c->bytes += (int64_t)count;
	return 0;
}

static int give_back(void *from, void *bytes, size_t count)
{
	struct sweep_calibration *c = from;
	if (c->taken + (int64_t)count > c->bytes)
		return neap__fail(NEAP_EMODEL, "grad_load reads more than grad_save wrote");
	memcpy(bytes, c->gathered + c->taken, count);
	c->taken += (int64_t)count;
	return 0;
}

/* What the model gathered becomes what it was before. */
static int restore(struct sweep_calibration *c)
{
	c->taken = 0;
	return c->bytes > 0 ? c->ops.grad_load(c->user, give_back, c) : 0;
}

/* The model without what a sweep that is timed should not do. */
static struct neap_step_ops timed(const struct sweep_calibration *c)
{
	struct neap_step_ops ops = c->ops;
	ops.grad_save = NULL;
	ops.grad_load = NULL;
	ops.will_touch = NULL;
	return ops;
}

/* One sweep of c->steps. NEAP_EINFEASIBLE: not by this strategy. */
static int time_sweep(struct sweep_calibration *c, const char *strategy, int64_t chunk,
	struct neap_sweep_stats *stats, int64_t *slots)
{
	struct neap_sweep *sweep;
	const struct neap_step_ops ops = timed(c);
	struct neap_sweep_options o = c->options;
	o.strategy = strategy;
	o.steps = c->steps;
	o.params = (struct neap_params){.chunk = chunk};
	NEAP_TRY(neap_sweep_create(&sweep, &ops, c->user, &o));
	sweep->steps_most = c->steps;
	sweep->arena.memory.fence.exact = 1;
	stats->size = sizeof *stats;
	*slots = neap_sweep_plan(sweep)->slots;
	int rc = neap_sweep_touch(sweep);
	if (rc == 0)
		rc = neap_sweep_run(sweep, c->x0, NULL, NULL, stats);
	neap_sweep_free(sweep);
	int back = restore(c);
	return rc < 0 ? rc : back;
}

static const char *const strategies[] = {"standard", "mixed", "online"};
#define STRATEGIES 3 /* derived: the number of rows above */

/* The first strategy that has room, with calls of some length; what a sweep takes. */
static int find_strategy(struct sweep_calibration *c, int *found, struct neap_sweep_stats *stats)
{
	int rc = NEAP_EINFEASIBLE;
	int64_t slots;
	for (*found = c->ops.ended ? STRATEGIES - 1 : 0; rc == NEAP_EINFEASIBLE; ++*found) {
		if (*found == STRATEGIES)
			return rc;
		rc = time_sweep(c, strategies[*found], 0, stats, &slots);
	}
	--*found;
	return rc;
}

static double per(double seconds, int64_t count)
{
	return count > 0 ? seconds / (double)count : 0;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, REPEATS, sizeof *values, ascending);
	return values[REPEATS / 2];
}

static double least_of(double *values)
{
	(void)median(values);
	return values[0];
}

/* Seconds a step of one repetition. */
struct step_costs {
	double advance[REPEATS], record[REPEATS], backward[REPEATS], copy[REPEATS];
	double advance_calls, record_calls, backward_calls; /* a step */
};

static int repeat(struct sweep_calibration *c, int strategy, int64_t chunk, struct step_costs *x)
{
	struct neap_sweep_stats s = {0};
	int64_t slots;
	for (int i = 0; i < REPEATS; i++) {
		NEAP_TRY(time_sweep(c, strategies[strategy], chunk, &s, &slots));
		x->advance[i] = per(s.advance, s.advance_steps);
		x->record[i] = per(s.record, s.record_steps);
		x->backward[i] = per(s.backward, s.backward_steps);
		x->copy[i] = per(s.copies, 2 * slots + 2);
	}
	x->advance_calls = per((double)s.advance_calls, s.advance_steps);
	x->record_calls = per((double)s.record_calls, s.record_steps);
	x->backward_calls = per((double)s.backward_calls, s.backward_steps);
	return 0;
}

/*
 * A call's own seconds, of steps in long calls and in short ones: the least that forward and
 * backward steps tell.
 */
static double call_seconds(struct step_costs *longer, struct step_costs *shorter)
{
	double record = shorter->record_calls - longer->record_calls;
	double backward = shorter->backward_calls - longer->backward_calls;
	if (record < 0.02 || backward < 0.02)
		return 0;
	double a = (least_of(shorter->record) - least_of(longer->record)) / record;
	double b = (least_of(shorter->backward) - least_of(longer->backward)) / backward;
	double least = a < b ? a : b;
	return least > 0 ? least : 0;
}

/* The cost of a call; 0 where it does not count beside a step, or cannot be told. */
static int time_calls(struct sweep_calibration *c, double *call, double step)
{
	struct step_costs longer = {0}, shorter = {0};
	int64_t steps = c->steps;
	*call = 0;
	if (c->ops.ended || step > STEP_LONG || steps < 4 * LONG_CALL)
		return 0;
	c->steps = steps < CALL_STEPS ? steps : CALL_STEPS;
	int rc = repeat(c, 0, 2, &shorter);
	for (; rc == NEAP_EINFEASIBLE && c->steps >= 8 * LONG_CALL; c->steps /= 2)
		rc = repeat(c, 0, 2, &shorter);
	if (rc == 0)
		rc = repeat(c, 0, LONG_CALL, &longer);
	if (rc == 0)
		*call = call_seconds(&longer, &shorter);
	c->steps = steps;
	return rc == NEAP_EINFEASIBLE ? 0 : rc;
}

static double without_calls(double seconds, double calls, double call)
{
	double left = seconds - calls * call;
	return left > seconds / 2 ? left : seconds / 2;
}

static int time_steps(struct sweep_calibration *c, struct neap_sweep_options *o)
{
	struct step_costs longer = {0};
	struct neap_sweep_stats s = {0};
	int64_t end = c->options.steps;
	for (c->steps = 1;; c->steps *= 2) {
		double start = neap__seconds();
		if (!c->ops.ended && c->steps > end)
			c->steps = end;
		NEAP_TRY(find_strategy(c, &c->strategy, &s));
		int whole = c->ops.ended ? s.backward_steps < c->steps : c->steps == end;
		if (whole || c->steps >= STEPS_MOST ||
			neap__seconds() - start > SWEEP_SHARE * c->seconds / 2)
			break;
	}
	NEAP_TRY(time_calls(c, &o->call, per(s.record, s.record_steps)));
	NEAP_TRY(repeat(c, c->strategy, 0, &longer));
	double call = o->call, record_seconds = median(longer.record);
	double advance_seconds = median(longer.advance);
	o->record = without_calls(record_seconds, longer.record_calls, call);
	o->backward = without_calls(median(longer.backward), longer.backward_calls, call);
	o->advance = advance_seconds > 0
			     ? without_calls(advance_seconds, longer.advance_calls, call)
			     : o->record;
	o->slot_write = o->slot_read = median(longer.copy);
	return 0;
}

static int time_replay(struct sweep_calibration *c, struct neap_sweep_options *o)
{
	double seconds[REPEATS] = {0};
	struct neap_sweep_stats s = {0};
	int64_t slots;
	for (int i = 0; c->ops.replay && i < REPEATS; i++) {
		int rc = time_sweep(c, "replay", 0, &s, &slots);
		if (rc == NEAP_EINFEASIBLE)
			return 0;
		NEAP_TRY(rc);
		seconds[i] = per(s.replay, s.replay_steps);
	}
	o->replay = median(seconds);
	return 0;
}

/* What transfers run beside: a sweep of the model. */
static int work(void *user)
{
	struct sweep_calibration *c = user;
	struct neap_sweep_stats s = {0};
	int64_t slots;
	return time_sweep(c, strategies[c->strategy], 0, &s, &slots);
}

static int time_tiers(struct sweep_calibration *c, struct neap_sweep_options *o)
{
	double start = neap__seconds();
	uint64_t tapes = c->ops.tape_bytes * LONG_CALL, bytes = c->ops.state_bytes;
	uint64_t memory = o->memory ? o->memory : UINT64_MAX;
	NEAP_TRY(work(c));
	const struct neap__work beside = {work, c, neap__seconds() - start};
	for (int i = 0; i < o->ntiers; i++) {
		struct neap_calibrated_tier cost;
		NEAP_TRY(neap__tier_cost_measure(&neap__tier_claimed_calls, &cost, o->tiers[i],
			bytes > tapes ? bytes : tapes, &beside, memory, TIER_REPEATS,
			TIERS_SHARE * c->seconds / (2 * TIER_REPEATS * o->ntiers)));
	}
	return 0;
}

/* The tiers are kept from the start, since callbacks of the model may close them. */
static int calibrate(struct sweep_calibration *c, struct neap_sweep_options *o)
{
	struct neap_tier *tiers[NEAP_TIERS_MAX] = {0};
	NEAP_TRY(neap__tiers_take(tiers, o->tiers, o->ntiers, 0, c->ops.memory));
	int rc = time_steps(c, o);
	if (rc == 0)
		rc = time_replay(c, o);
	if (rc == 0)
		rc = neap__tiers_claim(tiers, o->ntiers, "neap_sweep_calibrate");
	if (rc == 0) {
		rc = time_tiers(c, o);
		neap__tiers_leave(tiers, o->ntiers);
	}
	neap__tiers_drop(tiers, NEAP_TIERS_MAX);
	return rc;
}

/* Bytes of a sweep that is timed: what one step takes, and at most NEAP__MEASURE_MOST with tiers.
 */
static uint64_t memory_of(const struct neap_step_ops *ops, const struct neap_sweep_options *o)
{
	uint64_t tape = ops->tape_max_bytes ? ops->tape_max_bytes : ops->tape_bytes;
	uint64_t live = ops->live_bytes ? ops->live_bytes : ops->state_bytes;
	uint64_t most = NEAP__MEASURE_MOST / (o->ntiers > 0 ? 2 : 1);
	const uint64_t step[] = {ops->state_bytes, live, ops->adjoint_bytes, tape};
	for (size_t i = 0; i < sizeof step / sizeof *step; i++)
		most = neap__sat_add(most, neap__round_up(step[i], 64));
	return o->memory && o->memory < most ? o->memory : most;
}

int neap_sweep_calibrate(struct neap_sweep_options *options, const struct neap_step_ops *ops,
	void *user, const void *x0, double seconds)
{
	NEAP_NEED(options, ops);
	struct sweep_calibration c = {
		.user = user, .x0 = x0, .seconds = seconds > 0 ? seconds : SECONDS};
	struct neap_sweep_options o;
	NEAP_TRY(neap__struct_take(&c.ops, sizeof c.ops, ops, "neap_step_ops"));
	NEAP_TRY(neap__struct_take(&o, sizeof o, options, "neap_sweep_options"));
	if (!(seconds >= 0) || isinf(seconds))
		return neap__fail(NEAP_EUSAGE, "seconds to calibrate are %g", seconds);
	if (o.ntiers < 0 || o.ntiers > NEAP_TIERS_MAX || (o.ntiers > 0 && !o.tiers))
		return neap__fail(NEAP_EUSAGE, "neap_sweep_options: %d tiers", o.ntiers);
	if (o.agree)
		return neap__fail(NEAP_EUSAGE,
			"neap_sweep_calibrate measures one process: a collective sweep without "
			"costs times its first steps on all ranks");
	if (!c.ops.ended && o.steps < 1)
		return neap__fail(
			NEAP_EUSAGE, "no step to time: the chain has %lld", (long long)o.steps);
	c.options = (struct neap_sweep_options){.size = sizeof c.options,
		.steps = o.steps,
		.memory = memory_of(&c.ops, &o),
		.interrupted = o.interrupted,
		.interrupted_user = o.interrupted_user};
	int rc = 0;
	if (c.ops.grad_save && c.ops.grad_load)
		rc = c.ops.grad_save(user, keep, &c);
	if (rc == 0)
		rc = calibrate(&c, &o);
	free(c.gathered);
	if (rc < 0)
		return rc;
	neap__struct_give(options, &o, sizeof o);
	return 0;
}

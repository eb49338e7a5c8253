/* SPDX-License-Identifier: Apache-2.0 */
/*
 * periodic.c: the strategy `periodic`: a state to a slow tier every m steps on the first sweep,
 * read back once; between them Revolve in the slots (Aupy and Herrmann 2017).
 *
 *     T, f      steps of the chain; seconds of an advance
 *     m, n      steps of a period; n = ceil(T/m) periods; the last may be shorter and its first
 *               state is never written
 *     w, r      seconds to write and to read a state on the tier
 *     Opt_0(m)  least seconds of advances and copies of m steps in the slots (level_solver.h)
 *
 * The period is the largest m that minimises ( w + r + m f + Opt_0(m) ) / m, whatever T is: a
 * vertex of the convex hull of Opt_0. A tier that holds fewer states raises m.
 *
 * Peak: s S + A bytes and the staging of the tier (S a state, A a tape, s slots in use).
 */
#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/levels/level_schedule.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

#define WORK 1000000			 /* look-ups of the dynamic program (level_solver.h) */
#define SLOTS_COUNTED ((int64_t)1 << 18) /* more slots would take long to count, as copies cost */
#define SLOTS_MOST 4096			 /* with more slots: Revolve's order, PARTS_MOST parts */
#define PARTS_MOST 1500
#define ADVANCES_MOST 4e18 /* two of them still fit into 63 bits */

struct periodic {
	int64_t m, n;
	struct neap__levels *whole, *last; /* the order in a period of m steps, in the last one */
};

static int64_t slots_of(const struct neap_problem *p, int tier)
{
	int64_t pool = neap__pool_bytes(p, tier), tape = (int64_t)p->chain.tape;
	int64_t slots = pool < tape ? -1 : (pool - tape) / (int64_t)p->chain.state;
	if (slots > SLOTS_COUNTED && slots < p->chain.steps - 1 &&
		p->chain.slot_write + p->chain.slot_read > 0)
		slots = SLOTS_COUNTED;
	return slots;
}

/* The problem of `steps` steps in the slots; whole periods have `period` steps. */
static struct neap__levels_problem inside(
	const struct neap_problem *p, int64_t slots, int64_t period, int64_t steps)
{
	struct neap__levels_problem levels = {
		.length = steps - 1, .advance = p->chain.advance, .count = 1};
	levels.level[0] = (struct neap__level){.slots = slots < period - 1 ? slots : period - 1,
		.write = neap__level_schedule_write(p, 0),
		.read = neap__level_schedule_read(p, 0)};
	if (levels.level[0].slots > SLOTS_MOST) {
		levels.revolve = 1;
		levels.parts_most = PARTS_MOST;
	}
	return levels;
}

/* Solves it; takes Revolve's order where the tables of the best one are too large. */
static int solve_inside(struct neap__levels **solved, struct neap__levels_problem levels)
{
	int rc = neap__levels_solve(solved, &levels, WORK);
	if (rc != NEAP_EINFEASIBLE || levels.level[0].slots < 1)
		return rc;
	levels.revolve = 1;
	return neap__levels_solve(solved, &levels, WORK);
}

/* The order of a whole and of the last period. */
static int solve_periods(struct periodic *x, const struct neap_problem *p, int64_t slots)
{
	int64_t last = p->chain.steps - (x->n - 1) * x->m;
	NEAP_TRY(solve_inside(&x->last, inside(p, slots, x->m, last)));
	if (x->n > 1)
		NEAP_TRY(solve_inside(&x->whole, inside(p, slots, x->m, x->m)));
	/* A schedule has one kind of level 0 for both. */
	if (x->whole && last > 1 && neap__levels_closed(x->whole) != neap__levels_closed(x->last))
		return NEAP_EINFEASIBLE;
	return 0;
}

static void free_periodic(void *user)
{
	struct periodic *x = user;
	neap__levels_free(x->whole);
	neap__levels_free(x->last);
	free(x);
}

static struct periodic *make(const struct neap_problem *p, int64_t period)
{
	struct periodic *x = calloc(1, sizeof *x);
	if (!x) {
		neap__fail(-ENOMEM, "plan: out of memory");
		return NULL;
	}
	x->m = period < p->chain.steps ? period : p->chain.steps;
	x->n = neap__ceil_div(p->chain.steps, x->m);
	return x;
}

static void fill(
	struct neap_plan *plan, const struct neap_problem *p, int tier, const struct periodic *x)
{
	struct neap__level_traffic traffic[2] = {{0}, {.tier = tier}};
	const struct neap__level_counts *last = neap__levels_counts(x->last);
	int64_t sent = x->n - 1, advanced = last->advanced;
	traffic[0].written = last->written[0];
	traffic[0].read = last->read[0];
	traffic[0].peak = last->peak[0];
	traffic[1].written = traffic[1].read = traffic[1].peak = sent;
	if (x->whole) {
		const struct neap__level_counts *whole = neap__levels_counts(x->whole);
		if (((double)whole->advanced + (double)x->m) * (double)sent > ADVANCES_MOST)
			return;
		advanced += sent * (whole->advanced + x->m);
		traffic[0].written += sent * whole->written[0];
		traffic[0].read += sent * whole->read[0];
		if (whole->peak[0] > traffic[0].peak)
			traffic[0].peak = whole->peak[0];
	}
	neap__level_schedule_plan(plan, p, advanced, traffic, sent ? 2 : 1);
}

/* Fills the plan of a period and a tier where it is feasible. */
static int attempt(struct neap_plan *plan, const struct neap_problem *p, int tier, int64_t period)
{
	int64_t slots = slots_of(p, period < p->chain.steps ? tier : 0);
	if (slots < 0)
		return 0;
	struct periodic *x = make(p, period);
	if (!x)
		return -ENOMEM;
	int rc = x->n - 1 > neap__places(p, tier) ? NEAP_EINFEASIBLE : solve_periods(x, p, slots);
	if (rc == 0)
		fill(plan, p, tier, x);
	free_periodic(x);
	if (plan->feasible) {
		plan->params.period = period;
		plan->tier = plan->tier ? plan->tier : 0;
	}
	return rc == NEAP_EINFEASIBLE ? 0 : rc;
}

static int64_t best_period(const struct neap_problem *p, int tier)
{
	int64_t slots = slots_of(p, tier), steps = p->chain.steps;
	int64_t places = neap__places(p, tier);
	if (slots < 0)
		return steps;
	struct neap__levels_problem levels = inside(p, slots, INT64_MAX, INT64_MAX);
	int64_t period = neap__levels_period(
		&levels, neap__level_schedule_write(p, tier) + neap__level_schedule_read(p, tier));
	int64_t least = neap__ceil_div(steps, places + 1);
	return period > least ? period : least;
}

/* Refuses and names the least budget. `asked`: the period was given. */
static int refuse(
	struct neap_plan *plan, const struct neap_problem *p, int tier, int64_t period, int asked)
{
	int64_t m = period < p->chain.steps ? period : p->chain.steps;
	int64_t least = neap__binomial_slots_least(m);
	int local = m == p->chain.steps;
	if (!local && neap__ceil_div(p->chain.steps, m) - 1 > neap__places(p, tier)) {
		neap__refuse(plan, 0, "tier %s is too small: it holds %lld states",
			p->tiers[tier - 1].name, (long long)neap__places(p, tier));
		return 0;
	}
	uint64_t bytes =
		neap__fixed_bytes(p, local ? 0 : tier) + (uint64_t)neap__bytes(p, least, 1);
	if (!asked && neap__places(p, tier) >= p->chain.steps - 1) { /* a state every step */
		uint64_t every = neap__fixed_bytes(p, tier) + (uint64_t)neap__bytes(p, 0, 1);
		if (every < bytes) {
			bytes = every;
			least = 0;
		}
	}
	neap__refuse(plan, bytes > p->memory ? bytes : 0, "%lld slot%s and a tape need %llu",
		(long long)least, least == 1 ? "" : "s", (unsigned long long)bytes);
	return 0;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	const struct neap_plan blank = *plan;
	if (problem->ntiers == 0) {
		neap__refuse(plan, 0, "needs a slow tier");
		return 0;
	}
	for (int tier = 1; tier <= problem->ntiers; tier++) {
		struct neap_plan trial = blank;
		int64_t period = fixed->period ? fixed->period : best_period(problem, tier);
		NEAP_TRY(attempt(&trial, problem, tier, period));
		if (!trial.feasible && !fixed->period)
			NEAP_TRY(attempt(&trial, problem, tier, period = problem->chain.steps));
		if (!trial.feasible)
			refuse(&trial, problem, tier, period, fixed->period > 0);
		if (tier == 1 ||
			(trial.feasible && (!plan->feasible || trial.makespan < plan->makespan)) ||
			(!trial.feasible && !plan->feasible && trial.least_bytes &&
				(!plan->least_bytes || trial.least_bytes < plan->least_bytes)))
			*plan = trial;
	}
	return 0;
}

static int writes(void *user, int k, int64_t m, int64_t l, int64_t t)
{
	const struct periodic *x = user;
	if (k == 1)
		return l >= x->m;
	return neap__levels_writes(t >= (x->n - 1) * x->m ? x->last : x->whole, 0, m, l);
}

static int64_t split(void *user, int k, int64_t m, int64_t l, int64_t t)
{
	const struct periodic *x = user;
	if (k == 1)
		return l >= x->m ? x->m : 0;
	return neap__levels_split(t >= (x->n - 1) * x->m ? x->last : x->whole, 0, m, l);
}

static int open(struct neap_schedule *s)
{
	const struct neap_problem *p = &s->problem;
	int tier = s->plan.tier;
	int64_t period = s->plan.params.period, slots = slots_of(p, tier);
	if (period < 1 || slots < 0 || (period < p->chain.steps && tier < 1))
		return neap__fail(
			NEAP_EUSAGE, "schedule: periodic: period %lld", (long long)period);
	struct periodic *x = make(p, period);
	if (!x)
		return -ENOMEM;
	int rc = solve_periods(x, p, slots);
	if (rc < 0) {
		free_periodic(x);
		return rc;
	}
	const struct neap__levels *first = x->whole ? x->whole : x->last;
	struct neap__level_schedule how = {.levels = x->n > 1 ? 2 : 1,
		.closed = x->m > 1 && neap__levels_closed(first),
		.depths = {.count = 1, .row = {{INT64_MAX, 0}}},
		.level = {{0, inside(p, slots, x->m, x->m).level[0].slots}, {tier, INT64_MAX}},
		.writes = writes,
		.split = split,
		.free = free_periodic,
		.user = x};
	return neap__level_schedule_open(s, &how);
}

const struct neap__strategy neap__strategy_periodic = {
	.name = "periodic",
	.about = "a state to a slow tier every period, Revolve between (Aupy and Herrmann 2017)",
	.solve = solve,
	.open = open,
	.traits = NEAP_STRATEGY_TIERS,
	.leaf_steps = 1,
	.plan_seconds = NEAP__PLANS_BY_SEARCH,
	.color = "#777777",
	.mark = 3,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h-revolve: every level of memory, slots of tier 0 and places of the slow tiers, in
 * one optimal recursion (level_solver.h; Herrmann and Pallez 2020); disk-revolve: the same
 * with the slots and one slow tier, without limit if it is large enough (Aupy,
 * Herrmann, Hovland, Robert 2016, with as many reads of a state as pay). Transfers
 * are planned as waited for; of an asynchronous tier's read the next backward hides
 * its part (level_schedule.h).
 *
 * The levels stand in the order of (write, read), of (read, write) and of their sum;
 * the best is taken. Where tiers take staging from the slots, each tier alone and
 * none are tried as well. The last resort is Revolve's order in the slots.
 *
 * Peak: s S + A and the staging of the tiers in use, s slots used at most.
 */
#include <math.h>
#include <string.h>
#include "base/fail.h"
#include "plan/levels/level_schedule.h"
#include "plan/core/strategy.h"

/* Work of the exact tables worth one simulation, and that short chains get in any case. */
#define WORK 500
#define SHORT 512
#define SHORT_WORK 20000000
/*
 * Beyond so many slots few stretches are looked at and nothing is proved: the problem
 * is easy, and its tables would be large. Where copies cost, counting them takes as
 * long as Revolve's stack is deep: no more slots than that are used, unless all states
 * fit.
 */
#define SLOTS_MANY 4096
#define STRETCHES 1500
#define SLOTS_COUNTED ((int64_t)1 << 18)

enum order { WRITE_FIRST, READ_FIRST, SUM, ORDERS };

/*
 * Variants: set * ORDERS + order. With n tiers, set 0 is all of them, 1..n each alone
 * beside the slots, n+1 the slots alone; n+2 the slots alone in Revolve's order, beyond
 * that each tier alone, without the slots, in that order.
 */
static int sets(const struct neap_problem *p)
{
	return 2 * p->ntiers + 3;
}

static int has(int set, int tier, int n)
{
	return set == 0 || set == tier || set == n + 2 + tier;
}

static double rank(const struct neap__level *x, int order)
{
	return order == WRITE_FIRST ? x->write : order == READ_FIRST ? x->read : x->write + x->read;
}

/* Is `a` to stand below `b`? */
static int lower(const struct neap__level *a, const struct neap__level *b, int order)
{
	double x = rank(a, order), y = rank(b, order);
	if (x != y)
		return x < y;
	return a->write + a->read < b->write + b->read;
}

static void insert(struct neap__levels_problem *nest, struct neap__level level, int order)
{
	int i = nest->count++;
	for (; i > 0 && lower(&level, &nest->level[i - 1], order); i--)
		nest->level[i] = nest->level[i - 1];
	nest->level[i] = level;
}

/* Of the places of a level those that are used: all of them, or as many as can be counted. */
static int64_t counted(int64_t places, int64_t length, double cost)
{
	return cost > 0 && places > SLOTS_COUNTED && places < length ? SLOTS_COUNTED : places;
}

/* The levels of a variant; 0 where the budget does not hold its fixed bytes and a tape. */
static int arrange(struct neap__levels_problem *nest, const struct neap_problem *p, int variant)
{
	int set = variant / ORDERS, order = variant % ORDERS;
	int64_t tape = (int64_t)p->chain.tape, pool = neap__pool_bytes(p, 0);
	*nest = (struct neap__levels_problem){.length = p->chain.steps - 1,
		.advance = p->chain.advance,
		.revolve = set > p->ntiers + 1};
	for (int tier = 1; tier <= p->ntiers; tier++)
		if (has(set, tier, p->ntiers)) {
			uint64_t staging = p->tiers[tier - 1].staging;
			pool = staging > (uint64_t)INT64_MAX / 2 ? -1 : pool - (int64_t)staging;
			if (pool < 0)
				return 0;
		}
	if (pool < tape)
		return 0;
	int64_t room = (pool - tape) / (int64_t)p->chain.state;
	if (room > SLOTS_MANY && room < nest->length)
		nest->stretches = STRETCHES;
	room = counted(room, nest->length, p->chain.slot_write + p->chain.slot_read);
	struct neap__level slots = {.slots = room,
		.write = neap__level_schedule_write(p, 0),
		.read = neap__level_schedule_read(p, 0)};
	if (set <= p->ntiers + 2)
		insert(nest, slots, order);
	for (int tier = 1; tier <= p->ntiers; tier++)
		if (has(set, tier, p->ntiers))
			insert(nest,
				(struct neap__level){
					.slots = counted(neap__places(p, tier), nest->length, 1),
					.write = neap__level_schedule_write(p, tier),
					.read = neap__level_schedule_read(p, tier),
					.tier = tier},
				order);
	return 1;
}

static int64_t work_of(const struct neap_params *params, const struct neap__levels_problem *nest)
{
	if (nest->stretches)
		return 0;
	int64_t effort = params->effort ? params->effort : 2000;
	int64_t work = effort > INT64_MAX / WORK ? INT64_MAX : effort * WORK;
	return nest->length <= SHORT && work < SHORT_WORK ? SHORT_WORK : work;
}

static void fill(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap__levels *nested)
{
	const struct neap__levels_problem *nest = neap__levels_nest(nested);
	const struct neap__counts *counts = neap__levels_counts(nested);
	struct neap__traffic traffic[NEAP__LEVELS_MOST];
	for (int k = 0; k < nest->count; k++)
		traffic[k] = (struct neap__traffic){.tier = nest->level[k].tier,
			.written = counts->written[k],
			.read = counts->read[k],
			.peak = counts->peak[k]};
	neap__level_schedule_plan(plan, problem, counts->advanced, traffic, nest->count);
	if (plan->feasible && neap__levels_lower(nested) > 0)
		plan->model_bound = fmin(plan->makespan,
			neap__levels_lower(nested) +
				(double)problem->chain.steps *
					(problem->chain.record + problem->chain.backward) +
				neap__level_schedule_calls(&problem->chain));
}

/* One variant: plan is filled where it is feasible. */
static int attempt(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int variant)
{
	struct neap__levels_problem nest;
	struct neap__levels *nested;
	if (!arrange(&nest, problem, variant))
		return 0;
	int rc = neap__levels_solve(&nested, &nest, work_of(fixed, &nest));
	if (rc == NEAP_EINFEASIBLE)
		return 0;
	if (rc < 0)
		return rc;
	fill(plan, problem, nested);
	neap__levels_free(nested);
	plan->variant = variant;
	plan->params.effort = fixed->effort;
	return 0;
}

/* Is the order of the levels another than with lower variants of the set? */
static int is_new(const struct neap_problem *p, int variant)
{
	struct neap__levels_problem nest, other;
	if (!arrange(&nest, p, variant))
		return 0;
	for (int v = variant - variant % ORDERS; v < variant; v++) {
		int same = arrange(&other, p, v);
		for (int k = 0; same && k < nest.count; k++)
			same = nest.level[k].tier == other.level[k].tier;
		if (same)
			return 0;
	}
	return 1;
}

static int try_set(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int set)
{
	for (int order = 0; order < ORDERS; order++) {
		struct neap_plan trial = *plan;
		int variant = set * ORDERS + order;
		if (!is_new(problem, variant))
			continue;
		trial.feasible = 0;
		NEAP_TRY(attempt(&trial, problem, fixed, variant));
		if (trial.feasible &&
			(!plan->feasible || trial.makespan < plan->makespan * (1 - 1e-13)))
			*plan = trial;
	}
	return 0;
}

/* Sets from..to, as far as they are better than what is there. */
static int try_sets(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int from, int to)
{
	for (int set = from; set <= to; set++)
		NEAP_TRY(try_set(plan, problem, fixed, set));
	return 0;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	int staging = 0, n = problem->ntiers;
	for (int i = 0; i < n; i++)
		staging |= problem->tiers[i].staging > 0;
	NEAP_TRY(try_sets(plan, problem, fixed, 0, 0));
	if (staging || !plan->feasible)
		NEAP_TRY(try_sets(plan, problem, fixed, 1 + (n == 1 && plan->feasible), n + 1));
	/* Tables cut short may have led astray; beyond that, a last resort. */
	NEAP_TRY(try_sets(plan, problem, fixed, n + 2, plan->feasible ? n + 2 : 2 * n + 2));
	if (!plan->feasible)
		neap__level_schedule_refuse(plan, problem);
	return 0;
}

static int open(struct neap_schedule *s)
{
	struct neap__levels_problem nest;
	struct neap__levels *nested;
	if (s->plan.variant < 0 || s->plan.variant >= sets(&s->problem) * ORDERS ||
		!arrange(&nest, &s->problem, s->plan.variant))
		return neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	NEAP_TRY(neap__levels_solve(&nested, &nest, work_of(&s->plan.params, &nest)));
	return neap__level_schedule_nested(s, nested);
}

/* One tier at a time, and its staging. */
static int solve_disk(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	if (problem->ntiers == 0) {
		neap__refuse(plan, 0, "needs a slow tier");
		return 0;
	}
	int n = problem->ntiers;
	NEAP_TRY(try_sets(plan, problem, fixed, 1, n));
	if (!plan->feasible)
		NEAP_TRY(try_sets(plan, problem, fixed, n + 2, 2 * n + 2));
	if (!plan->feasible)
		neap__level_schedule_refuse(plan, problem);
	return 0;
}

/* Costs no higher than the tiers', in an order in which both rise. */
static void relax(struct neap__levels_problem *nest)
{
	struct neap__level *first = &nest->level[0];
	first->write = fmin(first->write, first->read); /* reads may go into a slot */
	for (int k = nest->count - 2; k >= 0; k--) {
		nest->level[k].write = fmin(nest->level[k].write, nest->level[k + 1].write);
		nest->level[k].read = fmin(nest->level[k].read, nest->level[k + 1].read);
	}
}

double neap__hrevolve_bound(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	struct neap__levels_problem nest = {
		.length = c->steps - 1, .advance = c->advance, .count = 1};
	struct neap__levels *nested;
	if (c->flags != NEAP_CHAIN_CLASSIC || c->steps < 2)
		return 0;
	int64_t slots = neap__pool_bytes(p, 0);
	nest.level[0] = (struct neap__level){.slots = slots,
		.write = neap__level_schedule_write(p, 0),
		.read = neap__level_schedule_read(p, 0)};
	for (int tier = 1; tier <= p->ntiers; tier++) {
		if (!(p->tiers[tier - 1].flags & NEAP_TIER_SYNC))
			return 0;
		struct neap__level level = {.slots = neap__places(p, tier),
			.write = neap__level_schedule_write(p, tier),
			.read = neap__level_schedule_read(p, tier),
			.tier = tier};
		int i = nest.count++;
		for (; i > 1 && lower(&level, &nest.level[i - 1], SUM); i--)
			nest.level[i] = nest.level[i - 1];
		nest.level[i] = level;
	}
	relax(&nest);
	if (neap__levels_solve(&nested, &nest, nest.length <= SHORT ? SHORT_WORK : 0) < 0)
		return 0;
	double bound = neap__levels_lower(nested);
	neap__levels_free(nested);
	return bound + (double)c->steps * (c->record + c->backward);
}

const struct neap__strategy neap__hrevolve = {"h-revolve",
	"all tiers in one optimal recursion, transfers waited for (Herrmann and Pallez 2020)",
	solve, open};

const struct neap__strategy neap__diskrevolve = {"disk-revolve",
	"slots and one slow tier, a state read as often as pays (Aupy, Herrmann and others 2016)",
	solve_disk, open};

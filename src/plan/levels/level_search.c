/* SPDX-License-Identifier: Apache-2.0 */
/* level_search.c: a variant as a problem of levels, its solution as a plan. */
#include "plan/levels/level_search.h"

#include <math.h>
#include "base/fail.h"
#include "plan/levels/level_schedule.h"
#include "plan/core/sizing.h"

/* Work of the dynamic program that counts as one simulation of `effort`. */
#define WORK 500
#define EFFORT 2000 /* simulations, unless params say otherwise */
/*
 * With more slots than SLOTS_MANY the problem is easy and its tables would be large: PARTS_MOST
 * parts are evaluated and nothing is proved. Where copies cost time, counting them takes time
 * for each slot, so no more than SLOTS_COUNTED are used, unless all states fit.
 */
#define SLOTS_MANY 4096
#define PARTS_MOST 1500
#define SLOTS_COUNTED ((int64_t)1 << 18)

enum level_order { WRITE_FIRST, READ_FIRST, SUM, ORDERS };

/* The number of sets (level_search.h). */
static int sets(const struct neap_problem *p)
{
	return 2 * p->ntiers + 3;
}

/* Returns 1 where the set contains the tier, of n tiers. */
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

int neap__level_search_lower(const struct neap__level *a, const struct neap__level *b)
{
	return lower(a, b, SUM);
}

static void insert(struct neap__levels_problem *levels, struct neap__level level, int order)
{
	int i = levels->count++;
	for (; i > 0 && lower(&level, &levels->level[i - 1], order); i--)
		levels->level[i] = levels->level[i - 1];
	levels->level[i] = level;
}

/* The places of a level that are used: all of them, or as many as can be counted. */
static int64_t counted(int64_t places, int64_t length, double cost)
{
	return cost > 0 && places > SLOTS_COUNTED && places < length ? SLOTS_COUNTED : places;
}

/* The levels of a variant. Returns 1, 0 where the budget does not hold a tape. */
static int arrange(struct neap__levels_problem *levels, const struct neap_problem *p, int variant)
{
	int set = variant / ORDERS, order = variant % ORDERS;
	int64_t tape = (int64_t)p->chain.tape, pool = neap__pool_bytes(p, 0);
	*levels = (struct neap__levels_problem){.length = p->chain.steps - 1,
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
	if (room > SLOTS_MANY && room < levels->length)
		levels->parts_most = PARTS_MOST;
	room = counted(room, levels->length, p->chain.slot_write + p->chain.slot_read);
	struct neap__level slots = {.slots = room,
		.write = neap__level_schedule_write(p, 0),
		.read = neap__level_schedule_read(p, 0)};
	if (set <= p->ntiers + 2)
		insert(levels, slots, order);
	for (int tier = 1; tier <= p->ntiers; tier++)
		if (has(set, tier, p->ntiers))
			insert(levels,
				(struct neap__level){
					.slots = counted(neap__places(p, tier), levels->length, 1),
					.write = neap__level_schedule_write(p, tier),
					.read = neap__level_schedule_read(p, tier),
					.tier = tier},
				order);
	return 1;
}

static int64_t work_of(const struct neap_params *params, const struct neap__levels_problem *levels)
{
	if (levels->parts_most)
		return 0;
	int64_t effort = params->effort ? params->effort : EFFORT;
	int64_t work = effort > INT64_MAX / WORK ? INT64_MAX : effort * WORK;
	return levels->length <= NEAP__LEVELS_SHORT && work < NEAP__LEVELS_SHORT_WORK
		       ? NEAP__LEVELS_SHORT_WORK
		       : work;
}

static void fill(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap__levels *solved)
{
	const struct neap__levels_problem *levels = neap__levels_in_use(solved);
	const struct neap__level_counts *counts = neap__levels_counts(solved);
	struct neap__level_traffic traffic[NEAP__LEVELS_MOST];
	for (int k = 0; k < levels->count; k++)
		traffic[k] = (struct neap__level_traffic){.tier = levels->level[k].tier,
			.written = counts->written[k],
			.read = counts->read[k],
			.peak = counts->peak[k]};
	neap__level_schedule_plan(plan, problem, counts->advanced, traffic, levels->count);
	if (plan->feasible && neap__levels_lower(solved) > 0)
		plan->model_bound = fmin(plan->makespan,
			neap__levels_lower(solved) +
				(double)problem->chain.steps *
					(problem->chain.record + problem->chain.backward) +
				neap__level_schedule_calls(&problem->chain));
}

/* Fills the plan of a variant where it is feasible. */
static int attempt(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int variant)
{
	struct neap__levels_problem levels;
	struct neap__levels *solved;
	if (!arrange(&levels, problem, variant))
		return 0;
	int rc = neap__levels_solve(&solved, &levels, work_of(fixed, &levels));
	if (rc == NEAP_EINFEASIBLE)
		return 0;
	if (rc < 0)
		return rc;
	fill(plan, problem, solved);
	neap__levels_free(solved);
	plan->variant = variant;
	plan->params.effort = fixed->effort;
	return 0;
}

/* Returns 1 where no lower variant of the set has the same order of levels, else 0. */
static int is_new(const struct neap_problem *p, int variant)
{
	struct neap__levels_problem levels, other;
	if (!arrange(&levels, p, variant))
		return 0;
	for (int v = variant - variant % ORDERS; v < variant; v++) {
		int same = arrange(&other, p, v);
		for (int k = 0; same && k < levels.count; k++)
			same = levels.level[k].tier == other.level[k].tier;
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

int neap__level_search_sets(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int from, int to)
{
	for (int set = from; set <= to; set++)
		NEAP_TRY(try_set(plan, problem, fixed, set));
	return 0;
}

int neap__level_search_open(struct neap_schedule *s)
{
	struct neap__levels_problem levels;
	struct neap__levels *solved;
	if (s->plan.variant < 0 || s->plan.variant >= sets(&s->problem) * ORDERS ||
		!arrange(&levels, &s->problem, s->plan.variant))
		return neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	NEAP_TRY(neap__levels_solve(&solved, &levels, work_of(&s->plan.params, &levels)));
	return neap__level_schedule_solved(s, solved);
}

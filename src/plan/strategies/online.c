/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online.c: the strategy `online`: the plan of a chain whose length is unknown until its last step
 * (online_schedule.h), so that a table of strategies shows the cost of an unknown length. The
 * placement of checkpoints is executed; the actions of the backward pass are only counted.
 *
 * Peak: the maximum of j S + l A bytes over all leaves of l steps with j checkpoints (S bytes of a
 * state, A of a tape), and of the checkpoints without a leaf.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/online/online_schedule.h"
#include "plan/online/online_tier.h"
#include "plan/core/simulate.h"
#include "plan/core/strategy.h"
#include "plan/verify/measure_list.h"
#include "plan/core/sizing.h"

/* Limits of planning time, which grows with the number of checkpoints; all chosen. */
#define SLOTS_MOST 1024
#define STEPS_MOST 100000000
#define SLOTS_LEAST 2	  /* minimum number of slots with a slow tier */
#define SLOTS_FAR 64	  /* limit of slots for more than STEPS_MOST steps */
#define ROUNDING 1e-12	  /* relative rounding error of sums of seconds */
#define RUNS_MOST 2000000 /* limit of recorded runs of a sweep that is executed here */

/*
 * Counts the actions of the sweep, and its calls of the model in *calls. use->advances is
 * NEAP__LEAF_NEVER or more if there are too many. Returns 0 or -ENOMEM.
 */
static int count(struct neap__leaf_use *use, int64_t *calls, struct neap__online *x, int64_t steps)
{
	struct neap__placement *list = &x->placement;
	struct neap__kept_state evicted;
	int64_t t = 0;
	*use = (struct neap__leaf_use){.saves = 1, .advances = steps - 1};
	*calls = 2 +
		 (steps > 1); /* the last step is recorded and reversed; an ADVANCE leads to it */
	while (steps > 1 && (t = neap__placement_until(list, t)) < steps - 1) {
		++*calls;
		if (!neap__placement_due(list, t))
			continue;
		NEAP_TRY(neap__placement_keep(list, t, &evicted));
		use->saves++;
	}
	neap__placement_settle(list);
	int64_t end = steps - 1, state = x->costs.state;
	use->slots = list->count;
	use->peak = list->count * state + (steps > 1) * x->costs.tape;
	if (list->kept[list->count - 1].t == end) /* kept, and not needed for the last step */
		use->peak = (list->count - 1) * state + x->costs.tape;
	for (int64_t i = list->count - 1; i >= 0 && use->advances < NEAP__LEAF_NEVER; i--) {
		int64_t l = end - list->kept[i].t;
		end = list->kept[i].t;
		if (l == 0)
			continue;
		struct neap__leaf_use part = neap__leaf_revolve_measure(&x->costs, l, i);
		use->advances += part.advances < 0 ? NEAP__LEAF_NEVER : part.advances;
		use->saves += part.saves;
		use->loads += part.loads + 1;
		*calls += 3 * part.loads + 2; /* its splits; RECORD and BACKWARD of its leaves */
		use->slots = part.slots > use->slots ? part.slots : use->slots;
		use->peak = part.peak > use->peak ? part.peak : use->peak;
	}
	return 0;
}

static void accept(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap__leaf_use *use, int64_t calls, int64_t slots, int64_t tape)
{
	const struct neap_chain *c = &problem->chain;
	int64_t free = c->flags & NEAP_CHAIN_CLASSIC ? tape : 0;
	int64_t bytes = c->tape == 0 && !free ? use->slots * (int64_t)c->state : use->peak - free;
	if (bytes < use->slots * (int64_t)c->state)
		bytes = use->slots * (int64_t)c->state;
	neap__accept(plan, problem, 0, use->slots, bytes);
	plan->params.checkpoints = slots;
	plan->advance_steps = use->advances;
	plan->record_steps = c->steps;
	plan->makespan = (double)c->steps * (c->record + c->backward) +
			 (double)use->advances * c->advance + (double)use->saves * c->slot_write +
			 (double)use->loads * c->slot_read + (double)calls * c->call;
}

static int pull(int (*consume)(void *, const struct neap_problem *, struct neap_schedule *),
	void *found, const struct neap_problem *problem, const struct neap_plan *plan)
{
	struct neap_schedule *s;
	NEAP_TRY(neap_schedule_open(&s, problem, plan));
	int rc = consume(found, problem, s);
	neap_schedule_close(s);
	return rc;
}

static int verify(void *found, const struct neap_problem *problem, struct neap_schedule *s)
{
	return neap_verify(found, problem, s);
}

static int simulate(void *found, const struct neap_problem *problem, struct neap_schedule *s)
{
	return neap_simulate(found, problem, s);
}

/* A simulation that ends as soon as the plan takes `below` seconds or more. */
struct race {
	double below;
	int lost;
	int64_t passed, position; /* steps executed; steps not yet reversed */
};

/* Lower bound of the time for the steps not yet executed or reversed, seconds. */
static double rest(struct race *race, const struct neap_chain *c, const struct neap_action *a)
{
	if ((a->kind == NEAP_ADVANCE || a->kind == NEAP_RECORD) && a->t1 > race->passed)
		race->passed = a->t1;
	if (a->kind == NEAP_BACKWARD)
		race->position = a->t0;
	double forward = c->advance < c->record ? c->advance : c->record;
	return (double)(c->steps - race->passed) * forward + (double)race->position * c->backward;
}

static int run_race(void *found, const struct neap_problem *problem, struct neap_schedule *s)
{
	struct race *race = found;
	struct neap__clock clock;
	struct neap_action a;
	int rc;
	neap__clock_init(&clock, problem);
	while (!race->lost && (rc = neap_schedule_next(s, &a)) != 0) {
		if (rc < 0)
			return rc;
		NEAP_TRY(neap__clock_step(&clock, &a));
		double least = (double)clock.now + rest(race, &problem->chain, &a);
		race->lost = least * (1 - ROUNDING) >= race->below;
	}
	return 0;
}

/*
 * With a slow tier the sweep is executed symbolically, once for its memory and once for its time.
 * If `below` is finite, it is first executed until it has taken that time.
 */
static int solve_tier(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap__online_sizes *sizes, double below)
{
	struct race race = {.below = below, .position = problem->chain.steps};
	struct neap_verdict v = {.size = sizeof v};
	struct neap_simulation m = {.size = sizeof m};
	if (problem->chain.steps / sizes->recent > RUNS_MOST) {
		neap__refuse(plan, 0, "plans at most %lld steps with a slow tier",
			(long long)(RUNS_MOST * sizes->recent));
		return 0;
	}
	plan->strategy = plan->chosen = neap__strategy_online.name;
	plan->feasible = 1;
	plan->tier = sizes->tier;
	plan->params.checkpoints = sizes->slots;
	if (below < INFINITY)
		NEAP_TRY(pull(run_race, &race, problem, plan));
	if (race.lost) {
		neap__refuse(plan, 0, "takes %g seconds or more", below);
		return 0;
	}
	NEAP_TRY(pull(verify, &v, problem, plan));
	NEAP_TRY(pull(simulate, &m, problem, plan));
	neap__plan_measured(plan, &v, &m);
	return 0;
}

/* Sizes with at most `slots` slots (0: any); more slots than steps are useless. */
static void tier_sizes(
	struct neap__online_sizes *sizes, const struct neap_problem *problem, int64_t slots)
{
	int64_t steps = problem->chain.steps, most = steps > SLOTS_LEAST ? steps : SLOTS_LEAST;
	neap__online_sizes(sizes, problem);
	if (slots && slots < most)
		most = slots;
	if (most < SLOTS_LEAST)
		sizes->tier = 0;
	if (sizes->slots > most)
		sizes->slots = most;
}

static int solve_below(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, double below)
{
	const struct neap_chain *c = &problem->chain;
	struct neap__online_sizes sizes;
	tier_sizes(&sizes, problem, fixed->checkpoints);
	if (sizes.tier)
		return solve_tier(plan, problem, &sizes, below);
	int64_t slots = neap__online_slots(problem), steps = c->steps;
	struct neap__online x;
	struct neap__leaf_use use;
	int64_t calls;

	if (slots < 1) {
		uint64_t bytes =
			neap__fixed_bytes(problem, 0) + (uint64_t)neap__bytes(problem, 1, 1);
		neap__refuse(plan, bytes, "needs %llu: one slot, for x_0, and a tape",
			(unsigned long long)bytes);
		return 0;
	}
	if (fixed->checkpoints && fixed->checkpoints < slots)
		slots = fixed->checkpoints;
	if (slots > steps)
		slots = steps;
	if (slots > SLOTS_MOST) {
		neap__refuse(plan, 0, "plans at most %d slots", SLOTS_MOST);
		return 0;
	}
	if (steps > STEPS_MOST && slots > SLOTS_FAR) {
		neap__refuse(plan, 0, "plans at most %d slots beyond 10^8 steps", SLOTS_FAR);
		return 0;
	}
	int rc = neap__online_init(&x, problem, slots);
	if (rc == 0)
		rc = count(&use, &calls, &x, steps);
	if (rc == 0 && use.advances >= NEAP__LEAF_NEVER)
		neap__refuse(plan, 0, "%lld slots: more than 2^60 steps", (long long)slots);
	else if (rc == 0)
		accept(plan, problem, &use, calls, slots, x.costs.tape);
	neap__online_fini(&x);
	return rc;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	return solve_below(plan, problem, fixed, INFINITY);
}

static int refill_tier(struct neap_schedule *s)
{
	return neap__online_tier_refill(s->self, s);
}

static void fini_tier(struct neap_schedule *s)
{
	neap__online_tier_fini(s->self);
}

static int64_t tables_tier(struct neap_schedule *s, int64_t room)
{
	struct neap__online_tier *x = s->self;
	if (room > 0)
		NEAP_TRY(neap__online_tier_reserve(x));
	return x->records_room > 0 ? x->records_room : 1;
}

static int open_tier(struct neap_schedule *s)
{
	struct neap__online_sizes sizes;
	tier_sizes(&sizes, &s->problem, s->plan.params.checkpoints);
	if (sizes.tier != s->plan.tier || sizes.slots != s->plan.params.checkpoints)
		return neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	struct neap__online_tier *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill_tier;
	s->fini = fini_tier;
	s->tables = tables_tier;
	NEAP_TRY(neap__online_tier_init(x, &s->problem.chain, &sizes));
	x->steps = s->problem.chain.steps;
	return 0;
}

static int refill(struct neap_schedule *s)
{
	return neap__online_refill(s->self, s);
}

static void fini(struct neap_schedule *s)
{
	neap__online_fini(s->self);
}

static int open(struct neap_schedule *s)
{
	int64_t slots = s->plan.params.checkpoints;
	if (s->plan.tier)
		return open_tier(s);
	if (slots < 1 || slots > neap__online_slots(&s->problem))
		return neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	struct neap__online *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill;
	s->fini = fini;
	NEAP_TRY(neap__online_init(x, &s->problem, slots));
	x->steps = s->problem.chain.steps;
	return 0;
}

const struct neap__strategy neap__strategy_online = {
	.name = "online",
	.about = "checkpoints for a length unknown in advance (Wang, Moin and Iaccarino 2009)",
	.solve = solve,
	.solve_below = solve_below,
	.open = open,
	.traits = NEAP_STRATEGY_UNKNOWN_LENGTH | NEAP_STRATEGY_TIERS,
	.color = "#777777",
	.mark = 14,
};

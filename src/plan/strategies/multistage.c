/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multistage.c: the strategy `multistage`: Revolve's order over the slots of tier 0 and the places
 * of the slow tiers together, with the places that are used most in the fastest memory (Stumm
 * and Walther 2009). The deeper a place is on Revolve's stack, the more often it is used. So
 * the deepest places are slots, the others lie on the tiers in the order of the seconds of a
 * write and a read. How many places pay is searched.
 *
 *     s, t, l    slots (places), repetitions and steps of a part (binomial.h)
 *     d          depth of a place on the stack, 0 for the first
 *     C(n,k)     binomial coefficient
 *
 * In a full part, the place j below its first one is written C(t+j-1, j) and read C(t+j, j+1)
 * times; those counts and the path of parts that are not full give all transfers.
 *
 * Peak: s S + A bytes and the staging of the tiers in use (S a state, A a tape, s slots).
 */
#include <math.h>
#include "base/fail.h"
#include "plan/levels/level_schedule.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

/* Places used unless more are asked for or all states fit: counting takes time for each. */
#define PLACES_MOST 1000000

typedef unsigned __int128 wide;

/* C(n, k); the caller knows that it fits into 63 bits. */
static int64_t binomial(int64_t n, int64_t k)
{
	if (k > n - k)
		k = n - k;
	wide c = 1;
	for (int64_t i = 1; i <= k; i++)
		c = c * (wide)(n - k + i) / (wide)i;
	return (int64_t)c;
}

/* Writes and reads of all places at depths below `depth`. */
struct uses {
	int64_t depth, written, read;
};

/* Adds a full part whose first state is saved at depth d; that write is not counted. */
static void add_full(struct uses *u, const struct neap__binomial *x, int64_t d)
{
	int64_t q = u->depth - d < x->s ? u->depth - d : x->s;
	if (q < 1)
		return;
	u->written += binomial(x->t + q - 1, q - 1) - 1;
	u->read += binomial(x->t + q, q) - 1;
}

/* Adds a part with a state before each step but the last: each is saved and read once. */
static void add_flat(struct uses *u, const struct neap__binomial *x, int64_t d)
{
	int64_t q = u->depth - d < x->l - 1 ? u->depth - d : x->l - 1;
	if (q < 1)
		return;
	u->written += q - 1;
	u->read += q;
}

/* Counts a part of the chain: goes down the one path of parts that are not full. */
static void count(struct uses *u, struct neap__binomial x)
{
	u->written += u->depth > 0;
	for (int64_t d = 0;;) {
		if (neap__binomial_full(&x)) {
			add_full(u, &x, d);
			return;
		}
		if (x.t == 1) {
			add_flat(u, &x, d);
			return;
		}
		int64_t y = neap__binomial_split(&x);
		struct neap__binomial left = {0}, right = {0};
		u->read += u->depth > d;
		if (y >= 2)
			left = neap__binomial_left(&x, y);
		if (x.l - y >= 2 && x.s >= 2) {
			right = neap__binomial_right(&x, y);
			u->written += u->depth > d + 1;
		}
		int go_left = left.l && !neap__binomial_full(&left);
		int go_right = right.l && !neap__binomial_full(&right);
		if (left.l && !go_left)
			add_full(u, &left, d);
		if (right.l && !go_right)
			add_full(u, &right, d + 1);
		if (!go_left && !go_right)
			return;
		x = go_left ? left : right;
		d += !go_left;
	}
}

/* Distributes `places` places, the shallowest first. Returns 0 where there are not as many. */
static int arrange(struct neap__level_depths *depths, const struct neap_problem *p, int with_tiers,
	int64_t places)
{
	int tiers[NEAP_TIERS_MAX], n = 0;
	int64_t pool = neap__pool_bytes(p, 0), left = places;
	for (int tier = 1; with_tiers && tier <= p->ntiers; tier++) {
		double cost =
			neap__level_schedule_write(p, tier) + neap__level_schedule_read(p, tier);
		int i = n++;
		for (; i > 0 && neap__level_schedule_write(p, tiers[i - 1]) +
						neap__level_schedule_read(p, tiers[i - 1]) >
					cost;
			i--)
			tiers[i] = tiers[i - 1];
		tiers[i] = tier;
		uint64_t staging = p->tiers[tier - 1].staging;
		pool = staging > (uint64_t)INT64_MAX / 2 ? -1 : pool - (int64_t)staging;
		if (pool < 0)
			return 0;
	}
	if (pool < (int64_t)p->chain.tape)
		return 0;
	int64_t size[NEAP__LEVELS_MOST], tier_of[NEAP__LEVELS_MOST];
	for (int i = 0; i <= n; i++) {
		int64_t room = i ? neap__places(p, tiers[i - 1])
				 : (pool - (int64_t)p->chain.tape) / (int64_t)p->chain.state;
		size[i] = room < left ? room : left;
		tier_of[i] = i ? tiers[i - 1] : 0;
		left -= size[i];
	}
	*depths = (struct neap__level_depths){0};
	int64_t upto = 0;
	for (int i = n; i >= 0; i--)
		if (size[i] > 0) {
			upto += size[i];
			depths->row[depths->count].upto = upto;
			depths->row[depths->count++].tier = (int)tier_of[i];
		}
	return left == 0;
}

/* Takes the plan with `places` places where it is feasible and faster than *plan. */
static void attempt(
	struct neap_plan *plan, const struct neap_problem *p, int with_tiers, int64_t places)
{
	struct neap__level_depths depths;
	struct neap__level_traffic traffic[NEAP__LEVELS_MOST];
	struct uses before = {0};
	struct neap_plan trial = *plan;
	int64_t extra = 0;
	if (!arrange(&depths, p, with_tiers, places) || (places < 1 && p->chain.steps > 1))
		return;
	if (p->chain.steps > 1) {
		struct neap__binomial x = neap__binomial(p->chain.steps, places);
		extra = neap__binomial_extra(&x);
		if (extra < 0)
			return;
		for (int i = 0; i < depths.count; i++) {
			struct uses u = {.depth = depths.row[i].upto};
			count(&u, x);
			traffic[i] = (struct neap__level_traffic){.tier = depths.row[i].tier,
				.written = u.written - before.written,
				.read = u.read - before.read,
				.peak = u.depth - before.depth};
			before = u;
		}
	}
	neap__level_schedule_plan(&trial, p, extra, traffic, depths.count);
	trial.params.checkpoints = places;
	trial.variant = with_tiers;
	if (trial.feasible && (!plan->feasible || trial.makespan < plan->makespan * (1 - 1e-13)))
		*plan = trial;
}

/* The places that can be distributed, T - 1 at most; -1 where no tape fits. */
static int64_t places_most(const struct neap_problem *p, int with_tiers)
{
	int64_t most = p->chain.steps - 1, low = 0;
	struct neap__level_depths depths;
	if (!arrange(&depths, p, with_tiers, 0))
		return -1;
	while (low < most) { /* finds the most that arrange() accepts */
		int64_t n = low + (most - low + 1) / 2;
		if (arrange(&depths, p, with_tiers, n))
			low = n;
		else
			most = n - 1;
	}
	return low;
}

static void search(struct neap_plan *plan, const struct neap_problem *p, int with_tiers)
{
	int64_t most = places_most(p, with_tiers);
	if (most < 0)
		return;
	if (most > PLACES_MOST && (with_tiers || most < p->chain.steps - 1))
		most = PLACES_MOST;
	attempt(plan, p, with_tiers, most);
	if (!with_tiers || most == PLACES_MOST)
		return;
	/* Numbers of places that grow by 1/8, then steps around the best that are halved. */
	for (int64_t n = 1; n < most; n += n / 8 + 1)
		attempt(plan, p, with_tiers, n);
	if (!plan->feasible || !plan->variant)
		return;
	for (int64_t step = plan->params.checkpoints / 16 + 1; step > 0; step /= 2)
		for (int sign = -1; sign <= 1; sign += 2)
			for (int i = 0; i < 4; i++) {
				int64_t n = plan->params.checkpoints + sign * step;
				double before = plan->makespan;
				if (n > 0 && n < most)
					attempt(plan, p, with_tiers, n);
				if (!(plan->makespan < before))
					break;
			}
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	int64_t steps = problem->chain.steps, given = fixed->checkpoints;
	if (given > steps - 1)
		given = steps - 1;
	for (int with_tiers = 0; with_tiers <= (problem->ntiers > 0); with_tiers++)
		if (given > 0)
			attempt(plan, problem, with_tiers, given);
		else
			search(plan, problem, with_tiers);
	if (plan->feasible)
		return 0;
	int64_t places = given > 0 ? given : neap__binomial_slots_least(steps), least = places;
	uint64_t bytes = neap__fixed_bytes(problem, 0) + (uint64_t)neap__bytes(problem, least, 1);
	uint64_t with_tiers = neap__fixed_bytes(problem, 0);
	for (int tier = 1; tier <= problem->ntiers; tier++) {
		int64_t there = neap__places(problem, tier);
		places = places > there ? places - there : 0;
		with_tiers += problem->tiers[tier - 1].staging;
	}
	with_tiers += (uint64_t)neap__bytes(problem, places, 1);
	if (problem->ntiers > 0 && with_tiers < bytes) {
		bytes = with_tiers;
		least = places;
	}
	neap__refuse(plan, bytes > problem->memory ? bytes : 0, "%lld slot%s and a tape need %llu",
		(long long)least, least == 1 ? "" : "s", (unsigned long long)bytes);
	return 0;
}

static int open(struct neap_schedule *s)
{
	int64_t places = s->plan.params.checkpoints;
	struct neap__level_schedule how = {.levels = 1, .closed = 1, .level = {{0, places}}};
	if (places < (s->problem.chain.steps > 1) ||
		!arrange(&how.depths, &s->problem, s->plan.variant, places))
		return neap__fail(
			NEAP_EUSAGE, "schedule: multistage: no %lld places", (long long)places);
	return neap__level_schedule_open(s, &how);
}

const struct neap__strategy neap__strategy_multistage = {
	.name = "multistage",
	.about = "Revolve's order, the most used places in the fastest memory (Stumm and Walther "
		 "2009)",
	.solve = solve,
	.open = open,
	.traits = NEAP_STRATEGY_TIERS,
	.leaf_steps = 1,
	.plan_seconds = NEAP__PLANS_IN_CLOSED_FORM,
	.color = "#777777",
	.mark = 2,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_search.c: searches for the fastest plan of blocks that keeps states. Its blocks are so short
 * that the channel cannot write their states while they are computed. At the turn many states are
 * still in fast memory: some wait to be written, and the last ones are used before their turn to be
 * written would come, so they are never written. A block is reversed with leaves as long as the
 * memory that is free when it starts (block_descend.c), and memory becomes free with each block.
 *
 *     W     states that can be written in the forward pass, T f / tau
 *     h     share of the pool that states occupy at the turn
 *     J     steps of a block, T / (W + h P / S), or more if the tier is too small
 *     K     states kept, a share of h P / S
 *     J_1   steps of the last block before the tail, a share of J
 *     x     steps of the tail: a share of L_2 (recompute_cost.h) of a pool of (1 - h) P bytes
 *
 * Seeds are all combinations of some values of h and of the three shares. All of them are
 * simulated, and the best ones are improved by coordinate descent. The order of simulations does
 * not depend on the effort, which only determines where the search ends, so more effort never gives
 * a slower plan. Our own method.
 */
#include "plan/blocks/kept_search.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/philox.h"
#include "plan/blocks/block_plan.h"
#include "plan/blocks/block_program.h"
#include "plan/blocks/block_seeds.h"
#include "plan/blocks/coordinate_search.h"
#include "plan/blocks/kept_blocks.h"
#include "plan/blocks/tried_plans.h"
#include "plan/bound/at_bound.h"
#include "plan/core/sizing.h"

/* All values are chosen. */
#define STATES_LEAST 4	     /* the pool holds so many states at least */
#define BLOCKS_MOST 4000     /* all blocks are simulated */
#define STARTS 3	     /* of the seeds, improved by descent */
#define SEEDS 48	     /* 4 shares h x 2 tails x 3 shares K x 2 lengths J_1 */
#define ACTIONS_A_RUN 1500   /* a run costs 1 + actions / 1500 units of effort */
#define ACTIONS_MOST 3000000 /* no simulation starts after this number of actions */
#define NEIGHBOURS 50	     /* derived: 40 scaled and 10 others, see change() */
#define WALK 200	     /* changes without a gain, see walk() */
#define GAIN_LEAST 1e-5	     /* descent ends if a round gains less, relatively */

struct kept_search {
	struct neap__block_costs costs;
	struct neap__prefetch *prefetch;
	struct neap__coordinates moves;
	struct neap_blocks trial; /* of the descent */
	struct neap__tried_plans tried;
	int64_t places; /* states that the tier has room for */
	int64_t effort, actions;
	double below; /* seconds: slower seeds are not improved */
	struct neap__block_seed best[STARTS];
	int64_t nbest;
};

/* Returns whether a plan is possible and has at most BLOCKS_MOST blocks. */
static int possible(const struct kept_search *s, const struct neap_blocks *b)
{
	const struct neap_chain *c = &s->costs.p->chain;
	double states = (double)b->kept_states + (double)b->reserve / s->costs.state;
	int64_t steps = c->steps - b->tail;
	if (b->advance < 1 || b->kept_states < 1 || states > s->costs.pool / s->costs.state ||
		steps / b->advance > BLOCKS_MOST || !neap__kept_possible(c, b, c->steps))
		return 0;
	return (steps - neap__kept_steps(b, b->kept_states)) / b->advance <= s->places;
}

/*
 * Sets *makespan to that of a plan, in seconds; to INFINITY if the plan does not fit, takes `below`
 * seconds or more, or the effort is used up.
 */
static int simulate(struct kept_search *s, struct neap_blocks *b, double below, double *makespan)
{
	*makespan = INFINITY;
	if (b->reserve_steps > b->advance)
		b->reserve_steps = b->advance;
	if (!possible(s, b))
		return 0;
	/* Below 0: the run was ended early, after it was known to take so long. */
	double known = neap__tried_plans_makespan(&s->tried, b);
	if (known == 0 || (known < 0 && -known < below)) {
		int64_t actions = 0;
		if (s->effort <= 0 || s->actions >= ACTIONS_MOST)
			return 0;
		NEAP_TRY(neap__block_plan_below(
			&known, s->costs.p, s->costs.tier, b, below, s->prefetch, &actions));
		s->effort -= 1 + actions / ACTIONS_A_RUN;
		s->actions += actions;
		known = known < below || known == INFINITY ? known : -known;
		neap__tried_plans_add(&s->tried, b, known);
	}
	if (known > 0 && known < below)
		*makespan = known;
	return 0;
}

static uint64_t draw(uint64_t *n, uint64_t sides)
{
	return neap__random_below(1, NEAP__STREAM_PLAN, 0, (*n)++, sides);
}

static int score(void *search, void *plan, double below, double *makespan)
{
	return simulate(search, plan, below, makespan);
}

/* The numbers that are scaled, and by what; chosen: as in block_search.c, with finer steps first.
 */
static const size_t numbers[] = {offsetof(struct neap_blocks, advance),
	offsetof(struct neap_blocks, tail), offsetof(struct neap_blocks, kept_states),
	offsetof(struct neap_blocks, reserve_steps)};
static const double factors[] = {0.97, 1.03, 0.93, 1.08, 0.85, 1.18, 0.7, 1.4, 0.5, 2};

/*
 * Changes a plan to its n-th neighbour behind the 40 whose J, x, K or J_1 is scaled. Returns 0
 * beyond the last one.
 *
 *     n  0..3   J and J_1 together, x and J_1 together: two factors each
 *        4..7   one step of J more or less and one state fewer or more kept
 *        8..9   room for one state more or fewer that is read
 */
static int change(const void *search, void *plan, int n)
{
	static const double both[] = {0.93, 1.08}; /* chosen */
	const struct kept_search *s = search;
	struct neap_blocks *b = plan;
	if (n < 4) {
		int64_t *v = n < 2 ? &b->advance : &b->tail;
		*v = neap__block_whole((double)*v * both[n % 2] + 0.5);
		b->reserve_steps = neap__block_whole((double)b->reserve_steps * both[n % 2] + 0.5);
	} else if (n < 8) {
		b->advance += n % 2 ? 1 : -1;
		b->kept_states += n < 6 ? 1 : -1;
	} else if (n < 10) {
		b->reserve += (n % 2 ? 1 : -1) * (int64_t)s->costs.state;
	} else {
		return 0;
	}
	return 1;
}

/*
 * Changes the best plan by one to three random neighbours in a row; keeps what is not slower. Ends
 * after WALK such changes without a gain. The random numbers are the same in each search.
 */
static int walk(struct kept_search *s, struct neap__block_seed *x)
{
	uint64_t n = 0;
	for (int idle = 0; idle < WALK && s->effort > 0; idle++) {
		struct neap_blocks to = x->b, from;
		double makespan;
		for (uint64_t k = draw(&n, 3) + 1; k > 0; k--) {
			from = to;
			(void)neap__coordinate_neighbour(
				&s->moves, &from, (int)draw(&n, NEIGHBOURS), &to);
		}
		NEAP_TRY(simulate(s, &to, nextafter(x->score, INFINITY), &makespan));
		if (makespan < x->score)
			idle = 0;
		if (makespan <= x->score)
			*x = (struct neap__block_seed){to, makespan};
	}
	return 0;
}

static int seed(struct kept_search *s, double h, double tail, double kept, double last)
{
	const struct neap__block_costs *c = &s->costs;
	double steps = (double)c->p->chain.steps, states = h * c->pool / c->state;
	double written = fmin(steps * c->f / c->state_out + (1 - kept) * states, (double)s->places);
	double j = steps / (written + kept * states);
	double free = (1 - h) * c->pool, l1 = fmax(1, floor(free / c->tape));
	struct neap__block_seed x = {
		{.inner = NEAP_BLOCKS_KEPT,
			.advance = neap__block_whole(fmax(1, j)),
			.tail = neap__block_whole(fmax(1, tail * l1)),
			.kept_states = neap__block_whole(fmax(1, kept * states)),
			.reserve_steps = neap__block_whole(fmax(1, last * j)),
			.reserve = neap__block_whole(c->state)},
		INFINITY};
	if (neap__tried_plans_makespan(&s->tried, &x.b) != 0)
		return 0;
	NEAP_TRY(simulate(s, &x.b, s->below, &x.score));
	if (x.score == INFINITY)
		return 0;
	s->best[s->nbest < STARTS ? s->nbest++ : STARTS - 1] = x;
	qsort(s->best, (size_t)s->nbest, sizeof *s->best, neap__block_by_score);
	if (s->nbest == STARTS)
		s->below = s->best[STARTS - 1].score;
	return 0;
}

static int seeds(struct kept_search *s)
{
	/* Chosen: shares and multiples (see the head of the file), the likeliest first. */
	static const double held[] = {0.8, 0.6, 0.4, 0.9}, tails[] = {1.5, 6};
	static const double kept[] = {0.3, 0.5, 0.4}, lasts[] = {1, 0.3};
	for (int i = 0; i < SEEDS; i++)
		NEAP_TRY(seed(s, held[i % 4], tails[i / 4 % 2], kept[i / 8 % 3], lasts[i / 24]));
	return 0;
}

static int run_search(struct kept_search *s, struct neap_plan *plan)
{
	int64_t first = 0;
	NEAP_TRY(seeds(s));
	for (int64_t i = 0; i < s->nbest; i++) {
		struct neap__block_seed *x = &s->best[i];
		NEAP_TRY(neap__coordinate_descend(
			&s->moves, &x->b, &x->score, GAIN_LEAST, &s->effort));
		if (s->best[i].score < s->best[first].score)
			first = i;
	}
	if (s->nbest == 0)
		return 0;
	NEAP_TRY(walk(s, &s->best[first]));
	return neap__block_plan_evaluate(
		plan, s->costs.p, s->costs.tier, &s->best[first].b, NULL, s->prefetch, 0, NULL);
}

int neap__kept_search(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	int64_t effort, double below)
{
	(void)below;
	const struct neap_chain *c = &problem->chain;
	int64_t pool = neap__pool_bytes(problem, tier);
	plan->feasible = 0;
	if (c->tape < 1 || c->state < 1 || pool < (int64_t)c->tape ||
		pool / (int64_t)c->state < STATES_LEAST || !(c->advance > 0) ||
		problem->tiers[tier - 1].flags & NEAP_TIER_SYNC)
		return 0;
	struct kept_search *s = calloc(1, sizeof *s);
	if (!s)
		return neap__fail(-ENOMEM, "plan: out of memory");
	s->effort = effort;
	s->below = INFINITY;
	s->moves = (struct neap__coordinates){.search = s,
		.trial = &s->trial,
		.bytes = sizeof s->trial,
		.numbers = numbers,
		.nnumbers = 4,
		.factors = factors,
		.nfactors = 10,
		.change = change,
		.score = score};
	s->places = neap__places(problem, tier);
	neap__block_costs_fill(&s->costs, problem, tier, pool);
	int rc = neap__tried_plans_init(&s->tried, sizeof(struct neap_blocks));
	if (rc == 0)
		rc = neap__prefetch_new(&s->prefetch);
	if (rc == 0)
		rc = run_search(s, plan);
	neap__tried_plans_free(&s->tried);
	neap__prefetch_free(s->prefetch);
	free(s);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near_search.c: searches for the fastest block plan through a near and a far tier. The best seeds
 * (near_seeds.h) are simulated; the best of these are improved by coordinate descent, one number of
 * the plan at a time. The descents advance in turn, one round each, so that one that needs many
 * simulations does not use up the effort of the others. The order of simulations does not depend on
 * the effort, which only determines where the search ends. Our own method.
 */
#include "plan/blocks/near_search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/blocks/block_plan.h"
#include "plan/blocks/block_program.h"
#include "plan/blocks/coordinate_search.h"
#include "plan/blocks/near_seeds.h"
#include "plan/blocks/tried_plans.h"
#include "plan/bound/at_bound.h"
#include "plan/core/sizing.h"

/* Size of the search; all values are chosen. */
#define RANKED 96 /* seeds simulated; up to RANKED_MOST while they need few actions */
#define RANKED_MOST 256
#define RANKED_ACTIONS 800000 /* actions of all simulations up to which RANKED_MOST holds */
#define RANKED_A_KIND 6	      /* limit of RANKED with blocks of one kind, plus 1/RANKED_KINDS */
#define RANKED_KINDS 8
#define STARTS 6	      /* of RANKED, improved by descent */
#define STARTS_A_KIND 2	      /* limit of STARTS with blocks of one kind */
#define ROUNDS 5	      /* limit of rounds of a descent */
#define RUN_BLOCKS 16	      /* least blocks of a comparison run */
#define LATE_ACTIONS 20000    /* late plans with at most this number of actions run in full */
#define ACTIONS_A_LEAF 25     /* rough number of actions that reverse a leaf */
#define ACTIONS_A_RUN 4000    /* a run costs 1 + actions / 4000 units of effort */
#define ACTIONS_MOST 12000000 /* no simulation starts after this number of actions */
#define GAIN_LEAST 2e-4	      /* descent ends if a round gains less, relatively */

struct near_search {
	struct neap__near_costs costs;
	struct neap__prefetch *prefetch;
	struct neap__coordinates moves;
	struct neap__near_plan trial; /* of the descent */
	double bound;
	int64_t effort, actions; /* remaining effort; actions of all simulations */
	struct neap_plan *best;	 /* the best plan that was simulated in full */
	struct neap__near_seeds seeds, best_seeds;
	struct neap__tried_plans tried;
};

/*
 * Number of blocks of a comparison run; 0: the plan is simulated in full. Blocks that use the near
 * tier again reach a steady state soon, and the rest of them is skipped. Where items are spread
 * over both tiers, blocks are alike only a period apart.
 */
static int64_t blocks_of(const struct near_search *s, const struct neap__near_plan *x)
{
	const struct neap__block_costs *c = &s->costs.far;
	double all =
		ACTIONS_A_LEAF * 2 * (double)c->p->chain.steps / fmax(1, floor(c->pool / c->tape));
	if (!s->costs.spread || (all <= LATE_ACTIONS && neap__block_late(c, &x->b)))
		return 0;
	int64_t period = neap__block_near_period(&x->n);
	return neap__ceil_div(RUN_BLOCKS, period) * period;
}

/*
 * A comparison run extrapolates linearly from `rest` and rest + n blocks, and misses a write queue
 * that grows over all blocks. Returns the missing time, seconds.
 */
static double not_seen(const struct near_search *s, const struct neap__near_plan *x, int64_t n)
{
	int64_t blocks = neap__block_plan_count(&x->b, s->costs.far.p->chain.steps);
	if (blocks <= 3 * n)
		return 0;
	int64_t more = blocks / n - 2, rest = blocks - n * (more + 1);
	double a = neap__near_late(&s->costs, x, (double)rest);
	double b = neap__near_late(&s->costs, x, (double)(rest + n));
	double seen = b + (double)more * (b - a);
	return fmax(0, neap__near_late(&s->costs, x, (double)blocks) - seen);
}

static void take_faster(struct near_search *s, const struct neap_plan *trial)
{
	if (trial->feasible && (!s->best->feasible || trial->makespan < s->best->makespan))
		*s->best = *trial;
}

/*
 * Sets *makespan to the makespan of a plan, cached; INFINITY if it does not fit. Keeps the plan if
 * it is the best so far.
 */
static int simulate(struct near_search *s, struct neap__near_plan *x, double *makespan)
{
	const struct neap__block_costs *c = &s->costs.far;
	struct neap_plan plan = *s->best;
	*makespan = INFINITY;
	if (!neap__near_normalise(&s->costs, x))
		return 0;
	double known = neap__tried_plans_makespan(&s->tried, x);
	if (known != 0) {
		*makespan = known;
		return 0;
	}
	if (s->effort <= 0 || s->actions >= ACTIONS_MOST)
		return 0;
	int64_t actions = 0, n = blocks_of(s, x);
	NEAP_TRY(neap__block_plan_evaluate(
		&plan, c->p, c->tier, &x->b, &x->n, s->prefetch, n, &actions));
	s->effort -= 1 + actions / ACTIONS_A_RUN;
	s->actions += actions;
	if (plan.feasible && n == 0)
		take_faster(s, &plan);
	if (plan.feasible)
		*makespan = n == 0 ? plan.makespan
				   : fmax(plan.makespan + not_seen(s, x, n),
					     neap__block_floor(c, &x->b));
	neap__tried_plans_add(&s->tried, x, *makespan);
	return 0;
}

/* Scales a number; a number that is 0 becomes a part of `unit` steps. */
static void scale(int64_t *v, double factor, int64_t unit)
{
	if (*v == 0 && factor > 1.1)
		*v = 1 + unit / (factor < 2 ? 10 : 4);
	else
		neap__coordinate_scale(v, factor);
}

/* Changes one number of a tail or block such that near blocks exactly fill the near tier. */
static int fill_near(struct neap__near_plan *x, double places, int n)
{
	double tail = (double)x->b.tail, last = (double)x->n.last_tail;
	double block = (double)x->b.advance, inner = (double)x->n.tail;
	switch (n) {
	case 0:
		x->n.last_tail = (int64_t)(tail - places * (double)x->n.last_advance);
		return 1;
	case 1:
		x->n.last_advance = (int64_t)((tail - last) / places) + 1;
		return 1;
	case 2:
		x->n.advance = (int64_t)((block - inner) / places) + 1;
		return 1;
	case 3:
		x->b.tail = (int64_t)(places * (double)x->n.last_advance + last);
		return 1;
	case 4:
		x->b.advance = (int64_t)(places * (double)x->n.advance + inner);
		return 1;
	default:
		return 0;
	}
}

/* Changes *plan to its n-th neighbour in coordinate descent. Returns 0 beyond the last one. */
static int change(const void *search, void *plan, int n)
{
	const struct neap__near_costs *s = &((const struct near_search *)search)->costs;
	struct neap__near_plan *x = plan;
	static const double factors[] = {
		0.5, 0.8, 0.93, 1.08, 1.25, 2}; /* as in block_search.c; chosen */
	int64_t *at[] = {&x->b.advance, &x->b.record, &x->b.tail, &x->n.advance, &x->n.record,
		&x->n.tail, &x->n.last_advance, &x->n.last_record, &x->n.last_tail};
	int numbers = s->spread ? 3 : 9;
	int64_t state = (int64_t)s->far.state;
	if (n < 6 * numbers) {
		const int64_t *row =
			at[n / 18 * 3]; /* whole blocks, near blocks, near blocks of the tail */
		scale(at[n / 6], factors[n % 6], *row + *at[n / 18 * 3 + 1]);
		return 1;
	}
	n -= 6 * numbers;
	if (n < 2) {
		x->b.reserve = n == 1 ? x->b.reserve + state : x->b.reserve > 0 ? 0 : state;
		return 1;
	}
	n -= 2;
	if (!s->spread)
		return fill_near(x, neap__near_places(s), n);
	static const int moves[] = {-9, -3, -1, 1, 3, 9}; /* of NEAP_NEAR_SHARES; chosen */
	if (n >= 6)
		return 0;
	x->n.share += moves[n];
	return 1;
}

static int score(void *search, void *plan, double below, double *makespan)
{
	(void)below;
	return simulate(search, plan, makespan);
}

/* One round of descent from *at; *before is the makespan before it. */
static int descend(struct near_search *s, struct neap__near_seed *at, double *before)
{
	if (!(at->score < *before * (1 - GAIN_LEAST)))
		return 0;
	*before = at->score;
	return neap__coordinate_round(&s->moves, &at->x, &at->score);
}

/* Simulates a plan in full that had a comparison run only, and keeps it if it is the best. */
static int keep(struct near_search *s, const struct neap__near_plan *x)
{
	struct neap_plan trial = *s->best;
	if (blocks_of(s, x) == 0)
		return 0;
	NEAP_TRY(neap__block_plan_evaluate(&trial, s->costs.far.p, s->costs.far.tier, &x->b, &x->n,
		s->prefetch, 0, &s->actions));
	take_faster(s, &trial);
	return 0;
}

/* A stage of the search: number of seeds to simulate, and how many of them to improve. */
struct stage {
	int64_t ranked, ranked_actions; /* ends when both limits are reached */
	int starts;
};

/* Few seeds first, so that a search with a small effort also improves some. */
static const struct stage stages[] = {{24, 0, 1}, {RANKED, RANKED_ACTIONS, STARTS}};

/*
 * Simulates seeds in the order of their scores and stores those that fit in best_seeds, sorted.
 * Returns their number, or a negative code.
 */
static int64_t rank(struct near_search *s, const struct stage *stage)
{
	const struct neap__near_seed *row = s->seeds.row;
	int64_t done = 0, kept = 0, of_kind[NEAP__NEAR_KINDS] = {0};
	for (int64_t i = 0; i < s->seeds.count &&
			    (done < stage->ranked ||
				    (done < RANKED_MOST && s->actions < stage->ranked_actions));
		i++) {
		struct neap__near_seed x = row[i];
		if ((i > 0 && x.score == row[i - 1].score) ||
			of_kind[x.kind] > done / RANKED_KINDS + RANKED_A_KIND)
			continue;
		of_kind[x.kind]++;
		done++;
		NEAP_TRY(simulate(s, &x.x, &x.score));
		if (x.score < INFINITY)
			s->best_seeds.row[kept++] = x;
	}
	qsort(s->best_seeds.row, (size_t)kept, sizeof *row, neap__near_by_score);
	return kept;
}

static int run_stage(struct near_search *s, const struct stage *stage, double below)
{
	int64_t kept = rank(s, stage);
	if (kept < 0)
		return (int)kept;
	struct neap__near_seed *start[STARTS];
	double before[STARTS]; /* makespans before the last round */
	int starts = 0, of_kind[NEAP__NEAR_KINDS] = {0};
	for (int64_t i = 0; i < kept && starts < stage->starts; i++) {
		struct neap__near_seed *at = &s->best_seeds.row[i];
		if (at->score > 2 * below)
			break;
		if (of_kind[at->kind]++ >= STARTS_A_KIND)
			continue;
		before[starts] = INFINITY;
		start[starts++] = at;
	}
	for (int i = 0; i < starts * ROUNDS; i++) {
		if (s->effort <= 0 ||
			(s->best->feasible && neap__at_bound(s->best->makespan, s->bound)))
			break;
		NEAP_TRY(descend(s, start[i % starts], &before[i % starts]));
	}
	for (int i = 0; i < starts; i++)
		if (!s->best->feasible || start[i]->score < s->best->makespan)
			NEAP_TRY(keep(s, &start[i]->x));
	return 0;
}

static int run_search(struct near_search *s, double below)
{
	neap__near_seeds_make(&s->seeds, &s->costs);
	for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
		NEAP_TRY(run_stage(s, &stages[i], below));
	return 0;
}

int neap__near_search(struct neap_plan *plan, const struct neap_problem *problem, int far, int near,
	int64_t effort, double below)
{
	const struct neap_tier_spec *tiers = problem->tiers;
	plan->feasible = 0;
	if (problem->chain.tape < 1 ||
		(tiers[far - 1].flags | tiers[near - 1].flags) & NEAP_TIER_SYNC)
		return 0;
	struct near_search *s = calloc(1, sizeof *s);
	if (!s)
		return neap__fail(-ENOMEM, "plan: out of memory");
	s->bound = neap_bound(problem);
	s->best = plan;
	s->moves = (struct neap__coordinates){.search = s,
		.trial = &s->trial,
		.bytes = sizeof s->trial,
		.change = change,
		.score = score};
	s->effort = effort;
	int rc = neap__near_costs_init(&s->costs, problem, far, near);
	if (rc == 0)
		rc = neap__tried_plans_init(&s->tried, sizeof(struct neap__near_plan));
	if (rc == 0)
		rc = neap__prefetch_new(&s->prefetch);
	if (rc == 0 && s->costs.far.pool >= s->costs.far.tape)
		rc = run_search(s, below);
	neap__near_costs_free(&s->costs);
	neap__tried_plans_free(&s->tried);
	neap__prefetch_free(s->prefetch);
	free(s);
	return rc;
}

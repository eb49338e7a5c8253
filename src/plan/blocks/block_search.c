/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_search.c: searches for the fastest block plan (block_program.h) through one slow tier.
 *
 * Three stages, each on the survivors of the previous one:
 *   1. rank     closed-form scores order the seeds (block_seeds.h); the best ones are simulated
 *   2. descend  coordinate descent: change one parameter of the plan at a time, keep improvements
 *   3. decide   simulate the best plans over the full chain, because a short run does not show a
 *               write backlog that grows slowly
 *
 * Late plans (whose writes end only in the tail) and plans that reserve room only beside a part of
 * each block are searched afterwards, with their own seeds and effort. They help in few problems
 * and must not take simulations from the usual plans.
 *
 * Reproducible: effort is counted in simulations and actions, never in seconds, so the same
 * problem and effort give the same plan on every machine.
 *
 * Monotonic: the search runs with effort 125, 250, 500, ... up to the requested one, and simulated
 * plans are cached. A search with twice the effort therefore repeats all decisions of the smaller
 * one without new simulations, and cannot return a slower plan.
 *
 * Our own method. Symbols: J, k, q, tail as in block_program.h; f, r, b are the seconds of a
 * forward, a recording and a backward step.
 */
#include "plan/blocks/block_search.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/blocks/block_plan.h"
#include "plan/blocks/block_program.h"
#include "plan/blocks/block_seeds.h"
#include "plan/blocks/coordinate_search.h"
#include "plan/blocks/tried_plans.h"
#include "plan/bound/at_bound.h"
#include "plan/core/sizing.h"

/*
 * Size of the search. Measured with a prototype on 50 random problems: STARTS 12 and RUN_BLOCKS 16
 * found plans that were 0.06% slower on average, and 2.7% at worst, than a search without limits.
 */
#define RANKED 96      /* seeds simulated: up to 48 without and 48 with multiread */
#define STARTS 12      /* of RANKED, improved by descent */
#define LATE_RANKED 32 /* late plans: as RANKED; chosen */
#define LATE_STARTS 3  /* late plans: as STARTS; chosen */
/* Plans that reserve room only beside a part of each block, see search_part. */
#define PARTS 24       /* seeds, derived: 2 tails x 4 block lengths x 3 shares, see try_parts */
#define PART_STARTS 2  /* of PARTS, improved by descent; chosen */
#define PART_STATES 40 /* no such plans if the pool holds more states than this; chosen */
/* Blocks of two lengths, see pair_turn. */
#define PAIR_STARTS 3	     /* of the seeds, improved by descent; chosen */
#define PAIR_FACTOR 1.1	     /* slower ones than this times the best plan are not; chosen */
#define PAIR_ACTIONS 1500000 /* share of ACTIONS_MOST; chosen: about 0.1 s */
#define BEST (RANKED + LATE_STARTS + PARTS) /* derived: all that may be kept */
/* Late plans and PARTS: a third of the effort each; + 32, so that small efforts try some; chosen.
 */
#define LATE_EFFORT(e) ((e) / 3 + 32)
#define FINALS 6	/* plans per turn simulated over the full chain; chosen */
#define FINALS_MOST 128 /* derived: 21 turns of FINALS; the default effort has 5 turns */
/*
 * Blocks of a comparison run. Measured with the prototype: 8 blocks are 2% too optimistic; 16 reach
 * the steady state except for slow backlogs, which decide() catches.
 */
#define RUN_BLOCKS 16
#define ACTIONS_A_RUN 1500 /* a run costs 1 + actions / 1500 units of effort; chosen */
/*
 * No simulation starts after this number of actions. Bounds the planning time of problems in which
 * a block has many actions; chosen such that 10^6 steps take about 1 s.
 */
#define ACTIONS_MOST 12000000
#define LATE_BLOCKS_MOST                                                                           \
	4000 /* late plans with more blocks have comparison runs, see search_again */
#define AGAIN_ACTIONS 3000000 /* share of ACTIONS_MOST for search_again; chosen: about 0.2 s */
#define UNCONFIRMED 1e-3      /* relative error of a comparison run that counts; chosen */
#define MULTIREAD_WORK 8      /* sums of the table of multiread.c per action; chosen */
#define EFFORT_FIRST 125      /* first turn; 125 * 2^4 = 2000 is the default effort (neap/plan.h) */
#define GAIN_LEAST 1e-4	      /* descent ends if a round gains less, relatively; chosen */

struct block_search {
	struct neap__block_costs costs;
	struct neap__prefetch *prefetch;
	struct neap__coordinates moves;
	struct neap_blocks trial; /* of the descent */
	double bound;
	int64_t effort;
	struct neap__block_seeds seeds;
	struct neap__tried_plans tried;
	struct neap__block_seed best[BEST];
	int64_t nbest;
	struct neap_blocks finals[FINALS_MOST];
	int64_t nfinals;
	/* Counted separately, so that search_part does not shorten later turns of the usual search.
	 */
	int64_t actions, part_actions;
	int unconfirmed; /* a comparison run was too optimistic for the best plan of a turn */
	int again;	 /* all late plans are simulated in full */
};

/*
 * Sets *makespan to the simulated makespan of *b in seconds, from the cache if *b was simulated
 * before; INFINITY if the plan does not fit or the effort is used up. Normalises *b.
 */
static int simulate(struct block_search *s, struct neap_blocks *b, double *makespan)
{
	struct neap_plan plan = {.size = sizeof plan};
	*makespan = INFINITY;
	if (!neap__block_normalise(&s->costs, b))
		return 0;
	double known = neap__tried_plans_makespan(&s->tried, b);
	if (known != 0) {
		*makespan = known;
		return 0;
	}
	if (s->effort <= 0 || s->actions >= ACTIONS_MOST)
		return 0;
	int64_t actions = 0, n = neap__block_plan_steady_blocks(s->costs.p, s->costs.tier, b);
	n = n < RUN_BLOCKS ? n : RUN_BLOCKS;
	/* The write queue of a late plan grows with every block: only a full run (0) shows it. */
	int64_t blocks = neap__block_plan_count(b, s->costs.p->chain.steps);
	if (neap__block_late(&s->costs, b) && (s->again || blocks <= LATE_BLOCKS_MOST))
		n = 0;
	NEAP_TRY(neap__block_plan_evaluate(
		&plan, s->costs.p, s->costs.tier, b, NULL, s->prefetch, n, &actions));
	if (b->inner == NEAP_BLOCKS_MULTIREAD)
		actions += b->advance * b->advance / MULTIREAD_WORK;
	s->effort -= 1 + actions / ACTIONS_A_RUN;
	s->actions += actions;
	if (plan.feasible)
		*makespan = fmax(plan.makespan, neap__block_floor(&s->costs, b));
	neap__tried_plans_add(&s->tried, b, *makespan);
	return 0;
}

static int score(void *search, void *plan, double below, double *makespan)
{
	(void)below;
	return simulate(search, plan, makespan);
}

/* The numbers that are scaled, and by what. Chosen: small steps to converge, twos to leave minima.
 */
static const size_t numbers[] = {offsetof(struct neap_blocks, advance),
	offsetof(struct neap_blocks, record), offsetof(struct neap_blocks, tail)};
static const double factors[] = {0.5, 0.8, 0.93, 1.08, 1.25, 2};

/*
 * Changes a plan to its n-th neighbour in coordinate descent, behind those whose J, k or tail is
 * scaled. Returns 0 beyond the last one.
 *
 *     n  0..5    price of a repeated read: the same factors
 *        6..13   reserve        14..17  tail        18..22  reserve of the tail
 *       23..24   chunk q: half, double
 *       25..26   J, k, q together: half, double
 *       27..29   k = 0; inner method leaf; inner method multiread
 *       30..35   reserve_steps: six factors
 *       36..39   two lengths: `every` by one; J by one step, while the mean length is kept
 *       30..33   multiread, in search_again: J and the price of a repeated read together, because
 *                in longer blocks reads are easier to hide and pay at a lower price
 *
 * The candidate values are chosen. `change_reserve` has 6 to 22, `change_lengths` the others behind
 * 5; both count from 6.
 */
static void change_reserve(const struct neap__block_costs *s, struct neap_blocks *b, int n)
{
	int64_t state = (int64_t)s->state, pool = neap__block_whole(s->pool),
		fit = neap__block_whole(s->pool / s->tape);
	int64_t unit = b->advance + b->record, body = s->p->chain.steps - b->tail;
	int64_t tapes = b->record * (int64_t)s->tape;
	int64_t reserves[] = {0, state, b->reserve + state, b->reserve / 2, b->reserve * 3 / 2,
		tapes, tapes + state, pool / 2};
	int64_t tails[] = {0, fit, b->tail + fit, b->tail + (unit ? body % unit : 0)};
	int64_t spares[] = {0, state, 2 * state, pool / 8, pool / 3};
	if (n < 8)
		b->reserve = reserves[n];
	else if (n < 12)
		b->tail = tails[n - 8];
	else
		b->tail_reserve = spares[n - 12];
}

static int change_lengths(const struct block_search *of, struct neap_blocks *b, int n)
{
	if (n < 19) {
		b->chunk = n == 17 ? b->chunk / 2 : b->chunk * 2;
	} else if (n < 21) {
		double x = n == 19 ? 0.5 : 2;
		b->advance = neap__block_whole((double)b->advance * x);
		b->record = neap__block_whole((double)b->record * x);
		b->chunk = neap__block_whole((double)b->chunk * x);
	} else if (n == 21) {
		b->record = 0;
	} else if (n == 22) {
		b->inner = NEAP_BLOCKS_LEAF;
	} else if (n == 23) {
		b->inner = NEAP_BLOCKS_MULTIREAD;
		b->price = b->price > 0 ? b->price : 0.1 * of->costs.state_in;
	} else if (n < 30 && b->reserve_steps > 0) {
		b->reserve_steps =
			neap__block_whole((double)b->reserve_steps * factors[n - 24] + 0.5);
	} else if (n < 34 && b->every > 0) {
		int32_t more = n % 2 ? 1 : -1;
		if (n < 32) {
			b->every += more;
		} else {
			b->advance += more;
			b->reserve_steps -= more * (b->every - 1);
		}
	} else if (n < 28 && of->again && b->inner == NEAP_BLOCKS_MULTIREAD) {
		neap__coordinate_scale(&b->advance, n % 2 ? 1.08 : 0.93);
		b->price *= n < 26 ? 0.5 : 2;
	} else {
		return 0;
	}
	return 1;
}

static int change(const void *search, void *plan, int n)
{
	const struct block_search *of = search;
	struct neap_blocks *b = plan;

	if (n >= 6 + 17)
		return change_lengths(of, b, n - 6);
	if (n < 6)
		b->price *= factors[n];
	else
		change_reserve(&of->costs, b, n - 6);
	return 1;
}

static int descend(struct block_search *s, int64_t i)
{
	struct neap__block_seed *x = &s->best[i];
	return neap__coordinate_descend(&s->moves, &x->b, &x->score, GAIN_LEAST, &s->effort);
}

/*
 * Simulates seeds in the order of their scores and appends those that fit to s->best. most[0] and
 * most[1] limit the seeds without and with multiread. Scores of the two kinds are not comparable
 * (the scores of multiread are estimates), so neither kind may displace the other.
 */
static int rank(struct block_search *s, const int64_t most[2])
{
	int64_t quota[2] = {most[0], most[1]};
	const struct neap__block_seed *seeds = s->seeds.row;
	for (int64_t i = 0; i < s->seeds.count && s->nbest < RANKED; i++) {
		struct neap__block_seed x = seeds[i];
		int kind = x.b.inner == NEAP_BLOCKS_MULTIREAD;
		if (i > 0 && memcmp(&x.b, &seeds[i - 1].b, sizeof x.b) == 0)
			continue;
		if (quota[kind] <= 0)
			continue;
		quota[kind]--;
		NEAP_TRY(simulate(s, &x.b, &x.score));
		if (x.score < INFINITY)
			s->best[s->nbest++] = x;
	}
	return 0;
}

static void sort_best(struct block_search *s, int64_t from)
{
	qsort(s->best + from, (size_t)(s->nbest - from), sizeof *s->best, neap__block_by_score);
}

/*
 * Moves the best start of the other inner method to second place. search_usual improves the first
 * two starts whatever their scores are, so each method is tried once.
 */
static void order_starts(struct block_search *s)
{
	for (int64_t i = 1; i < s->nbest; i++) {
		struct neap__block_seed x = s->best[i];
		if (x.b.inner == s->best[0].b.inner)
			continue;
		memmove(&s->best[2], &s->best[1], (size_t)(i - 1) * sizeof x);
		s->best[1] = x;
		return;
	}
}

/*
 * Searches the usual plans (not late, reserve beside whole blocks). Starts that are more than twice
 * as slow as the best known plan are not improved (the factor 2 is chosen). Ends at the lower
 * bound.
 */
static int search_usual(struct block_search *s, double below)
{
	int64_t most = s->effort / 8 < RANKED ? s->effort / 8 : RANKED;
	neap__block_seeds_make(&s->seeds, &s->costs);
	s->nbest = 0;
	NEAP_TRY(rank(s, (int64_t[]){most - most / 2, most / 2}));
	sort_best(s, 0);
	order_starts(s);
	int64_t starts = s->nbest < STARTS ? s->nbest : STARTS;
	for (int64_t i = 0; i < starts && s->effort > 0; i++) {
		if (i > 1 && s->best[i].score > 2 * fmin(below, s->best[0].score))
			continue;
		NEAP_TRY(descend(s, i));
		if (neap__at_bound(s->best[i].score, s->bound))
			break;
	}
	sort_best(s, 0);
	return 0;
}

/*
 * Late plans write more than their channel can transfer while a block is computed; the queue drains
 * during the tail. They help if slow memory is slow and fast memory holds many states. Synchronous
 * tiers have no queue.
 */
static int search_late(struct block_search *s)
{
	int sync = (s->costs.p->tiers[s->costs.tier - 1].flags & NEAP_TIER_SYNC) != 0;
	if (sync || (s->nbest > 0 && s->best[0].score <= s->bound * (1 + GAIN_LEAST)))
		return 0;
	neap__block_seeds_late(&s->seeds, &s->costs);
	int64_t from = s->nbest < RANKED - LATE_RANKED ? s->nbest : RANKED - LATE_RANKED;
	s->nbest = from;
	NEAP_TRY(rank(s, (int64_t[]){LATE_RANKED, 0}));
	sort_best(s, from);
	if (s->nbest > from + LATE_STARTS)
		s->nbest = from + LATE_STARTS;
	for (int64_t i = from; i < s->nbest && s->effort > 0; i++)
		NEAP_TRY(descend(s, i));
	sort_best(s, 0);
	return 0;
}

/* Returns whether the plan was already simulated in full, and marks it as such. */
static int run_before(struct block_search *s, const struct neap_blocks *b)
{
	for (int64_t i = 0; i < s->nfinals; i++)
		if (memcmp(&s->finals[i], b, sizeof *b) == 0)
			return 1;
	if (s->nfinals < FINALS_MOST)
		s->finals[s->nfinals++] = *b;
	return 0;
}

/*
 * Simulates up to FINALS of the best plans over the full chain and keeps the fastest in *plan. A
 * comparison run of RUN_BLOCKS blocks can be too optimistic: if J f is slightly below the time of a
 * write, the backlog grows for tens of blocks before it stalls.
 */
static int decide(struct block_search *s, struct neap_plan *plan)
{
	int64_t done = 0;
	for (int64_t i = 0; i < s->nbest && done < FINALS &&
			    (s->nfinals == 0 || s->again || s->actions < ACTIONS_MOST);
		i++) {
		const struct neap__block_seed *x = &s->best[i];
		struct neap_plan trial = *plan;
		if (plan->feasible && x->score >= plan->makespan)
			continue;
		done++;
		if (run_before(s, &x->b))
			continue;
		NEAP_TRY(neap__block_plan_evaluate(&trial, s->costs.p, s->costs.tier, &x->b, NULL,
			s->prefetch, 0, &s->actions));
		if (trial.feasible && (!plan->feasible || trial.makespan < plan->makespan))
			*plan = trial;
	}
	return 0;
}

/*
 * Appends a plan to s->best, if it fits, whose reserve (room for the incoming state) is kept only
 * beside the first `share` of the `steps` steps of each block, which are reversed last.
 */
static int try_part(struct block_search *s, struct neap_blocks b, double steps, double share)
{
	struct neap__block_seed x = {b, INFINITY};
	int64_t tapes = b.record > 0 ? b.chunk * neap__block_whole(s->costs.tape) : 0;
	x.b.inner = NEAP_BLOCKS_LEAF;
	x.b.advance = neap__block_whole(steps);
	x.b.reserve = neap__block_whole(s->costs.state) + tapes;
	x.b.reserve_steps = neap__block_whole(steps * share);
	if (x.b.reserve_steps < 1)
		return 0;
	NEAP_TRY(simulate(s, &x.b, &x.score));
	if (x.score < INFINITY)
		s->best[s->nbest++] = x;
	return 0;
}

/*
 * Half of PARTS, for one tail. Block lengths: the one of `from` and 1.5 times it, because a smaller
 * reserve leaves room for longer blocks; and the number of steps during which one state is written
 * (state_out / f), and 0.75 times it. The shares are chosen.
 */
static int try_parts(struct block_search *s, struct neap_blocks from, int64_t tail)
{
	static const double shares[] = {0.1, 0.25, 0.4}; /* chosen */
	double own = (double)from.advance,
	       longest = s->costs.f > 0 ? s->costs.state_out / s->costs.f : 0;
	const double steps[] = {own, 1.5 * own, longest, 0.75 * longest};
	from.tail = tail;
	for (int i = 0; i < PARTS / 2; i++)
		NEAP_TRY(try_part(s, from, steps[i % 4], shares[i / 4]));
	return 0;
}

/*
 * If a state takes a large part of the pool, reserving room for the incoming state beside a whole
 * block is expensive. Reserving it only beside the steps that are reversed last allows longer
 * blocks. Skipped if the pool holds more than PART_STATES states or the plan is near the bound.
 */
static int search_part(struct block_search *s, struct neap_plan *plan)
{
	int64_t from = s->nbest, actions = s->actions; /* BEST has room for PARTS more */
	if (s->nbest == 0 || s->costs.state * PART_STATES < s->costs.pool ||
		s->best[0].score <= s->bound * (1 + GAIN_LEAST))
		return 0;
	struct neap_blocks best = s->best[0].b;
	s->actions = s->part_actions;
	NEAP_TRY(try_parts(s, best, best.tail));
	NEAP_TRY(try_parts(s, best, 0));
	sort_best(s, from);
	for (int64_t i = from; i < from + PART_STARTS && i < s->nbest; i++)
		NEAP_TRY(descend(s, i));
	sort_best(s, 0);
	NEAP_TRY(decide(s, plan));
	s->part_actions = s->actions;
	s->actions = actions;
	return 0;
}

/* A turn of the search for plans whose blocks have the same length. */
static int equal_turn(struct block_search *s, struct neap_plan *plan, int64_t effort, double below)
{
	s->effort = effort;
	NEAP_TRY(search_usual(s, below));
	s->effort = LATE_EFFORT(effort);
	NEAP_TRY(search_late(s));
	NEAP_TRY(decide(s, plan));
	if (s->nbest > 0 && plan->feasible && s->best[0].score < plan->makespan * (1 - UNCONFIRMED))
		s->unconfirmed = 1;
	s->effort = LATE_EFFORT(effort);
	return s->again ? 0 : search_part(s, plan);
}

/* A turn of the search for plans whose blocks have two lengths. */
static int pair_turn(struct block_search *s, struct neap_plan *plan, int64_t effort, double below)
{
	s->effort = LATE_EFFORT(effort);
	s->nbest = 0;
	NEAP_TRY(rank(s, (int64_t[]){0, RANKED}));
	sort_best(s, 0);
	for (int64_t i = 0; i < PAIR_STARTS && i < s->nbest; i++)
		if (s->best[i].score <= PAIR_FACTOR * fmin(below, plan->makespan))
			NEAP_TRY(descend(s, i));
	sort_best(s, 0);
	return decide(s, plan);
}

typedef int turn(struct block_search *s, struct neap_plan *plan, int64_t effort, double below);

/* Turns with effort 125, 250, ... and finally `effort` itself; ends at the lower bound. */
static int run_turns(
	struct block_search *s, struct neap_plan *plan, int64_t effort, double below, turn *search)
{
	for (int64_t now = EFFORT_FIRST;; now *= 2) {
		int last = now >= effort;
		NEAP_TRY(search(s, plan, last ? effort : now, below));
		if (last || (plan->feasible && neap__at_bound(plan->makespan, s->bound)))
			return 0;
	}
}

/* From here on, late plans are simulated in full; with this number of actions. */
static int in_full(struct block_search *s, int64_t actions)
{
	s->again = 1;
	s->actions = ACTIONS_MOST - actions;
	neap__tried_plans_free(&s->tried);
	return neap__tried_plans_init(&s->tried, sizeof(struct neap_blocks));
}

/*
 * Descents end at plans whose comparison runs are too optimistic: if a tail hides the write backlog
 * of the few blocks of such a run, but not that of all blocks. If that happened in a turn, all
 * turns are repeated with full simulations of late plans. The first turns are unchanged, so the
 * plan is no slower, and the search stays monotonic.
 */
static int search_again(
	struct block_search *s, struct neap_plan *plan, int64_t effort, double below)
{
	if (!s->unconfirmed)
		return 0;
	NEAP_TRY(in_full(s, AGAIN_ACTIONS));
	return run_turns(s, plan, effort, below, equal_turn);
}

/*
 * Two lengths are searched last, with their own turns: they help only if fast memory holds few
 * states, and must not change what the other searches find.
 */
static int search(struct block_search *s, struct neap_plan *plan, int64_t effort, double below)
{
	NEAP_TRY(run_turns(s, plan, effort, below, equal_turn));
	NEAP_TRY(search_again(s, plan, effort, below));
	NEAP_TRY(neap__block_seeds_pairs(&s->seeds, &s->costs));
	if (!plan->feasible || s->seeds.count == 0)
		return 0;
	NEAP_TRY(in_full(s, PAIR_ACTIONS));
	return run_turns(s, plan, effort, below, pair_turn);
}

int neap__block_search(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	int64_t effort, double below)
{
	int64_t pool = neap__pool_bytes(problem, tier);
	plan->feasible = 0;
	if (problem->chain.tape < 1 || pool < (int64_t)problem->chain.tape)
		return 0;
	struct block_search *s = calloc(1, sizeof *s);
	if (!s)
		return neap__fail(-ENOMEM, "plan: out of memory");
	s->bound = neap_bound(problem);
	s->moves = (struct neap__coordinates){.search = s,
		.trial = &s->trial,
		.bytes = sizeof s->trial,
		.numbers = numbers,
		.nnumbers = 3,
		.factors = factors,
		.nfactors = 6,
		.change = change,
		.score = score};
	int rc = neap__block_costs_init(&s->costs, problem, tier);
	if (rc == 0)
		rc = neap__tried_plans_init(&s->tried, sizeof(struct neap_blocks));
	if (rc == 0)
		rc = neap__prefetch_new(&s->prefetch);
	if (rc == 0)
		rc = search(s, plan, effort, below);
	neap__block_costs_free(&s->costs);
	neap__tried_plans_free(&s->tried);
	neap__prefetch_free(s->prefetch);
	free(s);
	return rc;
}

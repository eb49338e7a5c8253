/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_search.c: makes seeds over all kinds of blocks and ranks them by a fluid score, which
 * assumes that computation and both channels overlap fully. The best seeds are simulated; from
 * the best of those, one number of the plan is changed at a time as long as that helps
 * (coordinate descent). Effort is counted in simulations, never in time, so the outcome is
 * reproducible. Ours; the symbols J, k, q are those of block_program.h.
 *
 *     f, r, b     seconds to advance, to record and to reverse a step
 *     tau         seconds of a transfer of a state (state_out, state_in)
 *     E(J)        extra advances inside a block of J steps (recompute_cost.h)
 *     a_out, a_in seconds to write and to read a tape
 *
 *     score of a step of a block =
 *         ( max( k r + J f, k a_out + tau ) + max( k b + J (r+b) + f E(J), k a_in + tau ) ) / (J+k)
 *
 * The transfer overhead is added to both computations.
 */
#include "plan/blocks/block_search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/blocks/block_plan.h"
#include "plan/blocks/block_program.h"
#include "plan/core/sizing.h"

#define SEEDS 2400		 /* all kinds together make 625 at most */
#define TRIED 1024		 /* simulated plans that are remembered */
#define RANKED 96		 /* seeds that are simulated */
#define STARTS 12		 /* of them, those that are improved by descent */
#define FINALS 2		 /* best plans that are run in full at the end */
#define RUN_BLOCKS 16		 /* blocks of a simulation: enough to compare plans */
#define ACTIONS_A_RUN 4000	 /* actions that a simulation may have before it counts as two */
#define MULTIREAD_SLOTS_MOST 10	 /* slots that multiread.c makes use of */
#define MULTIREAD_STEPS_MOST 600 /* J: the time to fill its splits is quadratic in J */
#define MULTIREAD_WORK 8	 /* sums of multiread.c that count as an action */
#define STEPS_LONGEST 1000000	 /* J at most: the table of E(J) reaches so far */
#define GAIN_LEAST 1e-4		 /* relative gain of a round of descent worth another round */
#define AT_BOUND 1e-6		 /* a plan so close to the lower bound ends the search */
#define COUNT_MOST 1e12		 /* steps, tapes or bytes of a plan */

/* Of the seconds down: multiread recomputes less than E(J). Of equal scores the smaller reserve. */
#define MULTIREAD_FACTOR 0.97
#define RESERVE_PRICE 1e-9 /* seconds a byte */

/* A plan and its fluid score; of a simulated plan, its makespan. */
struct seed {
	struct neap_blocks b;
	double score;
};

struct block_search {
	const struct neap_problem *p;
	int tier;
	double capacity;			       /* of the tier, bytes */
	double f, r, b, state, tape, pool;	       /* seconds a step; bytes */
	double state_out, state_in, tape_out, tape_in; /* seconds each; states with the latency */
	double state_lost, tape_lost; /* transfer overhead, seconds each either way */
	struct neap__prefetch *prefetch;
	struct neap__recompute costs; /* of the whole pool, for the score */
	int64_t effort;
	int64_t nseeds, ntried;
	struct seed seeds[SEEDS];
	struct seed tried[TRIED]; /* score: makespan */
	struct seed best[RANKED];
	int64_t nbest;
};

/* Rounds down to a number of steps, bytes or tapes; 1e-9 absorbs rounding of quotients. */
static int64_t whole(double x)
{
	return x < 0 ? 0 : x > COUNT_MOST ? (int64_t)COUNT_MOST : (int64_t)(x + 1e-9);
}

/*
 * Makes blocks longer where the tier is too small for them: they keep their tapes and advance
 * more steps. Returns 0 where the tier holds no block.
 */
static int within_capacity(const struct block_search *s, struct neap_blocks *b)
{
	int64_t body = s->p->chain.steps - b->tail, unit = b->advance + b->record;
	int64_t chunks = b->chunk ? (b->record + b->chunk - 1) / b->chunk : 0;
	double tapes = (double)(chunks * b->chunk) * s->tape;
	double fits = floor(s->capacity / (tapes + (b->advance ? s->state : 0)));
	if (body <= 0 || ceil((double)body / (double)unit) <= fits)
		return 1;
	fits = floor(s->capacity / (tapes + s->state));
	if (fits < 1)
		return 0;
	b->advance = whole(ceil((double)body / fits)) - b->record;
	return b->advance > 0;
}

/* Brings a plan into range, equal plans into equal numbers. Returns 0 where none is left. */
static int normalise(const struct block_search *s, struct neap_blocks *b)
{
	int64_t steps = s->p->chain.steps, fit = whole(s->pool / fmax(s->tape, 1e-9));
	if (b->advance < 0 || b->record < 0 || b->tail < 0)
		return 0;
	if (b->record > 0 && s->p->chain.flags & (NEAP_CHAIN_TAPES_STAY | NEAP_CHAIN_CLASSIC))
		return 0;
	b->advance = b->advance < steps ? b->advance : steps;
	b->record = b->record < steps ? b->record : steps;
	b->tail = b->tail < steps ? b->tail : steps;
	if (b->chunk < 1)
		b->chunk = 1;
	if (b->chunk > b->record)
		b->chunk = b->record;
	if (b->chunk > fit)
		b->chunk = fit;
	if (b->advance + b->record < 1 || (b->record > 0 && b->chunk < 1) ||
		(s->capacity < INFINITY && !within_capacity(s, b)))
		return 0;
	if (b->reserve < 0 || (double)b->reserve > s->pool - s->tape)
		return 0;
	if (b->tail_reserve < 0 || (double)b->tail_reserve > s->pool - s->tape)
		return 0;
	if (b->inner == NEAP_BLOCKS_MULTIREAD &&
		(b->advance < 1 || b->advance > MULTIREAD_STEPS_MOST))
		return 0;
	if (b->inner != NEAP_BLOCKS_MULTIREAD)
		b->price = 0;
	if (b->inner == NEAP_BLOCKS_LEAF && b->advance > s->costs.reach)
		return 0;
	return b->advance + b->record > 0 && (b->record == 0 || b->chunk > 0);
}

/* f E(J), from the hull: optimistic. */
static double extra_seconds(const struct block_search *s, const struct neap_blocks *b)
{
	int64_t l = b->advance < s->costs.reach ? b->advance : s->costs.reach;
	return l > 0 ? s->f * neap__recompute_extra(&s->costs, l, 0) : 0;
}

/* The fluid score times the steps: seconds of the whole chain. */
static double fluid_seconds(const struct block_search *s, const struct neap_blocks *b)
{
	double j = (double)b->advance, k = (double)b->record, q = fmax(1, (double)b->chunk);
	double out = b->advance ? s->state_out : 0, in = b->advance ? s->state_in : 0;
	const struct neap_tier_spec *t = &s->p->tiers[s->tier - 1];
	out += k * s->tape_out + ceil(k / q) * t->write_fixed;
	in += k * s->tape_in + ceil(k / q) * t->read_fixed;
	double lost = k * s->tape_lost + (b->advance ? s->state_lost : 0);
	lost += ceil(k / q) * neap_tier_lost(t, 0);
	double up = k * s->r + j * s->f + lost;
	double down = k * s->b + j * (s->r + s->b) + extra_seconds(s, b) + lost;
	double body = (double)(s->p->chain.steps - b->tail) / (j + k);
	double rest = (double)b->tail * (s->r + s->b) + (b->tail ? extra_seconds(s, b) / 4 : 0);
	if (b->inner == NEAP_BLOCKS_MULTIREAD)
		down = down * MULTIREAD_FACTOR + (double)b->reserve * RESERVE_PRICE;
	if (!(t->flags & NEAP_TIER_DUPLEX) && t->flags & NEAP_TIER_SYNC)
		return (up + out + down + in) * body + rest;
	return (fmax(up, out) + fmax(down, in)) * body + rest;
}

static void seed(struct block_search *s, struct neap_blocks b)
{
	if (s->nseeds == SEEDS || !normalise(s, &b))
		return;
	s->seeds[s->nseeds++] = (struct seed){b, fluid_seconds(s, &b)};
}

static int by_score(const void *a, const void *b)
{
	const struct seed *x = a, *y = b;
	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return memcmp(&x->b, &y->b, sizeof x->b);
}

static void stream_seeds(struct block_search *s)
{
	for (double d = 2; d <= 32; d *= 2) {
		double q = fmax(1, floor(s->pool / (d * s->tape)));
		double tail = fmax(1, (1 - 1 / d) * s->pool / s->tape);
		seed(s, (struct neap_blocks){
				.record = whole(q), .chunk = whole(q), .tail = whole(tail)});
	}
}

/* The k with which the first of both channels is just full, beside J advanced steps. */
static double tapes_beside(const struct block_search *s, double j, double extra)
{
	double r = s->r + s->tape_lost, b = s->b + s->tape_lost;
	double out = s->state_out - s->state_lost, in = s->state_in - s->state_lost;
	double write = s->tape_out > r ? (j * s->f - out) / (s->tape_out - r) : COUNT_MOST;
	double read =
		s->tape_in > b ? (j * (s->r + s->b) + extra - in) / (s->tape_in - b) : COUNT_MOST;
	return fmax(0, fmin(write, read));
}

/* The J with which the states just fill the tier. */
static double full_tier(const struct block_search *s, double tail)
{
	double places = fmin(floor(s->capacity / s->state), (double)s->p->chain.steps);
	return fmax(1, ceil(((double)s->p->chain.steps - tail) / fmax(places, 1)));
}

static void leaf_seeds(struct block_search *s)
{
	double l1 = floor(s->pool / s->tape);
	double l2 = s->pool > s->state + s->tape ? l1 + floor((s->pool - s->state) / s->tape) : l1;
	double f = fmax(s->f, 1e-12), cycle = fmax(s->r + s->b, 1e-12);
	double lengths[] = {l1 / 2, l1, 2 * l1, sqrt(l1 * l2), l2, s->state_out / f,
		2 * s->state_out / f, 4 * s->state_out / f, 8 * s->state_out / f,
		s->state_in / cycle, 1, full_tier(s, 0), full_tier(s, l1)};
	double reserves[] = {0, s->state, 2 * s->state, s->pool / 4, s->pool / 2};
	static const double shares[] = {0, 0.5, 1, 1.3};
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
		for (int j = 0; j < 5; j++)
			for (int k = 0; k < 4; k++)
				for (int tail = 0; tail < 2; tail++) {
					struct neap_blocks b = {
						.advance = whole(fmax(1, ceil(lengths[i] - 1e-9))),
						.tail = tail ? whole(l1) : 0,
						.reserve = whole(reserves[j]),
						.chunk = whole(fmax(1, s->pool / (8 * s->tape)))};
					double n = tapes_beside(
						s, (double)b.advance, extra_seconds(s, &b));
					b.record = whole(shares[k] * fmin(n, 4 * l1));
					if (k == 0 || b.record > 0)
						seed(s, b);
				}
}

static void multiread_seeds(struct block_search *s)
{
	static const double prices[] = {0, 0.02, 0.1, 0.3, 1};
	double base = s->state_out / fmax(s->f, 1e-12);
	double lengths[] = {base, 2 * base, 4 * base, 8 * base, 32};
	if ((s->pool - s->tape) / s->state > MULTIREAD_SLOTS_MOST)
		return;
	for (int i = 0; i < 5; i++)
		for (int j = 0; j < 5; j++)
			for (int reserve = 0; reserve < 2; reserve++)
				for (int tail = 0; tail < 2; tail++)
					seed(s, (struct neap_blocks){
							.advance = whole(
								fmax(1, ceil(lengths[i] - 1e-9))),
							.inner = NEAP_BLOCKS_MULTIREAD,
							.price = prices[j] * s->state_in,
							.reserve = reserve ? whole(s->state) : 0,
							.tail = tail ? whole(s->pool / s->tape)
								     : 0});
}

/* The makespan of a plan by simulation, INFINITY where it does not fit; remembered. */
static int simulate(struct block_search *s, struct neap_blocks *b, double *makespan)
{
	struct neap_plan plan = {.size = sizeof plan};
	*makespan = INFINITY;
	if (s->effort <= 0 || !normalise(s, b))
		return 0;
	for (int64_t i = 0; i < s->ntried; i++)
		if (memcmp(&s->tried[i].b, b, sizeof *b) == 0) {
			*makespan = s->tried[i].score;
			return 0;
		}
	int64_t actions = 0, n = neap__block_plan_steady_blocks(s->p, s->tier, b);
	NEAP_TRY(neap__block_plan_evaluate(
		&plan, s->p, s->tier, b, s->prefetch, n < RUN_BLOCKS ? n : RUN_BLOCKS, &actions));
	if (b->inner == NEAP_BLOCKS_MULTIREAD)
		actions += b->advance * b->advance / MULTIREAD_WORK;
	s->effort -= 1 + actions / ACTIONS_A_RUN;
	if (plan.feasible)
		*makespan = plan.makespan;
	s->tried[s->ntried < TRIED ? s->ntried++ : TRIED - 1] = (struct seed){*b, *makespan};
	return 0;
}

/*
 * The n-th neighbour of a plan. J, k, tail and price by six factors each; then reserves, tails,
 * reserves of the tail, chunks, whole blocks, and the method inside. Returns 0 beyond the last.
 */
static int neighbour(
	const struct block_search *s, const struct neap_blocks *from, int n, struct neap_blocks *to)
{
	static const double factors[] = {0.5, 0.8, 0.93, 1.08, 1.25, 2};
	struct neap_blocks *b = to;
	*b = *from;
	if (n < 24) {
		double x = factors[n % 6];
		int64_t *at[] = {&b->advance, &b->record, &b->tail};
		if (n >= 18) {
			b->price *= x;
			return 1;
		}
		int64_t *v = at[n / 6], old = *v;
		*v = whole((double)old * x + 0.5);
		if (*v == old)
			*v = x < 1 ? old - 1 : old + 1;
		return 1;
	}
	int64_t state = (int64_t)s->state, pool = whole(s->pool), fit = whole(s->pool / s->tape);
	int64_t unit = b->advance + b->record, body = s->p->chain.steps - b->tail;
	int64_t tapes = b->record * (int64_t)s->tape;
	int64_t reserves[] = {0, state, b->reserve + state, b->reserve / 2, b->reserve * 3 / 2,
		tapes, tapes + state, pool / 2};
	int64_t tails[] = {0, fit, b->tail + fit, b->tail + (unit ? body % unit : 0)};
	int64_t spares[] = {0, state, 2 * state, pool / 8, pool / 3};
	n -= 24;
	if (n < 8)
		b->reserve = reserves[n];
	else if (n < 12)
		b->tail = tails[n - 8];
	else if (n < 17)
		b->tail_reserve = spares[n - 12];
	else if (n < 19) {
		b->chunk = n == 17 ? b->chunk / 2 : b->chunk * 2;
	} else if (n < 21) {
		double x = n == 19 ? 0.5 : 2;
		b->advance = whole((double)b->advance * x);
		b->record = whole((double)b->record * x);
		b->chunk = whole((double)b->chunk * x);
	} else if (n == 21) {
		b->record = 0;
	} else if (n == 22) {
		b->inner = NEAP_BLOCKS_LEAF;
	} else if (n == 23) {
		b->inner = NEAP_BLOCKS_MULTIREAD;
		b->price = b->price > 0 ? b->price : 0.1 * s->state_in;
	} else {
		return 0;
	}
	return 1;
}

/* Takes each neighbour that improves, in rounds over all, until a round gains little. */
static int descend(struct block_search *s, struct seed *x)
{
	double before = INFINITY;
	while (s->effort > 0 && x->score < before * (1 - GAIN_LEAST)) {
		struct neap_blocks to;
		before = x->score;
		for (int n = 0; neighbour(s, &x->b, n, &to); n++) {
			double makespan;
			NEAP_TRY(simulate(s, &to, &makespan));
			if (makespan < x->score)
				*x = (struct seed){to, makespan};
		}
	}
	return 0;
}

/* Simulates the best seeds by score: half of them with multiread, half without. */
static int rank(struct block_search *s)
{
	int64_t most = s->effort / 8 < RANKED ? s->effort / 8 : RANKED;
	int64_t quota[2] = {most / 2, most - most / 2};
	qsort(s->seeds, (size_t)s->nseeds, sizeof *s->seeds, by_score);
	for (int64_t i = 0; i < s->nseeds && s->nbest < RANKED; i++) {
		struct seed x = s->seeds[i];
		int kind = x.b.inner == NEAP_BLOCKS_MULTIREAD;
		if (i > 0 && memcmp(&x.b, &s->seeds[i - 1].b, sizeof x.b) == 0)
			continue;
		if (quota[kind] <= 0)
			continue;
		quota[kind]--;
		NEAP_TRY(simulate(s, &x.b, &x.score));
		if (x.score < INFINITY)
			s->best[s->nbest++] = x;
	}
	qsort(s->best, (size_t)s->nbest, sizeof *s->best, by_score);
	return 0;
}

/* Puts the best start of each of the two methods first, the others behind. */
static void order_starts(struct block_search *s)
{
	for (int64_t i = 1; i < s->nbest; i++) {
		struct seed x = s->best[i];
		if (x.b.inner == s->best[0].b.inner)
			continue;
		memmove(&s->best[2], &s->best[1], (size_t)(i - 1) * sizeof x);
		s->best[1] = x;
		return;
	}
}

static int run_search(struct block_search *s, double below)
{
	stream_seeds(s);
	leaf_seeds(s);
	multiread_seeds(s);
	NEAP_TRY(rank(s));
	order_starts(s);
	int64_t starts = s->nbest < STARTS ? s->nbest : STARTS;
	double bound = neap_bound(s->p);
	for (int64_t i = 0; i < starts && s->effort > 0; i++) {
		if (i > 1 && s->best[i].score > 2 * fmin(below, s->best[0].score))
			continue;
		NEAP_TRY(descend(s, &s->best[i]));
		if (s->best[i].score <= bound * (1 + AT_BOUND))
			break;
	}
	qsort(s->best, (size_t)s->nbest, sizeof *s->best, by_score);
	return 0;
}

/* Runs the best plans in full: short runs do not see a backlog that grows slowly. */
static int decide(struct block_search *s, struct neap_plan *plan)
{
	int64_t done = 0;
	for (int64_t i = 0; i < s->nbest && done < FINALS; i++) {
		struct neap_plan trial = *plan;
		if (i > 0 && (memcmp(&s->best[i].b, &s->best[i - 1].b, sizeof s->best[i].b) == 0 ||
				     (plan->feasible && s->best[i].score >= plan->makespan)))
			continue;
		NEAP_TRY(neap__block_plan_evaluate(
			&trial, s->p, s->tier, &s->best[i].b, s->prefetch, 0, NULL));
		done++;
		if (trial.feasible && (!plan->feasible || trial.makespan < plan->makespan))
			*plan = trial;
	}
	return 0;
}

static void init_search(
	struct block_search *s, const struct neap_problem *p, int tier, int64_t effort)
{
	const struct neap_chain *c = &p->chain;
	const struct neap_tier_spec *t = &p->tiers[tier - 1];
	s->p = p;
	s->tier = tier;
	s->effort = effort;
	s->f = c->advance;
	s->r = c->record;
	s->b = c->backward;
	s->state = (double)c->state;
	s->tape = (double)c->tape;
	s->pool = (double)neap__pool_bytes(p, tier);
	s->capacity = t->capacity == NEAP_INFINITE ? INFINITY : (double)t->capacity;
	s->state_out = neap_tier_seconds(t, 1, c->state);
	s->state_in = neap_tier_seconds(t, 0, c->state);
	double sent = (double)neap__tape_sent(c);
	s->tape_out = t->write_rate > 0 ? sent / t->write_rate : 0;
	s->tape_in = t->read_rate > 0 ? sent / t->read_rate : 0;
	s->state_lost = neap_tier_lost(t, c->state);
	s->tape_lost = neap_tier_lost(t, neap__tape_sent(c)) - neap_tier_lost(t, 0);
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
	init_search(s, problem, tier, effort);
	int64_t longest =
		problem->chain.steps < STEPS_LONGEST ? problem->chain.steps : STEPS_LONGEST;
	int rc = neap__prefetch_new(&s->prefetch);
	if (rc == 0)
		rc = neap__recompute_make(&s->costs, longest, pool, (int64_t)problem->chain.state,
			(int64_t)problem->chain.tape, 0);
	if (rc == 0)
		rc = run_search(s, below);
	if (rc == 0)
		rc = decide(s, plan);
	neap__recompute_free(&s->costs);
	neap__prefetch_free(s->prefetch);
	free(s);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hierarchical.c: the strategy `hierarchical`: a checkpoint every c steps, k of them in fast
 * memory, the others in the slow tier ("Hierarchical" of arXiv 2412.11810).
 *
 *     T, S, A   steps of the chain; bytes of a state and of a tape
 *     c         steps of a chunk; n = ceil(T/c) chunks, of which the first may be shorter
 *     k         slots
 *     q         max(0, n - 1 - k), states that are written and read
 *
 * The k slots are a window over the n - 1 checkpoints. In the forward pass the write of a state
 * starts as soon as it is saved, and its slot is reused k chunks later; the last k states are not
 * written. In the backward pass the slot that a chunk frees receives the state k chunks below, so
 * states are prefetched, each as a separate record. The last chunk is recorded when the forward
 * pass reaches it, so T - c steps run twice. For a given k the largest c is best; k is searched.
 *
 * Peak: k S + c A bytes, as in the paper, without the live state.
 */
#include <math.h>
#include "base/fail.h"
#include "plan/core/chunk_walk.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"
#include "plan/core/predict_plan.h"

/* Limit of transfers in flight per direction: PUTs use lower tickets, GETs this one and up. */
#define WINDOW_MOST (NEAP_TICKETS / 2)

static int64_t slots_of(const struct neap_problem *p, int64_t c, int64_t k)
{
	int64_t saved = neap__ceil_div(p->chain.steps, c) - 1;
	return k < saved ? k : saved;
}

static int64_t sent(const struct neap_problem *p, int64_t c, int64_t k)
{
	int64_t saved = neap__ceil_div(p->chain.steps, c) - 1;
	return saved > k ? saved - k : 0;
}

/* Returns 1 if (c, k) fits; the tier is used only if there are states to write. */
static int fits(const struct neap_problem *p, int tier, int64_t c, int64_t k)
{
	if (c < 1)
		return 0;
	int64_t q = sent(p, c, k);
	return q <= neap__places(p, tier) &&
	       neap__pool_bytes(p, q ? tier : 0) >= neap__bytes(p, slots_of(p, c, k), c);
}

/* Time that depends on (c, k), seconds: a closed form of the steady state. */
static double cost(const struct neap_problem *p, int tier, int64_t c, int64_t k)
{
	const struct neap_chain *h = &p->chain;
	const struct neap_tier_spec *spec = &p->tiers[tier - 1];
	double q = (double)sent(p, c, k), n = (double)neap__ceil_div(h->steps, c);
	double write = neap_tier_seconds(spec, 1, h->state);
	double read = neap_tier_seconds(spec, 0, h->state);
	double forward = (double)c * h->advance + h->slot_write + h->call;
	double back = (double)c * (h->record + h->backward) + h->slot_read + 2 * h->call;
	double time = (double)(h->steps - c) * h->advance +
		      (n - 1) * (h->slot_write + h->slot_read + 3 * h->call);
	if (spec->flags & NEAP_TIER_SYNC)
		return time + q * (write + read);
	double lost = neap_tier_lost(spec, h->state);
	return time + q * (fmax(lost, write - forward) + fmax(lost, read - back));
}

/* The largest c that fits with k slots. */
static int64_t chunk_for(const struct neap_problem *p, int tier, int64_t k)
{
	int64_t pool = neap__pool_bytes(p, tier);
	if (k > pool / (int64_t)p->chain.state)
		return 0;
	return neap__tapes_fit(p, pool - k * (int64_t)p->chain.state);
}

struct hierarchical_choice {
	int64_t c, k;
	double cost;
};

static void consider(struct hierarchical_choice *best, const struct neap_problem *p, int tier,
	const struct neap_params *fixed, int64_t k)
{
	int64_t c = fixed->chunk ? fixed->chunk : chunk_for(p, tier, k);
	if (c > p->chain.steps)
		c = p->chain.steps;
	if (k < 1 || !fits(p, tier, c, k))
		return;
	double time = cost(p, tier, c, k);
	if (best->c == 0 || time < best->cost)
		*best = (struct hierarchical_choice){c, k, time};
}

static uint64_t bytes_of(
	const struct neap_problem *p, int tier, const struct hierarchical_choice *at)
{
	return neap__fixed_bytes(p, sent(p, at->c, at->k) ? tier : 0) +
	       (uint64_t)neap__bytes(p, slots_of(p, at->c, at->k), at->c);
}

/* The (c, k) with the least memory without the tier; c = 0: there is none. */
static struct hierarchical_choice least_local(
	const struct neap_problem *p, const struct neap_params *fixed)
{
	int64_t steps = p->chain.steps, c = fixed->chunk, k = fixed->checkpoints;
	if (!c)
		c = neap__chunk_least(p, steps, 1);
	if (c > steps)
		c = steps;
	if (!fixed->chunk && k && neap__ceil_div(steps, c) - 1 > k)
		c = neap__ceil_div(steps, k + 1);
	if (!k)
		k = neap__ceil_div(steps, c) > 2 ? neap__ceil_div(steps, c) - 1 : 1;
	return (struct hierarchical_choice){neap__ceil_div(steps, c) - 1 > k ? 0 : c, k, 0};
}

/* The (c, k) with the least memory with the tier. */
static void least(struct hierarchical_choice *best, const struct neap_problem *p, int tier,
	const struct neap_params *fixed)
{
	int64_t steps = p->chain.steps, places = neap__places(p, tier);
	int64_t c = fixed->chunk < steps ? fixed->chunk : steps, k = fixed->checkpoints;
	if (!c)
		c = k ? neap__ceil_div(steps, k < steps ? places + k + 1 : steps)
		      : neap__chunk_least(p, steps, places + 2);
	if (!k) {
		k = neap__ceil_div(steps, c) - 1 - places;
		k = k > 1 ? k : 1;
	}
	best->c = c;
	best->k = k;
}

static struct hierarchical_choice search(
	const struct neap_problem *p, int tier, const struct neap_params *fixed)
{
	struct hierarchical_choice best = {0};
	int64_t most = p->chain.steps, steps = p->chain.steps;
	if (fixed->checkpoints)
		consider(&best, p, tier, fixed, fixed->checkpoints);
	/* The plan of `standard`, without the tier. */
	int64_t c =
		fixed->chunk ? fixed->chunk : neap__chunk_largest(p, steps, neap__pool_bytes(p, 0));
	if (c) {
		struct neap_params chunk = {.chunk = c < steps ? c : steps};
		int64_t k = neap__ceil_div(steps, chunk.chunk) - 1;
		if (!fixed->checkpoints || k <= fixed->checkpoints)
			consider(&best, p, tier, &chunk, k > 0 ? k : 1);
	}
	if (fixed->checkpoints)
		return best;
	/* The pair with the least memory, and values of k in steps of 1/16 (chosen). */
	struct hierarchical_choice leanest;
	least(&leanest, p, tier, fixed);
	consider(&best, p, tier, fixed, leanest.k);
	for (int64_t k = 1; k <= most; k += k / 16 + 1)
		consider(&best, p, tier, fixed, k);
	if (best.c)
		for (int64_t middle = best.k, d = -(middle / 16) - 1; d <= middle / 16 + 1; d++) {
			if (middle > 65536) /* steps of 2^-12 of k: about 500 candidates */
				d += middle >> 12;
			consider(&best, p, tier, fixed, middle + d);
		}
	return best;
}

static int attempt(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int tier)
{
	int64_t steps = problem->chain.steps;
	struct hierarchical_choice best = search(problem, tier, fixed);
	if (!best.c) {
		struct hierarchical_choice local = least_local(problem, fixed);
		least(&best, problem, tier, fixed);
		if (local.c &&
			(sent(problem, best.c, best.k) > neap__places(problem, tier) ||
				bytes_of(problem, tier, &local) < bytes_of(problem, tier, &best)))
			best = local;
		if (sent(problem, best.c, best.k) > neap__places(problem, tier)) {
			neap__refuse(plan, 0, "tier %s is too small: it holds %lld states",
				problem->tiers[tier - 1].name,
				(long long)neap__places(problem, tier));
			return 0;
		}
		int64_t k = slots_of(problem, best.c, best.k);
		uint64_t bytes = bytes_of(problem, tier, &best);
		neap__refuse(plan, bytes, "%lld slots and chunks of %lld steps need %llu bytes",
			(long long)k, (long long)best.c, (unsigned long long)bytes);
		return 0;
	}
	int64_t k = slots_of(problem, best.c, best.k), q = sent(problem, best.c, best.k);
	neap__accept(plan, problem, q ? tier : 0, k, neap__bytes(problem, k, best.c));
	plan->params.chunk = best.c;
	plan->params.checkpoints = k;
	plan->advance_steps = steps - best.c;
	plan->record_steps = steps;
	if (q)
		neap__tier_traffic(plan, problem, q);
	return neap__predict(plan, &neap__strategy_hierarchical, problem);
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	return neap__over_tiers(plan, problem, fixed, attempt);
}

struct hierarchical {
	struct neap__chunk_walk walk;
	int64_t k;	/* slots */
	int64_t q;	/* the states of chunks 0..q-1 are written */
	int64_t window; /* limit of transfers in flight, at most k */
	int64_t pad;	/* shifts slots so that the last saved state is in slot k-1 */
};

static int64_t slot(const struct hierarchical *x, int64_t i)
{
	return (i + x->pad) % x->k;
}

static void keep(struct neap_schedule *s, int64_t i)
{
	const struct hierarchical *x = s->self;
	int64_t gone = i - x->window, t = neap__chunk_start(s, i);
	if (gone >= 0 && gone < x->q) {
		neap__wait(s, (int32_t)(gone % x->window));
		neap__drop(s, slot(x, gone), neap__chunk_start(s, gone));
	}
	neap__save(s, slot(x, i), t);
	if (i < x->q)
		neap__put(s, slot(x, i), t, i, (int32_t)(i % x->window));
}

static void bring(struct neap_schedule *s, int64_t i)
{
	const struct hierarchical *x = s->self;
	int64_t next = i - x->window, t = neap__chunk_start(s, i);
	if (i < x->q) {
		neap__wait(s, (int32_t)(WINDOW_MOST + i % x->window));
		neap__forget(s, t, i);
	}
	neap__load(s, slot(x, i), t);
	neap__drop(s, slot(x, i), t);
	if (next >= 0 && next < x->q)
		neap__get(s, slot(x, next), neap__chunk_start(s, next), next,
			(int32_t)(WINDOW_MOST + next % x->window));
}

/* A coarse schedule does the last k chunks in one step if no transfer is in flight. */
static int quiet(struct neap_schedule *s)
{
	struct hierarchical *x = s->self;
	struct neap__chunk_walk *w = &x->walk;
	int64_t from = x->q + x->window, count;
	if (!s->coarse || w->i < from)
		return 0;
	if (!w->back) {
		count = w->n - 1 - w->i;
		if (count < 1)
			return 0;
		neap__compute(s, neap__chunk_start(s, w->n - 1) - neap__chunk_start(s, w->i), 0,
			count, 0);
		w->i = w->n - 1;
		return 1;
	}
	count = w->i - from + 1;
	neap__compute(s, 0, neap__chunk_start(s, w->i + 1) - neap__chunk_start(s, from), 0, count);
	w->i = from - 1;
	return 1;
}

/* Chunks are alike while each waits for one transfer and issues another. */
static int64_t alike(struct neap_schedule *s, int64_t *every)
{
	const struct hierarchical *x = s->self;
	int64_t i = x->walk.i;
	*every = x->window > 0 ? x->window : 1;
	if (i < x->window || i >= x->q || i < 1)
		return 0;
	return x->walk.back ? i - x->window : x->q - i;
}

static int open(struct neap_schedule *s)
{
	static const struct neap__chunk_moves moves = {
		.keep = keep, .bring = bring, .quiet = quiet};
	int64_t c = s->plan.params.chunk, k = s->plan.params.checkpoints;
	if (c < 1 || k < 0 || (k < 1 && c < s->problem.chain.steps))
		return neap__fail(NEAP_EUSAGE, "schedule: hierarchical: chunk %lld, %lld slots",
			(long long)c, (long long)k);
	NEAP_TRY(neap__chunk_walk_open(s, sizeof(struct hierarchical), &moves, c));
	struct hierarchical *x = s->self;
	x->k = slots_of(&s->problem, c, k);
	x->q = sent(&s->problem, c, k);
	x->window = x->k < WINDOW_MOST ? x->k : WINDOW_MOST;
	if (x->k > 0)
		x->pad = (x->k - (x->walk.n - 1) % x->k) % x->k;
	if (x->q > 0 && s->plan.tier < 1)
		return neap__fail(NEAP_EUSAGE, "schedule: hierarchical: no tier");
	s->alike = alike;
	s->skip = neap__chunk_walk_skip;
	return 0;
}

const struct neap__strategy neap__strategy_hierarchical = {
	.name = "hierarchical",
	.about = "a window of checkpoints in fast memory, the others in slow (arXiv 2412.11810, "
		 "Hierarchical)",
	.solve = solve,
	.open = open,
	.traits = NEAP_STRATEGY_TIERS,
	.plan_seconds = NEAP__PLANS_IN_CLOSED_FORM,
	.color = "#AA4499",
	.mark = 11,
};

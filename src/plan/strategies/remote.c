/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c: the strategy `remote`: a checkpoint every c steps, each sent to the slow tier
 * ("Remote" of arXiv 2412.11810).
 *
 *     T, S, A   steps of the chain; bytes of a state and of a tape
 *     c         steps of a chunk; n = ceil(T/c) chunks, of which the first may be shorter
 *     d         staging slots, in which states wait for their PUT to end
 *
 * The last chunk is recorded as the forward pass reaches it, so n - 1 states travel and T - c
 * steps run twice. A state comes back into the live buffer while the chunk after it is
 * reversed. Staging takes the room of tapes that are not there yet: d = max(1, floor(c A / S)),
 * 16 at most; 0 on a synchronous tier or where the copy costs more than the wait.
 * Recomputation, traffic and calls fall when c grows, so the largest c that fits is the best.
 *
 * Peak: max(c A, d S) bytes; the paper's S + c A counts the live state.
 */
#include "base/fail.h"
#include "plan/core/chunk_walk.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"
#include "plan/core/predict_plan.h"

/* The plan of chunks of c steps with `room` staging slots. */
static int staged(struct neap_plan *plan, const struct neap_problem *problem, int tier, int64_t c,
	int64_t room)
{
	int64_t steps = problem->chain.steps, n = neap__ceil_div(steps, c);
	int64_t tapes = neap__bytes(problem, 0, c), out = neap__bytes(problem, room, 0);
	neap__accept(plan, problem, n > 1 ? tier : 0, room, out > tapes ? out : tapes);
	plan->stage_slots = room;
	plan->params.chunk = c;
	plan->advance_steps = steps - c;
	plan->record_steps = steps;
	if (n > 1)
		neap__tier_traffic(plan, problem, n - 1);
	return neap__predict(plan, &neap__strategy_remote, problem);
}

static int finish(struct neap_plan *plan, const struct neap_problem *problem, int tier, int64_t c)
{
	int64_t sent = neap__ceil_div(problem->chain.steps, c) - 1;
	int64_t tapes = neap__bytes(problem, 0, c);
	int64_t room = sent ? neap__outbox_room(problem, tier, tapes, sent) : 0;
	struct neap_plan direct = *plan;

	NEAP_TRY(staged(plan, problem, tier, c, room));
	if (room == 0 || problem->chain.slot_write == 0)
		return 0;
	/* A copy into a slot may cost more than waiting for the write. */
	NEAP_TRY(staged(&direct, problem, tier, c, 0));
	if (direct.makespan < plan->makespan)
		*plan = direct;
	return 0;
}

static int attempt(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int tier)
{
	int64_t steps = problem->chain.steps, given = fixed->chunk < steps ? fixed->chunk : steps;
	int64_t least = neap__ceil_div(steps, neap__places(problem, tier) + 1);
	int64_t c = given ? given : neap__tapes_fit(problem, neap__pool_bytes(problem, tier));
	int64_t all = neap__pool_bytes(problem, 0);

	/* A single chunk needs no tier, and none of its staging. */
	if ((given == steps || !given) && neap__tapes_fit(problem, all) >= steps &&
		all >= neap__bytes(problem, 0, steps))
		return finish(plan, problem, tier, steps);
	if (given && given < least) {
		neap__refuse(plan, 0, "tier %s is too small: it holds %lld states",
			problem->tiers[tier - 1].name, (long long)neap__places(problem, tier));
		return 0;
	}
	if (c < least || neap__pool_bytes(problem, tier) < neap__bytes(problem, 0, c)) {
		int64_t chunk = given ? given : least;
		uint64_t bytes = neap__fixed_bytes(problem, chunk < steps ? tier : 0) +
				 (uint64_t)neap__bytes(problem, 0, chunk);
		uint64_t whole =
			neap__fixed_bytes(problem, 0) + (uint64_t)neap__bytes(problem, 0, steps);
		if (!given && whole < bytes) {
			chunk = steps;
			bytes = whole;
		}
		neap__refuse(plan, bytes, "chunks of %lld steps need %llu bytes", (long long)chunk,
			(unsigned long long)bytes);
		return 0;
	}
	return finish(plan, problem, tier, c);
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	return neap__over_tiers(plan, problem, fixed, attempt);
}

struct remote {
	struct neap__chunk_walk walk;
	struct neap__outbox out;
};

#define GET_TICKET (NEAP_TICKETS - 1) /* tickets from 0 on are those of the outbox */

static void keep(struct neap_schedule *s, int64_t i)
{
	struct remote *x = s->self;
	neap__outbox_send(s, &x->out, neap__chunk_start(s, i), i);
}

static void bring(struct neap_schedule *s, int64_t i)
{
	neap__wait(s, GET_TICKET);
	neap__forget(s, neap__chunk_start(s, i), i);
}

static void last(struct neap_schedule *s)
{
	struct remote *x = s->self;
	neap__outbox_free(s, &x->out, -1);
}

static void ahead(struct neap_schedule *s, int64_t i)
{
	if (i > 0)
		neap__get(s, NEAP_LIVE, neap__chunk_start(s, i - 1), i - 1, GET_TICKET);
}

/* All chunks are alike but the first, which may be shorter, and the last. */
static int64_t alike(struct neap_schedule *s, int64_t *every)
{
	const struct remote *x = s->self;
	const struct neap__chunk_walk *w = &x->walk;
	*every = !w->back && x->out.room > 0 ? x->out.room : 1;
	if (w->back)
		return w->i > 0 ? w->i : 0;
	return w->i > 0 && w->i < w->n - 1 ? w->n - 1 - w->i : 0;
}

static void skip(struct neap_schedule *s, int64_t units)
{
	struct remote *x = s->self;
	neap__chunk_walk_skip(s, units);
	if (!x->walk.back)
		neap__outbox_skip(&x->out, units, units * x->walk.c);
}

static int open(struct neap_schedule *s)
{
	static const struct neap__chunk_moves moves = {keep, bring, last, ahead, NULL};
	int64_t c = s->plan.params.chunk, steps = s->problem.chain.steps;
	if (c < 1 || (c < steps && s->plan.tier < 1))
		return neap__fail(NEAP_EUSAGE, "schedule: remote: chunk is %lld", (long long)c);
	NEAP_TRY(neap__chunk_walk_open(s, sizeof(struct remote), &moves, c));
	struct remote *x = s->self;
	x->out.room = s->plan.stage_slots;
	s->alike = alike;
	s->skip = skip;
	return 0;
}

const struct neap__strategy neap__strategy_remote = {
	.name = "remote",
	.about =
		"a checkpoint every chunk of steps, each in slow memory (arXiv 2412.11810, Remote)",
	.solve = solve,
	.open = open,
	.traits = NEAP_STRATEGY_TIERS,
	.plan_seconds = NEAP__PLANS_IN_CLOSED_FORM,
	.color = "#88CCEE",
	.mark = 9,
};

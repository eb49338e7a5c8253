/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_sweep.c: sweeps over chains whose length the model tells (neap_step_ops.ended). The
 * actions come from neap_online_next; going forward, steps are taken one by one, and the model is
 * asked at every state, once. The arena is the whole budget, since what a chain takes of it
 * cannot be known; tables are sized for the longest chain. A sweep that resumes from a journal is
 * told the length where it was told before, and so has the same actions.
 */
#include "sweep/online_sweep.h"
#include "sweep/actions.h"
#include "sweep/repair/finish_without_tiers.h"
#include "sweep/steps.h"
#include "sweep/table_sizes.h"
#include "base/fail.h"
#include "plan/online/online_schedule.h"
#include "plan/online/online_tier.h"
#include "plan/core/sizing.h"
#include "plan/core/strategy.h"

#define UNKNOWN (INT64_MAX / 4) /* steps: more than any chain, and sums of it do not overflow */
#define COMING 4       /* slots and records of tapes on their way, beyond those that are kept */
#define LEAF_PIECES 16 /* separate records that a leaf, or what comes back, is recorded in */

static int check(const struct neap_sweep *s)
{
	const struct neap_sweep_options *o = &s->options;
	if (o->memory == 0)
		return neap__fail(
			NEAP_EUSAGE, "a chain of unknown length requires a budget (memory)");
	if (o->saved || s->open)
		return neap__fail(NEAP_EUSAGE, "a chain of unknown length cannot use a saved plan");
	if (o->strategy && !(neap_strategy_traits(o->strategy) & NEAP_STRATEGY_UNKNOWN_LENGTH))
		return neap__fail(NEAP_EUSAGE,
			"strategy %s requires the length of the chain; use online", o->strategy);
	return 0;
}

/* Steps are recorded one by one going forward: each tape of the tier is a piece of its own. */
static void size_tier(struct neap__table_sizes *sizes, const struct neap__online_sizes *x)
{
	int i = x->tier - 1;
	int64_t tapes = x->pool / x->tape, most = x->recent + 2 * COMING * x->chunk;
	sizes->scattered = 1;
	sizes->slots = x->slots + COMING;
	sizes->places[i] = x->states;
	sizes->tape_places[i] = x->chunks;
	sizes->longest[i] = x->chunk;
	sizes->pieces = x->chunks * x->chunk;
	sizes->spans = x->chunk;
	sizes->span_rows = x->chunks ? NEAP__ONLINE_RECORDS : 0;
	sizes->extents = (tapes / NEAP__RECORD_BLOCK + LEAF_PIECES) * (NEAP__HOLE_CUTS + 1) +
			 (most < tapes ? most : tapes);
	sizes->ranges = neap__online_ring_room(x) + NEAP__ONLINE_RECORDS + LEAF_PIECES;
}

int neap__online_plan(struct neap_sweep *s)
{
	struct neap_chain *c = &s->problem.chain;
	struct neap__online_sizes tier;
	struct neap_online *trial;
	NEAP_TRY(check(s));
	s->problem.memory &= ~(uint64_t)63;
	c->steps = UNKNOWN;
	NEAP_TRY(neap_online_create(&trial, &s->problem));
	int64_t leaf = neap__online_leaf(trial), slots = neap__online_slots(&s->problem);
	neap_online_free(trial);
	neap__online_sizes(&tier, &s->problem);
	s->plan = (struct neap_plan){
		.size = sizeof(struct neap_plan),
		.strategy = neap__strategy_online.name,
		.chosen = neap__strategy_online.name,
		.feasible = 1,
		.tier = tier.tier,
		.params.checkpoints = tier.tier ? tier.slots : slots,
		.slots = tier.tier ? tier.slots : slots,
		.arena_bytes = s->problem.memory,
		.peak_bytes = s->problem.memory - neap__tape_reserve(&s->problem),
	};
	s->sizes = (struct neap__table_sizes){
		.slots = slots,
		.extents = leaf / NEAP__RECORD_BLOCK + 3,
		.ranges = 2,
	};
	if (tier.tier)
		size_tier(&s->sizes, &tier);
	return 0;
}

int neap__online_begin(struct neap_sweep *s)
{
	s->problem.chain.steps = UNKNOWN;
	s->walk = (struct neap__online_walk){.told_at = -1};
	NEAP_TRY(neap_online_create(&s->online, &s->problem));
	return neap__online_reserve(s->online);
}

static int tell(struct neap_sweep *s, int64_t at, int64_t steps)
{
	s->problem.chain.steps = s->walk.steps = steps;
	s->walk.told_at = at;
	s->walk.told = 1;
	return neap_online_finish(s->online, at, steps);
}

static int answer_of(struct neap_sweep *s, int *answer)
{
	if (s->steps_most && s->live_t >= s->steps_most) {
		*answer = NEAP_ENDED;
		return 0;
	}
	int rc = s->ops.ended(s->user, neap__live(s), s->live_t);
	if (rc < 0)
		return rc;
	if (rc > NEAP_LAST_STEP)
		return neap__fail(NEAP_EMODEL, "the model's ended answered %d", rc);
	*answer = rc;
	return 0;
}

int neap__online_ask_ahead(struct neap_sweep *s, int *answer)
{
	NEAP_TRY(answer_of(s, answer));
	s->ahead = s->live_t + 1;
	s->ahead_answer = *answer;
	return 0;
}

/* Asks the model whether the chain ends at the live state, unless it was asked ahead. */
static int ask(struct neap_sweep *s)
{
	int64_t t = s->live_t;
	int answer = t == s->ahead - 1 ? s->ahead_answer : NEAP_GO_ON;
	if (t >= s->ahead)
		NEAP_TRY(answer_of(s, &answer));
	return answer == NEAP_GO_ON ? 0 : tell(s, t, t + (answer == NEAP_LAST_STEP));
}

static int goes_forward(const struct neap_action *a)
{
	return a->kind == NEAP_ADVANCE || a->kind == NEAP_RECORD;
}

/*
 * The next action, or the next step of one whose end is not sure. 1; 2 where an action begins;
 * 0 at the end.
 */
static int next(struct neap_sweep *s, struct neap_action *step)
{
	struct neap__online_walk *walk = &s->walk;
	struct neap_action *a = &walk->action;
	int begins = !walk->within || walk->told || a->t0 == a->t1;
	if (begins) {
		int more = neap_online_next(s->online, a);
		if (more <= 0)
			return more;
		walk->within = !walk->told && goes_forward(a);
	}
	*step = *a;
	if (walk->within)
		step->t1 = a->t0 = step->t0 + 1;
	return 1 + begins;
}

int neap__online_replay(struct neap_sweep *s, int64_t count, uint64_t *hash)
{
	int64_t told_at = s->walk.told_at, steps = s->walk.steps;
	if (told_at == 0)
		NEAP_TRY(tell(s, 0, steps));
	for (int64_t i = 0; i < count; i++) {
		struct neap_action step;
		int more = next(s, &step);
		if (more <= 0)
			return more;
		*hash = neap__journal_hash(*hash, &step, sizeof step);
		if (s->walk.within && !s->walk.told && step.t1 == told_at)
			NEAP_TRY(tell(s, told_at, steps));
	}
	s->walk.asked = 1;
	return 0;
}

int neap__online_perform(struct neap_sweep *s)
{
	struct neap_action step;
	int more;
	if (s->fallback) /* given up before the run was interrupted */
		return neap__fallback(s);
	if (!s->walk.asked)
		NEAP_TRY(ask(s));
	while ((more = next(s, &step)) > 0) {
		const struct neap_action *whole = s->walk.within ? &s->walk.action : &step;
		if (more == 2 && s->ops.will_touch && step.kind <= NEAP_BACKWARD &&
			step.kind != NEAP_TURN)
			s->ops.will_touch(s->user, step.t0, whole->t1);
		NEAP_TRY(neap__step_interrupted(s));
		NEAP_TRY(neap__action_perform(s, &step));
		if (s->fallback)
			return neap__fallback(s);
		if (s->walk.within)
			NEAP_TRY(ask(s));
	}
	return more;
}

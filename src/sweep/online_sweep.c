/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_sweep.c: sweeps over chains whose length the model tells (neap_step_ops.ended). The
 * actions come from neap_online_next; going forward, steps are taken one by one, and the model is
 * asked at every state, once. The arena is the whole budget, since what a chain takes of it
 * cannot be known; tables are sized for the longest chain.
 */
#include "sweep/online_sweep.h"
#include "sweep/actions.h"
#include "sweep/steps.h"
#include "sweep/table_sizes.h"
#include "base/fail.h"
#include "plan/online/online_schedule.h"
#include "plan/core/sizing.h"
#include "plan/core/strategy.h"

#define UNKNOWN (INT64_MAX / 4) /* steps: more than any chain, and sums of it do not overflow */

static int check(const struct neap_sweep *s)
{
	const struct neap_sweep_options *o = &s->options;
	if (o->memory == 0)
		return neap__fail(NEAP_EUSAGE, "a chain of unknown length needs a budget");
	if (o->ntiers > 0 || o->saved || s->open)
		return neap__fail(
			NEAP_EUSAGE, "a chain of unknown length takes no slow tiers and no plan");
	if (o->strategy && !(neap_strategy_traits(o->strategy) & NEAP_STRATEGY_UNKNOWN_LENGTH))
		return neap__fail(
			NEAP_EUSAGE, "%s: needs to know the length of the chain", o->strategy);
	return 0;
}

int neap__online_plan(struct neap_sweep *s)
{
	struct neap_chain *c = &s->problem.chain;
	struct neap_online *trial;
	NEAP_TRY(check(s));
	s->problem.memory &= ~(uint64_t)63;
	c->steps = UNKNOWN;
	NEAP_TRY(neap_online_create(&trial, &s->problem));
	int64_t leaf = neap__online_leaf(trial), slots = neap__online_slots(&s->problem);
	neap_online_free(trial);
	s->plan = (struct neap_plan){
		.size = sizeof(struct neap_plan),
		.strategy = neap__strategy_online.name,
		.chosen = neap__strategy_online.name,
		.feasible = 1,
		.params.checkpoints = slots,
		.slots = slots,
		.arena_bytes = s->problem.memory,
		.peak_bytes = s->problem.memory - neap__tape_reserve(&s->problem),
	};
	s->sizes = (struct neap__table_sizes){
		.slots = slots,
		.extents = leaf / NEAP__RECORD_BLOCK + 3,
		.ranges = 2,
	};
	return 0;
}

int neap__online_begin(struct neap_sweep *s)
{
	s->problem.chain.steps = UNKNOWN;
	NEAP_TRY(neap_online_create(&s->online, &s->problem));
	return neap__online_reserve(s->online);
}

/* Asks the model whether the chain ends at the live state; *ended becomes 1 when it does. */
static int ask(struct neap_sweep *s, int *ended)
{
	int64_t t = s->live_t;
	int answer = s->ops.ended(s->user, neap__live(s), t);
	if (answer < 0)
		return answer;
	if (answer > NEAP_LAST_STEP)
		return neap__fail(NEAP_EMODEL, "the model's ended answered %d", answer);
	if (answer == NEAP_GO_ON)
		return 0;
	*ended = 1;
	s->problem.chain.steps = t + (answer == NEAP_LAST_STEP);
	return neap_online_finish(s->online, t, s->problem.chain.steps);
}

/* Up to the end of the action or of the chain. */
static int go_forward(struct neap_sweep *s, const struct neap_action *a, int *ended)
{
	struct neap_action step = *a;
	while (step.t0 < a->t1 && !*ended) {
		step.t1 = step.t0 + 1;
		NEAP_TRY(neap__action_perform(s, &step));
		step.t0 = step.t1;
		NEAP_TRY(ask(s, ended));
	}
	return 0;
}

int neap__online_perform(struct neap_sweep *s)
{
	struct neap_action a;
	int ended = 0, more;
	NEAP_TRY(ask(s, &ended));
	while ((more = neap_online_next(s->online, &a)) > 0) {
		NEAP_TRY(neap__step_interrupted(s));
		if (s->ops.will_touch && a.kind <= NEAP_BACKWARD && a.kind != NEAP_TURN)
			s->ops.will_touch(s->user, a.t0, a.t1);
		if (a.kind == NEAP_ADVANCE && !ended)
			NEAP_TRY(go_forward(s, &a, &ended));
		else
			NEAP_TRY(neap__action_perform(s, &a));
	}
	return more;
}

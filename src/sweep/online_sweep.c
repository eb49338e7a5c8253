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
#include "sweep/online_plan.h"
#include "sweep/steps/pieces.h"
#include "sweep/repair/finish_without_tiers.h"
#include "base/fail.h"
#include "plan/online/online_schedule.h"

int neap__online_begin(struct neap_sweep *s)
{
	s->problem.chain.steps = NEAP__STEPS_UNKNOWN;
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

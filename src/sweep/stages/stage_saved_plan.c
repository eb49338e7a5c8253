/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_saved_plan.c: a sweep of stages over a plan that was made before. The saved schedule is
 * used, with the costs and the budget that it was made for; sizes must be those of the sweep,
 * rounded up. The schedule is verified before it is walked (stage_program.c).
 */
#include "sweep/saved_plan.h"
#include "sweep/stages/stage_sweep.h"
#include "base/checked.h"
#include "base/fail.h"
#include "plan/core/stage_sizes.h"
#include "store/tier_state.h"

typedef long long ll;
typedef unsigned long long ull;

static int same(const char *what, int64_t i, uint64_t saved, uint64_t here)
{
	if (saved == here)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"the saved plan is of another problem: %s[%lld] is %llu there, %llu here", what,
		(ll)i, (ull)saved, (ull)here);
}

static int same_stage(const struct neap_stages *a, const struct neap_stages *b, int64_t i)
{
	NEAP_TRY(same("state", i, a->state[i], b->state[i]));
	NEAP_TRY(same("tape", i, a->tape[i], b->tape[i]));
	NEAP_TRY(same("advance_tmp", i, (uint64_t)neap__stage_advance_tmp(a, i),
		(uint64_t)neap__stage_advance_tmp(b, i)));
	NEAP_TRY(same("record_tmp", i, (uint64_t)neap__stage_record_tmp(a, i),
		(uint64_t)neap__stage_record_tmp(b, i)));
	return same("backward_tmp", i, (uint64_t)neap__stage_backward_tmp(a, i),
		(uint64_t)neap__stage_backward_tmp(b, i));
}

static int same_chain(const struct neap_problem *saved, const struct neap_problem *here)
{
	const struct neap_stages *a = saved->chain.stages, *b = here->chain.stages;
	int64_t n = here->chain.steps;
	if (!a || saved->chain.join || saved->chain.steps != n || a->flags != b->flags)
		return neap__fail(NEAP_EUSAGE,
			"the saved plan is of another problem than %lld stages with the flags %x",
			(ll)n, b->flags);
	if (saved->ntiers != here->ntiers)
		return neap__fail(NEAP_EUSAGE,
			"the saved plan is of another problem: it has %d tiers, not %d",
			saved->ntiers, here->ntiers);
	for (int64_t i = 0; i < n; i++)
		NEAP_TRY(same_stage(a, b, i));
	NEAP_TRY(same("state", n, a->state[n], b->state[n]));
	NEAP_TRY(same("adjoint", 0, saved->chain.adjoint, here->chain.adjoint));
	return same("backward_tmp", n, (uint64_t)neap__stage_backward_tmp(a, n),
		(uint64_t)neap__stage_backward_tmp(b, n));
}

/* A tier that needs no more staging will do; neap__stage_saved_plan_fits looks at its room. */
static int same_tiers(const struct neap_saved *saved, const struct neap_problem *here)
{
	for (int i = 0; i < here->ntiers; i++) {
		if (saved->problem->tiers[i].staging < here->tiers[i].staging)
			return neap__fail(NEAP_EUSAGE,
				"the saved plan is of another problem: a tier's staging is %llu "
				"there, %llu here",
				(ull)saved->problem->tiers[i].staging, (ull)here->tiers[i].staging);
	}
	return 0;
}

/* The walk over the schedule trusts it: this makes sure that it may. */
static int verify(const struct neap_saved *saved)
{
	struct neap_verdict verdict = {.size = sizeof verdict};
	struct neap_schedule *schedule;
	NEAP_TRY(neap_schedule_open(&schedule, saved->problem, saved->plan));
	int rc = neap_verify(&verdict, saved->problem, schedule);
	neap_schedule_close(schedule);
	return rc < 0 ? neap__fail_in(rc, "the saved plan: ") : 0;
}

int neap__stage_saved_plan_fits(const struct neap_stage_sweep *s)
{
	for (int i = 0; i < s->problem.ntiers; i++) {
		const struct neap_tier *tier = s->tiers[i];
		uint64_t needs = neap__tier_units_need(tier, s->largest[i], s->units[i]);
		if (s->units[i] > 0 && needs > tier->spec.capacity)
			return neap__saved_plan_no_room(needs, i + 1, tier->spec.capacity);
	}
	return 0;
}

int neap__stage_saved_plan(struct neap_stage_sweep *s, struct neap_schedule **schedule)
{
	const struct neap_saved *saved = s->options.saved;
	NEAP_TRY(neap_problem_check(saved->problem));
	NEAP_TRY(same_chain(saved->problem, &s->problem));
	if (saved->plan->peak_bytes > neap__sat_add(s->problem.memory, s->layout.spare))
		return neap__fail(NEAP_EINFEASIBLE,
			"the saved plan takes %llu bytes, more than %llu",
			(ull)saved->plan->peak_bytes, (ull)s->problem.memory);
	NEAP_TRY(same_tiers(saved, &s->problem));
	NEAP_TRY(verify(saved));
	for (int i = 0; i < s->problem.ntiers; i++)
		s->problem.tiers[i].staging = saved->problem->tiers[i].staging;
	s->plan = *saved->plan;
	return neap_schedule_open(schedule, saved->problem, saved->plan);
}

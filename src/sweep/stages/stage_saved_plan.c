/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_saved_plan.c: a sweep of stages over a plan that was made before. Its schedule is the one
 * that was saved, costs and budget those it was made for; sizes must be the sweep's own, rounded
 * up. Whether it is legal shows when its calls are made.
 */
#include "sweep/stages/stage_sweep.h"
#include "base/fail.h"
#include "plan/core/stage_sizes.h"

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
	if (!a || saved->chain.join || saved->ntiers || saved->chain.steps != n ||
		a->flags != b->flags)
		return neap__fail(NEAP_EUSAGE,
			"the saved plan is of another problem than %lld stages with the flags %x "
			"and no slow tier",
			(ll)n, b->flags);
	for (int64_t i = 0; i < n; i++)
		NEAP_TRY(same_stage(a, b, i));
	NEAP_TRY(same("state", n, a->state[n], b->state[n]));
	NEAP_TRY(same("adjoint", 0, saved->chain.adjoint, here->chain.adjoint));
	return same("backward_tmp", n, (uint64_t)neap__stage_backward_tmp(a, n),
		(uint64_t)neap__stage_backward_tmp(b, n));
}

int neap__stage_saved_plan(struct neap_stage_sweep *s, struct neap_schedule **schedule)
{
	const struct neap_saved *saved = s->options.saved;
	NEAP_TRY(neap_problem_check(saved->problem));
	NEAP_TRY(same_chain(saved->problem, &s->problem));
	if (saved->plan->peak_bytes > s->problem.memory)
		return neap__fail(NEAP_EINFEASIBLE,
			"the saved plan takes %llu bytes, more than %llu",
			(ull)saved->plan->peak_bytes, (ull)s->problem.memory);
	s->plan = *saved->plan;
	return neap_schedule_open(schedule, saved->problem, saved->plan);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saved_plan.c: a sweep over a plan that was made before. Its schedule is the one that was saved:
 * costs, tier rates and budget are those it was made for. Sizes and tiers must be the sweep's
 * own.
 */
#include "sweep/saved_plan.h"
#include "base/fail.h"

typedef unsigned long long ull;

static int differs(const char *what, uint64_t saved, uint64_t here)
{
	return neap__fail(NEAP_EUSAGE,
		"the saved plan is of another problem: %s is %llu there, %llu here", what,
		(ull)saved, (ull)here);
}

/* `mean`: the mean of tapes that vary must be the same, too; that of a journal's plan may differ.
 */
static int same_chain(const struct neap_chain *a, const struct neap_chain *b, int mean)
{
	int varies = b->tape_max > 0 && !mean;
	uint64_t log = mean ? (b->log ? b->log : a->log) : a->log && b->log ? a->log : b->log;
	const struct {
		const char *name;
		uint64_t saved, here;
	} rows[] = {
		{"steps", (uint64_t)a->steps, (uint64_t)b->steps},
		{"state", a->state, b->state},
		{"tape", a->tape, varies ? a->tape : b->tape},
		{"tape_max", a->tape_max, b->tape_max},
		{"adjoint", a->adjoint, b->adjoint},
		{"live", a->live, b->live},
		{"log", a->log, log},
	};
	if (a->stages || a->join || a->flags & NEAP_CHAIN_CLASSIC)
		return neap__fail(NEAP_EUSAGE,
			"the saved plan is of another kind of problem: a sweep has one chain of "
			"equal steps, in bytes");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].saved != rows[i].here)
			return differs(rows[i].name, rows[i].saved, rows[i].here);
	return 0;
}

/*
 * A tier that holds what the plan puts there, and needs less staging, will do: `used` is the plan's
 * use, NULL where a sweep resumes. Then its own records take room, and a tier that is full refuses
 * them later.
 */
static int fit_tiers(
	const struct neap_sweep *s, const struct neap_problem *a, const struct neap_tier_use *used)
{
	const struct neap_problem *b = &s->problem;
	for (int i = 0; i < a->ntiers; i++) {
		if (used && used[i].peak_bytes > b->tiers[i].capacity)
			return neap__fail(NEAP_EINFEASIBLE,
				"the saved plan puts %llu bytes into a tier that holds %llu",
				(ull)used[i].peak_bytes, (ull)b->tiers[i].capacity);
		struct neap_tier_spec least;
		neap_tier_describe(s->tiers[i], b->chain.state, &least);
		if (a->tiers[i].staging < least.staging)
			return differs("a tier's staging", a->tiers[i].staging, least.staging);
	}
	return 0;
}

int neap__saved_plan_take(struct neap_sweep *s)
{
	const struct neap_saved *saved = s->options.saved;
	struct neap_schedule *schedule;
	struct neap_verdict verdict = {.size = sizeof verdict};
	struct neap_problem problem = *saved->problem;
	int own = saved != s->journal.plan;
	NEAP_TRY(neap_problem_check(&problem));
	NEAP_TRY(same_chain(&problem.chain, &s->problem.chain, own));
	if (problem.ntiers != s->problem.ntiers)
		return differs("the number of tiers", (uint64_t)problem.ntiers,
			(uint64_t)s->problem.ntiers);
	if (saved->plan->arena_bytes > s->problem.memory)
		return neap__fail(NEAP_EINFEASIBLE,
			"the saved plan takes %llu bytes, more than %llu",
			(ull)saved->plan->arena_bytes, (ull)s->problem.memory);
	problem.chain.flags |= s->problem.chain.flags & NEAP_CHAIN_TAPES_STAY;
	NEAP_TRY(neap_schedule_open(&schedule, &problem, saved->plan));
	int rc = neap_verify(&verdict, &problem, schedule);
	neap_schedule_close(schedule);
	if (rc < 0)
		return neap__fail_in(rc, "the saved plan: ");
	if (verdict.arena_bytes > saved->plan->arena_bytes)
		return neap__fail(NEAP_EILLEGAL, "the saved plan takes %llu bytes, not %llu",
			(ull)verdict.arena_bytes, (ull)saved->plan->arena_bytes);
	NEAP_TRY(fit_tiers(s, &problem, own ? verdict.tiers : NULL));
	s->problem = problem;
	s->plan = *saved->plan;
	return 0;
}

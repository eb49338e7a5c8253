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
 * A tier that holds more, or needs less staging, will do. `room`: its capacity must suffice; where
 * a sweep resumes, its own records take room, and a tier that is full refuses them later.
 */
static int same_tiers(const struct neap_sweep *s, const struct neap_problem *a, int room)
{
	const struct neap_problem *b = &s->problem;
	if (a->ntiers != b->ntiers)
		return differs("the number of tiers", (uint64_t)a->ntiers, (uint64_t)b->ntiers);
	for (int i = 0; i < a->ntiers; i++) {
		if (room && a->tiers[i].capacity > b->tiers[i].capacity)
			return differs(
				"a tier's capacity", a->tiers[i].capacity, b->tiers[i].capacity);
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
	uint32_t stay = s->problem.chain.flags & NEAP_CHAIN_TAPES_STAY;
	NEAP_TRY(neap_problem_check(saved->problem));
	int own = saved != s->journal.plan;
	NEAP_TRY(same_chain(&saved->problem->chain, &s->problem.chain, own));
	NEAP_TRY(same_tiers(s, saved->problem, own));
	if (saved->plan->arena_bytes > s->problem.memory)
		return neap__fail(NEAP_EINFEASIBLE,
			"the saved plan takes %llu bytes, more than %llu",
			(ull)saved->plan->arena_bytes, (ull)s->problem.memory);
	s->problem = *saved->problem;
	s->problem.chain.flags |= stay;
	s->plan = *saved->plan;
	NEAP_TRY(neap_schedule_open(&schedule, &s->problem, &s->plan));
	int rc = neap_verify(&verdict, &s->problem, schedule);
	neap_schedule_close(schedule);
	if (rc < 0)
		return neap__fail_in(rc, "the saved plan: ");
	if (verdict.arena_bytes > s->plan.arena_bytes)
		return neap__fail(NEAP_EILLEGAL, "the saved plan takes %llu bytes, not %llu",
			(ull)verdict.arena_bytes, (ull)s->plan.arena_bytes);
	return 0;
}

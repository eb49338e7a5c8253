/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saved_plan.c: a sweep over a plan that was made before. Its schedule is the one that was saved:
 * costs, tier rates and budget are those it was made for. Sizes must be the sweep's own; a tier
 * must hold what the plan puts there.
 */
#include "sweep/saved_plan.h"
#include "base/fail.h"
#include "store/tier_state.h"

typedef unsigned long long ull;

static int differs(const char *what, uint64_t saved, uint64_t here)
{
	return neap__fail(NEAP_EUSAGE,
		"the saved plan is of another problem: %s is %llu there, but %llu here. Make a new "
		"plan",
		what, (ull)saved, (ull)here);
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
			"the saved plan is of another kind of problem; a sweep "
			"requires a single chain of equal steps in bytes");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].saved != rows[i].here)
			return differs(rows[i].name, rows[i].saved, rows[i].here);
	return 0;
}

/* A tier that needs less staging than the plan has for it will do. */
static int fit_staging(const struct neap_sweep *s, const struct neap_problem *a)
{
	for (int i = 0; i < a->ntiers; i++) {
		struct neap_tier_spec least;
		neap_tier_describe(s->tiers[i], s->problem.chain.state, &least);
		if (!s->ops.memory && a->tiers[i].staging < least.staging)
			return differs("a tier's staging", a->tiers[i].staging, least.staging);
	}
	return 0;
}

int neap__saved_plan_fits(const struct neap_sweep *s)
{
	for (int i = 0; i < s->problem.ntiers; i++) {
		const struct neap_tier *tier = s->tiers[i];
		struct neap__records states = {s->problem.chain.state, s->sizes.places[i]};
		struct neap__records tapes = {s->tape_place_bytes[i], s->sizes.tape_places[i]};
		uint64_t needs = neap__tier_needs(tier, states, tapes);
		if (needs > tier->spec.capacity)
			return neap__saved_plan_no_room(needs, i + 1, tier->spec.capacity);
	}
	return 0;
}

int neap__saved_plan_no_room(uint64_t needs, int tier, uint64_t capacity)
{
	return neap__fail(NEAP_EINFEASIBLE,
		"the saved plan needs %llu bytes on slow tier %d, which has %llu. Use a larger "
		"one, or make a new plan",
		(ull)needs, tier, (ull)capacity);
}

int neap__saved_plan_take(struct neap_sweep *s)
{
	const struct neap_saved *saved = s->options.saved;
	struct neap_schedule *schedule;
	struct neap_verdict verdict = {.size = sizeof verdict};
	struct neap_problem problem = *saved->problem;
	int own = saved != s->journal.base.plan;
	NEAP_TRY(neap_problem_check(&problem));
	NEAP_TRY(same_chain(&problem.chain, &s->problem.chain, own));
	if (problem.ntiers != s->problem.ntiers)
		return differs("the number of tiers", (uint64_t)problem.ntiers,
			(uint64_t)s->problem.ntiers);
	if (saved->plan->arena_bytes > s->problem.memory)
		return neap__fail(NEAP_EINFEASIBLE,
			"the saved plan takes %llu bytes, more than the budget of %llu. Raise the "
			"budget, or make a new plan",
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
	NEAP_TRY(fit_staging(s, &problem));
	s->problem = problem;
	s->plan = *saved->plan;
	return 0;
}

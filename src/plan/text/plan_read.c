/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_read.c: reads a plan from text. After parsing, verify and simulate go through the
 * schedule, and every number that the text claims is compared with what they found, so that a
 * wrong file cannot make a sweep fail.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/text/plan_parse.h"
#include "plan/core/plan_row.h"

#define SLOTS_MOST ((int64_t)1 << 31)

typedef long long ll;

/*
 * A schedule of at most so many actions, with no slot that is far beyond the budget:
 * tables are as long as slot numbers are large.
 */
struct plan_walk {
	struct neap_schedule *inner;
	int64_t left, most, slots;
};

static int walk_next(void *user, struct neap_action *action)
{
	struct plan_walk *w = user;
	if (w->most && w->left-- <= 0)
		return neap__fail(
			NEAP_EUSAGE, "the schedule has more than %lld actions", (ll)w->most);
	int rc = neap_schedule_next(w->inner, action);
	if (rc > 0 && action->slot > w->slots)
		return neap__fail(
			NEAP_EINFEASIBLE, "slot %lld is beyond the budget", (ll)action->slot);
	return rc;
}

static void walk_close(void *user)
{
	struct plan_walk *w = user;
	neap_schedule_close(w->inner);
}

static int open_walk(struct neap_schedule **s, struct plan_walk *w, const struct neap_saved *x)
{
	*s = NULL;
	w->left = w->most + 1; /* the last call says that there are no more */
	w->slots = INT64_MAX;
	if (!x->problem->chain.stages && !x->plan->actions) {
		uint64_t slots = x->problem->memory / x->problem->chain.state;
		w->slots = slots < (uint64_t)SLOTS_MOST ? (int64_t)slots + 256 : SLOTS_MOST;
	}
	NEAP_TRY(neap_schedule_open(&w->inner, x->problem, x->plan));
	int rc = neap_schedule_wrap(s, walk_next, walk_close, w);
	if (rc < 0)
		neap_schedule_close(w->inner);
	return rc;
}

/* The numbers of a plan by walking its schedule. */
static int walk(struct neap_plan *found, const struct neap_saved *x, int64_t most)
{
	struct neap_verdict v = {.size = sizeof v};
	struct neap_simulation m = {.size = sizeof m};
	struct plan_walk w = {.most = most};
	struct neap_schedule *s;
	NEAP_TRY(open_walk(&s, &w, x));
	int rc = neap_verify(&v, x->problem, s);
	neap_schedule_close(s);
	NEAP_TRY(rc);
	NEAP_TRY(open_walk(&s, &w, x));
	rc = neap_simulate(&m, x->problem, s);
	neap_schedule_close(s);
	NEAP_TRY(rc);
	found->peak_bytes = v.peak_bytes;
	found->arena_bytes = v.arena_bytes;
	found->slots = v.slots;
	found->advance_steps = v.advance_steps;
	found->record_steps = v.record_steps;
	memcpy(found->tiers, v.tiers, sizeof found->tiers);
	found->makespan = m.makespan;
	found->stall = m.stall;
	found->lost = m.lost;
	return 0;
}

static int same_real(const struct neap__key *key, double a, double b, double makespan)
{
	int ratio = strcmp(key->name, "overhead") == 0 || strcmp(key->name, "gap") == 0;
	double scale = fmax(fmax(fabs(a), fabs(b)), ratio ? 1 : makespan);
	return a == b || fabs(a - b) <= 1e-9 * scale;
}

/* One number claimed and found; unclaimed ones are taken over. */
static int settle(const struct neap__key *key, int64_t line, void *claimed, const void *found,
	double makespan)
{
	if (line == 0) {
		memcpy(claimed, found, 8);
		return 0;
	}
	if (key->type == NEAP__KEY_REAL) {
		char x[NEAP__NUMBER_TEXT], y[NEAP__NUMBER_TEXT];
		double a, b;
		memcpy(&a, claimed, sizeof a);
		memcpy(&b, found, sizeof b);
		if (!same_real(key, a, b, makespan))
			return neap__fail(NEAP_EFORMAT,
				"line %lld: %s: the file has %s, but %s was computed", (ll)line,
				key->name, neap__show_real(x, a), neap__show_real(y, b));
		return 0;
	}
	uint64_t a, b;
	memcpy(&a, claimed, sizeof a);
	memcpy(&b, found, sizeof b);
	if (a != b)
		return neap__fail(NEAP_EFORMAT,
			"line %lld: %s: the file has %llu, but %llu was computed", (ll)line,
			key->name, (unsigned long long)a, (unsigned long long)b);
	return 0;
}

/*
 * The peak of a very long plan of blocks is said to be the whole budget, as it is not
 * run to its end (block_plan.h): no less than what is found, no more than there is.
 */
static void round_peak(struct neap_plan *found, const struct neap_saved *x)
{
	const struct neap_plan *plan = x->plan;
	if (plan->blocks.advance + plan->blocks.record == 0 ||
		plan->arena_bytes > x->problem->memory || plan->peak_bytes > plan->arena_bytes)
		return;
	if (plan->arena_bytes > found->arena_bytes && plan->peak_bytes > found->peak_bytes) {
		found->arena_bytes = plan->arena_bytes;
		found->peak_bytes = plan->peak_bytes;
	}
}

/*
 * A lower bound, and the gap to it, are those of the program that wrote them: those found replace
 * them. Earlier versions wrote weaker bounds and, with slow tiers, estimates above the bound.
 */
static void renew_bound(struct neap_plan *plan, const struct neap_plan *found)
{
	double gap = plan->bound > 0 ? found->makespan / plan->bound - 1 : 0;
	if (plan->bound > 0 && fabs(plan->bound - found->bound) > 1e-9 * found->bound &&
		(plan->gap == 0 || fabs(plan->gap - gap) <= 1e-9 * fmax(fabs(gap), 1))) {
		plan->bound = found->bound;
		plan->gap = found->gap;
	}
}

static int settle_all(struct neap__parsed *x, struct neap_plan *found)
{
	struct neap_plan *plan = &x->plan;
	round_peak(found, &x->saved);
	renew_bound(plan, found);
	for (int i = 0; neap__plan_keys[i].name; i++) {
		const struct neap__key *key = &neap__plan_keys[i];
		char *claimed = (char *)plan + key->offset;
		const char *other = (const char *)found + key->offset;
		if (key->section == NEAP__IN_PREDICTED)
			NEAP_TRY(settle(key, x->line[i], claimed, other, found->makespan));
		for (int k = 0; key->section == NEAP__IN_USED && k < x->problem.ntiers; k++)
			NEAP_TRY(settle(key, x->used_line[k][i],
				(char *)&plan->tiers[k] + key->offset,
				(const char *)&found->tiers[k] + key->offset, found->makespan));
	}
	if (found->slots > plan->slots)
		plan->slots = found->slots;
	return 0;
}

static int check(struct neap__parsed *x, int64_t most)
{
	struct neap_saved *saved = &x->saved;
	struct neap_plan found = {.size = sizeof found};
	const struct neap_problem *p = saved->problem;
	NEAP_TRY(neap_problem_check(p));
	NEAP_TRY(walk(&found, saved, most));
	if (found.arena_bytes > p->memory)
		return neap__fail(NEAP_EINFEASIBLE,
			"the plan takes %llu bytes, more than the budget of %llu",
			(unsigned long long)found.arena_bytes, (unsigned long long)p->memory);
	found.feasible = 1;
	if (p->chain.steps == 0)
		found.makespan = 0; /* the loss is the caller's */
	neap__plan_complete(&found, p);
	if (p->chain.steps > 0)
		neap__plan_bound(&found, neap_bound(p));
	/* The one number that only a search could tell. */
	found.model_bound = saved->plan->model_bound;
	if (!(found.model_bound >= 0 && found.model_bound <= found.makespan * (1 + 1e-9)))
		return neap__fail(NEAP_EFORMAT, "model_bound: %g is not between 0 and %g",
			found.model_bound, found.makespan);
	return settle_all(x, &found);
}

int neap_plan_read(struct neap_saved **saved, const char *text, size_t length, int64_t walk_most)
{
	NEAP_NEED(saved, text);
	struct neap__parsed *x = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "plan: out of memory");
	int rc = neap__plan_parse(x, text, length);
	if (rc == 0)
		rc = check(x, walk_most);
	if (rc < 0) {
		neap_saved_free(&x->saved);
		return rc;
	}
	*saved = &x->saved;
	return 0;
}

void neap_saved_free(struct neap_saved *saved)
{
	if (!saved)
		return;
	struct neap__parsed *x = (struct neap__parsed *)(void *)saved;
	neap__parsed_free(x);
	free(x);
}

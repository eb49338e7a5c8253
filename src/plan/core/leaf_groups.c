/* SPDX-License-Identifier: Apache-2.0 */
/* leaf_groups.c: tries lengths of groups, and multiplies the steps of a schedule. */
#include "plan/core/leaf_groups.h"

#include <math.h>
#include "base/checked.h"
#include "base/fail.h"
#include "plan/core/predict_plan.h"
#include "plan/core/schedule.h"
#include "plan/core/sizing.h"

/* Calls that take a smaller part of the time are left alone (chosen: no group gains more). */
#define CALLS_COUNT 0.01
#define SHORT 256    /* steps of chains for which all lengths are tried (chosen: milliseconds) */
#define MANY 1000000 /* groups, whose actions take some hundredths of a second */
#define FASTER 1e-13 /* relative, so that rounding does not decide */

/* Takes the plan of groups of g steps if it is faster. */
static int attempt(struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *p, const struct neap_params *fixed, int64_t g)
{
	struct neap_problem grouped;
	struct neap_plan trial = {
		.size = sizeof trial, .strategy = plan->strategy, .chosen = plan->chosen};
	if (!neap__grouped_chain(&grouped, p, g))
		return 0;
	NEAP_TRY(row->solve(&trial, &grouped, fixed));
	if (!trial.feasible || __builtin_mul_overflow(trial.advance_steps, g, &trial.advance_steps))
		return 0;
	trial.record_steps = p->chain.steps;
	trial.params.group = g;
	/* What the last group is short of, but for reads that it would have hidden. */
	double missing = (double)(grouped.chain.steps * g - p->chain.steps) *
			 (p->chain.record + p->chain.backward);
	trial.makespan -= missing;
	trial.model_bound = fmax(trial.model_bound - missing, 0);
	if (trial.makespan < plan->makespan * (1 - FASTER))
		*plan = trial;
	return 0;
}

/*
 * All lengths if the chain is short. Else lengths that grow by 1/8, all of them up to 8; then steps
 * around the best that are halved.
 */
static int search(struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *p, const struct neap_params *fixed, int64_t most)
{
	const int64_t part = p->chain.steps > SHORT ? 8 : SHORT + 1;
	for (int64_t g = 2; g < most; g += g / part + 1)
		NEAP_TRY(attempt(plan, row, p, fixed, g));
	NEAP_TRY(attempt(plan, row, p, fixed, most));
	for (int64_t step = plan->params.group / 16 + 1; plan->params.group && step > 0; step /= 2)
		for (int sign = -1; sign <= 1; sign += 2)
			for (int i = 0; i < 4; i++) {
				int64_t g = plan->params.group + sign * step;
				double before = plan->makespan;
				if (g > 1 && g <= most)
					NEAP_TRY(attempt(plan, row, p, fixed, g));
				if (!(plan->makespan < before))
					break;
			}
	return 0;
}

/* The most bytes of slots and tapes that the schedule of the plan has at a time. */
static int measure(int64_t *most, const struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *p)
{
	struct neap_schedule *s;
	struct neap_action a;
	int64_t slots = 0, tapes = 0;
	int more;
	*most = 0;
	NEAP_TRY(neap__schedule_open_row(&s, row, p, plan));
	while ((more = neap_schedule_next(s, &a)) > 0) {
		slots += a.kind == NEAP_SAVE || (a.kind == NEAP_GET && a.slot != NEAP_LIVE);
		slots -= a.kind == NEAP_DROP;
		tapes += a.kind == NEAP_RECORD ? a.t1 - a.t0 : 0;
		int64_t bytes = neap__bytes(p, slots, tapes);
		*most = bytes > *most ? bytes : *most;
		tapes -= a.kind == NEAP_BACKWARD ? a.t1 - a.t0 : 0;
	}
	neap_schedule_close(s);
	return more;
}

/*
 * The plan with a shorter last group, by its actions: the group may be the only one while all
 * slots are used, and reads overlap with its BACKWARD. In a chain of many groups neither matters.
 */
static int shorten(
	struct neap_plan *plan, const struct neap__strategy *row, const struct neap_problem *p)
{
	int64_t most, planned = neap__bytes(p, plan->slots, plan->params.group);
	if (p->chain.steps / plan->params.group > MANY)
		return 0;
	if (plan->tier)
		NEAP_TRY(neap__predict(plan, row, p));
	NEAP_TRY(measure(&most, plan, row, p));
	plan->peak_bytes -= (uint64_t)(planned - most);
	plan->arena_bytes -= (uint64_t)(planned - most);
	return 0;
}

int neap__leaf_groups_improve(struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *p, const struct neap_params *fixed)
{
	const struct neap_chain *c = &p->chain;
	double calls = (3 * (double)c->steps - 1) * c->call;
	if (!row->leaf_steps || !plan->feasible || c->flags & NEAP_CHAIN_CLASSIC || c->stages ||
		c->join || !(calls > CALLS_COUNT * plan->makespan))
		return 0;
	struct neap_plan best = *plan;
	int64_t most = neap__tapes_fit(p, neap__pool_bytes(p, 0));
	if (most < 2)
		return 0;
	NEAP_TRY(search(&best, row, p, fixed, most));
	if (best.params.group == 0)
		return 0;
	if (c->steps % best.params.group)
		NEAP_TRY(shorten(&best, row, p));
	if (best.makespan < plan->makespan)
		*plan = best;
	return 0;
}

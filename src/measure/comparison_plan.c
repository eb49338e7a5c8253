/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_plan.c: what is compared, and its plans, where tapes vary from step to step. */
#include "measure/comparison.h"
#include "base/checked.h"
#include "base/fail.h"

#include <string.h>

/* Plans made at most until the tapes that one holds have room; each takes larger tapes. */
#define PLANS_MOST 12

static int chosen(const struct neap_compare_options *o, const char *name)
{
	for (int i = 0; o->strategies && o->strategies[i]; i++)
		if (strcmp(o->strategies[i], name) == 0)
			return 1;
	return o->strategies == NULL;
}

int neap__comparison_case(
	const struct neap__comparison *c, int number, struct neap_compare_case *as)
{
	const struct neap_compare_options *o = c->options;
	const char *name;

	if (o->cases_count > 0 && number < o->cases_count)
		*as = o->cases[number];
	if (o->cases_count > 0)
		return number < o->cases_count;
	for (int i = 0; (name = neap_strategy_name(i)); i++) {
		if (!chosen(o, name) || number-- > 0)
			continue;
		*as = (struct neap_compare_case){name, o->sweep.params, 0, 0};
		return 1;
	}
	return 0;
}

int neap__comparison_budget(
	const struct neap__comparison *c, uint64_t *memory, const struct neap_compare_case *as)
{
	struct neap_problem problem = c->result->problem;
	struct neap_plan plan = {.size = sizeof plan};

	*memory = as->memory ? as->memory : c->result->memory;
	if (!as->least)
		return 0;
	problem.memory = 1;
	NEAP_TRY(neap_plan_make(&plan, &problem, as->strategy, &as->params));
	*memory = plan.feasible || plan.least_bytes == 0 ? 1 : plan.least_bytes;
	return 0;
}

/* Raises *most to the arena of a strategy's plan, if it has one. */
static int arena_of(uint64_t *most, const struct neap_problem *problem, const char *strategy,
	const struct neap_params *params)
{
	struct neap_plan plan = {.size = sizeof plan};
	NEAP_TRY(neap_plan_make(&plan, problem, strategy, params));
	if (plan.feasible && plan.arena_bytes > *most)
		*most = plan.arena_bytes;
	return 0;
}

int neap__comparison_arena(const struct neap__comparison *c, uint64_t *most, uint64_t enough)
{
	struct neap_problem problem = c->result->problem;
	struct neap_compare_case as;
	const double tape = NEAP__TAPE_MARGIN * c->costs.tape_mean;

	problem.chain.tape = neap__round_up((uint64_t)tape + 1, 64);
	if (problem.chain.tape > problem.chain.tape_max)
		problem.chain.tape_max = 0;
	problem.chain.tape_mean = 0;
	for (int i = 0; *most < enough && neap__comparison_case(c, i, &as); i++) {
		NEAP_TRY(neap__comparison_budget(c, &problem.memory, &as));
		NEAP_TRY(arena_of(most, &problem, as.strategy, &as.params));
	}
	if (*most >= enough || c->options->no_reference)
		return 0;
	problem.ntiers = 0;
	problem.memory = c->reference_memory;
	if (!problem.memory)
		NEAP_TRY(neap__memory_half(&problem.memory, c->one.net));
	return arena_of(most, &problem, "bptt", NULL);
}

int neap__comparison_plan(struct neap__comparison *c, struct neap_sweep **sweep,
	const char *strategy, uint64_t memory)
{
	struct neap_sweep_options so;
	struct neap_step_ops ops;
	int64_t steps = c->one.batch->steps;
	double tape = NEAP__TAPE_MARGIN * neap__tape_sizes_worst(&c->tapes, steps);
	int rc = 0;

	*sweep = NULL;
	for (int i = 0; i < (c->resumes ? 1 : PLANS_MOST); i++) {
		neap_sweep_free(*sweep);
		*sweep = NULL;
		neap__comparison_ops(c, &ops, tape);
		neap__comparison_sweep(c, &so, steps, strategy);
		so.memory = memory;
		so.journal = c->options->sweep.journal;
		so.journal_seconds = c->options->sweep.journal_seconds;
		so.journal_in_memory = c->options->sweep.slow_in_memory;
		so.journal_key = so.journal ? neap__comparison_key(c) : 0;
		neap__sweep_pace_wrap(&c->timed, &ops, c->one.net);
		rc = neap_sweep_create(sweep, &ops, &c->timed, &so);
		if (rc < 0)
			break;
		double needed = NEAP__TAPE_MARGIN *
				neap__tape_sizes_worst(&c->tapes,
					neap_plan_tapes_held(neap_sweep_plan(*sweep), steps));
		if (needed <= tape)
			break;
		tape = needed;
	}
	struct neap_chain *chain = &c->result->problem.chain; /* tapes as sweeps have them */
	uint64_t mean = chain->tape_max ? neap__round_up(ops.tape_mean_bytes, 64) : 0;
	chain->tape = neap__round_up(ops.tape_bytes, 64);
	chain->tape_mean = mean < chain->tape ? mean : 0;
	return rc;
}

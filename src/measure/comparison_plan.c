/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_plan.c: plans of a comparison, where tapes vary from step to step. */
#include "measure/comparison.h"
#include "base/checked.h"

#include <string.h>

enum { PLANS = 12 };

/* Steps whose tapes a plan holds at a time. */
static int64_t tapes_held(const struct neap_plan *plan, int64_t steps)
{
	if (strcmp(plan->chosen, "bptt") == 0)
		return steps;
	/* Where chunks leave, what is held while they wait for each other is about a tail. */
	if (plan->blocks.record > 0 && plan->blocks.tail > plan->params.chunk)
		return plan->blocks.tail;
	int64_t interval = plan->params.interval, tail = plan->params.tail;
	if (strcmp(plan->chosen, "replay") == 0)
		return interval && (interval < tail || tail == 0) ? interval : tail;
	return plan->params.chunk > 0 ? plan->params.chunk : 1;
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
	for (int i = 0; i < (c->resumes ? 1 : PLANS); i++) {
		neap_sweep_free(*sweep);
		*sweep = NULL;
		neap__comparison_ops(c, &ops, tape);
		neap__comparison_sweep(c, &so, steps, strategy);
		so.memory = memory;
		so.journal = c->options->sweep.journal;
		so.journal_seconds = c->options->sweep.journal_seconds;
		so.journal_in_memory = c->options->sweep.slow_in_memory;
		so.journal_key = so.journal ? neap__comparison_key(c) : 0;
		neap__sweep_pace_wrap(&c->pieces, &ops, c->one.net);
		rc = neap_sweep_create(sweep, &ops, &c->pieces, &so);
		if (rc < 0)
			break;
		double needed =
			NEAP__TAPE_MARGIN * neap__tape_sizes_worst(&c->tapes,
						    tapes_held(neap_sweep_plan(*sweep), steps));
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

/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_plan.c: plans of a comparison, where tapes vary from step to step. */
#include "measure/comparison.h"
#include "base/checked.h"

/* Plans made at most until the tapes that one holds have room; each takes larger tapes. */
#define PLANS_MOST 12

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

/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_reference.c: the run that strategies are compared with: store-all (bptt). */
#include "measure/comparison.h"
#include "measure/batch_sampling.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>

/* A sweep over the first `steps` steps, within `memory` bytes (0: any). */
static int plan(
	struct neap__comparison *c, struct neap_sweep **sweep, int64_t steps, uint64_t memory)
{
	struct neap_sweep_options so;
	struct neap_step_ops ops;

	c->reference_batch = steps < c->one.batch->steps
				     ? neap__batch_cut(c->one.batch, c->cut, steps)
				     : *c->one.batch;
	NEAP_TRY(neap_net_begin(c->one.net, &c->reference_batch, &c->one.objective));
	neap__comparison_ops(c, &ops,
		NEAP__TAPE_MARGIN * neap__tape_sizes_worst(&c->tapes, c->one.batch->steps));
	neap__sweep_pace_wrap(&c->timed, &ops, c->one.net);
	neap__comparison_sweep(c, &so, steps, "bptt");
	so.memory = memory;
	so.ntiers = 0;
	return neap_sweep_create(sweep, &ops, &c->timed, &so);
}

/* Over all steps, if half of the free memory holds their tapes. */
static int whole(
	struct neap__comparison *c, struct neap_sweep **sweep, struct neap_compare_run *run)
{
	uint64_t half;

	NEAP_TRY(plan(c, sweep, c->one.batch->steps, 0));
	NEAP_TRY(neap__memory_half(&half, c->one.net));
	run->plan = *neap_sweep_plan(*sweep);
	if (run->plan.arena_bytes <= half)
		return 0;
	neap__print(run->what, sizeof run->what,
		"store-all would take more than half of the free memory; --reference-memory runs "
		"it over the steps that fit");
	neap_sweep_free(*sweep);
	*sweep = NULL;
	return 0;
}

/* Over the first steps, as many as the memory given holds. */
static int within(struct neap__comparison *c, struct neap_sweep **sweep,
	struct neap_compare_run *run, uint64_t memory)
{
	int64_t steps = c->one.batch->steps;
	int rc = plan(c, sweep, steps, memory);

	for (uint64_t parts = 64; rc == NEAP_EINFEASIBLE && steps > 1; parts--) {
		struct neap_net_sizes sizes = {.size = sizeof sizes};
		neap_net_get_sizes(c->one.net, &sizes);
		double tape =
			NEAP__TAPE_MARGIN * neap__tape_sizes_worst(&c->tapes, c->one.batch->steps);
		uint64_t one = neap__round_up((uint64_t)tape + 1, 64);
		int64_t fit = (int64_t)(memory / one * parts / 64) / 64 * 64;
		steps = parts > 32 && fit < steps ? fit : steps / 2;
		steps = steps > 1 ? steps : 1;
		rc = plan(c, sweep, steps, memory);
	}
	if (rc == NEAP_EINFEASIBLE && !c->options->reference_memory) { /* what a total left */
		neap__print(run->what, sizeof run->what, "%s", neap_detail());
		return 0;
	}
	NEAP_TRY(rc);
	run->plan = *neap_sweep_plan(*sweep);
	run->steps = steps;
	return 0;
}

int neap__comparison_reference(
	struct neap__comparison *c, struct neap_sweep **sweep, struct neap_compare_run *run)
{
	uint64_t memory = c->reference_memory;

	*sweep = NULL;
	free(c->cut);
	c->cut = calloc((size_t)c->one.batch->size, sizeof *c->cut);
	if (!c->cut)
		return neap__fail_errno(ENOMEM, "a batch of %d samples", c->one.batch->size);
	return memory ? within(c, sweep, run, memory) : whole(c, sweep, run);
}

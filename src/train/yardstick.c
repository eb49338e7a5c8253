/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yardstick.c: a sweep over a few first steps, within the budget and without transfers:
 * its steps forward and backward are weighed as those of longer ones.
 */
#include "train/comparison.h"
#include "train/stretches.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SECONDS 0.1 /* about */
enum { LEAST = 4 }; /* steps */

int neap__yardstick_make(struct neap__comparison *c)
{
	const struct neap__costs *known = &c->costs;
	double step = known->record + known->backward;
	int64_t steps = (int64_t)fmax(SECONDS / fmax(step, 1e-9), LEAST);
	struct neap__yardstick *yard = &c->yard;
	struct neap_sweep_options so;
	struct neap_step_ops ops;

	yard->sequences = calloc((size_t)c->one.batch->size, sizeof *yard->sequences);
	if (!yard->sequences)
		return neap__fail_errno(ENOMEM, "a batch of %d samples", c->one.batch->size);
	yard->batch = neap__batch_cut(c->one.batch, yard->sequences, steps);
	NEAP_TRY(neap_net_begin(c->one.net, &yard->batch, &c->one.objective));
	neap__comparison_ops(c, &ops, 0);
	ops.grad_save = NULL;
	ops.grad_load = NULL;
	neap__comparison_sweep(c, &so, yard->batch.steps, "auto");
	so.params = (struct neap_params){0};
	so.ntiers = 0;
	so.trace = NULL;
	int rc = neap_sweep_create(&yard->sweep, &ops, c->one.net, &so);
	int ended = neap_net_end(c->one.net);
	if (rc == NEAP_EINFEASIBLE) /* the budget asks for slow memory */
		return ended;
	return rc < 0 ? rc : ended;
}

int neap__yardstick(double *seconds, struct neap__comparison *c)
{
	struct neap_sweep_stats stats;
	double loss;

	*seconds = 1;
	if (!c->yard.sweep)
		return 0;
	NEAP_TRY(neap_net_begin(c->one.net, &c->yard.batch, &c->one.objective));
	int rc = neap_sweep_touch(c->yard.sweep);
	if (rc == 0)
		rc = neap_sweep_run(c->yard.sweep, NULL, NULL, &loss, &stats);
	neap_sweep_release(c->yard.sweep); /* one arena at a time */
	int ended = neap_net_end(c->one.net);
	if (rc == 0)
		*seconds = stats.compute;
	return rc < 0 ? rc : ended;
}

void neap__yardstick_free(struct neap__yardstick *yard)
{
	neap_sweep_free(yard->sweep);
	free(yard->sequences);
	*yard = (struct neap__yardstick){0};
}

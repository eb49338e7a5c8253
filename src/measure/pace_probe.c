/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace_probe.c: what steps cost now. Machines change their pace within seconds by more than
 * strategies differ: between every two sweeps that are compared another one, without
 * transfers, tells what steps cost then.
 */
#include "measure/transfer_overhead.h"
#include "base/fail.h"

#include <stdlib.h>

void neap__costs_scale(struct neap__costs *costs, double times)
{
	costs->advance *= times;
	costs->record *= times;
	costs->backward *= times;
}

int neap__pace_probe_look(struct neap__comparison *c)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};

	c->now = c->planned;
	if (!c->alone.sweep)
		return 0;
	NEAP_TRY(neap__overhead_alone(c, &stats, &c->now));
	if (c->options->sweep.costs) { /* what the user's chain says, at this pace */
		c->now.costs = c->planned.costs;
		neap__costs_scale(&c->now.costs, c->now.pace);
	} else {
		neap__costs_scale(&c->now.costs, c->alone.dearer);
	}
	return 0;
}

void neap__pace_probe_free(struct neap__pace_probe *alone)
{
	neap_sweep_free(alone->sweep);
	free(alone->sequences);
	*alone = (struct neap__pace_probe){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace_probe.c: measures the pace between sweeps. A machine changes its pace within seconds by
 * more than strategies differ. So a sweep without transfers, the probe, runs before and after
 * every sweep that is compared, and the plan's time is scaled by the costs it gives.
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

int neap__pace_probe_run(struct neap__comparison *c)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};

	c->now = c->planned;
	if (!c->probe.sweep)
		return 0;
	NEAP_TRY(neap__transfer_overhead_probe(c, &stats, &c->now));
	if (c->options->sweep.costs) { /* costs of the user's chain file, at this pace */
		c->now.costs = c->planned.costs;
		neap__costs_scale(&c->now.costs, c->now.pace);
	} else {
		neap__costs_scale(&c->now.costs, c->probe.cost_ratio);
	}
	return 0;
}

void neap__pace_probe_free(struct neap__pace_probe *probe)
{
	neap_sweep_free(probe->sweep);
	free(probe->sequences);
	*probe = (struct neap__pace_probe){0};
}

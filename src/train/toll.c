/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toll.c: what transfers cost in a sweep. What was measured beside the first steps alone
 * misses what else a sweep does to its caches and its threads; a sweep that streams tells.
 * Its steps' seconds beyond those of a sweep without transfers are what they cost, and a
 * channel that was waited for was full.
 */
#include "train/comparison.h"
#include "base/fail.h"
#include "store/tier.h"

#include <math.h>

#define MOST 20	  /* times what was measured beside the first steps */
#define LEAST 0.5 /* of it: what differs from sweep to sweep is no smaller than that */
#define FULL 0.03 /* of a pass waited for its channel: that was full */

/* The rate of a channel that moved `bytes` in a pass of `seconds`, of them `waited`. */
static double rate_of(double told, uint64_t bytes, double seconds, double waited)
{
	double found = (double)bytes / (seconds + waited);
	return waited > FULL * seconds && (told == 0 || found < told) ? found : told;
}

static void take_toll(
	struct neap__tiers *tiers, uint64_t record, int at, const struct neap_sweep_stats *stats)
{
	struct neap_tier *tier = tiers->tier[at];
	double most = tiers->cpu_most[at];
	struct neap_tier_spec spec;
	neap_tier_describe(tier, record, &spec);
	if (stats->lost > 0) {
		double times = fmin(fmax(stats->slowdown / stats->lost, LEAST), MOST);
		if (most > 0 && spec.cpu * times > most)
			times = most / spec.cpu;
		neap_tier_set_cpu(tier, spec.cpu * times, spec.cpu_fixed * times);
	}
	neap_tier_set_rates(tier,
		rate_of(spec.write_rate, stats->written[at], stats->advance + stats->record,
			stats->stalls[NEAP_STALL_PUT]),
		rate_of(spec.read_rate, stats->read[at], stats->backward,
			stats->stalls[NEAP_STALL_GET]),
		spec.write_fixed);
}

/* Twice, as there: the second time no block of the slow file is written for the first time. */
static int stream_twice(
	struct neap__comparison *c, struct neap_sweep *sweep, const struct neap_batch *batch)
{
	struct neap_sweep_stats stats;
	struct neap_net_sizes sizes;
	double loss;
	int tier = neap_sweep_plan(sweep)->tier;

	if (tier == 0)
		return 0;
	for (int pass = 0; pass < 2; pass++) {
		NEAP_TRY(neap_net_begin(c->one.net, batch, &c->one.objective));
		NEAP_TRY(neap_sweep_run(sweep, NULL, NULL, &loss, &stats));
		NEAP_TRY(neap_net_end(c->one.net));
	}
	neap_net_get_sizes(c->one.net, &sizes);
	if (stats.recoveries == 0)
		take_toll(&c->tiers, sizes.state, tier - 1, &stats);
	return 0;
}

int neap__comparison_toll(struct neap__comparison *c, const struct neap_batch *batch, double tape)
{
	struct neap_sweep_options so;
	struct neap_step_ops ops;
	struct neap_sweep *sweep;

	if (c->tiers.count == 0 || c->options->sweep.costs)
		return 0;
	neap__comparison_ops(c, &ops, NEAP__TAPE_MARGIN * tape);
	neap__comparison_sweep(c, &so, batch->steps, "stream");
	so.params = (struct neap_params){0};
	int rc = neap_sweep_create(&sweep, &ops, c->one.net, &so);
	if (rc < 0)
		return rc == NEAP_EINFEASIBLE ? 0 : rc;
	rc = stream_twice(c, sweep, batch);
	neap_sweep_free(sweep);
	return rc;
}

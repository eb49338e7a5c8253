/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toll.c: what transfers cost in a sweep. What was measured beside the first steps alone
 * misses what else a sweep does to its caches and its threads; a sweep that streams tells.
 * Machines change their pace within seconds by more than a toll: the sweep that streams
 * is compared to those without transfers just before and after it. A channel that was
 * waited for was full.
 */
#include "train/toll.h"
#include "train/tiercost.h"
#include "base/fail.h"
#include "store/tier.h"

#include <math.h>

enum { PAIRS = 3 };
#define LONG_PAIR 3.0 /* seconds of both sweeps, beyond which there is one pair */
#define FULL 0.03     /* of a pass waited for its channel: that was full */

/* Seconds a step of one kind, its calls apart. */
static void take_cost(double *cost, double seconds, int64_t steps, int64_t calls, double call)
{
	if (steps > 0)
		*cost = fmax(seconds - (double)calls * call, seconds / 2) / (double)steps;
}

/* What the kinds of steps that a sweep ran cost, `share` of it without its transfers. */
static void take_costs(
	struct neap__costs *costs, const struct neap_sweep_stats *stats, double share)
{
	take_cost(&costs->advance, share * stats->advance, stats->advance_steps,
		stats->advance_calls, costs->call);
	take_cost(&costs->record, share * stats->record, stats->record_steps - stats->replay_steps,
		stats->replay_steps ? 0 : stats->record_calls, costs->call);
	take_cost(&costs->backward, share * stats->backward, stats->backward_steps,
		stats->backward_calls, costs->call);
}

/* What the steps and calls that a sweep ran would have taken at these costs. */
static double seconds_at(const struct neap__costs *costs, const struct neap_sweep_stats *stats)
{
	int64_t calls = stats->advance_calls + stats->record_calls + stats->backward_calls;
	return (double)stats->advance_steps * costs->advance +
	       (double)(stats->record_steps - stats->replay_steps) * costs->record +
	       (double)stats->replay_steps * costs->replay +
	       (double)stats->backward_steps * costs->backward + (double)calls * costs->call;
}

/*
 * The rate of a channel that moved `bytes` in a pass of `seconds` and `waited`. Where it
 * was not waited for it is at least that.
 */
static double rate_of(double told, uint64_t bytes, double seconds, double waited)
{
	double found = (double)bytes / (seconds + waited);
	if (bytes == 0)
		return told;
	return waited > FULL * seconds || (told > 0 && told < found) ? found : told;
}

/* Every byte costs `lost` over all bytes; the line between small and large ones stays. */
static void tell(const struct neap__tiers *tiers, uint64_t record, int at, double lost,
	const struct neap_sweep_stats *stats)
{
	struct neap_tier *tier = tiers->tier[at];
	double most = tiers->cpu_most[at], bytes = (double)(stats->written[at] + stats->read[at]);
	struct neap_tier_spec spec;

	neap_tier_describe(tier, record, &spec);
	if (stats->lost > 0) {
		double times = fmax(lost, 0) / stats->lost;
		if (most > 0 && spec.cpu * times > most)
			times = most / spec.cpu;
		neap_tier_set_cpu(tier, spec.cpu * times, spec.cpu_fixed * times);
	} else if (bytes > 0) {
		double each = fmax(lost, 0) / bytes;
		neap_tier_set_cpu(tier, most > 0 ? fmin(each, most) : each, 0);
	}
	neap_tier_set_rates(tier,
		rate_of(spec.write_rate, stats->written[at], stats->advance + stats->record,
			stats->stalls[NEAP_STALL_PUT]),
		rate_of(spec.read_rate, stats->read[at], stats->backward,
			stats->stalls[NEAP_STALL_GET]),
		spec.write_fixed);
}

int neap__toll_sweep(struct neap_sweep **sweep, struct neap__comparison *c, int64_t steps)
{
	struct neap_sweep_options so;
	struct neap_step_ops ops;

	*sweep = NULL;
	if (c->tiers.count == 0 || c->options->sweep.costs)
		return 0;
	neap__comparison_ops(c, &ops, NEAP__TAPE_MARGIN * c->costs.tape_mean);
	neap__comparison_sweep(c, &so, steps, "stream");
	so.params = (struct neap_params){0};
	int rc = neap_sweep_create(sweep, &ops, c->one.net, &so);
	if (rc == 0 && neap_sweep_plan(*sweep)->tier == 0) {
		neap_sweep_free(*sweep);
		*sweep = NULL;
	}
	return rc == NEAP_EINFEASIBLE ? 0 : rc;
}

static int run(struct neap__comparison *c, struct neap_sweep *sweep, const struct neap_batch *batch,
	struct neap_sweep_stats *stats)
{
	double loss;
	NEAP_TRY(neap_net_begin(c->one.net, batch, &c->one.objective));
	int rc = neap_sweep_touch(sweep);
	if (rc == 0)
		rc = neap_sweep_run(sweep, NULL, NULL, &loss, stats);
	neap_sweep_release(sweep); /* one arena at a time */
	int ended = neap_net_end(c->one.net);
	return rc < 0 ? rc : ended;
}

/* A sweep without transfers. */
struct turn {
	struct neap_sweep_stats stats;
	struct neap__costs costs;
	double yardstick; /* before it */
};

static int run_alone(struct neap__comparison *c, struct neap_sweep *sweep,
	const struct neap_batch *batch, struct turn *turn)
{
	NEAP_TRY(neap__yardstick(&turn->yardstick, c));
	NEAP_TRY(run(c, sweep, batch, &turn->stats));
	turn->costs = c->costs;
	take_costs(&turn->costs, &turn->stats, neap__undisturbed(&turn->stats));
	return 0;
}

/* The one of n that took the median time. */
static int median_turn(const struct turn *turns, int n)
{
	for (int i = 0; i < n; i++) {
		int below = 0;
		for (int k = 0; k < n; k++)
			below += turns[k].stats.seconds < turns[i].stats.seconds ||
				 (turns[k].stats.seconds == turns[i].stats.seconds && k < i);
		if (below == n / 2)
			return i;
	}
	return 0;
}

int neap__toll_measure(struct neap__comparison *c, const struct neap_batch *batch,
	struct neap_sweep *alone, struct neap_sweep *stream)
{
	struct neap_sweep_stats stats = {0};
	struct turn turns[PAIRS + 1];
	struct neap_net_sizes sizes;
	double lost[PAIRS], last;
	int pairs = stream ? PAIRS : 0, tolls = 0;

	if (stream) /* writes the blocks of the slow file for the first time */
		NEAP_TRY(run(c, stream, batch, &stats));
	NEAP_TRY(run_alone(c, alone, batch, &turns[0]));
	for (int i = 0; i < pairs; i++) {
		NEAP_TRY(run(c, stream, batch, &stats));
		if (turns[i].stats.seconds + stats.seconds > LONG_PAIR)
			pairs = i + 1;
		NEAP_TRY(run_alone(c, alone, batch, &turns[i + 1]));
		if (stats.recoveries == 0 && stats.overflows == 0)
			lost[tolls++] =
				stats.compute - (seconds_at(&turns[i].costs, &stats) +
							seconds_at(&turns[i + 1].costs, &stats)) /
							2;
	}
	NEAP_TRY(neap__yardstick(&last, c));
	int median = median_turn(turns, pairs + 1);
	c->costs = turns[median].costs;
	c->yardstick =
		(turns[median].yardstick + (median < pairs ? turns[median + 1].yardstick : last)) /
		2;
	if (tolls == 0)
		return 0;
	neap_net_get_sizes(c->one.net, &sizes);
	tell(&c->tiers, sizes.state, neap_sweep_plan(stream)->tier - 1,
		neap__timing_of(lost, tolls).median, &stats);
	return 0;
}

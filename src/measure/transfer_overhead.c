/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer_overhead.c: runs `stream` between two sweeps without transfers and compares them. The
 * overhead measured beside the first steps (tier_cost.c) misses what a sweep's own work does to
 * caches and threads. The pace of a machine changes within seconds by more than the overhead,
 * hence the comparison with the sweeps just before and after. A channel with stalls counts as
 * saturated, so its bytes over its seconds are its rate.
 *
 * The pace probe is such a sweep without transfers. It runs before and after every sweep that is
 * compared, and the plan's time is scaled by the costs it gives.
 */
#include "measure/transfer_overhead.h"
#include "store/tier_cost.h"
#include "base/debug_log.h"
#include "base/fail.h"
#include "store/tier_state.h"
#include "sys/clock.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 5 };
#define LONG 4.0       /* seconds, after which no other pair begins */
#define SATURATED 0.03 /* of a pass: with more stalls than that its channel was saturated */

/* Sets the seconds of a step of one kind, without its calls, which take half of it at most. */
static void take_cost(double *cost, double seconds, int64_t steps, int64_t calls, double call)
{
	if (steps > 0)
		*cost = fmax(seconds - (double)calls * call, seconds / 2) / (double)steps;
}

/* Takes the costs of the kinds of steps that a sweep ran, times `share`, to leave transfers out. */
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

/* Seconds that the steps and calls of a sweep would have taken at these costs. */
static double seconds_at(const struct neap__costs *costs, const struct neap_sweep_stats *stats)
{
	int64_t calls = stats->advance_calls + stats->record_calls + stats->backward_calls;
	return (double)stats->advance_steps * costs->advance +
	       (double)(stats->record_steps - stats->replay_steps) * costs->record +
	       (double)stats->replay_steps * costs->replay +
	       (double)stats->backward_steps * costs->backward + (double)calls * costs->call;
}

/*
 * The rate of a channel that moved `bytes` in a pass of `seconds` with stalls of `waited` seconds.
 * A channel without stalls is at least as fast as it was used.
 */
static double rate_of(double known, uint64_t bytes, double seconds, double waited)
{
	double found = (double)bytes / (seconds + waited);
	if (bytes == 0)
		return known;
	return waited > SATURATED * seconds || (known > 0 && known < found) ? found : known;
}

/*
 * Sets a tier's transfer overhead from the seconds lost in all. A record's fixed part stays as it
 * was measured beside the first steps; the rest goes to the bytes.
 */
static void set_cpu(struct neap_tier *tier, const struct neap_tier_spec *spec, double most,
	double lost, double bytes, double planned)
{
	double records = fmax(planned - spec->cpu * bytes, 0), fixed = spec->cpu_fixed;

	lost = fmax(lost, 0);
	if (lost < records)
		fixed *= lost / records;
	double each = fmax(lost - records, 0) / bytes;
	neap_tier_set_cpu(tier, most > 0 ? fmin(each, most) : each, fixed);
}

static void set_tier(const struct neap__tiers *tiers, uint64_t record, int at, double lost,
	const struct neap_sweep_stats *stats)
{
	struct neap_tier *tier = tiers->tier[at];
	double bytes = (double)stats->written[at] + (double)stats->read[at];
	struct neap_tier_spec spec;

	neap_tier_describe(tier, record, &spec);
	if (bytes > 0)
		neap__debug("%s: %.0f bytes in a sweep took %.3g s from the computation, %.3g "
			    "ns per byte; at most %.3g ns of the processors",
			tier->about, bytes, lost, 1e9 * lost / bytes, 1e9 * tiers->cpu_most[at]);
	if (bytes > 0)
		set_cpu(tier, &spec, tiers->cpu_most[at], lost, bytes, stats->lost);
	neap_tier_set_rates(tier,
		rate_of(spec.write_rate, stats->written[at], stats->advance + stats->record,
			stats->stalls[NEAP_STALL_PUT]),
		rate_of(spec.read_rate, stats->read[at], stats->backward,
			stats->stalls[NEAP_STALL_GET]),
		spec.write_fixed);
}

int neap__transfer_overhead_sweep(
	struct neap_sweep **sweep, struct neap__comparison *c, int64_t steps)
{
	struct neap_sweep_options so;
	struct neap_step_ops ops;

	*sweep = NULL;
	if (c->tiers.count == 0 || c->options->sweep.costs)
		return 0;
	neap__comparison_ops(c, &ops, NEAP__TAPE_MARGIN * c->costs.tape_mean);
	neap__comparison_sweep(c, &so, steps, "stream");
	so.memory = c->probe.memory;
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
	stats->size = sizeof *stats;
	if (rc == 0)
		rc = neap_sweep_run(sweep, NULL, NULL, &loss, stats);
	neap_sweep_release(sweep); /* one arena at a time */
	int ended = neap_net_end(c->one.net);
	return rc < 0 ? rc : ended;
}

/* A run of the pace probe: a sweep without transfers. */
struct probe_run {
	struct neap_sweep_stats stats;
	struct neap__pace_now now;
};

/* Runs the pace probe: sets its statistics, the costs that follow from them, and the pace. */
static int probe_pace(
	struct neap__comparison *c, struct neap_sweep_stats *stats, struct neap__pace_now *now)
{
	const struct neap__pace_probe *probe = &c->probe;
	int calibrated = probe->seconds > 0;

	NEAP_TRY(run(c, probe->sweep, &probe->batch, stats));
	now->pace = calibrated ? stats->compute / probe->seconds : 1;
	now->costs = calibrated ? probe->costs : c->costs;
	neap__costs_scale(&now->costs, now->pace); /* kinds of steps that it did not run */
	take_costs(&now->costs, stats, neap__undisturbed(stats));
	return 0;
}

/* The median of a cost, at `at` bytes in struct neap__costs, over `n` runs. */
static double median_cost(const struct probe_run *runs, int n, size_t at)
{
	double values[PAIRS + 1];
	for (int i = 0; i < n; i++)
		memcpy(&values[i], (const char *)&runs[i].now.costs + at, sizeof values[i]);
	return neap__timing_of(values, n).median;
}

/*
 * Takes the median of each kind of step. A disturbance that lasts shorter than a run meets one pass
 * of it, so that the costs of the run whose sum is the median can still be those of a disturbed
 * pass.
 */
static void take_medians(struct neap__comparison *c, const struct probe_run *runs, int n)
{
	double seconds[PAIRS + 1];
	c->costs = runs[0].now.costs;
	c->costs.advance = median_cost(runs, n, offsetof(struct neap__costs, advance));
	c->costs.record = median_cost(runs, n, offsetof(struct neap__costs, record));
	c->costs.backward = median_cost(runs, n, offsetof(struct neap__costs, backward));
	neap__costs_in_order(&c->costs);
	for (int i = 0; i < n; i++)
		seconds[i] = runs[i].stats.compute;
	c->probe.seconds = neap__timing_of(seconds, n).median;
}

int neap__transfer_overhead_measure(struct neap__comparison *c, struct neap_sweep *stream)
{
	const struct neap_batch *batch = &c->probe.batch;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct probe_run runs[PAIRS + 1];
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	double lost[PAIRS], start = neap__seconds();
	int pairs = stream ? PAIRS : PAIRS / 2, measured = 0;

	if (stream) /* writes the blocks of the slow file for the first time */
		NEAP_TRY(run(c, stream, batch, &stats));
	for (int i = 0; i <= pairs; i++) {
		if (i > 0 && stream)
			NEAP_TRY(run(c, stream, batch, &stats));
		NEAP_TRY(probe_pace(c, &runs[i].stats, &runs[i].now));
		if (i > 0 && stream && stats.recoveries == 0 && stats.overflows == 0)
			lost[measured++] =
				stats.compute - (seconds_at(&runs[i - 1].now.costs, &stats) +
							seconds_at(&runs[i].now.costs, &stats)) /
							2;
		if (i > 0 && neap__seconds() - start > LONG)
			pairs = i;
	}
	take_medians(c, runs, pairs + 1);
	if (measured == 0)
		return 0;
	neap_net_get_sizes(c->one.net, &sizes);
	set_tier(&c->tiers, sizes.state, neap_sweep_plan(stream)->tier - 1,
		neap__timing_of(lost, measured).median, &stats);
	return 0;
}

int neap__pace_probe_run(struct neap__comparison *c)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};

	c->now = c->planned;
	if (!c->probe.sweep)
		return 0;
	NEAP_TRY(probe_pace(c, &stats, &c->now));
	if (c->options->sweep.costs) { /* costs of the user's chain file, at this pace */
		c->now.costs = c->planned.costs;
		neap__costs_scale(&c->now.costs, c->now.pace);
	} else {
		neap__costs_scale(&c->now.costs, c->probe.cost_ratio);
		neap__costs_add_reading(&c->now.costs, c->now.pace * c->probe.reading);
	}
	return 0;
}

void neap__pace_probe_free(struct neap__pace_probe *probe)
{
	neap_sweep_free(probe->sweep);
	free(probe->sequences);
	*probe = (struct neap__pace_probe){0};
}

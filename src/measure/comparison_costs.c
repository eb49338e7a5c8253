/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comparison_costs.c: neap__comparison_costs: the costs of the steps of a batch on this machine.
 * Short timings come first, to plan with; sweeps by that plan then give the costs that count, since
 * only a sweep uses caches and threads as the compared strategies do.
 */
#include "measure/call_cost.h"
#include "measure/comparison.h"
#include "measure/process_memory.h"
#include "measure/copy_cost.h"
#include "measure/batch_sampling.h"
#include "measure/transfer_overhead.h"
#include "measure/tape_probe.h"
#include "nn/core/cell.h"
#include "nn/core/on_device.h"
#include "base/checked.h"
#include "base/fail.h"
#include "data/windows.h"
#include "nn/core/net_state.h"
#include "store/tier_cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
	CALIBRATION_STEPS = 256,
	COPY_REPEATS = 5,
	LONG = 32768,	  /* steps beyond which a sweep of the whole batch takes too long */
	SWEPT = 8192,	  /* steps that are swept of a longer batch */
	CALIBRATIONS = 3, /* at most */
};

#define DRIFT                                                                                      \
	0.2 /* of the logarithm of the pace: costs that changed by more are measured again         \
	     */
#define TIER_SECONDS 0.2

/* Replaces a sweep by one without transfers, where the budget has a plan for that. */
static int leave_out_transfers(struct neap_sweep **sweep, const struct neap_step_ops *ops,
	struct neap__tape_probe *user, const struct neap_sweep_options *so)
{
	struct neap_sweep_options without = *so;
	struct neap_sweep *other;
	if (so->ntiers == 0)
		return 0;
	without.ntiers = 0;
	int rc = neap_sweep_create(&other, ops, user, &without);
	if (rc < 0)
		return rc == NEAP_EINFEASIBLE ? 0 : rc;
	neap_sweep_free(*sweep);
	*sweep = other;
	return 0;
}

/* Takes the costs of the user's chain file instead of measured ones. */
static void take_known(struct neap__costs *costs, const struct neap_chain *known)
{
	costs->advance = known->advance;
	costs->record = known->record;
	costs->backward = known->backward;
	costs->replay = known->replay;
	costs->slot_write = known->slot_write;
	costs->slot_read = known->slot_read;
	costs->call = known->call;
}

/* Runs the sweeps that costs come from. The first one fills the tape sizes and touches all memory;
 * the sweeps after it are timed, with and without transfers in turns. */
static int sweeps(struct neap__comparison *c, const struct neap__tape_sizes *tapes)
{
	struct neap__pace_probe *probe = &c->probe;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_net_result found = {.size = sizeof found};
	struct neap_sweep *stream = NULL;
	double loss;

	NEAP_TRY(neap_net_begin(c->one.net, &probe->batch, &c->one.objective));
	int rc = neap_sweep_run(probe->sweep, NULL, NULL, &loss, &stats);
	neap_sweep_release(probe->sweep);
	if (rc == 0) {
		neap_net_get_result(c->one.net, &found);
		c->result->spikes = neap__net_spikes(c->one.net) ? found.spikes : NAN;
		c->result->support = neap__net_spikes(c->one.net) ? found.support : NAN;
		probe->tapes.tapes = NULL;
		c->costs.tape_mean = neap__tape_sizes_worst(tapes, probe->batch.steps);
		rc = neap__transfer_overhead_sweep(&stream, c, probe->batch.steps);
	}
	int ended = neap_net_end(c->one.net);
	rc = rc < 0 ? rc : ended;
	if (rc == 0)
		rc = neap__transfer_overhead_measure(c, stream);
	neap_sweep_free(stream);
	return rc;
}

/*
 * Makes the sweep of the pace probe again, where it has a larger arena than all that is compared
 * (comparison.h): it only measures.
 */
static int shrink(struct neap__comparison *c, const struct neap_step_ops *ops,
	const struct neap_sweep_options *so)
{
	struct neap__pace_probe *probe = &c->probe;
	uint64_t arena = neap_sweep_plan(probe->sweep)->arena_bytes, most = NEAP__MEASURE_MOST;
	struct neap_sweep_options less = *so;
	struct neap_sweep *other;

	NEAP_TRY(neap__comparison_arena(c, &most, arena));
	if (arena <= most)
		return 0;
	less.memory = probe->memory = most;
	int rc = neap_sweep_create(&other, ops, &probe->tapes, &less);
	if (rc < 0)
		return rc == NEAP_EINFEASIBLE ? 0 : rc;
	neap_sweep_free(probe->sweep);
	probe->sweep = other;
	return leave_out_transfers(&probe->sweep, ops, &probe->tapes, &less);
}

/* Makes the sweep of the pace probe and takes costs and tape sizes from it. */
static int calibrating_sweep(struct neap__comparison *c, struct neap__tape_sizes *tapes)
{
	struct neap__pace_probe *probe = &c->probe;
	struct neap_sweep_options so;
	struct neap_step_ops ops;

	probe->tapes = (struct neap__tape_probe){c->one.net, tapes};
	neap__comparison_ops(c, &ops, c->costs.tape);
	neap__tape_probe_fill(&ops);
	neap__comparison_sweep(c, &so, probe->batch.steps, "auto");
	so.params = (struct neap_params){0};
	int rc = neap_sweep_create(&probe->sweep, &ops, &probe->tapes, &so);
	if (rc == NEAP_EINFEASIBLE && c->options->sweep.memory_total)
		return neap__process_memory_least(&c->result->process, &ops, &probe->tapes, &so);
	NEAP_TRY(rc);
	c->result->problem = *neap_sweep_problem(probe->sweep);
	NEAP_TRY(leave_out_transfers(&probe->sweep, &ops, &probe->tapes, &so));
	NEAP_TRY(shrink(c, &ops, &so));
	return sweeps(c, tapes);
}

/* What the sweep over the first steps does not meet, since frames hold its windows. */
static double reading_of(const struct neap__comparison *c)
{
	const struct neap_windows *windows = c->one.batch->windows;

	return windows && neap__windows_held(windows) >= SWEPT
		       ? neap__reading_cost(c->one.net, c->one.batch)
		       : 0;
}

static int calibrate_long(struct neap__comparison *c)
{
	struct neap__tape_sizes tapes = {0};

	NEAP_TRY(neap__tape_sizes_make(&tapes, SWEPT));
	int rc = calibrating_sweep(c, &tapes);
	neap__tape_sizes_free(&tapes);
	NEAP_TRY(rc);
	NEAP_TRY(neap_net_begin(c->one.net, c->one.batch, &c->one.objective));
	rc = neap__batch_sampling_measure(&c->tapes, &c->probe.cost_ratio, c->one.net, c->one.batch,
		SWEPT, c->result->memory);
	if (rc == 0)
		c->costs.tape_mean = neap__tape_sizes_worst(&c->tapes, c->one.batch->steps);
	c->probe.reading = reading_of(c);
	int ended = neap_net_end(c->one.net);
	return rc < 0 ? rc : ended;
}

/* Sweeps over the first two steps within the budget, which touches all memory of the net. */
static int warm_up(struct neap__comparison *c)
{
	struct neap_sweep_options so;
	struct neap_step_ops ops;
	struct neap_sweep *sweep = NULL;
	double loss;

	NEAP_TRY(neap_net_begin(c->one.net, c->one.batch, &c->one.objective));
	neap__comparison_ops(c, &ops, 0);
	neap__comparison_sweep(c, &so, c->one.batch->steps < 2 ? c->one.batch->steps : 2, "auto");
	so.params = (struct neap_params){0};
	so.ntiers = 0;
	so.trace = NULL;
	int rc = neap_sweep_create(&sweep, &ops, c->one.net, &so);
	if (rc == 0)
		rc = neap_sweep_run(sweep, NULL, NULL, &loss, NULL);
	neap_sweep_free(sweep);
	int ended = neap_net_end(c->one.net);
	return rc < 0 && rc != NEAP_EINFEASIBLE ? rc : ended;
}

static int measure_costs(struct neap__comparison *c)
{
	const struct neap_batch *batch = c->one.batch;
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	struct neap_timing write, read;

	int rc = neap__net_steps_measure(&c->costs, c->one.net, batch, &c->one.objective,
		CALIBRATION_STEPS, c->result->memory);
	if (rc < 0 && rc != NEAP_EINFEASIBLE) /* then no strategy fits, and says what would do */
		return rc;
	neap_net_get_sizes(c->one.net, &sizes);
	NEAP_TRY(neap__copy_cost_measure(&write, &read, c->one.net, neap__round_up(sizes.state, 64),
		c->result->memory, COPY_REPEATS));
	c->costs.slot_write = write.median;
	c->costs.slot_read = read.median;
	NEAP_TRY(neap__call_cost_measure(
		&c->costs, c->one.net, batch, &c->one.objective, c->result->memory));
	c->probe.batch = *batch;
	c->probe.cost_ratio = 1;
	c->probe.memory = c->result->memory;
	if (batch->steps > LONG) {
		c->probe.sequences = calloc((size_t)batch->size, sizeof *c->probe.sequences);
		if (!c->probe.sequences)
			return neap__fail_errno(ENOMEM, "a batch of %d samples", batch->size);
		c->probe.batch = neap__batch_cut(batch, c->probe.sequences, SWEPT);
		return calibrate_long(c);
	}
	NEAP_TRY(neap__tape_sizes_make(&c->tapes, batch->steps));
	return calibrating_sweep(c, &c->tapes);
}

/* Measures again while the pace drifted between the measurement and a sweep after it. */
int neap__comparison_costs(struct neap__comparison *c)
{
	const struct neap_sweep_settings *settings = &c->options->sweep;
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	double drift = INFINITY;

	neap_net_get_sizes(c->one.net, &sizes);
	for (int i = 0; i < CALIBRATIONS && drift > DRIFT; i++) {
		NEAP_TRY(neap__tiers_measure(&c->tiers, settings, sizes.state, TIER_SECONDS));
		NEAP_TRY(warm_up(c));
		NEAP_TRY(neap__tiers_beside(
			&c->tiers, settings, c->one.net, c->one.batch, &c->one.objective));
		neap__tape_sizes_free(&c->tapes);
		neap__pace_probe_free(&c->probe);
		NEAP_TRY(measure_costs(c));
		c->probe.costs = c->costs;
		neap__costs_scale(&c->costs, c->probe.cost_ratio);
		neap__costs_add_reading(&c->costs, c->probe.reading);
		if (settings->costs)
			take_known(&c->costs, &settings->costs->chain);
		c->planned.costs = c->costs;
		NEAP_TRY(neap__pace_probe_run(c));
		drift = fabs(log(c->now.pace));
	}
	return warm_up(c);
}

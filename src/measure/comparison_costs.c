/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_costs.c: what the steps of a batch cost on this machine. */
#include "measure/call_cost.h"
#include "measure/comparison.h"
#include "measure/copy_cost.h"
#include "measure/batch_sampling.h"
#include "measure/transfer_overhead.h"
#include "measure/tape_probe.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
	CALIBRATION_STEPS = 256,
	COPY_REPEATS = 5,
	CALIBRATION_ROOM = 1 << 20, /* bytes for tapes while the first steps are timed */
	LONG = 32768,		    /* steps beyond which a batch is not swept to measure it */
	SWEPT = 8192,		    /* of a long one, so many are */
	CALIBRATIONS = 3,	    /* at most */
};

#define DRIFT 0.2 /* of the pace, between a calibration and what follows */
#define TIER_SECONDS 0.2

void neap__comparison_sweep(const struct neap__comparison *c, struct neap_sweep_options *so,
	int64_t steps, const char *strategy)
{
	*so = (struct neap_sweep_options){.size = sizeof *so,
		.steps = steps,
		.memory = c->result->memory,
		.strategy = strategy,
		.params = c->params,
		.tiers = c->tiers.tier,
		.ntiers = c->tiers.count,
		.advance = c->costs.advance,
		.record = c->costs.record,
		.backward = c->costs.backward,
		.replay = c->costs.replay,
		.call = c->costs.call,
		.trace = c->trace,
		.patience = neap__patience(&c->options->sweep, steps, c->costs.advance)};
}

void neap__comparison_ops(const struct neap__comparison *c, struct neap_step_ops *ops, double tape)
{
	neap__net_steps_fill(ops, c->one.net);
	if (tape > 0 && ops->tape_bytes < ops->tape_max_bytes)
		ops->tape_bytes = (size_t)fmin(tape, (double)ops->tape_max_bytes);
	ops->tape_mean_bytes = (size_t)c->costs.tape_mean;
}

/* A sweep that nothing disturbs instead, where the budget has one. */
static int leave_out_transfers(struct neap_sweep **sweep, const struct neap_step_ops *ops,
	struct neap__tape_probe *watched, const struct neap_sweep_options *so)
{
	struct neap_sweep_options alone = *so;
	struct neap_sweep *other;
	if (so->ntiers == 0)
		return 0;
	alone.ntiers = 0;
	int rc = neap_sweep_create(&other, ops, watched, &alone);
	if (rc < 0)
		return rc == NEAP_EINFEASIBLE ? 0 : rc;
	neap_sweep_free(*sweep);
	*sweep = other;
	return 0;
}

/* What the user's chain says instead. */
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

/* The first sweep sees the tapes and touches all memory; those that take turns are timed. */
static int sweeps(struct neap__comparison *c, const struct neap__tape_sizes *tapes)
{
	struct neap__pace_probe *alone = &c->alone;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_net_result found;
	struct neap_sweep *stream = NULL;
	double loss;

	NEAP_TRY(neap_net_begin(c->one.net, &alone->batch, &c->one.objective));
	int rc = neap_sweep_run(alone->sweep, NULL, NULL, &loss, &stats);
	neap_sweep_release(alone->sweep);
	if (rc == 0) {
		neap_net_get_result(c->one.net, &found);
		c->result->spikes = found.spikes;
		c->result->support = found.support;
		alone->watched.tapes = NULL;
		c->costs.tape_mean = neap__tape_sizes_worst(tapes, alone->batch.steps);
		rc = neap__overhead_sweep(&stream, c, alone->batch.steps);
	}
	int ended = neap_net_end(c->one.net);
	rc = rc < 0 ? rc : ended;
	if (rc == 0)
		rc = neap__overhead_measure(c, stream);
	neap_sweep_free(stream);
	return rc;
}

/* Sweeps within the budget over the batch `alone` has: times, and tapes. */
static int calibrating_sweep(struct neap__comparison *c, struct neap__tape_sizes *tapes)
{
	struct neap__pace_probe *alone = &c->alone;
	struct neap_sweep_options so;
	struct neap_step_ops ops;

	alone->watched = (struct neap__tape_probe){c->one.net, tapes};
	neap__comparison_ops(c, &ops, c->costs.tape);
	neap__tape_sizes_watch(&ops);
	neap__comparison_sweep(c, &so, alone->batch.steps, "auto");
	so.params = (struct neap_params){0};
	NEAP_TRY(neap_sweep_create(&alone->sweep, &ops, &alone->watched, &so));
	c->result->problem = *neap_sweep_problem(alone->sweep);
	NEAP_TRY(leave_out_transfers(&alone->sweep, &ops, &alone->watched, &so));
	return sweeps(c, tapes);
}

static int calibrate_long(struct neap__comparison *c)
{
	uint64_t room = c->result->memory < CALIBRATION_ROOM ? c->result->memory : CALIBRATION_ROOM;
	struct neap__tape_sizes tapes = {0};

	NEAP_TRY(neap__tape_sizes_make(&tapes, SWEPT));
	int rc = calibrating_sweep(c, &tapes);
	neap__tape_sizes_free(&tapes);
	NEAP_TRY(rc);
	NEAP_TRY(neap_net_begin(c->one.net, c->one.batch, &c->one.objective));
	rc = neap__batch_sampling_measure(
		&c->tapes, &c->alone.dearer, c->one.net, c->one.batch, SWEPT, (size_t)room);
	if (rc == 0)
		c->costs.tape_mean = neap__tape_sizes_worst(&c->tapes, c->one.batch->steps);
	int ended = neap_net_end(c->one.net);
	return rc < 0 ? rc : ended;
}

/* A sweep over the first two steps: everything of ours but the arena is touched. */
static int warm_up(struct neap__comparison *c)
{
	struct neap_sweep_options so;
	struct neap_step_ops ops;
	struct neap_sweep *sweep;
	double loss;

	NEAP_TRY(neap_net_begin(c->one.net, c->one.batch, &c->one.objective));
	neap__comparison_ops(c, &ops, 0);
	neap__comparison_sweep(c, &so, c->one.batch->steps < 2 ? c->one.batch->steps : 2, "bptt");
	so.memory = 0;
	NEAP_TRY(neap_sweep_create(&sweep, &ops, c->one.net, &so));
	int rc = neap_sweep_run(sweep, NULL, NULL, &loss, NULL);
	neap_sweep_free(sweep);
	return rc < 0 ? rc : neap_net_end(c->one.net);
}

static int measure_costs(struct neap__comparison *c)
{
	const struct neap_batch *batch = c->one.batch;
	struct neap_net_sizes sizes;
	struct neap_timing write, read;

	NEAP_TRY(neap__net_steps_measure(&c->costs, c->one.net, batch, &c->one.objective,
		CALIBRATION_STEPS, CALIBRATION_ROOM));
	neap_net_get_sizes(c->one.net, &sizes);
	NEAP_TRY(neap__copy_cost_measure(
		&write, &read, neap__round_up(sizes.state, 64), c->result->memory, COPY_REPEATS));
	c->costs.slot_write = write.median;
	c->costs.slot_read = read.median;
	NEAP_TRY(neap__call_cost_measure(
		&c->costs, c->one.net, batch, &c->one.objective, c->result->memory));
	c->alone.batch = *batch;
	c->alone.dearer = 1;
	if (batch->steps > LONG) {
		c->alone.sequences = calloc((size_t)batch->size, sizeof *c->alone.sequences);
		if (!c->alone.sequences)
			return neap__fail_errno(ENOMEM, "a batch of %d samples", batch->size);
		c->alone.batch = neap__batch_cut(batch, c->alone.sequences, SWEPT);
		return calibrate_long(c);
	}
	NEAP_TRY(neap__tape_sizes_make(&c->tapes, batch->steps));
	return calibrating_sweep(c, &c->tapes);
}

/*
 * Costs, as the machine is. Where it was disturbed meanwhile (another look after a moment
 * tells) all is measured again.
 */
int neap__comparison_calibrate(struct neap__comparison *c)
{
	const struct neap_sweep_settings *settings = &c->options->sweep;
	struct neap_net_sizes sizes;
	double drift = INFINITY;

	neap_net_get_sizes(c->one.net, &sizes);
	for (int i = 0; i < CALIBRATIONS && drift > DRIFT; i++) {
		NEAP_TRY(neap__tiers_measure(&c->tiers, settings, sizes.state, TIER_SECONDS));
		NEAP_TRY(warm_up(c));
		NEAP_TRY(neap__tiers_beside(
			&c->tiers, settings, c->one.net, c->one.batch, &c->one.objective));
		neap__tape_sizes_free(&c->tapes);
		neap__pace_probe_free(&c->alone);
		NEAP_TRY(measure_costs(c));
		c->alone.costs = c->costs;
		neap__costs_scale(&c->costs, c->alone.dearer);
		if (settings->costs)
			take_known(&c->costs, &settings->costs->chain);
		c->planned.costs = c->costs;
		NEAP_TRY(neap__pace_probe_look(c));
		drift = fabs(log(c->now.pace));
	}
	return warm_up(c);
}

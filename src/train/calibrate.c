/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c: what the steps of a batch cost on this machine. */
#include "train/callcost.h"
#include "train/comparison.h"
#include "train/copycost.h"
#include "train/stretches.h"
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
};

void neap__comparison_sweep(const struct neap__comparison *c, struct neap_sweep_options *so,
	int64_t steps, const char *strategy)
{
	*so = (struct neap_sweep_options){.size = sizeof *so,
		.steps = steps,
		.memory = c->result->memory,
		.strategy = strategy,
		.params = c->options->sweep.params,
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
	neap__netops_fill(ops, c->one.net);
	if (tape > 0 && ops->tape_bytes < ops->tape_max_bytes)
		ops->tape_bytes = (size_t)fmin(tape, (double)ops->tape_max_bytes);
}

/* The net's record, with a look at what it wrote. */
struct watched {
	struct neap_net *net;
	struct neap__tapes *tapes; /* NULL: not looked at */
};

static int watch_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct watched *w = user;
	return neap_net_advance(w->net, state, t0, t1, first);
}

static int watch_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct watched *w = user;
	int rc = neap_net_record(w->net, state, t0, t1, first, tape, room, used, t_done);
	if (rc >= 0 && w->tapes)
		neap__tapes_add(w->tapes, t0, *t_done, *used);
	return rc;
}

static int watch_turn(void *user, const void *state, void *adjoint, double *loss)
{
	struct watched *w = user;
	return neap_net_turn(w->net, state, adjoint, loss);
}

static int watch_backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct watched *w = user;
	return neap_net_backward(w->net, adjoint, t1, t0, tape);
}

static void watch_will_touch(void *user, int64_t t0, int64_t t1)
{
	const struct watched *w = user;
	neap_net_will_touch(w->net, t0, t1);
}

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

/* A sweep that nothing disturbs instead, where the budget has one. */
static int leave_out_transfers(struct neap_sweep **sweep, const struct neap_step_ops *ops,
	struct watched *watched, const struct neap_sweep_options *so)
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

/* Once to see the tapes and to touch all memory, once more for the times. */
static int run_twice(struct neap__comparison *c, struct neap_sweep *sweep, struct watched *watched,
	const struct neap_batch *batch, struct neap_sweep_stats *stats)
{
	struct neap_net_result found;
	double loss, before = 0, after;
	for (int pass = 0; pass < 2; pass++) {
		NEAP_TRY(neap__yardstick(&before, c));
		NEAP_TRY(neap_net_begin(c->one.net, batch, &c->one.objective));
		NEAP_TRY(neap_sweep_run(sweep, NULL, NULL, &loss, stats));
		watched->tapes = NULL;
		neap_net_get_result(c->one.net, &found);
		NEAP_TRY(neap_net_end(c->one.net));
	}
	NEAP_TRY(neap__yardstick(&after, c));
	c->yardstick = (before + after) / 2;
	c->result->spikes = found.spikes;
	c->result->support = found.support;
	return 0;
}

/* Sweeps within the budget over a batch: times, and tapes. */
static int calibrating_sweep(
	struct neap__comparison *c, const struct neap_batch *batch, struct neap__tapes *tapes)
{
	struct watched watched = {c->one.net, tapes};
	struct neap_sweep_options so;
	struct neap_sweep_stats stats;
	struct neap_step_ops ops;
	struct neap_sweep *sweep;

	neap__comparison_ops(c, &ops, c->costs.tape);
	ops.advance = watch_advance;
	ops.record = watch_record;
	ops.turn = watch_turn;
	ops.backward = watch_backward;
	ops.will_touch = watch_will_touch;
	ops.grad_save = NULL;
	ops.grad_load = NULL;
	ops.advance_log = NULL; /* tapes are looked at as they are recorded */
	ops.replay = NULL;
	neap__comparison_sweep(c, &so, batch->steps, "auto");
	so.params = (struct neap_params){0};
	NEAP_TRY(neap_sweep_create(&sweep, &ops, &watched, &so));
	c->result->problem = *neap_sweep_problem(sweep);
	NEAP_TRY(leave_out_transfers(&sweep, &ops, &watched, &so));
	int rc = run_twice(c, sweep, &watched, batch, &stats);
	neap_sweep_free(sweep);
	NEAP_TRY(rc);
	const struct neap_problem *known = c->options->sweep.costs;
	if (known) {
		c->costs.advance = known->chain.advance;
		c->costs.record = known->chain.record;
		c->costs.backward = known->chain.backward;
		c->costs.replay = known->chain.replay;
		c->costs.slot_write = known->chain.slot_write;
		c->costs.slot_read = known->chain.slot_read;
		c->costs.call = known->chain.call;
	} else {
		take_costs(&c->costs, &stats, neap__undisturbed(&stats));
	}
	return 0;
}

static int calibrate_long(struct neap__comparison *c, struct neap_sequence *sequences)
{
	const struct neap_batch cut = neap__batch_cut(c->one.batch, sequences, SWEPT);
	uint64_t room = c->result->memory < CALIBRATION_ROOM ? c->result->memory : CALIBRATION_ROOM;
	struct neap__tapes tapes = {0};

	NEAP_TRY(neap__tapes_make(&tapes, SWEPT));
	int rc = calibrating_sweep(c, &cut, &tapes);
	if (rc == 0)
		rc = neap__comparison_toll(c, &cut, neap__tapes_worst(&tapes, SWEPT));
	neap__tapes_free(&tapes);
	NEAP_TRY(rc);
	NEAP_TRY(neap_net_begin(c->one.net, c->one.batch, &c->one.objective));
	NEAP_TRY(neap__stretches_measure(&c->tapes, c->one.net, c->one.batch, (size_t)room));
	return neap_net_end(c->one.net);
}

int neap__comparison_calibrate(struct neap__comparison *c)
{
	const struct neap_batch *batch = c->one.batch;

	struct neap_net_sizes sizes;
	struct neap_timing write, read;

	NEAP_TRY(neap__netops_measure(&c->costs, c->one.net, batch, &c->one.objective,
		CALIBRATION_STEPS, CALIBRATION_ROOM));
	neap_net_get_sizes(c->one.net, &sizes);
	NEAP_TRY(neap__copycost_measure(
		&write, &read, neap__round_up(sizes.state, 64), c->result->memory, COPY_REPEATS));
	c->costs.slot_write = write.median;
	c->costs.slot_read = read.median;
	NEAP_TRY(neap__callcost_measure(
		&c->costs, c->one.net, batch, &c->one.objective, c->result->memory));
	if (batch->steps > LONG) {
		struct neap_sequence *sequences = calloc((size_t)batch->size, sizeof *sequences);
		if (!sequences)
			return neap__fail_errno(ENOMEM, "a batch of %d samples", batch->size);
		int rc = calibrate_long(c, sequences);
		free(sequences);
		return rc;
	}
	NEAP_TRY(neap__tapes_make(&c->tapes, batch->steps));
	NEAP_TRY(calibrating_sweep(c, batch, &c->tapes));
	return neap__comparison_toll(c, batch, neap__tapes_worst(&c->tapes, batch->steps));
}

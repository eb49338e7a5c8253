/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calibration.c: `neap calibrate`: measures the first steps of a batch, copies of its state and
 * the slow tiers, each several times, and makes a chain of the medians.
 */
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "sys/clock.h"
#include "measure/call_cost.h"
#include "measure/copy_cost.h"
#include "measure/net_steps.h"
#include "measure/one_batch.h"
#include "store/tier_cost.h"
#include "measure/slow_tiers.h"

#include <math.h>

enum { REPEATS = 9, REPEATS_MOST = 99, TIMED = 256 };
#define TIER_SECONDS 0.2 /* for each measurement of a tier's rates */

struct calibration {
	const struct neap_calibrate_options *options;
	struct neap_calibration *result;
	struct neap__one_batch one;
	struct neap__tiers tiers;
	struct neap_net_sizes sizes;
	struct neap__costs costs; /* of the last measurement */
	int64_t timed;
	uint64_t room;
	int repeats, done, total;
};

static int tell(struct calibration *r, const char *what)
{
	const struct neap_calibrate_options *o = r->options;
	if (o->progress && o->progress(o->user, what, r->done++, r->total))
		return neap__fail(NEAP_EINTERRUPTED, "interrupted");
	return 0;
}

/* Times forward steps, forward steps with tapes and a range of backward steps. */
static int time_steps(void *user)
{
	struct calibration *r = user;
	return neap__net_steps_measure(
		&r->costs, r->one.net, r->one.batch, &r->one.objective, r->timed, r->room);
}

static int steps(struct calibration *r, struct neap__work *work)
{
	double f[REPEATS_MOST], rec[REPEATS_MOST], b[REPEATS_MOST], whole[REPEATS_MOST];
	double rho[REPEATS_MOST];
	double mean = 0;

	NEAP_TRY(time_steps(r)); /* warms up pages, caches and threads */
	for (int i = 0; i < r->repeats; i++) {
		NEAP_TRY(tell(r, "steps"));
		double start = neap__seconds();
		NEAP_TRY(time_steps(r));
		whole[i] = neap__seconds() - start;
		f[i] = r->costs.advance;
		rec[i] = r->costs.record;
		b[i] = r->costs.backward;
		rho[i] = r->costs.replay;
		mean += r->costs.tape_mean / r->repeats;
	}
	struct neap_calibration *c = r->result;
	struct neap_chain *chain = &c->problem.chain;
	c->advance = neap__timing_of(f, r->repeats);
	c->record = neap__timing_of(rec, r->repeats);
	c->backward = neap__timing_of(b, r->repeats);
	if (r->sizes.log_max > 0) {
		c->replay = neap__timing_of(rho, r->repeats);
		chain->replay = c->replay.median;
		chain->log = neap__round_up((uint64_t)fmax(r->costs.log_mean, 1), 64);
	}
	chain->advance = c->advance.median;
	chain->record = c->record.median;
	chain->backward = c->backward.median;
	chain->tape = neap__round_up((uint64_t)(mean > 64 ? mean : 64), 64);
	if (chain->tape > chain->tape_max)
		chain->tape = chain->tape_max;
	*work = (struct neap__work){time_steps, r, neap__timing_of(whole, r->repeats).median};
	return 0;
}

static int copies(struct calibration *r)
{
	struct neap_calibration *c = r->result;

	NEAP_TRY(tell(r, "copies"));
	NEAP_TRY(neap__copy_cost_measure(&c->slot_write, &c->slot_read, r->one.net,
		neap__round_up(r->sizes.state, 64), c->problem.memory, r->repeats));
	c->problem.chain.slot_write = c->slot_write.median;
	c->problem.chain.slot_read = c->slot_read.median;
	return 0;
}

static int calls(struct calibration *r)
{
	struct neap_chain *chain = &r->result->problem.chain;
	double prices[REPEATS_MOST];

	for (int i = 0; i < r->repeats; i++) {
		NEAP_TRY(tell(r, "calls"));
		NEAP_TRY(neap__call_cost_measure(&r->costs, r->one.net, r->one.batch,
			&r->one.objective, r->result->problem.memory));
		prices[i] = r->costs.call;
	}
	r->result->call = neap__timing_of(prices, r->repeats);
	chain->call = r->result->call.median;
	return 0;
}

/* Copies of a device and its launches, which the costs above contain. */
static int device(struct calibration *r)
{
	struct neap_calibration *c = r->result;
	double rate[3][REPEATS_MOST], launch[REPEATS_MOST], found[3];

	NEAP_TRY(neap__on_device_use(r->one.net, &c->device, NULL));
	if (!r->one.net->device)
		return 0;
	NEAP_TRY(tell(r, "device"));
	for (int i = 0; i < r->repeats; i++) {
		NEAP_TRY(neap__device_driver->speed(r->one.net->device, found, &launch[i]));
		for (int k = 0; k < 3; k++)
			rate[k][i] = found[k];
	}
	c->to_device = neap__timing_of(rate[0], r->repeats);
	c->from_device = neap__timing_of(rate[1], r->repeats);
	c->device_to_device = neap__timing_of(rate[2], r->repeats);
	c->launch = neap__timing_of(launch, r->repeats);
	return 0;
}

static int tiers(struct calibration *r, const struct neap__work *work)
{
	struct neap_calibration *c = r->result;
	uint64_t record = neap__sat_mul(c->problem.chain.tape, 64);

	if (record < r->sizes.state)
		record = r->sizes.state;
	for (int i = 0; i < r->tiers.count; i++) {
		NEAP_TRY(tell(r, "slow memory"));
		NEAP_TRY(neap__tier_cost_measure(&neap__tier_public_calls, &c->tiers[i],
			r->tiers.tier[i], record, work, c->problem.memory, r->repeats,
			TIER_SECONDS));
		neap_tier_describe(r->tiers.tier[i], record, &c->problem.tiers[i]);
	}
	c->problem.ntiers = r->tiers.count;
	return 0;
}

static int calibrate(struct calibration *r)
{
	const struct neap_calibrate_options *o = r->options;
	struct neap_calibration *c = r->result;
	const struct neap__one_batch_source source = NEAP__ONE_BATCH_SOURCE(o);
	struct neap__work work;

	if (o->repeats < 0 || o->repeats > REPEATS_MOST)
		return neap__fail(NEAP_EUSAGE, "--repeats must be at most %d", REPEATS_MOST);
	NEAP_TRY(neap__one_batch_open(&r->one, &source));
	NEAP_TRY(neap__tiers_open(&r->tiers, &o->sweep, r->one.net));
	r->sizes.size = sizeof r->sizes;
	NEAP_TRY(neap_net_get_sizes(r->one.net, &r->sizes));
	c->batch = r->one.batch->size;
	c->problem.size = sizeof c->problem;
	NEAP_TRY(neap__memory_budget(&c->problem.memory, &o->sweep, r->one.net));
	NEAP_TRY(neap__device_budget_check(&o->sweep, r->one.net, c->problem.memory));
	NEAP_TRY(neap_net_end(r->one.net));
	c->problem.chain = (struct neap_chain){.steps = r->one.batch->steps,
		.state = neap__round_up(r->sizes.state, 64),
		.adjoint = neap__round_up(r->sizes.adjoint, 64),
		.tape_max = neap__round_up(r->sizes.tape_max, 64)};
	r->repeats = o->repeats ? o->repeats : REPEATS;
	r->timed = o->timed > 0 ? o->timed : TIMED;
	r->room = c->problem.memory;
	if (r->tiers.count > 0)
		r->room = neap__tier_cost_left(r->room);
	r->total = 2 * r->repeats + 1 + r->tiers.count + (r->one.net->device != NULL);
	if (r->one.batch->steps == 0)
		return neap__fail(NEAP_EUSAGE,
			"%s: the batch has no steps to time. Choose another one with --first",
			o->data);
	NEAP_TRY(device(r));
	NEAP_TRY(steps(r, &work));
	NEAP_TRY(copies(r));
	NEAP_TRY(calls(r));
	return tiers(r, &work);
}

int neap_calibrate(
	struct neap_calibration *calibration, const struct neap_calibrate_options *options)
{
	NEAP_NEED(calibration, options);
	struct calibration r = {.options = options, .result = calibration};

	NEAP_TRY(neap__struct_size(
		calibration->size, sizeof *calibration, sizeof *calibration, "neap_calibration"));
	*calibration = (struct neap_calibration){.size = sizeof(struct neap_calibration)};
	int rc = calibrate(&r);
	if (rc < 0 && r.one.net)
		rc = neap__device_budget_failed(
			rc, &options->sweep, r.one.net, calibration->problem.memory);
	if (rc == 0)
		rc = tell(&r, NULL);
	neap__tiers_close(&r.tiers);
	neap__one_batch_close(&r.one);
	return rc;
}

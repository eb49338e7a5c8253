/* SPDX-License-Identifier: Apache-2.0 */
/* net_cases.c: the options, chains, sweeps and rows of the nets that experiments measure. */
#include "study/net_cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/checked.h"
#include "base/fail.h"
#include "measure/net_steps.h"
#include "measure/one_batch.h"
#include "nn/core/on_device.h"

static int go_on(const struct neap__study *s)
{
	const struct neap_study_options *o = &s->options;
	return o->progress ? o->progress(o->user, s->point, s->done, s->missing) : 0;
}

static int on_compare(void *user, const char *strategy, int done, int total)
{
	(void)strategy;
	(void)done;
	(void)total;
	return go_on(user);
}

void neap__net_options(struct neap_compare_options *options, struct neap__netroom *room,
	const struct neap__study *study, const struct neap__netcase *net)
{
	int64_t spikes = net->spikes ? net->spikes : net->steps / 50 + 1;
	/* Long sequences have smoother manifolds, whose inputs fit in memory. Else every pass would
	   make the inputs again, window by window, on the processors that move data. Sets with many
	   inputs open faster with smoother manifolds and fewer classes. */
	snprintf(room->data, sizeof room->data, "randman:steps=%lld,spikes=%lld,samples=%d%s",
		(long long)net->steps, (long long)spikes, net->batch,
		net->steps > 20000 || net->active > 0 ? ",alpha=3" : "");
	if (net->active > 0)
		snprintf(room->data + strlen(room->data), sizeof room->data - strlen(room->data),
			",classes=2,units=%d,active=%g", net->units, net->active);
	if (net->spec)
		snprintf(room->spec, sizeof room->spec, "%s,li", net->spec);
	else
		snprintf(room->spec, sizeof room->spec, "lif:%dr,li", net->units);
	*options = (struct neap_compare_options){.size = sizeof *options,
		.sweep.no_replan = 1,
		.data = room->data,
		.net = NEAP_NET_OPTIONS_INIT,
		.loss = "cross-entropy",
		.batch = net->batch,
		.seed = 1,
		.repeats = 3,
		.progress = on_compare,
		.user = (void *)(uintptr_t)study};
	options->net.spec = room->spec;
	options->net.scale = net->scale > 0 ? net->scale : 2;
	if (net->recurrent > 0)
		options->net.recurrent_scale = net->recurrent;
	if (net->threshold > 0)
		options->net.threshold = net->threshold;
	options->net.seed = 1;
	options->net.dense = net->dense;
	options->net.device = study->options.device;
	options->net.threads = 1; /* leaves the other processors to the transfers */
	options->sweep.slow = study->options.slow;
	if (net->steps > 20000)
		options->sweep.inputs = (uint64_t)1 << 30;
}

int neap__net_chain(struct neap_problem *problem, const struct neap__study *study,
	const struct neap__netcase *net)
{
	struct neap_compare_options o;
	struct neap__netroom room;
	struct neap_calibration found = {.size = sizeof found};

	neap__net_options(&o, &room, study, net);
	const struct neap_calibrate_options c = {.size = sizeof c,
		.data = o.data,
		.net = o.net,
		.loss = o.loss,
		.batch = o.batch,
		.seed = o.seed,
		.sweep = o.sweep,
		.repeats = 5,
		.timed = 128,
		.progress = on_compare,
		.user = o.user};
	NEAP_TRY(neap_calibrate(&found, &c));
	*problem = found.problem;
	problem->chain.steps = net->steps;
	return 0;
}

/* The tiers of the slow directory or of the device, with transfers that take no time. */
static int free_tiers(
	struct neap_problem *p, const struct neap__study *study, const struct neap_net *net)
{
	struct neap_tier *tiers[NEAP_TIERS_MAX];
	int count = 1;

	if (study->options.device)
		NEAP_TRY(neap__on_device_tiers(net, tiers, &count, study->options.slow, NULL));
	else
		NEAP_TRY(neap_tier_open_file(&tiers[0], study->options.slow, NULL));
	for (int i = 0; i < count; i++) {
		neap_tier_describe(tiers[i], p->chain.state, &p->tiers[i]);
		neap_tier_close(tiers[i]);
	}
	p->ntiers = count;
	return 0;
}

int neap__net_sizes(struct neap_problem *problem, const struct neap__study *study,
	const struct neap__netcase *net)
{
	struct neap_compare_options o;
	struct neap__netroom room;
	struct neap__one_batch one;
	struct neap_net_sizes sizes = {.size = sizeof sizes};

	neap__net_options(&o, &room, study, net);
	const struct neap__one_batch_source source = {
		.data = o.data, .net = &o.net, .loss = o.loss, .batch = o.batch, .seed = o.seed};
	int rc = neap__one_batch_open(&one, &source);
	if (rc == 0)
		neap_net_get_sizes(one.net, &sizes);
	*problem = (struct neap_problem){.size = sizeof(struct neap_problem),
		.chain = {.steps = net->steps,
			.state = neap__round_up(sizes.state, 64),
			.tape = neap__round_up(sizes.tape_mean, 64),
			.tape_max = neap__round_up(sizes.tape_max, 64),
			.adjoint = neap__round_up(sizes.adjoint, 64),
			.advance = 1e-6,
			.record = 1e-6,
			.backward = 2e-6}};
	if (rc == 0)
		rc = free_tiers(problem, study, one.net);
	neap__one_batch_close(&one);
	return rc;
}

struct neap_params neap__least_chunks(const struct neap_problem *p, int64_t checkpoints, int remote)
{
	double ratio = (double)p->chain.state / (double)p->chain.tape;
	double root = ceil(sqrt((double)p->chain.steps));
	struct neap_params params = {.checkpoints = checkpoints};

	params.chunk = (int64_t)fmax(1, round(sqrt((double)p->chain.steps * ratio)));
	if (remote) {
		params.remote_chunk = (int64_t)root;
		params.chunk = (int64_t)fmin(root, fmax(1, round(sqrt(root * ratio))));
	}
	return params;
}

static int sweep_once(struct neap_sweep_stats *stats, struct neap_plan *plan,
	struct neap__one_batch *one, const struct neap_sweep_options *o)
{
	struct neap_step_ops ops;
	struct neap_sweep *sweep;
	double loss;

	neap__net_steps_fill(&ops, one->net);
	NEAP_TRY(neap_sweep_create(&sweep, &ops, one->net, o));
	*plan = *neap_sweep_plan(sweep);
	plan->actions = NULL; /* the sweep's */
	plan->action_count = 0;
	stats->size = sizeof *stats;
	int rc = neap_sweep_run(sweep, NULL, NULL, &loss, stats);
	neap_sweep_free(sweep);
	return rc < 0 ? rc : neap_net_end(one->net);
}

int neap__net_sweep(struct neap_sweep_stats *stats, struct neap_plan *plan,
	const struct neap__study *study, const struct neap__netcase *net, const char *strategy,
	const struct neap_params *params, uint64_t memory)
{
	struct neap_sweep_options so = {
		.size = sizeof so, .steps = net->steps, .memory = memory, .strategy = strategy};
	struct neap_compare_options o;
	struct neap__netroom room;
	struct neap__one_batch one;
	struct neap_tier *tier;
	struct neap_problem p = {.size = sizeof p};

	if (params)
		so.params = *params;
	if (memory == 0) {
		NEAP_TRY(neap__net_sizes(&p, study, net));
		NEAP_TRY(neap__plan_least(plan, &p, strategy, params));
		so.memory = p.memory;
	}
	neap__net_options(&o, &room, study, net);
	const struct neap__one_batch_source source = {
		.data = o.data, .net = &o.net, .loss = o.loss, .batch = o.batch, .seed = o.seed};
	NEAP_TRY(neap_tier_open_file(&tier, study->options.slow, NULL));
	so.tiers = &tier;
	so.ntiers = 1;
	int rc = neap__one_batch_open(&one, &source);
	if (rc == 0)
		rc = sweep_once(stats, plan, &one, &so);
	neap__one_batch_close(&one);
	neap_tier_close(tier);
	return rc;
}

/* Whether the tapes of a result have one size. */
static const char *tapes_of(const struct neap_compare_result *result)
{
	const struct neap_chain *c = &result->problem.chain;
	return c->tape_max > c->tape ? "vary" : "fixed";
}

int neap__net_row(struct neap__study *study, const char *before, const struct neap__netcase *net,
	const struct neap_compare_result *result, const struct neap_compare_run *run)
{
	const struct neap_sweep_stats *st = &run->stats;
	char predicted[32], seconds[32], ratio[32], pace[32], spread[32], overhead[32];

	if (!run->ran)
		return neap__study_row(study, "%s%s,,%d,%lld,%s,%llu,,,,,,,,,,,,,,", before,
			run->reference ? "reference" : run->plan.strategy, net->units,
			(long long)run->steps, tapes_of(result),
			(unsigned long long)result->memory);
	return neap__study_row(study,
		"%s%s,%s,%d,%lld,%s,%llu,%llu,%llu,%llu,%s,%s,%s,%s,%s,%s,%llu,%.6g,%lld,%lld,"
		"%016" PRIx64,
		before, run->reference ? "reference" : run->plan.strategy, run->plan.chosen,
		net->units, (long long)run->steps, tapes_of(result),
		(unsigned long long)result->memory, (unsigned long long)run->plan.peak_bytes,
		(unsigned long long)st->peak_measured, (unsigned long long)run->plan.slow_bytes,
		neap__study_number(predicted, run->expected),
		neap__study_number(seconds, run->seconds), neap__study_number(ratio, run->ratio),
		neap__study_number(pace, run->slowed), neap__study_number(spread, run->spread),
		neap__study_number(overhead, run->overhead),
		(unsigned long long)st->resident_growth, st->stall, (long long)st->overflows,
		(long long)st->recoveries, run->grad_hash);
}

int neap__net_rows(struct neap__study *study, const char *before, const struct neap__netcase *net,
	const struct neap_compare_options *options)
{
	struct neap_compare_result result = {.size = sizeof result};
	NEAP_TRY(neap_compare(&result, options));
	int rc = 0;
	for (int i = 0; rc == 0 && i < result.runs_count; i++)
		rc = neap__net_row(study, before, net, &result, &result.runs[i]);
	neap_compare_result_free(&result);
	return rc;
}

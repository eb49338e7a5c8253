/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_stability.c: two checks. The first trains with store-all and with sweeps that recompute,
 * use a file and lose records, and compares the bits of the weights over thousands of updates.
 * The second measures the distance of gradients in single and double precision over sequences of
 * up to a million steps.
 *
 * The second check takes a net whose outputs are numbers (rnn, tanh), because rounding sooner or
 * later moves a spike, after which gradients of spiking nets differ by whole spikes.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "study/experiment.h"
#include "study/net_cases.h"
#include "store/fault_tier.h"
#include "measure/net_steps.h"
#include "measure/one_batch.h"
#include "train/optimizer.h"

#define UNITS 32
#define BATCH 8
#define STEPS 200
#define RATE 1e-3		   /* learning rate */
#define MEMORY ((uint64_t)4 << 20) /* budget of the sweeps whose gradients are compared */

/* One of the two trainings; the tier is NULL for store-all. */
struct stability_training {
	struct neap__one_batch one;
	struct neap__optimizer optimizer;
	struct neap_tier *tier;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats;
	int64_t recoveries;
	double seconds;
};

/* Chooses the request of the next sweep that fails, and how: differently for every update. */
static void arm(struct neap__faults *faults, const struct neap_tier *tier, int64_t update)
{
	const struct neap__fault_counts so_far = neap__fault_counts(tier);
	int64_t which = 1 + update % 5;
	faults->lose_put = update % 4 == 1 ? so_far.puts + which : 0;
	faults->corrupt_put = update % 4 == 2 ? so_far.puts + which : 0;
	faults->fail_get = update % 4 == 3 ? so_far.gets + which : 0;
}

static int begin(struct stability_training *t, struct neap_tier *tier,
	const struct neap_compare_options *o, const struct neap_params *params, uint64_t memory)
{
	const struct neap__rule_settings settings = {
		.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
	const struct neap__one_batch_source source = {.data = o->data,
		.net = &o->net,
		.loss = o->loss,
		.batch = o->batch,
		.seed = o->seed};
	struct neap_sweep_options so = {.size = sizeof so,
		.steps = STEPS,
		.strategy = tier ? "double" : "bptt",
		.params = *params,
		.memory = memory,
		.tiers = &t->tier,
		.ntiers = tier ? 1 : 0};
	struct neap_step_ops ops;

	t->tier = tier;
	NEAP_TRY(neap__one_batch_open(&t->one, &source));
	NEAP_TRY(neap__optimizer_init(
		&t->optimizer, neap__rule_find("adam"), &settings, t->one.net));
	neap__net_steps_fill(&ops, t->one.net);
	return neap_sweep_create(&t->sweep, &ops, t->one.net, &so);
}

static int update(struct stability_training *t, int64_t number)
{
	const struct neap_batch *batch;
	double loss;

	NEAP_TRY(neap_loader_start(t->one.loader, number, 0));
	int rc = neap_loader_next(t->one.loader, &batch);
	if (rc <= 0)
		return rc < 0 ? rc : neap__fail(NEAP_EUSAGE, "no batch");
	NEAP_TRY(neap_net_begin(t->one.net, batch, &t->one.objective));
	t->stats.size = sizeof t->stats;
	NEAP_TRY(neap_sweep_run(t->sweep, NULL, NULL, &loss, &t->stats));
	NEAP_TRY(neap_net_end(t->one.net));
	t->recoveries += t->stats.recoveries;
	t->seconds += t->stats.seconds;
	return neap__optimizer_step(&t->optimizer, t->one.net, RATE, number + 1)
		       ? 0
		       : neap__fail(NEAP_EMODEL, "a weight is not finite");
}

static void end(struct stability_training *t)
{
	neap_sweep_free(t->sweep);
	neap__optimizer_fini(&t->optimizer);
	neap__one_batch_close(&t->one);
}

/* Numbers of the weights whose bits differ. */
static int64_t differing(const struct neap_net *a, const struct neap_net *b)
{
	struct neap_param p, q;
	int64_t count = 0;
	for (int i = 0; i < neap_net_params(a); i++) {
		if (neap_net_param(a, i, &p) < 0 || neap_net_param(b, i, &q) < 0)
			return -1;
		for (int64_t k = 0; k < p.count; k++)
			count += memcmp((const float *)p.data + k, (const float *)q.data + k,
					 sizeof(float)) != 0;
	}
	return count;
}

/* Runs both trainings update by update; a row each tenth of the updates. */
static int train(struct neap__study *study, struct stability_training *all,
	struct stability_training *cut, struct neap__faults *faults, int64_t updates)
{
	for (int64_t n = 0; n < updates; n++) {
		arm(faults, cut->tier, n);
		NEAP_TRY(update(all, n));
		NEAP_TRY(update(cut, n));
		if ((n + 1) % (updates / 10) && n + 1 < updates)
			continue;
		NEAP_TRY(neap__study_row(study,
			"updates,double,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%.6g,%.6g,,%" PRIu64
			",%" PRIu64,
			STEPS, n + 1, differing(all->one.net, cut->one.net), cut->recoveries,
			cut->seconds, all->seconds, cut->stats.peak_planned,
			cut->stats.peak_measured));
	}
	return neap__study_done(study);
}

static int updates(struct neap__study *study)
{
	const struct neap__netcase net = {
		.units = UNITS, .batch = BATCH, .steps = STEPS, .dense = 1};
	const struct neap_params params = {.remote_chunk = 20, .chunk = 5};
	struct stability_training all = {0}, cut = {0};
	struct neap__faults faults = {0};
	struct neap_compare_options o;
	struct neap__netroom room;
	struct neap_tier *file, *tier;
	struct neap_problem p = {.size = sizeof p};
	struct neap_plan plan = {.size = sizeof plan};

	int rc = neap__study_point(study, "updates");
	if (rc <= 0)
		return rc;
	NEAP_TRY(neap__net_sizes(&p, study, &net));
	NEAP_TRY(neap__plan_least(&plan, &p, "double", &params));
	neap__net_options(&o, &room, study, &net);
	snprintf(room.data, sizeof room.data, "randman:steps=%d,spikes=5,samples=64", STEPS);
	NEAP_TRY(neap_tier_open_file(&file, study->options.slow, NULL));
	NEAP_TRY(neap__fault_open(&tier, file, &faults));
	rc = begin(&all, NULL, &o, &(struct neap_params){0}, 0);
	if (rc == 0)
		rc = begin(&cut, tier, &o, &params, p.memory);
	if (rc == 0)
		rc = train(study, &all, &cut, &faults, neap__study_scaled(study, 500, 2000, 20));
	end(&all);
	end(&cut);
	neap_tier_close(tier);
	return rc;
}

/* Sets *values to the gradient of one sweep as one list, which the caller frees. */
static int gradient(double **values, int64_t *count, uint64_t *hash, double *seconds,
	const struct neap__study *study, int64_t steps, enum neap_precision precision)
{
	const struct neap__netcase net = {.units = UNITS, .batch = 1, .steps = steps};
	struct neap_sweep_options so = {
		.size = sizeof so, .steps = steps, .memory = MEMORY, .strategy = "auto"};
	struct neap_compare_options o;
	struct neap__netroom room;
	struct neap__one_batch one;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_step_ops ops;
	struct neap_sweep *sweep = NULL;
	double loss;

	neap__net_options(&o, &room, study, &net);
	snprintf(room.spec, sizeof room.spec, "rnn:%d,li", UNITS);
	o.net.precision = precision;
	const struct neap__one_batch_source source = {.data = o.data,
		.net = &o.net,
		.loss = o.loss,
		.batch = 1,
		.sweep = &o.sweep,
		.seed = o.seed};
	*values = NULL;
	int rc = neap__one_batch_open(&one, &source);
	if (rc == 0) {
		neap__net_steps_fill(&ops, one.net);
		rc = neap_sweep_create(&sweep, &ops, one.net, &so);
	}
	if (rc == 0)
		rc = neap_sweep_run(sweep, NULL, NULL, &loss, &stats);
	if (rc == 0)
		rc = neap_net_end(one.net);
	if (rc == 0) {
		*count = neap__net_gradient(one.net, values);
		*hash = neap_net_grad_hash(one.net);
		*seconds = stats.seconds;
		rc = *values ? 0 : neap__fail_errno(ENOMEM, "a gradient");
	}
	neap_sweep_free(sweep);
	neap__one_batch_close(&one);
	return rc;
}

static int precision(struct neap__study *study, int64_t steps)
{
	double *exact = NULL, *single = NULL, cosine, error, fast = 0, slow = 0;
	uint64_t hash;
	int64_t count;
	int rc = gradient(&exact, &count, &hash, &slow, study, steps, NEAP_DOUBLE);
	if (rc == 0)
		rc = gradient(&single, &count, &hash, &fast, study, steps, NEAP_FLOAT);
	if (rc == 0) {
		neap__net_distance(exact, single, count, &cosine, &error);
		rc = neap__study_row(study, "error,auto,%" PRId64 ",,,,%.6g,%.6g,%.6g,,", steps,
			fast, slow, error);
	}
	free(exact);
	free(single);
	return rc < 0 ? rc : neap__study_done(study);
}

static int measure(struct neap__study *study)
{
	int64_t most = neap__study_scaled(study, 100000, 1000000, 1000);
	NEAP_TRY(updates(study));
	for (int64_t steps = 1000; steps <= most; steps *= 10) {
		int rc = neap__study_point(study, "error T=%" PRId64, steps);
		NEAP_TRY(rc);
		if (rc > 0)
			NEAP_TRY(precision(study, steps));
	}
	return 0;
}

static int draw(struct neap__study *study)
{
	struct neap__figure f;

	neap__text_add(&study->report,
		"Training with Adam, %d units, %d steps, batches of %d out of 64 "
		"sequences: once with store-all, and once with `double` (chunks of 5 "
		"steps in remote chunks of 20, offloaded to a file). In three of four "
		"sweeps of `double`, one offloaded state is lost, is corrupted or cannot "
		"be read, and is recomputed (recovered).\n\n| updates | weights that "
		"differ | recovered states | time of `double` | time of store-all "
		"|\n|---|---|---|---|---|\n",
		UNITS, STEPS, BATCH);
	for (int i = 0; i < neap__points_count(study->points); i++)
		if (neap__row_is(study, i, "what", "updates"))
			neap__text_add(&study->report, "| %s | %s | %s | %.3g s | %.3g s |\n",
				neap__row_text(study, i, "updates"),
				neap__row_text(study, i, "differing"),
				neap__row_text(study, i, "recoveries"),
				neap__row_number(study, i, "took"),
				neap__row_number(study, i, "beside"));
	neap__text_add(&study->report,
		"\nRelative error |g - exact| / |exact| of the gradient in single "
		"precision, compared with double precision (`rnn:%d,li`, one sequence, "
		"`auto` in 4 MiB):\n\n| steps | relative error | time, single precision "
		"| time, double precision |\n|---|---|---|---|\n",
		UNITS);
	neap__figure_begin(&f, "stability");
	neap__figure_panel(&f, "Gradient in single precision against double", "steps T",
		"relative error", NEAP__LOG_X | NEAP__LOG_Y);
	neap__figure_series(&f, "auto", 0, NULL, NEAP__MARKS | NEAP__LINE);
	for (int i = 0; i < neap__points_count(study->points); i++) {
		if (!neap__row_is(study, i, "what", "error"))
			continue;
		double error = neap__row_number(study, i, "error");
		neap__figure_xy(&f, neap__row_number(study, i, "steps"), error);
		neap__text_add(&study->report, "| %s | %.2g | %.3g s | %.3g s |\n",
			neap__row_text(study, i, "steps"), error,
			neap__row_number(study, i, "took"), neap__row_number(study, i, "beside"));
	}
	return neap__study_figure(study, &f,
		"Gradients are summed over the steps in double precision, block by "
		"block, so the error does not grow with the number of steps.");
}

const struct neap__experiment neap__study_stability = {"stability",
	"identical weights after thousands of updates, and rounding error of "
	"gradients",
	"what,strategy,steps,updates,differing,recoveries,took,beside,error,peak_bytes,"
	"peak_measured",
	measure, draw};

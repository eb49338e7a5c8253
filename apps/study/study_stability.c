/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_stability.c: two checks. The first trains with store-all and with sweeps of `double` that
 * recompute, use a file and a memory tier by turns and lose records, and compares the bits of the
 * weights over thousands of updates. The second measures the distance of gradients in single and
 * double precision over sequences of up to a million steps.
 *
 * The nets of the second check differ in what rounding can do: the outputs of rnn are numbers
 * (tanh). In a spiking net, rounding can move a spike, after which gradients differ by
 * whole spikes; without recurrent weights such a difference decays with the membrane, with them it
 * can spread.
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

#define UNITS 32 /* of the nets whose gradients are compared */
#define BATCH 8
#define STEPS 200
#define RATE 1e-3		   /* learning rate */
#define MEMORY ((uint64_t)4 << 20) /* budget of the sweeps whose gradients are compared */

enum { TIERS = 2 }; /* a file, and memory that is used as one */

static const char *const nets[] = {"rnn", "lif", "lif-recurrent", NULL};
static const char *const specs[] = {"rnn:%d,li", "lif:%d,li", "lif:%dr,li"};

/* A tier that fails on demand. */
struct stability_tier {
	struct neap_tier *tier;
	struct neap__faults faults;
};

/* One of the two trainings: of store-all, with one sweep, or of `double`, with a sweep per tier. */
struct stability_training {
	struct neap__one_batch one;
	struct neap__optimizer optimizer;
	struct neap_sweep *sweep[TIERS];
	int sweeps;
	struct neap_sweep_stats stats;
	int64_t recoveries;
	double seconds, loss;
};

/*
 * Chooses the request of the next sweep that fails, and how: differently for every two updates,
 * which use one tier each.
 */
static void arm(struct stability_tier *t, int64_t number)
{
	const struct neap__fault_counts so_far = neap__fault_counts(t->tier);
	int64_t which = 1 + number % 5;
	number /= TIERS;
	t->faults.lose_put = number % 4 == 1 ? so_far.puts + which : 0;
	t->faults.corrupt_put = number % 4 == 2 ? so_far.puts + which : 0;
	t->faults.fail_get = number % 4 == 3 ? so_far.gets + which : 0;
}

/* `tiers` NULL: of store-all. */
static int begin(struct stability_training *t, struct stability_tier *tiers,
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
		.strategy = tiers ? "double" : "bptt",
		.params = *params,
		.memory = memory,
		.ntiers = tiers ? 1 : 0};
	struct neap_step_ops ops;

	NEAP_TRY(neap__one_batch_open(&t->one, &source));
	NEAP_TRY(neap__optimizer_init(
		&t->optimizer, neap__rule_find("adam"), &settings, t->one.net));
	neap__net_steps_fill(&ops, t->one.net);
	t->sweeps = tiers ? TIERS : 1;
	for (int i = 0; i < t->sweeps; i++) {
		so.tiers = tiers ? &tiers[i].tier : NULL;
		NEAP_TRY(neap_sweep_create(&t->sweep[i], &ops, t->one.net, &so));
	}
	return 0;
}

static int update(struct stability_training *t, int64_t number)
{
	const struct neap_batch *batch;

	NEAP_TRY(neap_loader_start(t->one.loader, number, 0));
	int rc = neap_loader_next(t->one.loader, &batch);
	if (rc <= 0)
		return rc < 0 ? rc : neap__fail(NEAP_EUSAGE, "no batch");
	NEAP_TRY(neap_net_begin(t->one.net, batch, &t->one.objective));
	t->stats.size = sizeof t->stats;
	NEAP_TRY(neap_sweep_run(t->sweep[number % t->sweeps], NULL, NULL, &t->loss, &t->stats));
	NEAP_TRY(neap_net_end(t->one.net));
	t->recoveries += t->stats.recoveries;
	t->seconds += t->stats.seconds;
	return neap__optimizer_step(&t->optimizer, t->one.net, RATE, number + 1)
		       ? 0
		       : neap__fail(NEAP_EMODEL, "a weight is not finite");
}

static void end(struct stability_training *t)
{
	for (int i = 0; i < t->sweeps; i++)
		neap_sweep_free(t->sweep[i]);
	neap__optimizer_fini(&t->optimizer);
	neap__one_batch_close(&t->one);
}

/* Counts the weights, and those of them whose bits differ. */
static int count_weights(
	int64_t *all, int64_t *differing, const struct neap_net *a, const struct neap_net *b)
{
	struct neap_param p, q;

	*all = *differing = 0;
	for (int i = 0; i < neap_net_params(a); i++) {
		NEAP_TRY(neap_net_param(a, i, &p));
		NEAP_TRY(neap_net_param(b, i, &q));
		*all += p.count;
		for (int64_t k = 0; k < p.count; k++)
			*differing += memcmp((const float *)p.data + k, (const float *)q.data + k,
					      sizeof(float)) != 0;
	}
	return 0;
}

static int updates_row(struct neap__study *study, const char *net, int64_t updates,
	const struct stability_training *all, const struct stability_training *cut)
{
	int64_t weights, differing;
	NEAP_TRY(count_weights(&weights, &differing, all->one.net, cut->one.net));
	return neap__study_row(study,
		"updates,%s,double,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
		",%.6g,%.6g,%.6g,,%" PRIu64 ",%" PRIu64,
		net, STEPS, updates, weights, differing, cut->recoveries, cut->seconds,
		all->seconds, all->loss, cut->stats.peak_planned, cut->stats.peak_measured);
}

/* Runs both trainings update by update; a row each tenth of the updates. */
static int train(struct neap__study *study, const char *net, struct stability_training *all,
	struct stability_training *cut, struct stability_tier tiers[TIERS], int64_t updates)
{
	for (int64_t n = 0; n < updates; n++) {
		arm(&tiers[n % TIERS], n);
		NEAP_TRY(update(all, n));
		NEAP_TRY(update(cut, n));
		if ((n + 1) % (updates / 10) == 0)
			NEAP_TRY(updates_row(study, net, n + 1, all, cut));
		if (n % 16 == 0)
			NEAP_TRY(neap__study_alive(study));
	}
	return neap__study_done(study);
}

static int open_tiers(
	struct stability_tier tiers[TIERS], const struct neap__study *study, uint64_t memory)
{
	for (int i = 0; i < TIERS; i++) {
		struct neap_tier *inner;
		NEAP_TRY(i == 0 ? neap_tier_open_file(&inner, study->options.slow, NULL)
				: neap_tier_open_memory(&inner, memory));
		NEAP_TRY(neap__fault_open(&tiers[i].tier, inner, &tiers[i].faults));
	}
	return 0;
}

static int updates(struct neap__study *study)
{
	const struct neap__netcase net = {.units = (int)neap__study_scaled(study, 128, 512, 32),
		.batch = BATCH,
		.steps = STEPS,
		.dense = 1};
	const struct neap_params params = {.remote_chunk = 20, .chunk = 5};
	struct stability_training all = {0}, cut = {0};
	struct stability_tier tiers[TIERS] = {0};
	struct neap_compare_options o;
	struct neap__netroom room;
	struct neap_problem p = {.size = sizeof p};
	struct neap_plan plan = {.size = sizeof plan};
	char name[32];

	int rc = neap__study_point(study, "updates");
	if (rc <= 0)
		return rc;
	NEAP_TRY(neap__net_sizes(&p, study, &net));
	NEAP_TRY(neap__plan_least(&plan, &p, "double", &params));
	neap__net_options(&o, &room, study, &net);
	snprintf(room.data, sizeof room.data, "randman:steps=%d,spikes=5,samples=1000", STEPS);
	snprintf(name, sizeof name, "lif:%dr", net.units);
	rc = open_tiers(tiers, study, 4 * STEPS * p.chain.state);
	if (rc == 0)
		rc = begin(&all, NULL, &o, &(struct neap_params){0}, 0);
	if (rc == 0)
		rc = begin(&cut, tiers, &o, &params, p.memory);
	if (rc == 0)
		rc = train(
			study, name, &all, &cut, tiers, neap__study_scaled(study, 500, 10000, 20));
	end(&all);
	end(&cut);
	for (int i = 0; i < TIERS; i++)
		neap_tier_close(tiers[i].tier);
	return rc;
}

/* Sets *values to the gradient of one sweep as one list, which the caller frees. */
static int gradient(double **values, int64_t *count, double *seconds,
	const struct neap__study *study, const char *spec, int64_t steps,
	enum neap_precision precision)
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
	snprintf(room.spec, sizeof room.spec, "%s", spec);
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
		*seconds = stats.seconds;
		rc = *values ? 0 : neap__fail_errno(ENOMEM, "a gradient");
	}
	neap_sweep_free(sweep);
	neap__one_batch_close(&one);
	return rc;
}

static int precision(struct neap__study *study, int kind, int64_t steps)
{
	double *exact = NULL, *single = NULL, cosine, error, fast = 0, slow = 0;
	char spec[64];
	int64_t count;
	snprintf(spec, sizeof spec, specs[kind], UNITS);
	int rc = gradient(&exact, &count, &slow, study, spec, steps, NEAP_DOUBLE);
	if (rc == 0)
		rc = gradient(&single, &count, &fast, study, spec, steps, NEAP_FLOAT);
	if (rc == 0) {
		neap__net_distance(exact, single, count, &cosine, &error);
		rc = neap__study_row(study, "error,%s,auto,%" PRId64 ",,,,,%.6g,%.6g,,%.6g,,",
			nets[kind], steps, fast, slow, error);
	}
	free(exact);
	free(single);
	return rc < 0 ? rc : neap__study_done(study);
}

static int measure(struct neap__study *study)
{
	int64_t most = neap__study_scaled(study, 100000, 1000000, 1000);
	NEAP_TRY(updates(study));
	for (int kind = 0; nets[kind]; kind++)
		for (int64_t steps = 1000; steps <= most; steps *= 10) {
			int rc = neap__study_point(study, "error %s T=%" PRId64, nets[kind], steps);
			NEAP_TRY(rc);
			if (rc > 0)
				NEAP_TRY(precision(study, kind, steps));
		}
	return 0;
}

/* The table of updates; the row of the last one, or -1. */
static int table_of_updates(struct neap__study *study)
{
	int last = -1;
	for (int i = 0; i < neap__points_count(study->points); i++) {
		if (!neap__row_is(study, i, "what", "updates"))
			continue;
		if (last < 0)
			neap__text_add(&study->report,
				"Training `%s,li` with Adam, %d steps, batches of %d out of 1000 "
				"sequences: once with store-all, and once with `double` (chunks of "
				"5 steps in remote chunks of 20), which offloads states to a file "
				"and to a memory tier by turns. In three of four sweeps of "
				"`double`, one offloaded state is lost, is corrupted or cannot be "
				"read, and is recomputed (recovered). The loss is measured on the "
				"last "
				"batch.\n\n| updates | weights that differ | recovered states | "
				"loss | time of `double` | time of store-all "
				"|\n|---|---|---|---|---|---|\n",
				neap__row_text(study, i, "net"), STEPS, BATCH);
		last = i;
		neap__text_add(&study->report, "| %s | %s of %s | %s | %.3g | %.3g s | %.3g s |\n",
			neap__row_text(study, i, "updates"), neap__row_text(study, i, "differing"),
			neap__row_text(study, i, "weights"), neap__row_text(study, i, "recoveries"),
			neap__row_number(study, i, "loss"), neap__row_number(study, i, "took"),
			neap__row_number(study, i, "beside"));
	}
	return last;
}

/* The lowest and the highest error of a net over the steps. */
struct stability_errors {
	double low, high;
};

static struct stability_errors series(
	struct neap__study *study, struct neap__figure *figure, int kind)
{
	struct stability_errors e = {INFINITY, 0};
	neap__figure_series(figure, NULL, kind, nets[kind], NEAP__MARKS | NEAP__LINE);
	for (int i = 0; i < neap__points_count(study->points); i++) {
		if (!neap__row_is(study, i, "what", "error") ||
			!neap__row_is(study, i, "net", nets[kind]))
			continue;
		double error = neap__row_number(study, i, "error");
		e.low = fmin(e.low, error);
		e.high = fmax(e.high, error);
		neap__figure_xy(figure, neap__row_number(study, i, "steps"), error);
		neap__text_add(&study->report, "| %s | %s | %.2g | %.3g s | %.3g s |\n", nets[kind],
			neap__row_text(study, i, "steps"), error,
			neap__row_number(study, i, "took"), neap__row_number(study, i, "beside"));
	}
	return e;
}

static int draw(struct neap__study *study)
{
	struct stability_errors e[sizeof nets / sizeof nets[0]];
	struct neap__figure f;
	int last = table_of_updates(study);

	if (last >= 0)
		neap__text_add(&study->report,
			"\nAfter %s updates with %s recovered states, %s of %s weights differ.\n",
			neap__row_text(study, last, "updates"),
			neap__row_text(study, last, "recoveries"),
			neap__row_text(study, last, "differing"),
			neap__row_text(study, last, "weights"));
	neap__text_add(&study->report,
		"\nRelative error |g - exact| / |exact| of the gradient in single precision, "
		"compared with double precision (`rnn:%d,li`, `lif:%d,li` and, recurrent, "
		"`lif:%dr,li`; one sequence, `auto` in 4 MiB). Gradients are summed over the steps "
		"in double precision, block by block. In spiking nets, rounding can move spikes, "
		"which changes the gradient by more than rounding.\n\n| net | steps | relative "
		"error | time, single precision | time, double precision "
		"|\n|---|---|---|---|---|\n",
		UNITS, UNITS, UNITS);
	neap__figure_begin(&f, "stability");
	neap__figure_panel(&f, "Gradient in single precision against double", "steps T",
		"relative error", NEAP__LOG_X | NEAP__LOG_Y);
	for (int kind = 0; nets[kind]; kind++)
		e[kind] = series(study, &f, kind);
	return neap__study_figure(study, &f,
		"At every length, the relative error of single precision is %.1g to %.1g without "
		"spikes (rnn), %.1g to %.1g with spikes (lif) and %.1g to %.1g with recurrent "
		"spikes.",
		e[0].low, e[0].high, e[1].low, e[1].high, e[2].low, e[2].high);
}

const struct neap__experiment neap__study_stability = {"stability",
	"identical weights after thousands of updates, and rounding error of "
	"gradients",
	"what,net,strategy,steps,updates,weights,differing,recoveries,took,beside,loss,error,"
	"peak_bytes,peak_measured",
	measure, draw};

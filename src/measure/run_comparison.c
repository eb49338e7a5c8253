/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_comparison.c: `neap compare`: plans, runs and measures one real batch under several
 * strategies. Costs of steps and sizes of tapes are measured first (comparison_costs.c); every
 * strategy is planned with them. Gradients must agree in every bit; grad_hash shows it.
 */
#include <neap/machine.h>
#include <neap/train.h>
#include "base/fail.h"
#include "data/events/late_events.h"
#include "base/print.h"
#include "base/struct_size.h"
#include "nn/core/cell.h"
#include "sys/clock.h"
#include "sys/memory.h"
#include "measure/comparison.h"
#include "measure/target_fit.h"
#include "sys/atomic_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double waited(const struct neap__comparison *c)
{
	const struct neap_windows *windows = c->one.batch->windows;
	return windows ? neap_windows_waited(windows) : 0;
}

/* Measurements of one sweep. */
struct measured {
	struct neap_sweep_stats stats;
	struct neap_pace pace;
	double input_wait;
	double slowed, expected; /* by the sweeps without transfers just before and after it */
};

/* Seconds of the plan at the mean of the costs that the probe gave before and after it. */
static double expect(const struct neap_sweep *sweep, const struct neap__pace_now *before,
	const struct neap__pace_now *after)
{
	return (neap__comparison_predict(sweep, before) + neap__comparison_predict(sweep, after)) /
	       2;
}

/* Names the layers that never spike in the batch, once: equal gradients show little there. */
static void say_silent(struct neap__comparison *c)
{
	const struct neap_compare_options *o = c->options;
	const struct neap_net *net = c->one.net;
	char line[NEAP__FEW_STEPS_LINE];
	struct neap_dataset_info info = {.size = sizeof info};

	if (neap_dataset_info(c->one.set, &info) == 0 && o->say && !c->told_silent &&
		neap__few_steps(line, &info, o->net.dt, o->max_steps)) {
		o->say(o->user, line);
		c->told_silent = 1; /* no layer is to blame */
	}
	for (int l = 0; l < net->nlayers - 1 && o->say && !c->told_silent; l++) {
		const struct neap__layer *layer = &net->layers[l];
		if (!neap__layer_spikes(net, layer) || net->rate[l] > 0)
			continue;
		neap__print(line, sizeof line,
			"warning: layer%d (%s) is silent in this batch: no unit spikes, so its "
			"gradients "
			"are nearly all zero, and equal ones show little. Increase its scale (now "
			"%.3g) or "
			"decrease its threshold (now %.3g)",
			l, layer->cell->name, layer->scale, layer->threshold);
		o->say(o->user, line);
	}
	c->told_silent = 1;
}

/*
 * Runs one sweep in an arena whose pages are mapped already, as in training after the first batch.
 * Mapping them is within the measurement of resident memory.
 */
static int run_once(struct neap__comparison *c, struct neap_sweep *sweep,
	struct neap_compare_run *run, struct measured *measured)
{
	struct neap_sweep_stats *stats = &measured->stats;
	const struct neap_batch *batch = run->reference ? &c->reference_batch : c->one.batch;

	const struct neap__pace_now last = c->now;
	NEAP_TRY(neap_net_begin(c->one.net, batch, &c->one.objective));
	neap__sweep_pace_start(&c->timed, c->resumes ? 0 : batch->steps);
	double wait = waited(c);
	int resettable = neap__resident_reset() == 0;
	uint64_t before = neap__resident_peak();
	NEAP_TRY(neap_sweep_touch(sweep));
	stats->size = sizeof *stats;
	c->running = sweep;
	int rc = neap_sweep_run(sweep, NULL, NULL, &run->loss, stats);
	c->running = NULL;
	uint64_t after = neap__resident_peak();
	neap_sweep_release(sweep);
	NEAP_TRY(rc);
	neap__sweep_pace_now(&c->timed, &measured->pace);
	measured->input_wait = waited(c) - wait;
	stats->resident_growth = resettable && after > before ? after - before : 0;
	NEAP_TRY(neap_net_end(c->one.net));
	if (batch->steps == c->one.batch->steps)
		say_silent(c);
	uint64_t hash = neap_net_grad_hash(c->one.net);
	if (run->ran && hash != run->grad_hash)
		return neap__fail(NEAP_EMODEL,
			"two passes with %s computed different gradients. This is a bug in neap: "
			"please report it with this command line",
			run->plan.strategy);
	run->grad_hash = hash;
	run->ran = 1;
	if (!c->options->no_pace)
		NEAP_TRY(neap__pace_probe_run(c));
	measured->slowed = (last.pace + c->now.pace) / 2;
	measured->expected =
		c->resumes ? neap_sweep_plan(sweep)->makespan : expect(sweep, &last, &c->now);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static int by_seconds(const void *a, const void *b)
{
	const struct measured *x = a, *y = b;
	return (x->stats.seconds > y->stats.seconds) - (x->stats.seconds < y->stats.seconds);
}

enum { REPEATS_MAX = 99 };

/* A strategy while its sweeps are measured. */
struct candidate {
	struct neap_compare_case as;
	struct neap_trace *trace; /* NULL: none */
	struct neap_sweep *sweep; /* NULL: does not run */
	double predicted;
	struct measured run[REPEATS_MAX];
};

#define TRACE_EVENTS ((int64_t)1 << 20) /* in all */
#define TRACE_LEAST ((int64_t)1 << 16)	/* of one strategy */

/* Makes a trace for each; writes an empty file first, so that a bad path is refused early. */
static int make_traces(const struct neap__comparison *c, struct candidate *candidates)
{
	const char *path = c->options->sweep.trace;
	int count = c->result->runs_count;
	int64_t share = TRACE_EVENTS / (count > 0 ? count : 1);

	if (!path)
		return 0;
	NEAP_TRY(neap__atomic_file_check(path));
	for (int i = 0; i < count; i++) {
		const char *name =
			c->result->runs[i].reference ? "reference" : candidates[i].as.strategy;
		NEAP_TRY(neap_trace_create(
			&candidates[i].trace, name, share > TRACE_LEAST ? share : TRACE_LEAST));
	}
	return 0;
}

static int write_traces(const struct neap__comparison *c, const struct candidate *candidates)
{
	struct neap_trace *traces[64];
	int n = 0;

	if (!c->options->sweep.trace)
		return 0;
	for (int i = 0; i < c->result->runs_count && n < 64; i++)
		if (c->result->runs[i].ran)
			traces[n++] = candidates[i].trace;
	for (int i = 0; i < n; i++)
		c->result->trace_dropped += neap_trace_dropped(traces[i]);
	return neap_trace_write(c->options->sweep.trace, traces, n);
}

/* Plans a candidate; where it cannot run the result says why, and there is no sweep. */
static int prepare(
	struct neap__comparison *c, struct candidate *candidate, struct neap_compare_run *run)
{
	const char *strategy = candidate->as.strategy;
	uint64_t memory;

	run->overhead = run->round_overhead = run->round_least = run->round_most = NAN;
	run->steps = c->one.batch->steps;
	c->params = candidate->as.params;
	if (run->reference)
		return neap__comparison_reference(c, &candidate->sweep, run);
	NEAP_TRY(neap_net_begin(c->one.net, c->one.batch, &c->one.objective));
	NEAP_TRY(neap__comparison_budget(c, &memory, &candidate->as));
	int rc = neap__comparison_plan(c, &candidate->sweep, strategy, memory);
	if (rc == NEAP_EINFEASIBLE) { /* an answer, not a failure */
		run->plan.size = sizeof run->plan;
		NEAP_TRY(neap_plan_make(&run->plan, &c->result->problem, strategy, &c->params));
		neap__print(run->what, sizeof run->what, "%s", run->plan.why);
		return 0;
	}
	NEAP_TRY(rc);
	run->plan = *neap_sweep_plan(candidate->sweep);
	c->result->problem = *neap_sweep_problem(candidate->sweep);
	candidate->predicted = neap__comparison_predict(candidate->sweep, &c->planned);
	return 0;
}

/*
 * Overheads relative to the reference in the same round, which a machine that is slow for a while
 * changes less than the ratio of two medians. `reference`: NULL where none ran.
 */
static void compare_rounds(const struct candidate *candidate, const struct candidate *reference,
	struct neap_compare_run *run, double reference_steps, int repeats)
{
	double over[REPEATS_MAX];
	double steps = run->steps > 0 ? (double)run->steps : 1;

	run->rounds = repeats;
	run->round_overhead = run->round_least = run->round_most = NAN;
	if (!reference)
		return;
	for (int i = 0; i < repeats; i++)
		over[i] = candidate->run[i].stats.seconds / steps /
				  (reference->run[i].stats.seconds / reference_steps) -
			  1;
	qsort(over, (size_t)repeats, sizeof over[0], by_value);
	run->round_overhead = over[repeats / 2];
	run->round_least = over[0];
	run->round_most = over[repeats - 1];
}

/* Takes the run with the median of the seconds. */
static void summarise(struct neap__comparison *c, struct candidate *candidate,
	struct neap_compare_run *run, int repeats)
{
	struct measured *all = candidate->run;
	double ratio[REPEATS_MAX];
	double steps = run->steps > 0 ? (double)run->steps : 1;

	if (!run->ran)
		return;
	qsort(all, (size_t)repeats, sizeof all[0], by_seconds);
	run->stats = all[repeats / 2].stats;
	if (!run->reference && !c->resumes)
		run->stats.predicted = candidate->predicted;
	for (int i = 0; i < repeats; i++)
		ratio[i] = all[i].stats.seconds / all[i].expected;
	qsort(ratio, (size_t)repeats, sizeof ratio[0], by_value);
	run->ratio = ratio[repeats / 2];
	run->slowed = all[repeats / 2].slowed;
	run->expected = all[repeats / 2].expected;
	run->pace = all[repeats / 2].pace;
	run->input_wait = all[repeats / 2].input_wait;
	run->seconds = run->stats.seconds;
	run->spread = (all[repeats - 1].stats.seconds - all[0].stats.seconds) / run->seconds;
	if (run->reference)
		c->reference = run->seconds / steps;
	run->overhead = run->seconds / steps / c->reference - 1;
}

static int check_names(const struct neap_compare_options *o)
{
	for (int i = 0; o->strategies && o->strategies[i]; i++)
		if (!neap_strategy_about(o->strategies[i]))
			return neap__fail(
				NEAP_EUSAGE, "--strategy: unknown strategy '%s'", o->strategies[i]);
	for (int i = 0; i < o->cases_count; i++)
		if (!o->cases[i].strategy || !neap_strategy_about(o->cases[i].strategy))
			return neap__fail(
				NEAP_EUSAGE, "case %d of a comparison has no strategy", i);
	if (o->repeats > REPEATS_MAX)
		return neap__fail(NEAP_EUSAGE, "--repeats must be at most %d", REPEATS_MAX);
	return 0;
}

/* Plans all; with a total, until they fit beside what their tables take. */
static int prepare_all(struct neap__comparison *c, struct candidate *candidates)
{
	int again = 1;

	for (int tries = 0; again > 0 && tries < 4; tries++) {
		uint64_t arena = 0;
		for (int i = 0; i < c->result->runs_count; i++) {
			neap_sweep_free(candidates[i].sweep);
			candidates[i].sweep = NULL;
			c->trace = candidates[i].trace;
			NEAP_TRY(prepare(c, &candidates[i], &c->result->runs[i]));
			if (candidates[i].sweep) {
				const struct neap_plan *p = neap_sweep_plan(candidates[i].sweep);
				arena = p->arena_bytes > arena ? p->arena_bytes : arena;
			}
		}
		NEAP_TRY(again = neap__comparison_memory_planned(c, arena));
	}
	return again ? neap__fail(NEAP_EINFEASIBLE, "--memory-total: no plan fits. Raise it") : 0;
}

/* 1: another round of `repeats` begins, after `done` ones that began at `begun`. */
static int another_round(const struct neap_compare_options *o, int done, int repeats, double begun)
{
	enum { ROUNDS_LEAST = 3 }; /* the fewest whose median is not an extreme */

	return done < repeats &&
	       (!(o->seconds > 0) || done < ROUNDS_LEAST || neap__seconds() - begun < o->seconds);
}

/* Runs the strategies in turns, so that a machine that slows down for a while slows all alike.
 * Returns the number of rounds. */
static int run_rounds(struct neap__comparison *c, struct candidate *candidates, int repeats)
{
	const struct neap_compare_options *o = c->options;
	const double begun = neap__seconds();
	int count = c->result->runs_count, done = 0, r;

	for (r = 0; another_round(o, r, repeats, begun); r++) {
		for (int i = 0; i < count; i++, done++) {
			const char *name = candidates[i].as.strategy;
			c->name = name;
			c->done = done;
			c->total = count * repeats;
			if (o->progress && o->progress(o->user, name, done, count * repeats))
				return neap__fail(NEAP_EINTERRUPTED, "interrupted");
			if (candidates[i].sweep)
				NEAP_TRY(run_once(c, candidates[i].sweep, &c->result->runs[i],
					&candidates[i].run[r]));
		}
	}
	return r;
}

/* What the rounds show, of each run and compared with the reference. */
static void summarise_all(struct neap__comparison *c, struct candidate *candidates, int rounds)
{
	int count = c->result->runs_count;
	/* Before runs are sorted by seconds. */
	const struct neap_compare_run *first = c->result->runs;
	const int has_reference = count > 0 && first->reference && first->ran;
	for (int i = 0; i < count; i++)
		if (first[i].ran)
			compare_rounds(&candidates[i], has_reference ? candidates : NULL,
				&c->result->runs[i], first->steps > 0 ? (double)first->steps : 1,
				rounds);
	for (int i = 0; i < count; i++) {
		struct neap_compare_run *run = &c->result->runs[i];
		summarise(c, &candidates[i], run, rounds);
		if (run->ran) {
			run->ended = *neap_sweep_plan(candidates[i].sweep);
			run->problem = *neap_sweep_problem(candidates[i].sweep);
		}
	}
}

static int measure(struct neap__comparison *c, struct candidate *candidates, int repeats)
{
	const struct neap_compare_options *o = c->options;
	char line[NEAP__TAKEN_TEXT];

	/* Before the first pass, which would last. */
	if (o->say && neap__late_doubt(line, c->one.set, 0))
		o->say(o->user, line);
	NEAP_TRY(make_traces(c, candidates));
	NEAP_TRY(neap__pace_probe_run(c));
	NEAP_TRY(prepare_all(c, candidates));
	int rounds = run_rounds(c, candidates, repeats);
	NEAP_TRY(rounds);
	summarise_all(c, candidates, rounds);
	int done = rounds * c->result->runs_count;
	if (o->progress)
		o->progress(o->user, NULL, done, done);
	return 0;
}

static int measure_energy(struct neap__comparison *c, const struct candidate *candidates)
{
	struct neap_compare_result *r = c->result;

	for (int i = 0; i < r->runs_count; i++)
		NEAP_TRY(neap__comparison_energy(
			c, candidates[i].sweep, &r->runs[i], &r->joules[i]));
	return 0;
}

static int run_all(struct neap__comparison *c)
{
	const struct neap_compare_options *o = c->options;
	int total = 1 + o->cases_count, count = 0;

	for (int i = 0; neap_strategy_name(i); i++)
		total++;
	struct candidate *candidates = calloc((size_t)total, sizeof *candidates);
	c->result->runs = calloc((size_t)total, sizeof *c->result->runs);
	c->result->joules = calloc((size_t)total, sizeof *c->result->joules);
	if (!candidates || !c->result->runs || !c->result->joules) {
		free(candidates);
		return neap__fail_errno(ENOMEM, "compare");
	}
	if (!o->no_reference && !o->sweep.journal) {
		candidates[count].as = (struct neap_compare_case){"bptt", o->sweep.params, 0, 0};
		c->result->runs[count++].reference = 1;
	}
	for (int i = 0; neap__comparison_case(c, i, &candidates[count].as); i++)
		count++;
	c->result->runs_count = count;
	int rc = measure(c, candidates, o->repeats > 0 ? o->repeats : 1);
	if (rc == 0)
		rc = measure_energy(c, candidates);
	if (rc == 0)
		rc = write_traces(c, candidates);
	for (int i = 0; i < count; i++) {
		neap_sweep_free(candidates[i].sweep);
		neap_trace_free(candidates[i].trace);
	}
	free(candidates);
	return rc;
}

/* Measuring would overwrite the records that a sweep resumes with. */
static int find_journal(struct neap__comparison *c)
{
	const struct neap_compare_options *o = c->options;
	if (!o->sweep.journal)
		return 0;
	if (!o->strategies || !o->strategies[0] || o->strategies[1] || o->repeats > 1)
		return neap__fail(NEAP_EUSAGE, "--journal applies to a single pass. Pass exactly "
					       "one --strategy, and no --repeats");
	c->resumes = neap_journal_there(o->sweep.journal, NULL, o->sweep.slow_in_memory);
	return c->resumes;
}

static int compare(struct neap__comparison *c)
{
	const struct neap_compare_options *o = c->options;
	struct neap_compare_result *r = c->result;
	struct neap_net_sizes sizes = {.size = sizeof sizes};

	NEAP_TRY(check_names(o));
	const struct neap__one_batch_source source = NEAP__ONE_BATCH_SOURCE(o);
	NEAP_TRY(neap__one_batch_open(&c->one, &source));
	neap_net_get_sizes(c->one.net, &sizes);
	NEAP_TRY(neap__tiers_open(&c->tiers, &o->sweep, c->one.net));
	NEAP_TRY(neap__comparison_memory_begin(c));
	NEAP_TRY(find_journal(c));
	if (!c->resumes)
		NEAP_TRY(neap__comparison_costs(c));
	for (int i = 0; i < c->tiers.count; i++)
		neap__print(r->tier_about[i], sizeof r->tier_about[i], "%s",
			neap_tier_about(c->tiers.tier[i]));
	r->tiers_lost = c->tiers.lost_count;
	memcpy(r->tier_lost, c->tiers.lost, sizeof r->tier_lost);
	r->steps = c->one.batch->steps;
	r->batch = c->one.batch->size;
	for (int b = 0; b < c->one.batch->size; b++)
		r->lengths_total += c->one.batch->sequences[b].length;
	r->data_bytes = c->one.batch->bytes;
	r->weights_bytes = sizes.weights;
	r->grads_bytes = sizes.grads;
	int rc = run_all(c);
	if (c->one.batch->windows)
		r->window_steps = neap_windows_steps(c->one.batch->windows);
	r->input_wait = waited(c);
	return neap__comparison_memory_end(c, rc);
}

int neap_compare(struct neap_compare_result *result, const struct neap_compare_options *options)
{
	NEAP_NEED(result, options);
	struct neap__comparison c = {
		.options = options, .result = result, .reference = NAN, .planned = {.pace = 1}};

	NEAP_TRY(neap__struct_size(
		result->size, sizeof *result, sizeof *result, "neap_compare_result"));
	*result = (struct neap_compare_result){.size = sizeof(struct neap_compare_result)};
	int rc = compare(&c);
	result->process.measured = neap__resident_most();
	neap__tiers_close(&c.tiers);
	neap__tape_sizes_free(&c.tapes);
	free(c.cut);
	neap__pace_probe_free(&c.probe);
	neap__one_batch_close(&c.one);
	if (rc < 0)
		neap_compare_result_free(result);
	return rc;
}

void neap_compare_result_free(struct neap_compare_result *result)
{
	if (!result)
		return;
	free(result->runs);
	free(result->joules);
	*result = (struct neap_compare_result){.size = sizeof(struct neap_compare_result)};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * study_truncated.c: truncated backpropagation, which cuts the sequence into windows and stops the
 * gradient at their borders, beside `auto` in the same memory: seconds of a pass, and the distance
 * of the truncated gradient from the whole one.
 *
 * The truncated pass here is as good as one can be: the loss is that of the whole sequence and the
 * state at the start of each window is exact. The adjoint at the end of each window is the one at
 * the turn, which holds what the readout passes on to all steps. Windows are whole blocks of 64
 * steps.
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "base/fail.h"
#include "study/experiment.h"
#include "study/net_cases.h"
#include "measure/one_batch.h"

#define UNITS 128
#define BATCH 8
#define BLOCK 64 /* steps of a call */
#define REPEATS 3

static const struct truncated_task {
	const char *label;
	double tau;
	enum neap_readout readout;
	const char *what;
} tasks[] = {
	{"short-mean", 20e-3, NEAP_READ_MEAN,
		"membrane time constant of 20 steps, output: mean over all steps"},
	{"long-mean", 500e-3, NEAP_READ_MEAN,
		"membrane time constant of 500 steps, output: mean over all steps"},
	{"long-last", 500e-3, NEAP_READ_LAST,
		"membrane time constant of 500 steps, output: last step"},
};
enum { TASKS = sizeof tasks / sizeof tasks[0] };

/* A batch, and memory for the state, the adjoints and the tapes of a window. */
struct pass {
	struct neap__one_batch one;
	struct neap_net_sizes sizes;
	int64_t steps, window;
	unsigned char *state, *adjoint, *turned, *tape;
};

static int64_t least_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int window_back(struct pass *p, int64_t t0, int64_t t1)
{
	struct neap_net *net = p->one.net;
	size_t call = BLOCK * p->sizes.tape_max, used;
	int64_t calls = (t1 - t0 + BLOCK - 1) / BLOCK, done;

	for (int64_t i = 0; i < calls; i++) {
		int64_t from = t0 + i * BLOCK, to = least_of(from + BLOCK, t1);
		NEAP_TRY(neap_net_record(net, p->state, from, to, 0, p->tape + (size_t)i * call,
			call, &used, &done));
	}
	memcpy(p->adjoint, p->turned, p->sizes.adjoint);
	for (int64_t i = calls; i-- > 0;) {
		int64_t from = t0 + i * BLOCK, to = least_of(from + BLOCK, t1);
		NEAP_TRY(neap_net_backward(net, p->adjoint, to, from, p->tape + (size_t)i * call));
	}
	return 0;
}

/* Seconds of one pass in windows; the gradients are the net's. */
static int pass_once(struct pass *p, double *seconds)
{
	struct neap_net *net = p->one.net;
	double loss;

	NEAP_TRY(neap_net_begin(net, p->one.batch, &p->one.objective));
	memset(p->state, 0, p->sizes.state);
	NEAP_TRY(neap_net_advance(net, p->state, 0, p->steps, 1));
	NEAP_TRY(neap_net_turn(net, p->state, p->turned, &loss));
	memset(p->state, 0, p->sizes.state);
	double start = neap_clock();
	for (int64_t t = 0; t < p->steps; t += p->window)
		NEAP_TRY(window_back(p, t, least_of(t + p->window, p->steps)));
	*seconds = neap_clock() - start;
	return neap_net_end(net);
}

static void *aligned(size_t bytes)
{
	return bytes < PTRDIFF_MAX ? aligned_alloc(64, (size_t)neap__round_up(bytes, 64)) : NULL;
}

static int open_pass(struct pass *p, const struct neap__study *study,
	const struct truncated_task *task, int64_t steps)
{
	const struct neap__netcase net = {
		.units = UNITS, .batch = BATCH, .steps = steps, .dense = 1};
	struct neap_compare_options o;
	struct neap__netroom room;

	*p = (struct pass){.steps = steps};
	neap__net_options(&o, &room, study, &net);
	o.net.tau = o.net.tau_out = task->tau;
	o.net.readout = task->readout;
	const struct neap__one_batch_source source = {
		.data = o.data, .net = &o.net, .loss = o.loss, .batch = o.batch, .seed = o.seed};
	NEAP_TRY(neap__one_batch_open(&p->one, &source));
	p->sizes.size = sizeof p->sizes;
	NEAP_TRY(neap_net_get_sizes(p->one.net, &p->sizes));
	p->state = aligned(p->sizes.state);
	p->adjoint = aligned(p->sizes.adjoint);
	p->turned = aligned(p->sizes.adjoint);
	p->tape = aligned((size_t)(steps + BLOCK) * p->sizes.tape_max);
	return p->state && p->adjoint && p->turned && p->tape
		       ? 0
		       : neap__fail_errno(ENOMEM, "%lld steps of tapes", (long long)steps);
}

static void close_pass(struct pass *p)
{
	neap__one_batch_close(&p->one);
	free(p->state);
	free(p->adjoint);
	free(p->turned);
	free(p->tape);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Rows of one task: the whole window first, whose gradient the others are held against. */
static int windows(struct neap__study *study, struct pass *p, const struct truncated_task *task)
{
	const int64_t lengths[] = {p->steps, 64, 128, 256, 512};
	double *whole = NULL, seconds[REPEATS], cosine = 1, error = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof lengths / sizeof lengths[0]; i++) {
		double *g = NULL;
		if (lengths[i] > p->steps || (i > 0 && lengths[i] == p->steps))
			continue;
		p->window = lengths[i];
		for (int k = 0; rc == 0 && k < REPEATS; k++)
			rc = pass_once(p, &seconds[k]);
		if (rc < 0)
			break;
		qsort(seconds, REPEATS, sizeof seconds[0], by_value);
		int64_t count = neap__net_gradient(p->one.net, &g);
		if (i == 0)
			whole = g;
		if (whole && g)
			neap__net_distance(whole, g, count, &cosine, &error);
		if (i > 0)
			free(g);
		rc = neap__study_row(study, "%s,%s,%lld,%lld,%llu,%.6g,%.9g,%.6g,%016llx",
			task->label, i ? "truncated" : "bptt", (long long)p->steps,
			(long long)p->window,
			(unsigned long long)(p->sizes.state + p->sizes.adjoint +
					     (size_t)p->window * p->sizes.tape_max),
			seconds[REPEATS / 2], cosine, error,
			(unsigned long long)neap_net_grad_hash(p->one.net));
	}
	free(whole);
	return rc;
}

/* `auto` in the memory of the window of 128 steps: the whole gradient. */
static int automatic(
	struct neap__study *study, const struct pass *p, const struct truncated_task *task)
{
	static const char *const only[] = {"auto", NULL};
	const struct neap__netcase net = {
		.units = UNITS, .batch = BATCH, .steps = p->steps, .dense = 1};
	struct neap_compare_result result = {.size = sizeof result};
	struct neap_compare_options o;
	struct neap__netroom room;

	neap__net_options(&o, &room, study, &net);
	o.net.tau = o.net.tau_out = task->tau;
	o.net.readout = task->readout;
	o.sweep.memory = p->sizes.state + p->sizes.adjoint + 128 * p->sizes.tape_max;
	o.strategies = only;
	o.no_reference = 1;
	o.repeats = REPEATS;
	NEAP_TRY(neap_compare(&result, &o));
	const struct neap_compare_run *run = &result.runs[0];
	int rc = 0;
	if (run->ran)
		rc = neap__study_row(study, "%s,auto,%lld,%lld,%llu,%.6g,1,0,%016llx", task->label,
			(long long)p->steps, (long long)p->steps,
			(unsigned long long)run->stats.peak_measured, run->seconds,
			(unsigned long long)run->grad_hash);
	neap_compare_result_free(&result);
	return rc;
}

static int measure(struct neap__study *study)
{
	int64_t steps = neap__study_scaled(study, 4096, 16384, 256);
	int count = (int)neap__study_scaled(study, TASKS, TASKS, 1);
	for (int i = 0; i < count; i++) {
		struct pass p;
		int rc = neap__study_point(study, "%s", tasks[i].label);
		NEAP_TRY(rc);
		if (rc == 0)
			continue;
		rc = open_pass(&p, study, &tasks[i], steps);
		if (rc == 0)
			rc = windows(study, &p, &tasks[i]);
		if (rc == 0)
			rc = automatic(study, &p, &tasks[i]);
		close_pass(&p);
		NEAP_TRY(rc);
		NEAP_TRY(neap__study_done(study));
	}
	return 0;
}

static double store_all(const struct neap__study *s, const char *task, const char **hash)
{
	for (int i = 0; i < neap__points_count(s->points); i++)
		if (neap__row_is(s, i, "task", task) && neap__row_is(s, i, "strategy", "bptt")) {
			*hash = neap__row_text(s, i, "grad_hash");
			return neap__row_number(s, i, "seconds");
		}
	return NAN;
}

static void table(struct neap__study *study)
{
	for (int i = 0; i < neap__points_count(study->points); i++) {
		const char *hash = "", *task = neap__row_text(study, i, "task");
		double seconds = neap__row_number(study, i, "seconds");
		double all = store_all(study, task, &hash);
		neap__text_add(&study->report,
			"| %s | `%s` | %s | %.2f MiB | %.3g s | %+.1f%% | %.4f | %.3g | %s |\n",
			task, neap__row_text(study, i, "strategy"),
			neap__row_text(study, i, "window"),
			neap__row_number(study, i, "memory") / 1048576, seconds,
			100 * (seconds / all - 1), neap__row_number(study, i, "cosine"),
			neap__row_number(study, i, "error"),
			neap__row_is(study, i, "grad_hash", hash) ? "yes" : "no");
	}
}

/* The smallest and the largest error of truncated gradients with a window. */
static void errors(const struct neap__study *study, double window, double *low, double *high)
{
	*low = INFINITY;
	*high = 0;
	for (int i = 0; i < neap__points_count(study->points); i++) {
		double error = neap__row_number(study, i, "error");
		if (!neap__row_is(study, i, "strategy", "truncated") ||
			neap__row_number(study, i, "window") != window)
			continue;
		*low = fmin(*low, error);
		*high = fmax(*high, error);
	}
}

static int draw(struct neap__study *study)
{
	struct neap__figure f;

	neap__text_add(&study->report,
		"Networks of %d units, batches of %d. `truncated` divides the sequence "
		"into windows and stops the gradient at their borders. Its gradient is "
		"as accurate as a truncated gradient can be, because it uses the loss of "
		"the whole sequence and the exact state at the start of each window. The "
		"time includes the forward steps, which save tapes, and the backward "
		"steps. `auto` has the memory budget that `truncated` needs for windows "
		"of 128 steps, and computes the gradient of the whole sequence. A truncated "
		"gradient contains no contribution from steps before its window.\n",
		UNITS, BATCH);
	for (int i = 0; i < TASKS; i++)
		neap__text_add(&study->report, "\n- %s: %s\n", tasks[i].label, tasks[i].what);
	neap__text_add(&study->report,
		"\n| task | strategy | window | fast memory | time | overhead over "
		"store-all | cosine with the full gradient | relative error | "
		"bit-identical |\n|---|---|---|---|---|---|---|---|---|\n");
	table(study);
	neap__figure_begin(&f, "truncated");
	neap__figure_panel(&f, "Error of the gradient, truncated", "window (steps)",
		"|g - gradient| / |gradient|", NEAP__LOG_X | NEAP__ZERO_Y);
	for (int k = 0; k < TASKS; k++) {
		neap__figure_series(&f, NULL, k, tasks[k].label, NEAP__MARKS | NEAP__LINE);
		for (int i = 0; i < neap__points_count(study->points); i++)
			if (neap__row_is(study, i, "task", tasks[k].label) &&
				neap__row_is(study, i, "strategy", "truncated"))
				neap__figure_xy(&f, neap__row_number(study, i, "window"),
					neap__row_number(study, i, "error"));
	}
	double shortest = INFINITY, longest = 0, low[2], high[2];
	for (int i = 0; i < neap__points_count(study->points); i++)
		if (neap__row_is(study, i, "strategy", "truncated")) {
			shortest = fmin(shortest, neap__row_number(study, i, "window"));
			longest = fmax(longest, neap__row_number(study, i, "window"));
		}
	errors(study, shortest, &low[0], &high[0]);
	errors(study, longest, &low[1], &high[1]);
	return neap__study_figure(study, &f,
		"Depending on the task, windows of %g steps leave %.2g%% to %.2g%% of the gradient "
		"wrong, and windows of %g steps %.2g%% to %.2g%%.",
		shortest, 100 * low[0], 100 * high[0], longest, 100 * low[1], 100 * high[1]);
}

const struct neap__experiment neap__study_truncated = {"truncated",
	"comparison with truncated backpropagation: time and gradient error",
	"task,strategy,steps,window,memory,seconds,cosine,error,grad_hash", measure, draw};

/* SPDX-License-Identifier: Apache-2.0 */
/* decisions.c: when a decision is due, and what it says (decisions.h). */
#include "train/answers/decisions.h"
#include "train/answers/step_answers.h"
#include "data/target_units.h"
#include "nn/step_view.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int neap__decisions_check(double every, double window, double dt)
{
	if (every >= dt * (1 - 1e-9))
		return window > 0 ? neap__answer_window_check(window, every) : 0;
	return neap__fail(NEAP_EUSAGE,
		"--every is %g s, shorter than a time step of the model (%g s). Use a longer "
		"interval",
		every, dt);
}

int neap__decisions_begin(
	struct neap__decisions *d, const struct neap__evaluation *e, int64_t index, int label)
{
	*d = (struct neap__decisions){.evaluation = e,
		.of_steps = e->target == NEAP_TARGET_LABELS || e->target == NEAP_TARGET_SERIES,
		.index = index,
		.label = label,
		.number = 1};
	d->score = calloc((size_t)e->options->classes, sizeof *d->score);
	if (!d->score)
		return neap__fail_errno(ENOMEM, "decisions");
	if (e->window <= 0)
		return 0;
	if (d->of_steps)
		return neap__fail(NEAP_EUSAGE, "--window applies to one answer per sample, but the "
					       "model answers every step. Remove --window");
	return neap__answer_window_init(
		&d->window, e->window, e->every, e->options->readout, e->options->classes);
}

void neap__decisions_free(struct neap__decisions *d)
{
	neap__answer_window_free(&d->window);
	free(d->score);
	d->score = NULL;
}

int64_t neap__decisions_next(const struct neap__decisions *d)
{
	double x = (double)d->number * (d->evaluation->every / d->evaluation->options->dt);
	/* Rounding of times such as 0.1 s must not take a step away. */
	return (int64_t)fmin(floor(x + 1e-6 + x * 1e-12), 9e15);
}

/* Seconds of so many steps: to the nanosecond, so that 700 steps of 1 ms are 0.7 s in print. */
static double time_of(int64_t steps, double dt)
{
	double time = (double)steps * dt;
	return time < 1e6 && dt >= 1e-9 ? round(time * 1e9) / 1e9 : time;
}

static int largest(const double *z, int n)
{
	int best = 0;

	for (int c = 1; c < n; c++)
		best = z[c] > z[best] ? c : best;
	return best;
}

/* Sets the scores after so many steps. */
static void score_of(struct neap__decisions *d, void *state, int64_t steps)
{
	const struct neap__evaluation *e = d->evaluation;

	if (d->of_steps) {
		neap__step_outputs(d->score, e->net, state, 0);
	} else if (d->window.intervals > 0) {
		neap__answer_window_add(&d->window, e->net, state, steps - d->told);
		neap__answer_window_answer(&d->window, d->score);
	} else {
		neap__answer_so_far(d->score, e->net, state, 0, steps);
	}
	neap__target_units_own(d->score, e->options->classes, e->mean, e->deviation);
}

int neap__decisions_tell(struct neap__decisions *d, void *state, int64_t steps)
{
	const struct neap__evaluation *e = d->evaluation;

	if (steps == d->told)
		return 0;
	score_of(d, state, steps);
	int prediction = largest(d->score, e->options->classes);
	neap__answer_softmax(e, d->score);
	d->told = steps;
	while (neap__decisions_next(d) <= steps)
		d->number++;
	const struct neap_answer answer = {.index = d->index,
		.steps = steps,
		.label = d->label,
		.prediction = prediction,
		.classes = e->options->classes,
		.score = d->score,
		.class_name = (const char *const *)e->class_name,
		.target = e->target,
		.step = d->of_steps ? steps - 1 : -1,
		.time = time_of(steps, e->options->dt),
		.sample_name = neap__sample_name(e, d->index)};
	return e->answered(e->user, &answer);
}

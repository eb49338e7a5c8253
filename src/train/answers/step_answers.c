/* SPDX-License-Identifier: Apache-2.0 */
/* step_answers.c: one step at a time (step_answers.h). */
#include "train/answers/step_answers.h"
#include "train/answers/step_viewer.h"
#include "data/target_units.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "nn/step_view.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { STEPS_BETWEEN_LOOKS = 256 }; /* between two questions whether to go on */

/* The label of a step of the sample that is being run; -1: none. */
static int label_of(const struct neap_net *net, const struct neap_batch *batch, int64_t t)
{
	return batch->target == NEAP_TARGET_LABELS ? net->events[0].labels[t - net->events_from]
						   : -1;
}

static int largest(const double *z, int n)
{
	int best = 0;

	for (int c = 1; c < n; c++)
		best = z[c] > z[best] ? c : best;
	return best;
}

/* The answer to step t, which has just been made. */
static int answer_step(const struct neap__evaluation *e, const struct neap_batch *batch,
	const void *state, int64_t t, struct neap_answer *answer, double *score)
{
	neap__step_outputs(score, e->net, state, 0);
	neap__target_units_own(score, answer->classes, e->mean, e->deviation);
	answer->step = t;
	answer->label = label_of(e->net, batch, t);
	answer->prediction = largest(score, answer->classes);
	neap__answer_softmax(e, score);
	return e->answered(e->user, answer);
}

static int go(const struct neap__evaluation *e, const struct neap_batch *batch, void *state,
	double *score, struct neap__step_viewer *viewer)
{
	const struct neap_sequence *s = &batch->sequences[0];
	struct neap_answer answer = {.index = s->index,
		.steps = s->length,
		.classes = e->options->classes,
		.score = score,
		.class_name = (const char *const *)e->class_name,
		.target = e->target,
		.sample_name = neap__sample_name(e, s->index)};
	void *seen;

	for (int64_t t = 0; t < s->length; t++) {
		if (t > 0 && t % STEPS_BETWEEN_LOOKS == 0)
			NEAP_TRY(neap__evaluation_look(e, batch, t));
		NEAP_TRY(neap_net_advance(e->net, state, t, t + 1, 1));
		NEAP_TRY(neap__on_device_state(e->net, &seen, state));
		if (e->stepped)
			NEAP_TRY(e->stepped(e->user, neap__step_viewer_look(viewer, seen, t)));
		if (e->of_steps)
			NEAP_TRY(answer_step(e, batch, seen, t, &answer, score));
	}
	return 0;
}

int neap__step_answers(
	const struct neap__evaluation *e, const struct neap_batch *batch, void *state)
{
	if (e->stepped)
		NEAP_TRY(neap__step_viewer_sees(e->net));
	double *score = calloc((size_t)e->options->classes, sizeof *score);

	if (!score)
		return neap__fail_errno(ENOMEM, "answers to steps");
	struct neap__step_viewer viewer;
	int rc = neap__step_viewer_open(&viewer, e->net);
	if (rc == 0)
		rc = go(e, batch, state, score, &viewer);
	neap__step_viewer_close(&viewer);
	free(score);
	return rc;
}

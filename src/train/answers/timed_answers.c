/* SPDX-License-Identifier: Apache-2.0 */
/* timed_answers.c: ranges of steps from decision to decision (timed_answers.h). */
#include "train/answers/timed_answers.h"
#include "train/answers/decisions.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "base/fail.h"

enum { STEPS_BETWEEN_LOOKS = 256 }; /* between two questions whether to go on */

/* The label of a step that was just made, or of the sample; -1: none. */
static int label_of(const struct neap_net *net, const struct neap_batch *batch, int64_t t)
{
	return batch->target == NEAP_TARGET_LABELS ? net->events[0].labels[t - net->events_from]
						   : batch->sequences[0].label;
}

static int go(const struct neap__evaluation *e, const struct neap_batch *batch, void *state,
	struct neap__decisions *d)
{
	int64_t length = batch->sequences[0].length, stop;
	void *seen;

	for (int64_t t = 0; t < length; t = stop) {
		int64_t next = neap__decisions_next(d);
		next = next < length ? next : length;
		stop = t + STEPS_BETWEEN_LOOKS < next ? t + STEPS_BETWEEN_LOOKS : next;
		NEAP_TRY(neap_net_advance(e->net, state, t, stop, 1));
		if (stop == next) {
			d->label = label_of(e->net, batch, stop - 1);
			NEAP_TRY(neap__on_device_state(e->net, &seen, state));
			NEAP_TRY(neap__decisions_tell(d, seen, stop));
			NEAP_TRY(neap__on_device_state_back(e->net, state));
		} else {
			NEAP_TRY(neap__evaluation_look(e, batch, stop));
		}
	}
	return 0;
}

int neap__timed_answers(
	const struct neap__evaluation *e, const struct neap_batch *batch, void *state)
{
	struct neap__decisions d;
	int rc = neap__decisions_begin(&d, e, batch->sequences[0].index, -1);

	if (rc == 0)
		rc = go(e, batch, state, &d);
	neap__decisions_free(&d);
	return rc;
}

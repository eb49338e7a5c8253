/* SPDX-License-Identifier: Apache-2.0 */
/* live_answers.c: a piece of sound, the steps that are complete, their decisions, and so on. */
#include "train/answers/live_answers.h"
#include "train/answers/decisions.h"
#include "data/bins.h"
#include "data/sound/live_sound.h"
#include "nn/batch/batch.h"
#include "nn/batch/live_batch.h"
#include "base/fail.h"
#include "sys/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_STEPS = 16384 /* that are sorted into event lists at a time */ };

struct listening {
	const struct neap__evaluation *e;
	struct neap__live_sound *sound;
	struct neap__live_batch batch;
	struct neap__decisions decisions;
	struct neap__bins bins;
	void *state;
	size_t bytes;
	int64_t done; /* steps */
};

/* Makes the steps up to `to`, whose spikes are all there. */
static int advance(struct listening *l, int64_t to)
{
	const struct neap_net_options *o = l->e->options;
	const struct neap_events *events = neap__live_sound_events(l->sound);
	int64_t used = 0;

	neap__bins_clear(&l->bins);
	NEAP_TRY(neap__bins_add_part(&l->bins, events, o->inputs, o->dt, l->done, to));
	NEAP_TRY(neap__live_batch_advance(
		&l->batch, l->e->net, l->state, l->done, to, l->bins.start, l->bins.unit));
	while (used < events->count && neap__bins_step(events->time[used], o->dt) < to)
		used++;
	neap__live_sound_drop(l->sound, used);
	l->done = to;
	return 0;
}

/* Makes steps up to `to` and tells the decisions among them. */
static int go_to(struct listening *l, int64_t to)
{
	while (l->done < to) {
		int64_t next = neap__decisions_next(&l->decisions), stop = l->done + MOST_STEPS;
		stop = stop < next ? stop : next;
		NEAP_TRY(advance(l, stop < to ? stop : to));
		if (l->done == next)
			NEAP_TRY(neap__decisions_tell(&l->decisions, l->state, next));
	}
	return 0;
}

/* Steps that will be there and whose spikes are known; at the end, all. */
static int64_t known_steps(const struct listening *l)
{
	double dt = l->e->options->dt, known = neap__live_sound_known(l->sound), last;
	int64_t spikes = neap__live_sound_spikes(l->sound, &last);
	int64_t steps =
		neap__bins_steps(neap__live_sound_events(l->sound)->duration, spikes, last, dt);
	int64_t sure = isfinite(known) ? neap__bins_step(known, dt) : steps;
	return sure < steps ? sure : steps;
}

static int listen(struct listening *l)
{
	const struct neap__evaluation *e = l->e;
	int more;

	do {
		NEAP_TRY(more = neap__live_sound_hear(l->sound));
		NEAP_TRY(go_to(l, known_steps(l)));
		if (more && e->progress && e->progress(e->user, 0, e->total))
			return neap__fail(NEAP_EINTERRUPTED, "interrupted at %g s",
				(double)l->done * e->options->dt);
	} while (more);
	return neap__decisions_tell(&l->decisions, l->state, l->done);
}

/* What an evaluation of one sample without a label results in. */
static int sum_up(struct neap_eval_result *result, struct listening *l)
{
	struct neap_net_result found = {.size = sizeof found};
	double loss;

	neap__live_batch_close(&l->batch, l->e->net, l->done);
	NEAP_TRY(neap_net_turn(l->e->net, l->state, NULL, &loss));
	NEAP_TRY(neap_net_get_result(l->e->net, &found));
	result->rates = calloc((size_t)found.layers + 1, sizeof *result->rates);
	if (!result->rates)
		return neap__fail_errno(ENOMEM, "firing rates");
	for (int i = 0; i < found.layers; i++)
		result->rates[i] = found.rate[i];
	result->layers = found.layers;
	result->samples = 1;
	result->level = neap__live_sound_level(l->sound);
	return 0;
}

static int run(struct neap_eval_result *result, struct listening *l)
{
	const struct neap__evaluation *e = l->e;
	struct neap_net_sizes sizes = {.size = sizeof sizes};

	NEAP_TRY(neap__decisions_begin(&l->decisions, e, 0, -1));
	NEAP_TRY(neap__live_sound_open(&l->sound, e->live));
	NEAP_TRY(neap__live_batch_begin(&l->batch, e->net));
	NEAP_TRY(neap_net_get_sizes(e->net, &sizes));
	NEAP_TRY(neap__map_pages(&l->state, sizes.state));
	l->bytes = sizes.state;
	int rc = listen(l);
	return rc < 0 ? rc : sum_up(result, l);
}

int neap__live_answers(struct neap_eval_result *result, const struct neap__evaluation *e)
{
	struct listening l = {.e = e};
	size_t classes = (size_t)e->options->classes;

	*result = (struct neap_eval_result){.size = sizeof(struct neap_eval_result),
		.classes = e->options->classes,
		.target = e->target,
		.accuracy = NAN,
		.loss = NAN,
		.high = 1};
	int rc = 0;
	if (e->target == NEAP_TARGET_LABEL || e->target == NEAP_TARGET_LABELS) {
		result->confusion = calloc(classes * classes + 1, sizeof *result->confusion);
		rc = result->confusion ? 0 : neap__fail_errno(ENOMEM, "a confusion table");
	}
	if (rc == 0)
		rc = run(result, &l);
	neap__net_drop(e->net);
	if (l.bytes > 0)
		neap__unmap_pages(l.state, l.bytes);
	neap__live_sound_close(l.sound);
	neap__decisions_free(&l.decisions);
	neap__bins_free(&l.bins);
	if (rc < 0)
		neap_eval_result_free(result);
	return rc;
}

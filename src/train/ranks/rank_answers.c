/* SPDX-License-Identifier: Apache-2.0 */
/* rank_answers.c: gathers what every rank answers to its samples (rank_answers.h). */
#include "train/ranks/rank_answers.h"
#include "nn/core/net_state.h"
#include "base/fail.h"
#include "ranks/rank_share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int make_room(
	struct neap__rank_answers *a, const struct neap__ranks *ranks, int samples, int classes)
{
	if (samples <= a->room)
		return 0;
	neap__rank_answers_free(a);
	a->sample = calloc((size_t)samples, sizeof *a->sample);
	a->score = calloc((size_t)samples * (size_t)classes, sizeof *a->score);
	a->bytes = calloc(ranks->peers ? (size_t)ranks->peers->count : 1, sizeof *a->bytes);
	if (!a->sample || !a->score || !a->bytes)
		return neap__fail_errno(ENOMEM, "answers to %d samples", samples);
	a->room = samples;
	return 0;
}

/* The first sample of a rank. */
static int first_of(
	const struct neap__ranks *ranks, const struct neap_net *net, int samples, int rank)
{
	if (!ranks->peers)
		return rank == 0 ? 0 : samples;
	return neap__rank_sample(rank, ranks->peers->count, samples, neap_net_group(net, samples));
}

static int gather(struct neap__rank_answers *a, const struct neap__ranks *ranks,
	const struct neap_net *net, void *at, size_t size)
{
	const struct neap_peers *p = ranks->peers;

	for (int r = 0; r < p->count; r++)
		a->bytes[r] = size * (size_t)(first_of(ranks, net, a->samples, r + 1) -
					      first_of(ranks, net, a->samples, r));
	return p->gather(p->user, at, a->bytes);
}

int neap__rank_answers_take(struct neap__rank_answers *a, struct neap__ranks *ranks,
	const struct neap_net *net, const struct neap_batch *batch)
{
	int samples = batch->of > 0 ? batch->of : batch->size, classes = net->options.classes;
	struct neap_net_result found = {.size = sizeof found};

	NEAP_TRY(neap__ranks_agree(ranks, make_room(a, ranks, samples, classes)));
	a->samples = samples;
	a->target = batch->target;
	neap_net_get_result(net, &found);
	int first = first_of(ranks, net, samples, ranks->peers ? ranks->peers->rank : 0);
	for (int i = 0; i < batch->size; i++) {
		const struct neap_sequence *s = &batch->sequences[i];
		a->sample[first + i] = (struct neap__sample_answer){
			s->index, s->length, s->label, found.prediction[i]};
	}
	memcpy(a->score + (size_t)first * (size_t)classes, found.answer,
		(size_t)batch->size * (size_t)classes * sizeof *a->score);
	if (!ranks->peers)
		return 0;
	NEAP_TRY(gather(a, ranks, net, a->sample, sizeof *a->sample));
	return gather(a, ranks, net, a->score, (size_t)classes * sizeof *a->score);
}

void neap__rank_answers_free(struct neap__rank_answers *a)
{
	free(a->sample);
	free(a->score);
	free(a->bytes);
	*a = (struct neap__rank_answers){0};
}

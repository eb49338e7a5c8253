/* SPDX-License-Identifier: Apache-2.0 */
/* evaluation_scores.c: scores and progress, for all ways in which an evaluation answers. */
#include "train/evaluate.h"
#include "train/answers/step_answers.h"
#include "base/fail.h"

#include <math.h>

void neap__answer_softmax(const struct neap__evaluation *e, double *score)
{
	int n = e->softmax ? e->options->classes : 0;
	double most = n ? score[0] : 0, sum = 0;

	for (int c = 1; c < n; c++)
		most = score[c] > most ? score[c] : most;
	for (int c = 0; c < n; c++)
		sum += score[c] = exp(score[c] - most); /* no overflow, whatever the scores */
	for (int c = 0; c < n; c++)
		score[c] /= sum;
}

int neap__evaluation_look(
	const struct neap__evaluation *e, const struct neap_batch *batch, int64_t t)
{
	int64_t samples = e->so_far->samples;
	int ends = 0;

	if (e->ranks->peers)
		return 0;
	if (e->advanced)
		ends = e->advanced(e->user,
			(double)samples + batch->size * ((double)t / (double)batch->steps),
			e->total);
	else if (e->progress)
		ends = e->progress(e->user, samples, e->total);
	return ends ? neap__fail(NEAP_EINTERRUPTED,
			      "interrupted after %lld sample%s and %lld of %lld steps",
			      (long long)samples, samples == 1 ? "" : "s", (long long)t,
			      (long long)batch->steps)
		    : 0;
}

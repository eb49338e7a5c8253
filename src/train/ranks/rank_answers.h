/* SPDX-License-Identifier: Apache-2.0 */
/* rank_answers.h: the answers to a batch whose samples lie with several ranks, on all of them. */
#ifndef NEAP_TRAIN_RANK_ANSWERS_H
#define NEAP_TRAIN_RANK_ANSWERS_H

#include "train/ranks/rank_start.h"

struct neap__sample_answer {
	int64_t index, steps;
	int label, prediction;
};

/* Zero to begin with. */
struct neap__rank_answers {
	int samples; /* of the whole batch */
	enum neap_target target;
	struct neap__sample_answer *sample; /* [samples] */
	double *score;			    /* [samples][classes] */
	size_t *bytes;			    /* [ranks] of an exchange */
	int room;			    /* samples */
};

/* Takes the answers of a net to the batch begun, after its turn. Collective. 0 or negative. */
int neap__rank_answers_take(struct neap__rank_answers *answers, struct neap__ranks *ranks,
	const struct neap_net *net, const struct neap_batch *batch);
void neap__rank_answers_free(struct neap__rank_answers *answers);

#endif

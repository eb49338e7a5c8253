/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_start.h: what ranks that train or evaluate one net have in common: ranks that would compute
 * other bits are refused before the first batch, weights are compared, and each loads its share.
 */
#ifndef NEAP_TRAIN_RANKS_RANK_START_H
#define NEAP_TRAIN_RANKS_RANK_START_H

#include <neap/train.h>
#include "ranks/rank_agreement.h"

/* Sends the weights of rank 0 to all. Collective. */
int neap__ranks_send_weights(struct neap__ranks *ranks, const struct neap_net *net);

/* What has to be the same on all ranks, beside version, instruction set and C library. */
struct neap__rank_facts {
	const struct neap_train_options *options; /* NULL: no training */
	const char *data;			  /* name of the data set, for the line */
	uint64_t fingerprint;			  /* of the data */
	uint64_t weights;			  /* hash of the weights to begin with */
	int64_t test;				  /* samples to test on */
};
/* 0, or NEAP_EUSAGE on all ranks with a line about the first that differs from rank 0. */
int neap__ranks_same(struct neap__ranks *ranks, const struct neap__rank_facts *facts);

/* Compares the weights of all ranks. 0, or NEAP_ECORRUPT on all of them. */
int neap__ranks_same_weights(struct neap__ranks *ranks, const struct neap_net *net);

/* Makes a loader of `count` samples load this rank's share of every batch. Not collective. */
void neap__ranks_loader(const struct neap__ranks *ranks, const struct neap_net *net,
	struct neap_loader_options *loading, int64_t count);

#endif

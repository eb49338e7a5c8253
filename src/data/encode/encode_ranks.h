/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_ranks.h: recordings of a folder that several processes encode: each a block of every
 * round, whose spikes rank 0 gets, in the order of names.
 */
#ifndef NEAP_DATA_ENCODE_RANKS_H
#define NEAP_DATA_ENCODE_RANKS_H

#include "data/recordings.h"
#include "ranks/rank_agreement.h"

#include <neap/data.h>

/* A recording that was encoded, or why it was not. */
struct neap__encoded_recording {
	struct neap_events events;
	double active; /* (channel, 1 ms) bins with a spike */
	double slow;   /* Hz, its sampling rate if that is too low; else 0 */
	int rc;
	char detail[512];
};

/*
 * Gives rank 0 the recordings of a round: item[block] of every rank, of which `size` are there in
 * all, in the order of ranks. Those of other ranks are freed there. Rank 0 has room for all.
 * Collective. 0 or a negative code.
 */
int neap__encode_gather(
	struct neap__ranks *ranks, struct neap__encoded_recording *item, int block, int64_t size);

/* Compares the recordings that ranks found: NEAP_EUSAGE on all where one differs from rank 0. */
int neap__encode_same(
	struct neap__ranks *ranks, const struct neap__recordings *recordings, const char *dir);

#endif

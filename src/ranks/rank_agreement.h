/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_agreement.h: how the ranks of a run stay together (neap/peers.h): what one of them fails
 * with, all fail with; what rank 0 read, all get. Without peers every call is of one rank alone and
 * does nothing. All calls but `root` are collective.
 */
#ifndef NEAP_RANKS_RANK_AGREEMENT_H
#define NEAP_RANKS_RANK_AGREEMENT_H

#include <neap/peers.h>
#include <neap/status.h>

enum { NEAP__HOST = 64 }; /* bytes of a host's name, its end included */

struct neap__ranks {
	const struct neap_peers *peers; /* borrowed; NULL: alone */
	char (*host)[NEAP__HOST];	/* [ranks] */
	int crowd;    /* ranks that run on the same processors, this one included */
	int local;    /* ranks on this host before this one */
	int hosted;   /* ranks on this host, this one included */
	int together; /* 1: all ranks know of the failure */
};

/* Takes the peers (NULL, or one rank: alone) and tells all where each runs. 0 or negative. */
int neap__ranks_begin(struct neap__ranks *ranks, const struct neap_peers *peers);
/* Frees; where rc < 0 is not known to the others, ends them (neap_peers.leave). Not collective. */
void neap__ranks_end(struct neap__ranks *ranks, int rc);

/* 1 on rank 0, which alone writes and speaks. */
int neap__ranks_root(const struct neap__ranks *ranks);

/*
 * Returns rc where no rank has a negative one; else, on all of them, that of the first such rank.
 * The line says which rank it is, but for rank 0 and where all ranks say the same.
 */
int neap__ranks_agree(struct neap__ranks *ranks, int rc);

/* Replaces values by the least over all ranks; sends bytes of rank 0 to all. 0 or negative. */
int neap__ranks_least(struct neap__ranks *ranks, int64_t *values, int count);
int neap__ranks_send(struct neap__ranks *ranks, void *at, size_t bytes);
/*
 * 0, or NEAP_EUSAGE on all ranks with a line about the first that has another build, instruction
 * set or C library than rank 0, and would compute other bits.
 */
int neap__ranks_same_build(struct neap__ranks *ranks);

/* Threads to use: those asked for; 0: this rank's part of the processors. Not collective. */
int neap__ranks_threads(const struct neap__ranks *ranks, int threads);

#endif

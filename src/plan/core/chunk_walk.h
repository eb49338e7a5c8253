/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_walk.h: the schedule of a chain that is divided into n chunks of c steps, of which the
 * first may be shorter. Each chunk but the last is passed on the way forward, after its first state
 * was kept. The last one is recorded when it is reached. Then the chunks are reversed from the last
 * to the first: the kept state is brought back, the chunk is recorded and reversed. Strategies
 * differ in where states are kept, and when transfers are issued.
 */
#ifndef NEAP_PLAN_CORE_CHUNK_WALK_H
#define NEAP_PLAN_CORE_CHUNK_WALK_H

#include "plan/core/schedule.h"

/* What a strategy does at chunk i. All but keep and bring may be NULL. */
struct neap__chunk_moves {
	void (*keep)(struct neap_schedule *s, int64_t i);  /* the live state, before passing it */
	void (*bring)(struct neap_schedule *s, int64_t i); /* its state becomes live */
	void (*last)(struct neap_schedule *s);		   /* before the last chunk is recorded */
	void (*ahead)(struct neap_schedule *s, int64_t i); /* before it is reversed */
	int (*quiet)(struct neap_schedule *s); /* does many chunks at once: 1; 0: does nothing */
};

/* The first field of a strategy's state, s->self. */
struct neap__chunk_walk {
	const struct neap__chunk_moves *moves;
	int64_t n, c, i; /* chunks, steps of a chunk, current chunk */
	int back;	 /* 1: the turn was passed */
};

/* Allocates s->self of `bytes` bytes, which are zero behind the walk. 0 or -ENOMEM. */
int neap__chunk_walk_open(
	struct neap_schedule *s, size_t bytes, const struct neap__chunk_moves *moves, int64_t c);
/* The first step of chunk i. */
int64_t neap__chunk_start(const struct neap_schedule *s, int64_t i);
/* For s->skip: the same number of chunks on, in its direction. */
void neap__chunk_walk_skip(struct neap_schedule *s, int64_t units);

#endif

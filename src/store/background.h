/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.h: put, get, wait, cancel and times of tiers whose transfers run in the background.
 * Such a tier posts them to one thread (sys/worker.h) or to a mover (store/mover.h); its struct
 * begins with a struct neap__background.
 */
#ifndef NEAP_STORE_BACKGROUND_H
#define NEAP_STORE_BACKGROUND_H

#include <neap/tier.h>
#include "sys/worker.h"

/* Kind of a job. SPANS: a state that is made of spans, as tapes are. */
enum neap__transfer {
	NEAP__PUT,
	NEAP__GET,
	NEAP__PUT_TAPES,
	NEAP__GET_TAPES,
	NEAP__PUT_SPANS,
	NEAP__GET_SPANS
};

struct neap__mover;

/* One of the two is set. */
struct neap__background {
	struct neap__worker *worker;
	struct neap__mover *mover;
};

/* Fill put, get and wait of struct neap_tier_ops. */
int neap__background_put(
	void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes, int64_t *ticket);
int neap__background_get(
	void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes, int64_t *ticket);
int neap__background_put_tapes(void *self, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
int neap__background_get_tapes(void *self, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
int neap__background_put_spans(void *self, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
int neap__background_get_spans(void *self, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
int neap__background_wait(void *self, int64_t ticket);
/* Fill done and wait_for of struct neap_tier_ops. */
int neap__background_done(void *self, int64_t ticket);
int neap__background_wait_for(void *self, int64_t ticket, double seconds);
/* Fills cancel of struct neap_tier_ops. */
int neap__background_cancel(void *self, int64_t ticket);
/* Fills times of struct neap_tier_ops. */
void neap__background_times(void *self, double *start, double *end);

/* The memory that a job moves: its spans, and their bytes in all. A state is one span, *one. */
struct neap__gather {
	const struct neap_span *spans;
	int count, put, tapes;
	uint64_t bytes;
};
struct neap__gather neap__background_gather(const struct neap__job *job, struct neap_span *one);

#endif

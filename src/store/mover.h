/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mover.h: moves records between memory and the files of a tier. Requests are cut into pieces,
 * which an I/O engine (sys/engine.h) moves, several at a time, through the staging; each record is
 * hashed on its way. Requests of one place keep their order. Other requests do not: reads and
 * writes alternate, piece by piece, so that a read never waits for all writes before it. Where the
 * engine blocks, a request is done when it is posted; else a thread does it.
 */
#ifndef NEAP_STORE_MOVER_H
#define NEAP_STORE_MOVER_H

#include "store/stripes.h"
#include "sys/worker.h"

struct neap__mover;

/* Where records lie, in bytes: states at 0, stride, ...; tapes from `states` on. */
struct neap__layout {
	uint64_t stride, states, tape_stride;
	uint64_t epoch; /* a record of another epoch does not count as one */
};

/* Bytes of a record with its trailer and padding. Saturates. */
uint64_t neap__record_whole(uint64_t bytes);
/* Where the record of a place begins, in bytes. */
uint64_t neap__layout_at(const struct neap__layout *layout, int tapes, int64_t place);

/* Borrows stripes and layout, which change only while nothing is posted. Opens an engine. */
int neap__mover_create(struct neap__mover **mover, struct neap__stripes *stripes,
	const struct neap__layout *layout);
const struct neap__io_engine *neap__mover_engine(const struct neap__mover *mover);
/* While nothing is posted: sets the staging, in pieces of `piece` bytes; bytes == 0: none. */
void neap__mover_stage(struct neap__mover *mover, void *staging, size_t bytes, size_t piece);
/* Like neap__worker_post, wait, over and wait_for (sys/worker.h). */
int neap__mover_post(struct neap__mover *mover, const struct neap__job *job, int64_t *ticket);
int neap__mover_wait(struct neap__mover *mover, int64_t ticket);
int neap__mover_over(struct neap__mover *mover, int64_t ticket);
int neap__mover_wait_for(struct neap__mover *mover, int64_t ticket, double seconds);
/* 1: the request was not begun and is not made; its ticket is gone. 0: it must be waited for. */
int neap__mover_cancel(struct neap__mover *mover, int64_t ticket);
/* From now on waits end with -ETIMEDOUT once no byte was moved for `seconds`; 0: never. */
void neap__mover_patience(struct neap__mover *mover, double seconds);
/* 1 while requests that were given up may still read and write the staging. */
int neap__mover_holds_staging(struct neap__mover *mover);
/* When the request waited for last was begun and done, in seconds of sys/clock.h. */
void neap__mover_times(const struct neap__mover *mover, double *start, double *end);
/* Blocks until every request is done; their answers stay to be waited for. 0 or -ETIMEDOUT. */
int neap__mover_idle(struct neap__mover *mover);
/* Drops a posted put of a state to this place, if no get is behind it. */
void neap__mover_forget(struct neap__mover *mover, int64_t place);
/*
 * Gives up what is posted, and ends once the pieces in flight are done. Then calls after(arg),
 * which frees what the mover borrowed: before this returns or, where pieces hang beyond the
 * patience, whenever they come back. mover may be NULL.
 */
void neap__mover_free(struct neap__mover *mover, void (*after)(void *arg), void *arg);
/* In a child process: frees the memory; what was borrowed stays. mover may be NULL. */
void neap__mover_orphan(struct neap__mover *mover);

/* Movers of this process that were freed and still wait for pieces that hang. For tests. */
int neap__movers_left(void);

#endif

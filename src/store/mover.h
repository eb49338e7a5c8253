/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mover.h: carries records between memory and the files of a tier. Requests are cut
 * into pieces, which an engine (sys/engine.h) moves, several at a time, through the
 * staging; each record is hashed on its way.
 *
 * Requests of one place keep their order. Others pass each other: reads and writes
 * take turns, piece by piece, so that neither waits for all of the other. Where the
 * engine blocks, a request is done when it is posted; else a thread sees to it.
 */
#ifndef NEAP_STORE_MOVER_H
#define NEAP_STORE_MOVER_H

#include "store/stripes.h"
#include "sys/worker.h"

struct neap__mover;

/* Where records lie: states at 0, stride, ...; tapes behind them. */
struct neap__layout {
	uint64_t stride, states, tape_stride;
	uint64_t epoch; /* records of another one are none */
};

/* Bytes of a record with its trailer and padding. Saturates. */
uint64_t neap__record_whole(uint64_t bytes);
uint64_t neap__layout_at(const struct neap__layout *layout, int tapes, int64_t place);

/* Borrows stripes and layout, which change only while nothing is posted. Opens an engine. */
int neap__mover_create(struct neap__mover **mover, struct neap__stripes *stripes,
	const struct neap__layout *layout);
const struct neap__io_engine *neap__mover_engine(const struct neap__mover *mover);
/* While nothing is posted: staging, in pieces of so many bytes; bytes == 0: none. */
void neap__mover_stage(struct neap__mover *mover, void *staging, size_t bytes, size_t piece);
/* As of sys/worker.h. */
int neap__mover_post(struct neap__mover *mover, const struct neap__job *job, int64_t *ticket);
int neap__mover_wait(struct neap__mover *mover, int64_t ticket);
/* 1: it was not begun and is not made; its ticket is gone. 0: it is to be waited for. */
int neap__mover_cancel(struct neap__mover *mover, int64_t ticket);
/*
 * From now on what blocks gives up, with -ETIMEDOUT, once nothing was moved for so many
 * seconds; 0: never.
 */
void neap__mover_patience(struct neap__mover *mover, double seconds);
/* 1: requests that were given up may still read and write the staging. */
int neap__mover_holds_staging(struct neap__mover *mover);
/* When the request waited for last was begun and done, in seconds of sys/clock.h. */
void neap__mover_times(const struct neap__mover *mover, double *start, double *end);
/* Blocks until every request is done; their answers stay to be waited for. 0 or -ETIMEDOUT. */
int neap__mover_idle(struct neap__mover *mover);
/* A state that was not begun to be written there need not be, unless it is read. */
void neap__mover_forget(struct neap__mover *mover, int64_t place);
/*
 * Gives up what is posted; pieces in flight land first. Then after(arg), which frees what
 * the mover borrowed: before this returns or, where pieces hang, whenever they came back.
 * NULL is fine.
 */
void neap__mover_free(struct neap__mover *mover, void (*after)(void *arg), void *arg);

/* Movers of this process that were freed and wait for pieces that hang. */
NEAP_API int neap__movers_left(void);

#endif

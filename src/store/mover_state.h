/* SPDX-License-Identifier: Apache-2.0 */
/* mover_state.h: the inside of a mover: its requests (mover.c) and pieces (piece_io.c). */
#ifndef NEAP_STORE_MOVER_STATE_H
#define NEAP_STORE_MOVER_STATE_H

#include "store/mover.h"
#include "store/record.h"
#include "store/background.h"

#include <pthread.h>

enum neap__request_state {
	NEAP__FREE,
	NEAP__POSTED,
	NEAP__RUNNING,
	NEAP__DONE,
	NEAP__ABANDONED, /* answered; pieces of it may fly, the pump alone knows it */
};

/* What is known of a record while pieces of it pass. */
struct neap__mover_queue {
	XXH3_state_t *hash;
	struct neap__trailer trailer;
	int sealed;
};

/* The lock guards all down to `order`; the rest is the pump's while it is RUNNING. */
struct neap__request {
	enum neap__request_state state;
	uint32_t turn;		     /* tells a reused request's tickets apart */
	struct neap__request *next;  /* in its queue */
	struct neap__request *after; /* an earlier one of the same place, or NULL */
	uint32_t after_turn;
	int64_t order;
	int answer;
	double posted_at, begun_at, done_at; /* seconds of sys/clock.h; 0: never begun */
	int touched;			     /* the pump is at its memory, or its spans */
	char detail[192];
	struct neap__gather gather;
	struct neap_span one;
	int64_t place;
	uint64_t tag, base, whole;	  /* of the record: tag, where it lies, bytes there */
	uint64_t begun, settled;	  /* bytes of it: started, and passed */
	int flying;			  /* pieces */
	struct neap__mover_queue *stream; /* while RUNNING */
};

/* A piece of the staging, and what passes through it. */
struct neap__piece_io {
	struct neap__io_request move;  /* first */
	struct neap__request *request; /* NULL: free */
	uint64_t at;		       /* in the record */
	int arrived;		       /* read, and an earlier one not */
};

#define NEAP__STREAMS (NEAP__MOVES + 2) /* one for each piece and for each way */

struct neap__mover {
	struct neap__stripes *stripes;
	const struct neap__layout *layout;
	struct neap__io_engine engine;
	pthread_t thread;
	int has_thread;

	/* The pump's; others touch it only while nothing is posted. */
	struct neap__piece_io passages[NEAP__MOVES];
	int npassages;
	unsigned char *staging;
	size_t piece;
	struct neap__mover_queue streams[NEAP__STREAMS], *free_streams[NEAP__STREAMS];
	int nfree_streams;
	struct neap__request *current[2]; /* pieces of it are yet to begin; [1]: write */
	int way;			  /* that had the last piece */

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t posted, done;
	struct neap__request *requests, **free;
	int64_t *lies; /* of each request not done: its place and kind, else -1 */
	int nfree, outstanding;
	int asleep; /* the thread, if there is one: nobody pumps */
	int64_t orders;
	double begun_at, done_at; /* of the request waited for last; its waiter's */
	struct {
		struct neap__request *first, *last;
	} queues[2];	 /* POSTED; [1]: writes */
	int quit, ended; /* the thread is to end, has ended */
	/* Set where nobody waits for the thread any more: it cleans up. */
	int left;
	void (*after)(void *arg);
	void *arg;
	double patience; /* seconds; 0: without end */
	double moved_at; /* when something was moved last */
	int lates;	 /* requests abandoned since */
	int abandoned;	 /* that are not over */
};

/* Takes the next request of a way that may begin, or NULL. */
struct neap__request *neap__mover_take(struct neap__mover *mover, int way);
/* Its answer is known. */
void neap__mover_done(struct neap__mover *mover, struct neap__request *request);

/* With the lock: the same, of one that is not in a queue. */
void neap__mover_set_done(struct neap__mover *mover, struct neap__request *request);
/* With the lock: takes a POSTED one out of its queue. */
void neap__mover_unqueue(struct neap__mover *mover, struct neap__request *request);
/* With the lock: whose ticket this is. */
int neap__mover_find(struct neap__mover *mover, int64_t ticket, struct neap__request **request);
/* With the lock: nobody holds its ticket any more. */
void neap__mover_give_back(struct neap__mover *mover, struct neap__request *request);

/* timeouts.c */
/* With the lock. Waits that end once nothing was moved for the mover's patience. */
struct neap__timeout {
	double waited, moved_at;
};
void neap__timeout_begin(
	const struct neap__mover *mover, struct neap__timeout *vigil, double since);
/* Waits a while for `done`; 0 when that has lasted too long. */
int neap__timeout_goes_on(struct neap__mover *mover, struct neap__timeout *vigil);
/* With the lock: answers a request that is not DONE; its memory is its owner's from now on. */
void neap__mover_abandon(struct neap__mover *mover, struct neap__request *request);
/* The pump's, around what it does to a request's memory; 0: it was abandoned. */
int neap__mover_touch(struct neap__mover *mover, struct neap__request *request);
void neap__mover_leave(struct neap__mover *mover, struct neap__request *request);
/* The pump's: something was moved; seconds to wait for the next before looking around. */
void neap__mover_moved(struct neap__mover *mover);
double neap__mover_watch(struct neap__mover *mover);

/* Begins what can begin and waits for a piece; 0 when there was nothing to do. */
int neap__pump(struct neap__mover *mover);
/* Begins no more pieces of what is RUNNING. */
void neap__pump_stop(struct neap__mover *mover);

#endif

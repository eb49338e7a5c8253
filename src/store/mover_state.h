/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mover_state.h: the structs of a mover, and what mover.c gives to piece_io.c and timeouts.c. A
 * mover has one I/O thread, which runs piece_io.c: it alone talks to the engine. The owner's
 * thread posts requests and waits for them. Where the engine blocks there is no I/O thread, and
 * the owner's thread does its work.
 */
#ifndef NEAP_STORE_MOVER_STATE_H
#define NEAP_STORE_MOVER_STATE_H

#include "store/mover.h"
#include "store/records/record.h"
#include "store/background.h"

#include <pthread.h>

enum neap__request_state {
	NEAP__REQUEST_FREE,
	NEAP__REQUEST_POSTED,	 /* in a queue */
	NEAP__REQUEST_RUNNING,	 /* the I/O thread has begun it */
	NEAP__REQUEST_DONE,	 /* its answer waits for its owner */
	NEAP__REQUEST_ABANDONED, /* timed out and answered; pieces of it may be in flight */
};

/* One wait; ends once no byte was moved for the mover's patience (timeouts.h). */
struct neap__timeout {
	double waited;	 /* seconds without a byte */
	double moved_at; /* the mover's, when it was read last */
};

/* The hash and trailer of a record while its pieces pass. */
struct neap__record_stream {
	XXH3_state_t *hash;
	struct neap__trailer trailer;
	int sealed; /* a put: the trailer is made */
};

/*
 * A transfer of one record. The mover's lock guards the fields down to `detail`; the rest is
 * written when the request is posted, and belongs to the I/O thread while it is RUNNING.
 */
struct neap__request {
	enum neap__request_state state;
	uint32_t reuse;		     /* tells the tickets of a row that is used again apart */
	struct neap__request *next;  /* in its queue */
	struct neap__request *after; /* an earlier one of the same place, or NULL */
	uint32_t after_reuse;	     /* `reuse` of `after` when this one was posted */
	int64_t order;		     /* counts requests: smaller is older */
	int answer;
	double posted_at, begun_at, done_at; /* seconds of sys/clock.h; begun_at 0: never begun */
	int awaited;			     /* `timeout` was begun */
	struct neap__timeout timeout;	     /* of all waits for it so far */
	int memory_in_use;		     /* the I/O thread reads or writes its spans */
	char detail[192];		     /* the detail line of its failure */
	struct neap__gather gather;
	struct neap_span one; /* the span of a state */
	int64_t place;
	uint64_t tag;
	uint64_t base, whole;		    /* bytes: where the record lies, how much it takes */
	uint64_t begun, settled;	    /* bytes of it in pieces begun, and in pieces done */
	int in_flight;			    /* pieces */
	struct neap__record_stream *stream; /* while RUNNING */
};

/* A piece of the staging, and the part of a request that passes through it. */
struct neap__piece_io {
	struct neap__io_request io;    /* first */
	struct neap__request *request; /* NULL: free */
	uint64_t at;		       /* offset in the record, in bytes */
	int arrived;		       /* read, but an earlier piece of the record is not */
};

/* Records in motion at most: one for each piece, and one whose pieces begin in each direction. */
#define NEAP__RECORDS_RUNNING (NEAP__IO_REQUESTS + 2)

/* Directions are indices: 0 reads (GET), 1 writes (PUT). */
struct neap__mover {
	struct neap__stripes *stripes;
	const struct neap__layout *layout;
	struct neap__io_engine engine;
	pthread_t thread; /* the I/O thread */
	int has_thread;

	/* Of the I/O thread; others read and write them only while nothing is posted. */
	struct neap__piece_io pieces[NEAP__IO_REQUESTS];
	int npieces;
	unsigned char *staging;
	size_t piece; /* bytes */
	struct neap__record_stream streams[NEAP__RECORDS_RUNNING];
	struct neap__record_stream *free_streams[NEAP__RECORDS_RUNNING];
	int nfree_streams;
	struct neap__request *current[2]; /* by direction: pieces of it are yet to begin */
	int direction;			  /* of the last piece that began */

	pthread_mutex_t lock;	     /* guards all that follows */
	pthread_cond_t posted, done; /* a request was posted, or quit; DONE, asleep or ended */
	struct neap__request *requests, **free;
	int64_t *place_keys; /* by request: place and kind where it is not done, else -1 */
	int nfree, outstanding;
	int asleep; /* 1: the I/O thread has nothing to do */
	int64_t orders;
	double begun_at, done_at; /* of the request waited for last; read by its waiter alone */
	struct {
		struct neap__request *first, *last;
	} queues[2];	 /* POSTED, by direction */
	int quit, ended; /* the I/O thread is to end; has ended */
	/* Set where nobody waits for the I/O thread any more: it frees the mover itself. */
	int left;
	void (*after)(void *arg); /* called then, with arg */
	void *arg;
	double patience; /* seconds; 0: without end */
	double moved_at; /* seconds of sys/clock.h: when a piece was done last */
	int timeouts;	 /* requests abandoned since */
	int abandoned;	 /* requests in state ABANDONED */
};

/* Takes the next request of a direction that may begin, or NULL. */
struct neap__request *neap__mover_take(struct neap__mover *mover, int direction);
/* The request's answer is known: its owner may have it. */
void neap__mover_done(struct neap__mover *mover, struct neap__request *request);

/* With the lock: the same, of a request that is in no queue. */
void neap__mover_set_done(struct neap__mover *mover, struct neap__request *request);
/* With the lock: takes a POSTED request out of its queue. */
void neap__mover_unqueue(struct neap__mover *mover, struct neap__request *request);
/* With the lock: finds the request of a ticket. NEAP_EUSAGE where there is none. */
int neap__mover_find(struct neap__mover *mover, int64_t ticket, struct neap__request **request);
/* With the lock: frees a request whose ticket nobody holds any more. */
void neap__mover_give_back(struct neap__mover *mover, struct neap__request *request);

#endif

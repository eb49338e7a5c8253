/* SPDX-License-Identifier: Apache-2.0 */
/* fake_streams.h: streams and events of the fake driver, and when their work is done. */
#ifndef NEAP_TEST_FAKE_STREAMS_H
#define NEAP_TEST_FAKE_STREAMS_H

#include "fake_driver.h"

#include <stddef.h>

#define FAKE_ARGUMENT_WORDS 512 /* of 8 bytes, of a kernel, at most: 4 KiB as CUDA 11 has */

enum fake_job_kind { FAKE_COPY, FAKE_FILL, FAKE_LAUNCH, FAKE_RECORD, FAKE_WAIT_FOR };

/* What a record of an event stands for: shared by the event and the waits for it. */
struct fake_mark {
	int users, done;
	double seconds;
	struct CUstream_st *stream;
};

struct fake_job {
	struct fake_job *next;
	enum fake_job_kind kind;
	void *to;
	const void *from;
	size_t bytes;
	int byte;
	struct fake_mark *mark;
	const struct fake_kernel *kernel;
	struct fake_shape shape;
	double queued;				 /* seconds: it cannot begin earlier */
	uint64_t arguments[FAKE_ARGUMENT_WORDS]; /* each begins with a word */
};

struct CUstream_st {
	struct fake_job *first, **last;
	struct CUstream_st *next;
	int number;
	double seconds; /* when the work that was done has ended */
};

struct CUevent_st {
	struct fake_mark *mark; /* NULL: not recorded */
};

/* All of these are called with the lock of the driver. */
struct CUstream_st *fake_stream_new(void);
/* Of NULL; made when it is first used. */
struct CUstream_st *fake_default_stream(void);
void fake_stream_free(struct CUstream_st *stream);
/* A job at the end of a stream, or NULL. */
struct fake_job *fake_queue(struct CUstream_st *stream, enum fake_job_kind kind);
int fake_record(struct CUevent_st *event, struct CUstream_st *stream);
int fake_wait_for(struct CUstream_st *stream, const struct CUevent_st *event);
/* 1 if work that an event stands for is not done. */
int fake_event_is_pending(const struct CUevent_st *event);
void fake_event_free(struct CUevent_st *event);
/* Does what is queued: on a stream; up to an event; on all streams; some of it, by chance. */
void fake_finish_stream(struct CUstream_st *stream);
void fake_finish_event(const struct CUevent_st *event);
void fake_finish_all(void);
void fake_play(void);
/* 1 if a job failed: every wait fails from then on. */
int fake_failed(void);
void fake_streams_reset(void);

/* fake_memory.c: makes device memory accessible, from the first work of a call to its end. */
void fake_memory_open(void);
void fake_memory_close(void);
/* 1 if the range is in one allocation of device memory; host: if it is outside of all. */
int fake_memory_holds(const void *at, size_t bytes);
int fake_memory_is_host(const void *at, size_t bytes);
int fake_memory_alloc(uint64_t *at, size_t bytes);
int fake_memory_free(uint64_t at);
uint64_t fake_memory_used(void);
int fake_pinned_alloc(void **at, size_t bytes);
int fake_pinned_free(void *at);

#endif

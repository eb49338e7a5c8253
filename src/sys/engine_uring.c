/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_uring.c: the engine `uring`: one io_uring an engine (Linux). Files and lent memory are
 * registered, which saves the system look-ups for each request, where the limit on locked memory
 * allows it. A filter of system calls (seccomp) may allow io_uring_setup and refuse io_uring_enter:
 * then the engine does not open, or, where that comes later, ordinary reads and writes go on.
 */
#include "sys/engine.h"
#include "sys/clock.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>

#define FOREVER 1e8 /* seconds: three years */
#define POLL 2e-4   /* seconds between looks at a ring that cannot be waited for */

struct uring {
	struct io_uring ring;
	int files;			/* registered */
	unsigned char *memory, *beyond; /* registered, or NULL */
	int refused;			/* 1: io_uring_enter is not called any more */
	struct neap__io_request *made;	/* list of those that were made without the ring since */
};

/* 1 for answers of io_uring_enter that will always be the same. */
static int is_refusal(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -ENOSYS;
}

/* Whether the ring does anything: 0 or -errno of one request that asks for nothing. */
static int try_ring(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	io_uring_prep_nop(io_uring_get_sqe(ring));
	int rc = io_uring_submit_and_wait(ring, 1);
	if (rc == -EINTR) /* it was handed over: the signal ended the wait */
		rc = 0;
	if (rc >= 0)
		rc = io_uring_wait_cqe(ring, &cqe);
	if (rc == 0)
		io_uring_cqe_seen(ring, cqe);
	return rc;
}

static int open_uring(void **self, int depth)
{
	struct uring *uring = calloc(1, sizeof *uring);
	if (!uring)
		return -ENOMEM;
	int rc = io_uring_queue_init((unsigned)depth, &uring->ring, 0);
	if (rc == 0 && (rc = try_ring(&uring->ring)) < 0)
		io_uring_queue_exit(&uring->ring);
	if (rc < 0) {
		free(uring);
		return rc;
	}
	*self = uring;
	return 0;
}

static int registered(const struct uring *uring, const struct neap__io_request *request)
{
	const unsigned char *at = request->at;
	return uring->memory && at >= uring->memory && at + request->bytes <= uring->beyond;
}

/*
 * Hands over what is queued. The ring has room for every request in flight, so a failure is one
 * that passes (a signal, no memory for a request), and it is tried again; or the system refuses
 * all from now on.
 */
static void submit(struct uring *uring, unsigned wait)
{
	while (!uring->refused) {
		int rc = wait ? io_uring_submit_and_wait(&uring->ring, wait)
			      : io_uring_submit(&uring->ring);
		if (rc >= 0)
			return;
		uring->refused = is_refusal(rc);
		if (rc != -EINTR && !uring->refused)
			neap__sleep(1e-3);
	}
}

/* Makes the transfer without the ring; what was handed to that before is still done there. */
static void make_now(struct uring *uring, struct neap__io_request *request)
{
	neap__io_request_now(request);
	request->next = uring->made;
	uring->made = request;
}

static void start(void *self, struct neap__io_request *request)
{
	struct uring *uring = self;
	if (uring->refused) {
		make_now(uring, request);
		return;
	}
	struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);
	int fixed = registered(uring, request), named = request->number < uring->files;
	int fd = named ? request->number : request->file->fd;
	unsigned bytes = (unsigned)request->bytes;
	if (request->write && fixed)
		io_uring_prep_write_fixed(sqe, fd, request->at, bytes, request->offset, 0);
	else if (request->write)
		io_uring_prep_write(sqe, fd, request->at, bytes, request->offset);
	else if (fixed)
		io_uring_prep_read_fixed(sqe, fd, request->at, bytes, request->offset, 0);
	else
		io_uring_prep_read(sqe, fd, request->at, bytes, request->offset);
	if (named)
		sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data(sqe, request);
	submit(uring, 0);
	if (uring->refused)
		make_now(uring, request);
}

/* A transfer that was short, or refused, is made again by an ordinary read or write. */
static void settle(struct neap__io_request *request, int result)
{
	if (result >= 0 && (size_t)result == request->bytes)
		request->answer = 0;
	else
		neap__io_request_now(request);
}

/* Waits for a completion; NULL after `seconds`. A signal does not end the wait. */
static struct io_uring_cqe *await(struct uring *uring, double seconds)
{
	struct io_uring_cqe *cqe = NULL;
	double end = neap__seconds() + seconds;
	for (;;) {
		if (io_uring_peek_cqe(&uring->ring, &cqe) == 0 && cqe)
			return cqe;
		double left = end - neap__seconds();
		if (left <= 0)
			return NULL;
		if (uring->refused) {
			neap__sleep(left < POLL ? left : POLL);
			continue;
		}
		if (left > FOREVER) {
			submit(uring, 1);
			continue;
		}
		struct __kernel_timespec limit = {
			(int64_t)left, (long long)((left - (double)(int64_t)left) * 1e9)};
		if (io_uring_sq_ready(&uring->ring))
			submit(uring, 0);
		int rc = io_uring_wait_cqe_timeout(&uring->ring, &cqe, &limit);
		uring->refused |= is_refusal(rc);
		if (rc < 0 && rc != -ETIME && rc != -EINTR)
			neap__sleep(1e-3);
		cqe = NULL;
	}
}

static struct neap__io_request *finish(void *self, double seconds)
{
	struct uring *uring = self;
	struct neap__io_request *request = uring->made;
	if (request) {
		uring->made = request->next;
		return request;
	}
	struct io_uring_cqe *cqe = await(uring, seconds);
	if (!cqe)
		return NULL;
	request = io_uring_cqe_get_data(cqe);
	int result = cqe->res;
	io_uring_cqe_seen(&uring->ring, cqe);
	settle(request, result);
	return request;
}

/* Kept files are not registered: the system frees a ring late, and it would hold their locks. */
static void attach(void *self, const struct neap__scratch *files, int count)
{
	struct uring *uring = self;
	int fds[NEAP__FILES];
	int kept = 0;
	for (int i = 0; i < count; i++) {
		fds[i] = files[i].fd;
		kept |= files[i].name != NULL;
	}
	count = kept ? 0 : count;
	if (uring->files)
		io_uring_unregister_files(&uring->ring);
	uring->files = count && io_uring_register_files(&uring->ring, fds, (unsigned)count) == 0
			       ? count
			       : 0;
}

static void lend(void *self, void *memory, size_t bytes)
{
	struct uring *uring = self;
	struct iovec whole = {memory, bytes};
	if (uring->memory)
		io_uring_unregister_buffers(&uring->ring);
	uring->memory = uring->beyond = NULL;
	if (bytes == 0 || io_uring_register_buffers(&uring->ring, &whole, 1) < 0)
		return;
	uring->memory = memory;
	uring->beyond = uring->memory + bytes;
}

static void close_uring(void *self)
{
	struct uring *uring = self;
	attach(uring, NULL, 0);
	lend(uring, NULL, 0);
	io_uring_queue_exit(&uring->ring);
	free(uring);
}

/* The mapping and the descriptor go; what is registered is the parent's. */
static void orphan(void *self)
{
	struct uring *uring = self;
	io_uring_queue_exit(&uring->ring);
	free(uring);
}

const struct neap__io_engine_kind neap__io_engine_uring = {
	.name = "uring",
	.open = open_uring,
	.start = start,
	.finish = finish,
	.attach = attach,
	.lend = lend,
	.close = close_uring,
	.orphan = orphan,
};

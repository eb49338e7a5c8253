/* SPDX-License-Identifier: Apache-2.0 */
/* stall_injection.c: an I/O engine around the one that was opened, which holds requests back. */
#include "store/stall_injection.h"

#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "sys/clock.h"
#include "sys/engine.h"

#define POLL 2e-4 /* seconds between looks at whether stalled requests were released */

struct neap__stall_injection *neap__io_engine_stalls;

struct stalling {
	struct neap__io_engine_kind kind; /* of this engine; its name is that of the inner one */
	const struct neap__io_engine_kind *inner;
	void *self; /* of the inner one */
	struct neap__stall_injection *stalls;
	struct neap__io_request *held; /* a list */
	int nheld, in_flight;	       /* in_flight: held or not */
};

/* Counts the request; 1 if it is one that a test wants to hang. */
static int stalls_now(struct neap__stall_injection *stalls, const struct neap__io_request *request)
{
	long long n = atomic_fetch_add(request->write ? &stalls->writes : &stalls->reads, 1) + 1;
	long long first = request->write ? stalls->write : stalls->read;
	long long row = stalls->row ? stalls->row : 1;
	int hit = first && n >= first && n < first + row && !atomic_load(&stalls->released);
	atomic_fetch_add(&stalls->stalled, hit);
	return hit;
}

static void start(void *self, struct neap__io_request *request)
{
	struct stalling *x = self;
	x->in_flight++;
	if (x->stalls->delay_us)
		neap__sleep(1e-6 * x->stalls->delay_us);
	if (!stalls_now(x->stalls, request)) {
		x->inner->start(x->self, request);
		return;
	}
	request->next = x->held;
	x->held = request;
	x->nheld++;
}

static void release(struct stalling *x)
{
	while (x->held && atomic_load(&x->stalls->released)) {
		struct neap__io_request *request = x->held;
		x->held = request->next;
		x->nheld--;
		x->inner->start(x->self, request);
	}
}

/* Finishes a request while others may stall: polls whether these were released. */
static struct neap__io_request *finish(void *self, double seconds)
{
	struct stalling *x = self;
	double end = neap__seconds() + seconds;
	struct neap__io_request *request = NULL;
	do {
		release(x);
		if (x->in_flight > x->nheld)
			request = x->inner->finish(
				x->self, x->nheld && seconds > POLL ? POLL : seconds);
		else
			neap__sleep(POLL);
	} while (!request && neap__seconds() < end);
	x->in_flight -= request != NULL;
	return request;
}

static void attach(void *self, const struct neap__scratch *files, int count)
{
	struct stalling *x = self;
	if (x->inner->attach)
		x->inner->attach(x->self, files, count);
}

static void lend(void *self, void *memory, size_t bytes)
{
	struct stalling *x = self;
	if (x->inner->lend)
		x->inner->lend(x->self, memory, bytes);
}

static void close_engine(void *self)
{
	struct stalling *x = self;
	x->inner->close(x->self);
	free(x);
}

static void orphan(void *self)
{
	struct stalling *x = self;
	(x->inner->orphan ? x->inner->orphan : x->inner->close)(x->self);
	free(x);
}

static int wrap(struct neap__io_engine *engine)
{
	if (!neap__io_engine_stalls || engine->kind->blocks)
		return 0;
	struct stalling *x = calloc(1, sizeof *x);
	if (!x)
		return neap__fail_errno(ENOMEM, "an engine that stalls");
	*x = (struct stalling){.kind = {.name = engine->kind->name,
				       .start = start,
				       .finish = finish,
				       .attach = attach,
				       .lend = lend,
				       .close = close_engine,
				       .orphan = orphan},
		.inner = engine->kind,
		.self = engine->self,
		.stalls = neap__io_engine_stalls};
	engine->kind = &x->kind;
	engine->self = x;
	return 0;
}

__attribute__((constructor)) static void set_wrap(void)
{
	neap__io_engine_wrap = wrap;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* engine_sync.c: the engine `sync`: makes every transfer when it is started; nothing overlaps. */
#include "sys/engine.h"

#include <errno.h>
#include <stdlib.h>

struct sync {
	struct neap__io_request *done; /* the last finished first */
};

static int open_sync(void **self, int depth)
{
	(void)depth;
	*self = calloc(1, sizeof(struct sync));
	return *self ? 0 : -ENOMEM;
}

static void start(void *self, struct neap__io_request *request)
{
	struct sync *sync = self;
	neap__io_request_now(request);
	request->next = sync->done;
	sync->done = request;
}

static struct neap__io_request *finish(void *self, double seconds)
{
	(void)seconds;
	struct sync *sync = self;
	struct neap__io_request *request = sync->done;
	sync->done = request->next;
	return request;
}

const struct neap__io_engine_kind neap__io_engine_sync = {
	.name = "sync",
	.blocks = 1,
	.open = open_sync,
	.start = start,
	.finish = finish,
	.close = free,
};

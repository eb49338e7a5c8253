/* SPDX-License-Identifier: Apache-2.0 */
/* engine_sync.c: every move is made as it is started: nothing overlaps. */
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

static void start(void *self, struct neap__io_request *move)
{
	struct sync *sync = self;
	neap__io_request_now(move);
	move->next = sync->done;
	sync->done = move;
}

static struct neap__io_request *finish(void *self, double seconds)
{
	(void)seconds;
	struct sync *sync = self;
	struct neap__io_request *move = sync->done;
	sync->done = move->next;
	return move;
}

const struct neap__io_engine_kind neap__io_engine_sync = {
	.name = "sync",
	.blocks = 1,
	.open = open_sync,
	.start = start,
	.finish = finish,
	.close = free,
};

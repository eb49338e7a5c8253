/* SPDX-License-Identifier: Apache-2.0 */
/* engine_sync.c: every move is made as it is started: nothing overlaps. */
#include "sys/engine.h"

#include <errno.h>
#include <stdlib.h>

struct sync {
	struct neap__move *done; /* the last finished first */
};

static int open_sync(void **self, int depth)
{
	(void)depth;
	*self = calloc(1, sizeof(struct sync));
	return *self ? 0 : -ENOMEM;
}

static void start(void *self, struct neap__move *move)
{
	struct sync *sync = self;
	neap__move_now(move);
	move->next = sync->done;
	sync->done = move;
}

static struct neap__move *finish(void *self, double seconds)
{
	(void)seconds;
	struct sync *sync = self;
	struct neap__move *move = sync->done;
	sync->done = move->next;
	return move;
}

const struct neap__engine_kind neap__engine_sync = {
	.name = "sync",
	.blocks = 1,
	.open = open_sync,
	.start = start,
	.finish = finish,
	.close = free,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* engine_none.c: the row of io_uring in a build without liburing: it never opens. */
#include "sys/engine.h"

#include <errno.h>

static int refuse(void **self, int depth)
{
	(void)self;
	(void)depth;
	return -ENOSYS;
}

const struct neap__io_engine_kind neap__io_engine_uring = {.name = "uring", .open = refuse};

/* SPDX-License-Identifier: Apache-2.0 */
/* engine_none.c: io_uring's row in a build without liburing. */
#include "sys/engine.h"

#include <errno.h>

static int refuse(void **self, int depth)
{
	(void)self;
	(void)depth;
	return -ENOSYS;
}

const struct neap__io_engine_kind neap__io_engine_uring = {.name = "uring", .open = refuse};

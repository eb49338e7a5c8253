/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_spread.c: forbids one processor for a moment, which makes the system move the thread. */
#include "sys/cpu_spread.h"

#include <sched.h>

int neap__processor(void)
{
	return sched_getcpu();
}

void neap__cpu_spread(int processor)
{
	cpu_set_t allowed, others;

	if (processor < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
		return; /* not known, or more processors than a cpu_set_t holds */
	others = allowed;
	CPU_CLR((size_t)processor, &others);
	if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0)
		return;
	(void)sched_setaffinity(0, sizeof allowed, &allowed);
}

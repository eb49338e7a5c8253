/* SPDX-License-Identifier: Apache-2.0 */
/* priority.c: sched_setattr of Linux, by number, since glibc does not have it. */
#include "sys/priority.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE 100000 /* nanoseconds, the shortest that Linux grants (6.12 and later) */
#define NICE_LESS 10 /* by which the niceness falls */
#define NICE_LEAST (-20)

/* The system's struct sched_attr as of its first version, which glibc does not have. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

void neap__priority_raise(void)
{
	struct attributes now = {.size = sizeof now}, wanted;
	if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0 || now.policy != SCHED_OTHER)
		return;
	wanted = now;
	wanted.runtime = SLICE;
	wanted.nice = now.nice > NICE_LEAST + NICE_LESS ? now.nice - NICE_LESS : NICE_LEAST;
	if (syscall(SYS_sched_setattr, 0, &wanted, 0) == 0)
		return;
	wanted.nice = now.nice;
	(void)syscall(SYS_sched_setattr, 0, &wanted, 0);
}

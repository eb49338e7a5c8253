/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_memory.h: remembers that there was no memory for a bound. Such a bound is a weaker one,
 * which is still true. It is noted, so that a plan fails instead of showing it.
 */
#ifndef NEAP_PLAN_BOUND_BOUND_MEMORY_H
#define NEAP_PLAN_BOUND_BOUND_MEMORY_H

void neap__bound_note_memory(void);
/* Returns whether it was noted since the last call, in this thread. */
int neap__bound_memory_short(void);

#endif

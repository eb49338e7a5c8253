/* SPDX-License-Identifier: Apache-2.0 */
/* bound_memory.c: one flag for each thread. */
#include "plan/bound/bound_memory.h"

static _Thread_local int memory_short;

void neap__bound_note_memory(void)
{
	memory_short = 1;
}

int neap__bound_memory_short(void)
{
	int was = memory_short;
	memory_short = 0;
	return was;
}

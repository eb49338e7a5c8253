/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_spread.h: spreads the threads of a process over processors without binding them. */
#ifndef NEAP_SYS_CPU_SPREAD_H
#define NEAP_SYS_CPU_SPREAD_H

#include <neap/status.h>

/* The processor that the calling thread runs on; a negative number where none can be told. */
int neap__processor(void);

/*
 * Moves the calling thread off `processor`, where it may run on another one. Afterwards the thread
 * may run on all of them again.
 */
void neap__cpu_spread(int processor);

#endif

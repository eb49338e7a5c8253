/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_spread.h: threads of one process on processors of their own, without binding them. */
#ifndef NEAP_SYS_CPU_SPREAD_H
#define NEAP_SYS_CPU_SPREAD_H

#include <neap/status.h>

/* The processor that the calling thread runs on; a negative number where none can be told. */
NEAP_API int neap__processor(void);

/*
 * Moves the calling thread to another one of the processors that it may run on, where
 * there is another. Afterwards it may run on all of them again.
 */
NEAP_API void neap__cpu_spread(int processor);

#endif

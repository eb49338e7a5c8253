/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall_injection.h: requests that an engine keeps to itself until they are let go, as of a disk
 * that hangs; and a slow one. For tests.
 */
#ifndef NEAP_SYS_STALL_INJECTION_H
#define NEAP_SYS_STALL_INJECTION_H

#include <stdatomic.h>
#include <neap/status.h>

/* Reads and writes are numbered from 1, over all engines opened under it. 0: none. */
struct neap__stall_injection {
	atomic_llong read, write; /* the first that is held */
	atomic_llong row;	  /* and so many of its kind from there; 0: 1 */
	atomic_uint delay_us;	  /* every request takes that much longer */
	atomic_int released;	  /* set to 1: they are made now, late */
	atomic_llong reads, writes, stalled;
};

/* Engines that do not block take it when they are opened; it outlives them. */
NEAP_API extern struct neap__stall_injection *neap__io_engine_stalls;

#endif

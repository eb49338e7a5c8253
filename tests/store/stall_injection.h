/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall_injection.h: requests that an engine does not start until they are released, like those of
 * a disk that hangs, and requests that are slow. For tests.
 */
#ifndef NEAP_TESTS_STORE_STALL_INJECTION_H
#define NEAP_TESTS_STORE_STALL_INJECTION_H

#include <stdatomic.h>
#include <neap/status.h>

/*
 * Reads and writes are numbered from 1, over all engines opened under it. 0: none. All fields are
 * sequentially consistent: tests set them from another thread.
 */
struct neap__stall_injection {
	atomic_llong read, write; /* the first that stalls */
	atomic_llong row;	  /* and so many of its kind from there; 0: 1 */
	atomic_uint delay_us;	  /* every request takes that much longer */
	atomic_int released;	  /* set to 1: stalled requests are started now */
	atomic_llong reads, writes, stalled;
};

/* Engines that do not block are opened under this, unless NULL; it must outlive them. */
extern struct neap__stall_injection *neap__io_engine_stalls;

#endif

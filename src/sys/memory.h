/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h: maps pages, and says how much memory is in use. */
#ifndef NEAP_SYS_MEMORY_H
#define NEAP_SYS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

/* Zeroed private pages, not yet resident. 0 or -errno; -ENOMEM beyond neap__memory_total. */
int neap__map_pages(void **out, size_t bytes);
/* The same, where only the first `used` bytes are likely to be touched. */
int neap__map_partly(void **out, size_t bytes, size_t used);
void neap__unmap_pages(void *pages, size_t bytes);

/*
 * Makes fresh pages resident from a thread of its own (madvise with MADV_POPULATE_WRITE), so that a
 * computation that will write them does not wait for the kernel to clear them. Contents stay as
 * they are, and pages may be in use meanwhile.
 */
struct neap__populate;

/*
 * Begins with the first page. NULL where that would not pay or cannot be done: fewer than 32 MiB,
 * one processor, an old kernel, no thread; the computation's own accesses then make pages resident.
 */
struct neap__populate *neap__populate_start(void *pages, size_t bytes);
/* Stops it where it is, and waits; before the pages are unmapped. NULL is fine. */
void neap__populate_end(struct neap__populate *populate);

/* Bytes that the process holds, touched or not. */
struct neap__held {
	uint64_t files;	 /* resident parts of the program and its libraries */
	uint64_t heap;	 /* what malloc took from the system */
	uint64_t mapped; /* by neap__map_pages and neap__map_partly */
};
void neap__held(struct neap__held *held);

/* High-water mark of resident memory (VmHWM) in bytes; 0 where unknown. */
uint64_t neap__resident_peak(void);
/* The highest of all marks, those included that were lowered. */
uint64_t neap__resident_most(void);
/* Lowers the mark to what is resident now. 0 or -errno. */
int neap__resident_reset(void);

/* Bytes of memory of the machine or of the control group, whichever is less; 0 if unknown. */
uint64_t neap__memory_total(void);
/* Bytes that are free in the machine or in the control group, whichever is less. */
uint64_t neap__memory_free(void);

#endif

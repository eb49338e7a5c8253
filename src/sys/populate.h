/* SPDX-License-Identifier: Apache-2.0 */
/*
 * populate.h: makes fresh pages resident from a thread of its own, so that a computation that will
 * write them does not wait for the kernel to clear them. Contents stay as they are, and pages
 * may be in use meanwhile.
 */
#ifndef NEAP_SYS_POPULATE_H
#define NEAP_SYS_POPULATE_H

#include <stddef.h>

struct neap__populate;

/*
 * Begins with the first page. NULL where that would not pay or cannot be done: fewer than 32 MiB,
 * one processor, an old kernel, no thread; the computation's own accesses then make pages resident.
 */
struct neap__populate *neap__populate_start(void *pages, size_t bytes);
/* Stops it where it is, and waits; before the pages are unmapped. NULL is fine. */
void neap__populate_end(struct neap__populate *populate);

#endif

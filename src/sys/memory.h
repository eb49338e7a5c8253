/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h: maps pages, and says how much memory is in use. */
#ifndef NEAP_SYS_MEMORY_H
#define NEAP_SYS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

/* Zeroed private pages, not yet resident. 0 or -errno. */
int neap__map_pages(void **out, size_t bytes);
/* The same, where only the first `used` bytes are likely to be touched. */
int neap__map_partly(void **out, size_t bytes, size_t used);
void neap__unmap_pages(void *pages, size_t bytes);

/* High-water mark of resident memory (VmHWM) in bytes; 0 where unknown. */
uint64_t neap__resident_peak(void);
/* Lowers the mark to what is resident now. 0 or -errno. */
int neap__resident_reset(void);

/* Bytes that are free in the machine or in the control group, whichever is less. */
uint64_t neap__memory_free(void);

#endif

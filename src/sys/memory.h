/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h: maps pages, and says how much memory is in use. */
#ifndef NEAP_SYS_MEMORY_H
#define NEAP_SYS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

/* Zeroed private pages, not yet resident. 0 or -errno. */
NEAP_API int neap__map_pages(void **out, size_t bytes);
/* The same, where only the first `used` bytes are likely to be touched. */
NEAP_API int neap__map_partly(void **out, size_t bytes, size_t used);
NEAP_API void neap__unmap_pages(void *pages, size_t bytes);

/* High-water mark of resident memory (VmHWM) in bytes; 0 where unknown. */
NEAP_API uint64_t neap__resident_peak(void);
/* Lowers the mark to what is resident now. 0 or -errno. */
NEAP_API int neap__resident_reset(void);

/* Bytes that are free in the machine or in the control group, whichever is less. */
NEAP_API uint64_t neap__memory_free(void);

#endif

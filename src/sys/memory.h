/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h: pages from the system, and what it says of the memory in use. */
#ifndef NEAP_SYS_MEMORY_H
#define NEAP_SYS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

/* Zeroed private pages, not yet resident. 0 or -errno. */
NEAP_API int neap__map_pages(void **out, size_t bytes);
/* The same, where no more than the first `used` of them are likely to be touched. */
NEAP_API int neap__map_partly(void **out, size_t bytes, size_t used);
NEAP_API void neap__unmap_pages(void *pages, size_t bytes);

/* High-water mark of resident memory (VmHWM) in bytes; 0 where unknown. */
NEAP_API uint64_t neap__resident_peak(void);
/* Sets the mark back to what is resident now. 0 or -errno. */
NEAP_API int neap__resident_reset(void);

/* Free memory of the machine or of the control group, whichever is less. */
NEAP_API uint64_t neap__memory_free(void);

#endif

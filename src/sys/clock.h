/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NEAP_SYS_CLOCK_H
#define NEAP_SYS_CLOCK_H

#include <stdint.h>
#include <neap/status.h>

/* Monotonic seconds. */
NEAP_API double neap__seconds(void);
/* Processor seconds of this process, all threads. */
NEAP_API double neap__cpu_seconds(void);
/* Sleeps that many seconds, at least. */
NEAP_API void neap__sleep(double seconds);
/* A number, not 0, that nobody else draws: to tell runs apart, never to compute with. */
NEAP_API uint64_t neap__unique(void);

#endif

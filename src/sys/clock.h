/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NEAP_SYS_CLOCK_H
#define NEAP_SYS_CLOCK_H

#include <neap/status.h>

/* Monotonic seconds. */
NEAP_API double neap__seconds(void);
/* Processor seconds of this process, all threads. */
double neap__cpu_seconds(void);
/* Sleeps that many seconds, at least. */
NEAP_API void neap__sleep(double seconds);

#endif

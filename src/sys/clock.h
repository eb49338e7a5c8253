/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: clocks in seconds, and numbers that tell runs apart. */
#ifndef NEAP_SYS_CLOCK_H
#define NEAP_SYS_CLOCK_H

#include <stdint.h>
#include <neap/status.h>

/* Seconds of the monotonic clock, which counts from some moment in the past. */
double neap__seconds(void);
/* Processor seconds of this process, all threads. */
double neap__cpu_seconds(void);
/* Processor seconds of the calling thread. */
double neap__thread_seconds(void);
/* Sleeps for `seconds` at least; signals do not end it. */
void neap__sleep(double seconds);
/* A random number that is not 0, to tell runs apart; no result may depend on it. */
uint64_t neap__unique(void);

#endif

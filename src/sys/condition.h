/* SPDX-License-Identifier: Apache-2.0 */
/* condition.h: condition variables whose waits may end early, by the monotonic clock. */
#ifndef NEAP_SYS_CONDITION_H
#define NEAP_SYS_CONDITION_H

#include <pthread.h>

/* pthread_cond_init, by the clock of sys/clock.h. */
void neap__cond_init(pthread_cond_t *cond);
/* pthread_cond_wait for so many seconds at most; INFINITY: without end. */
void neap__cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, double seconds);

#endif

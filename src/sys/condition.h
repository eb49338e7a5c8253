/* SPDX-License-Identifier: Apache-2.0 */
/* condition.h: condition variables with a time limit, in seconds of sys/clock.h. */
#ifndef NEAP_SYS_CONDITION_H
#define NEAP_SYS_CONDITION_H

#include <pthread.h>

/* As pthread_cond_init, on the monotonic clock. */
void neap__cond_init(pthread_cond_t *cond);
/* As pthread_cond_wait, for `seconds` at most; INFINITY: without end. */
void neap__cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, double seconds);

#endif

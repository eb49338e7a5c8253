/* SPDX-License-Identifier: Apache-2.0 */
/*
 * condition.c: condition variables on the monotonic clock, so that setting the time of day ends
 * no wait.
 */
#include "sys/condition.h"

#include <time.h>

#define FOREVER 1e8 /* seconds: three years; a time_t plus this cannot overflow */

void neap__cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void neap__cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, double seconds)
{
	struct timespec until;
	if (seconds > FOREVER) {
		pthread_cond_wait(cond, lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	double at = (double)until.tv_nsec * 1e-9 + (seconds > 0 ? seconds : 0);
	until.tv_sec += (time_t)at;
	until.tv_nsec = (long)((at - (double)(time_t)at) * 1e9);
	pthread_cond_timedwait(cond, lock, &until);
}

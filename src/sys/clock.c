/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c: the monotonic clock, sleep, and numbers that are unique. */
#include "sys/clock.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

double neap__seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double neap__cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double neap__thread_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void neap__sleep(double seconds)
{
	struct timespec left = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
	while (nanosleep(&left, &left) < 0)
		;
}

uint64_t neap__unique(void)
{
	uint64_t number = 0;
	struct timespec now;
	if (getrandom(&number, sizeof number, GRND_NONBLOCK) == (ssize_t)sizeof number && number)
		return number;
	clock_gettime(CLOCK_REALTIME, &now);
	number = (uint64_t)now.tv_sec * UINT64_C(1000000007) + (uint64_t)now.tv_nsec;
	return (number ^ (uint64_t)getpid() << 40) | 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/clock.h"

#include <time.h>

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

void neap__sleep(double seconds)
{
	struct timespec left = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
	while (nanosleep(&left, &left) < 0)
		;
}

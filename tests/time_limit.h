/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_limit.h: what planning may take. A limit is asserted only where NEAP_LIMITS is
 * set, as `make bench` does on a machine that does nothing else; tests assert results.
 */
#ifndef NEAP_TEST_TIME_LIMIT_H
#define NEAP_TEST_TIME_LIMIT_H

#include <time.h>

/* Seconds of processor time of this process: other processes do not count. */
static inline double test_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Fails the case where `what` took more than `most` seconds and limits hold. */
static inline void test_limit(const char *what, double took, double most)
{
	if (getenv("NEAP_LIMITS") == NULL)
		return;
	fprintf(stderr, "# limit: %s: %.4g ms of %.4g ms\n", what, 1e3 * took, 1e3 * most);
	if (took > most)
		fail_msg("%s took %.4g s, at most %.4g s", what, took, most);
}

#endif

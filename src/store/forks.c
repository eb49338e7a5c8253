/* SPDX-License-Identifier: Apache-2.0 */
/* forks.c: counts forks in the child. */
#include "store/forks.h"

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int forks; /* written while the child has one thread only */

static void forked(void)
{
	forks++;
}

/* Where no handler can be had, for want of memory, forks are not noticed. */
static void watch(void)
{
	(void)pthread_atfork(NULL, NULL, forked);
}

int neap__forks(void)
{
	pthread_once(&once, watch);
	return forks;
}

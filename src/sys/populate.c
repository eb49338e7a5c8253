/* SPDX-License-Identifier: Apache-2.0 */
/* populate.c: asks the kernel for pages a piece at a time (madvise with MADV_POPULATE_WRITE). */
#include "sys/populate.h"
#include "sys/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

#define LEAST ((size_t)32 << 20)
#define PIECE ((size_t)4 << 20)

struct neap__populate {
	pthread_t thread;
	unsigned char *pages;
	size_t bytes;
	atomic_int stop;
};

static void *run(void *arg)
{
	struct neap__populate *x = arg;
	for (size_t at = 0; at < x->bytes && !atomic_load(&x->stop); at += PIECE) {
		size_t piece = x->bytes - at < PIECE ? x->bytes - at : PIECE;
		if (madvise(x->pages + at, piece, MADV_POPULATE_WRITE) != 0)
			break;
	}
	return NULL;
}

struct neap__populate *neap__populate_start(void *pages, size_t bytes)
{
	if (bytes < LEAST || neap__processors() < 2)
		return NULL;
	struct neap__populate *x = calloc(1, sizeof *x);
	if (!x)
		return NULL;
	x->pages = pages;
	x->bytes = bytes & ~(size_t)4095;
	if (pthread_create(&x->thread, NULL, run, x) == 0)
		return x;
	free(x);
	return NULL;
}

void neap__populate_end(struct neap__populate *x)
{
	if (!x)
		return;
	atomic_store(&x->stop, 1);
	pthread_join(x->thread, NULL);
	free(x);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_peers.h: threads of one process as the ranks of neap/peers.h: every call copies to memory
 * that all see and waits for all. For tests.
 */
#ifndef NEAP_TEST_THREAD_PEERS_H
#define NEAP_TEST_THREAD_PEERS_H

#include <neap/peers.h>
#include <pthread.h>
#include <string.h>

enum { THREAD_PEERS_MOST = 16 };

/* What the ranks see of each other between two waits. */
struct thread_peers_shared {
	int count;
	pthread_barrier_t barrier;
	const void *out[THREAD_PEERS_MOST];
	const size_t *size[THREAD_PEERS_MOST];
};

struct thread_peers {
	struct neap_peers peers;
	struct thread_peers_shared *shared;
	long calls; /* of all functions */
};

static inline void thread_peers_show(struct thread_peers *own, const void *out, const size_t *size)
{
	own->calls++;
	own->shared->out[own->peers.rank] = out;
	own->shared->size[own->peers.rank] = size;
	pthread_barrier_wait(&own->shared->barrier);
}

static inline int thread_peers_least(void *user, int64_t *values, int count)
{
	struct thread_peers *own = user;
	int64_t least[64];

	if (count > 64)
		return -1;
	thread_peers_show(own, values, NULL);
	memcpy(least, values, (size_t)count * sizeof *values);
	for (int r = 0; r < own->shared->count; r++)
		for (int i = 0; i < count; i++) {
			int64_t theirs = ((const int64_t *)own->shared->out[r])[i];
			least[i] = theirs < least[i] ? theirs : least[i];
		}
	pthread_barrier_wait(&own->shared->barrier);
	memcpy(values, least, (size_t)count * sizeof *values);
	return 0;
}

static inline int thread_peers_all(void *user, const void *out, size_t bytes, void *all)
{
	struct thread_peers *own = user;

	thread_peers_show(own, out, NULL);
	for (int r = 0; r < own->shared->count; r++)
		memcpy((char *)all + (size_t)r * bytes, own->shared->out[r], bytes);
	pthread_barrier_wait(&own->shared->barrier);
	return 0;
}

static inline int thread_peers_exchange(
	void *user, const void *out, const size_t *to, void *in, const size_t *from)
{
	struct thread_peers *own = user;
	size_t at = 0;
	int rc = 0;

	thread_peers_show(own, out, to);
	for (int r = 0; r < own->shared->count; r++) {
		size_t before = 0;
		for (int i = 0; i < own->peers.rank; i++)
			before += own->shared->size[r][i];
		rc |= from[r] != own->shared->size[r][own->peers.rank];
		memcpy((char *)in + at, (const char *)own->shared->out[r] + before, from[r]);
		at += from[r];
	}
	pthread_barrier_wait(&own->shared->barrier);
	return rc ? -1 : 0;
}

static inline int thread_peers_gather(void *user, void *at, const size_t *bytes)
{
	struct thread_peers *own = user;
	size_t before = 0;
	int rc = 0;

	thread_peers_show(own, at, bytes);
	for (int r = 0; r < own->shared->count; r++) {
		rc |= bytes[r] != own->shared->size[r][r];
		if (r != own->peers.rank)
			memcpy((char *)at + before, (const char *)own->shared->out[r] + before,
				bytes[r]);
		before += bytes[r];
	}
	pthread_barrier_wait(&own->shared->barrier);
	return rc ? -1 : 0;
}

/* Makes `count` ranks of own[count]. */
static inline void thread_peers_make(
	struct thread_peers *own, struct thread_peers_shared *shared, int count)
{
	*shared = (struct thread_peers_shared){.count = count};
	pthread_barrier_init(&shared->barrier, NULL, (unsigned)count);
	for (int r = 0; r < count; r++)
		own[r] = (struct thread_peers){.shared = shared,
			.peers = {.size = sizeof own->peers,
				.rank = r,
				.count = count,
				.user = &own[r],
				.least = thread_peers_least,
				.all = thread_peers_all,
				.exchange = thread_peers_exchange,
				.gather = thread_peers_gather}};
}

#endif

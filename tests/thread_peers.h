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
	pthread_mutex_t lock; /* guards the three below */
	pthread_cond_t changed;
	int waiting, round, gone; /* gone: a rank left, and nobody waits any more */
	const void *out[THREAD_PEERS_MOST];
	const size_t *size[THREAD_PEERS_MOST];
};

struct thread_peers {
	struct neap_peers peers;
	struct thread_peers_shared *shared;
	long calls; /* of all functions */
	int left;   /* the code that it left with */
};

/* Waits for all ranks: 0, or -1 where one left. */
static inline int thread_peers_meet(struct thread_peers_shared *shared)
{
	pthread_mutex_lock(&shared->lock);
	int round = shared->round;
	if (++shared->waiting == shared->count) {
		shared->waiting = 0;
		shared->round++;
		pthread_cond_broadcast(&shared->changed);
	}
	while (round == shared->round && !shared->gone)
		pthread_cond_wait(&shared->changed, &shared->lock);
	int rc = round == shared->round ? -1 : 0;
	pthread_mutex_unlock(&shared->lock);
	return rc;
}

static inline void thread_peers_leave(void *user, int code)
{
	struct thread_peers *own = user;

	own->left = code;
	pthread_mutex_lock(&own->shared->lock);
	own->shared->gone = 1;
	pthread_cond_broadcast(&own->shared->changed);
	pthread_mutex_unlock(&own->shared->lock);
}

static inline int thread_peers_show(struct thread_peers *own, const void *out, const size_t *size)
{
	own->calls++;
	own->shared->out[own->peers.rank] = out;
	own->shared->size[own->peers.rank] = size;
	return thread_peers_meet(own->shared);
}

static inline int thread_peers_least(void *user, int64_t *values, int count)
{
	struct thread_peers *own = user;
	int64_t least[64];

	if (count > 64)
		return -1;
	if (thread_peers_show(own, values, NULL) < 0)
		return -1;
	memcpy(least, values, (size_t)count * sizeof *values);
	for (int r = 0; r < own->shared->count; r++)
		for (int i = 0; i < count; i++) {
			int64_t theirs = ((const int64_t *)own->shared->out[r])[i];
			least[i] = theirs < least[i] ? theirs : least[i];
		}
	if (thread_peers_meet(own->shared) < 0)
		return -1;
	memcpy(values, least, (size_t)count * sizeof *values);
	return 0;
}

static inline int thread_peers_all(void *user, const void *out, size_t bytes, void *all)
{
	struct thread_peers *own = user;

	if (thread_peers_show(own, out, NULL) < 0)
		return -1;
	for (int r = 0; r < own->shared->count; r++)
		memcpy((char *)all + (size_t)r * bytes, own->shared->out[r], bytes);
	return thread_peers_meet(own->shared);
}

static inline int thread_peers_exchange(
	void *user, const void *out, const size_t *to, void *in, const size_t *from)
{
	struct thread_peers *own = user;
	size_t at = 0;
	int rc = 0;

	if (thread_peers_show(own, out, to) < 0)
		return -1;
	for (int r = 0; r < own->shared->count; r++) {
		size_t before = 0;
		for (int i = 0; i < own->peers.rank; i++)
			before += own->shared->size[r][i];
		rc |= from[r] != own->shared->size[r][own->peers.rank];
		if (from[r] > 0)
			memcpy((char *)in + at, (const char *)own->shared->out[r] + before,
				from[r]);
		at += from[r];
	}
	return thread_peers_meet(own->shared) < 0 || rc ? -1 : 0;
}

static inline int thread_peers_gather(void *user, void *at, const size_t *bytes)
{
	struct thread_peers *own = user;
	size_t before = 0;
	int rc = 0;

	if (thread_peers_show(own, at, bytes) < 0)
		return -1;
	for (int r = 0; r < own->shared->count; r++) {
		rc |= bytes[r] != own->shared->size[r][r];
		if (r != own->peers.rank && bytes[r] > 0)
			memcpy((char *)at + before, (const char *)own->shared->out[r] + before,
				bytes[r]);
		before += bytes[r];
	}
	return thread_peers_meet(own->shared) < 0 || rc ? -1 : 0;
}

/* Makes `count` ranks of own[count]. */
static inline void thread_peers_make(
	struct thread_peers *own, struct thread_peers_shared *shared, int count)
{
	*shared = (struct thread_peers_shared){.count = count};
	pthread_mutex_init(&shared->lock, NULL);
	pthread_cond_init(&shared->changed, NULL);
	for (int r = 0; r < count; r++)
		own[r] = (struct thread_peers){.shared = shared,
			.peers = {.size = sizeof own->peers,
				.rank = r,
				.count = count,
				.user = &own[r],
				.least = thread_peers_least,
				.all = thread_peers_all,
				.exchange = thread_peers_exchange,

				.leave = thread_peers_leave,
				.gather = thread_peers_gather}};
}

static inline void thread_peers_free(struct thread_peers_shared *shared)
{
	pthread_cond_destroy(&shared->changed);
	pthread_mutex_destroy(&shared->lock);
}

#endif

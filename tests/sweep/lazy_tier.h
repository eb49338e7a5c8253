/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lazy_tier.h: a tier of one's own that carries a request out only when that request or a
 * later one is waited for, in order. A sweep that touches a source or a destination too early
 * is caught every time, not by luck.
 */
#ifndef NEAP_TESTS_SWEEP_LAZY_TIER_H
#define NEAP_TESTS_SWEEP_LAZY_TIER_H

#include <neap/tier.h>
#include <errno.h>
#include "../test.h"

#define LAZY 320 /* requests in flight at most (neap/tier.h) */

struct lazy {
	struct shelf {
		unsigned char *store;
		uint64_t *tags;	      /* of the places */
		uint64_t bytes, room; /* of a place; of all of them */
	} shelves[2];		      /* states, tapes */
	uint64_t capacity;
	struct lazy_job {
		struct neap_span one;
		const struct neap_span *spans;
		int64_t place;
		uint64_t tag;
		int count, put, answer;
	} jobs[LAZY];
	int64_t begun, done;
};

static inline int lazy_shelf(struct lazy *lazy, int tapes, uint64_t bytes, int64_t places)
{
	struct shelf *shelf = &lazy->shelves[tapes];
	uint64_t before = tapes ? lazy->shelves[0].room : 0;
	if ((uint64_t)places > (lazy->capacity - before) / bytes)
		return -ENOSPC;
	free(shelf->store);
	free(shelf->tags);
	shelf->store = calloc((size_t)places + 1, bytes);
	shelf->tags = calloc((size_t)places + 1, sizeof *shelf->tags);
	memset(shelf->tags, 0xff, (size_t)places * sizeof *shelf->tags);
	shelf->bytes = bytes;
	shelf->room = bytes * (uint64_t)places;
	return 0;
}

static inline int lazy_format(void *self, uint64_t bytes, int64_t places, void *staging)
{
	(void)staging;
	return lazy_shelf(self, 0, bytes, places);
}

static inline int lazy_format_tapes(void *self, uint64_t bytes, int64_t places, uint64_t staging)
{
	(void)staging;
	return lazy_shelf(self, 1, bytes, places);
}

static inline struct lazy_job *lazy_post(
	struct lazy *lazy, int put, int64_t place, uint64_t tag, int64_t *ticket)
{
	*ticket = lazy->begun++;
	struct lazy_job *job = &lazy->jobs[*ticket % LAZY];
	*job = (struct lazy_job){.place = place, .tag = tag, .put = put};
	return job;
}

static inline int lazy_one(struct lazy_job *job, const void *at, uint64_t bytes)
{
	job->one = (struct neap_span){(void *)(uintptr_t)at, bytes};
	return 0;
}

static inline int lazy_put(
	void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes, int64_t *ticket)
{
	return lazy_one(lazy_post(self, 1, place, tag, ticket), from, bytes);
}

static inline int lazy_get(
	void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes, int64_t *ticket)
{
	return lazy_one(lazy_post(self, 0, place, tag, ticket), into, bytes);
}

static inline int lazy_put_tapes(void *self, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	struct lazy_job *job = lazy_post(self, 1, place, tag, ticket);
	job->spans = spans;
	job->count = count;
	return 0;
}

static inline int lazy_get_tapes(void *self, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	struct lazy_job *job = lazy_post(self, 0, place, tag, ticket);
	job->spans = spans;
	job->count = count;
	return 0;
}

static inline void lazy_run(struct lazy *lazy, struct lazy_job *job)
{
	struct shelf *shelf = &lazy->shelves[job->spans != NULL];
	unsigned char *record = shelf->store + (uint64_t)job->place * shelf->bytes;
	const struct neap_span *spans = job->spans ? job->spans : &job->one;
	if (!job->put && shelf->tags[job->place] != job->tag) {
		job->answer = NEAP_ELOST;
		return;
	}
	for (int i = 0; i < (job->spans ? job->count : 1); record += spans[i++].bytes)
		memcpy(job->put ? record : spans[i].at, job->put ? spans[i].at : record,
			spans[i].bytes);
	shelf->tags[job->place] = job->tag;
}

static inline int lazy_wait(void *self, int64_t ticket)
{
	struct lazy *lazy = self;
	for (; lazy->done <= ticket; lazy->done++)
		lazy_run(lazy, &lazy->jobs[lazy->done % LAZY]);
	return lazy->jobs[ticket % LAZY].answer;
}

static inline void lazy_close(void *self)
{
	struct lazy *lazy = self;
	for (int i = 0; i < 2; i++) {
		free(lazy->shelves[i].store);
		free(lazy->shelves[i].tags);
	}
	free(lazy);
}

static inline int lazy_open(struct neap_tier **tier, uint64_t capacity)
{
	static const struct neap_tier_ops ops = {.size = sizeof ops,
		.format = lazy_format,
		.put = lazy_put,
		.get = lazy_get,
		.wait = lazy_wait,
		.close = lazy_close,
		.format_tapes = lazy_format_tapes,
		.put_tapes = lazy_put_tapes,
		.get_tapes = lazy_get_tapes};
	const struct neap_tier_spec spec = {.name = "lazy", .capacity = capacity};
	struct lazy *lazy = calloc(1, sizeof *lazy);
	lazy->capacity = capacity;
	return neap_tier_wrap(tier, &ops, &spec, lazy);
}

#endif

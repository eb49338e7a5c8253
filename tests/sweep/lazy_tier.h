/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lazy_tier.h: a tier of one's own that carries a request out only when that request or a
 * later one is waited for, in order. A sweep that touches a source or a destination too early
 * is caught every time, not by luck.
 */
#ifndef NEAP_TESTS_SWEEP_LAZY_TIER_H
#define NEAP_TESTS_SWEEP_LAZY_TIER_H

#include "chainmodel.h"

#define LAZY 320 /* requests in flight at most (neap/tier.h) */

struct lazy {
	struct shelf {
		unsigned char *store;
		uint64_t *tags; /* of the places */
		uint64_t bytes;
	} shelves[2]; /* states, tapes */
	struct lazy_job {
		struct neap_span one;
		const struct neap_span *spans;
		int64_t place;
		uint64_t tag;
		int count, put, answer;
	} jobs[LAZY];
	int64_t begun, done;
};

static inline void lazy_shelf(struct shelf *shelf, uint64_t bytes, int64_t places)
{
	free(shelf->store);
	free(shelf->tags);
	shelf->store = calloc((size_t)places + 1, bytes);
	shelf->tags = calloc((size_t)places + 1, sizeof *shelf->tags);
	memset(shelf->tags, 0xff, (size_t)places * sizeof *shelf->tags);
	shelf->bytes = bytes;
}

static inline int lazy_format(void *self, uint64_t bytes, int64_t places, void *staging)
{
	struct lazy *lazy = self;
	(void)staging;
	lazy_shelf(&lazy->shelves[0], bytes, places);
	return 0;
}

static inline int lazy_format_tapes(void *self, uint64_t bytes, int64_t places, uint64_t staging)
{
	struct lazy *lazy = self;
	(void)staging;
	lazy_shelf(&lazy->shelves[1], bytes, places);
	return 0;
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

static inline int lazy_open(struct neap_tier **tier)
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
	static const struct neap_tier_spec spec = {.name = "lazy", .capacity = NEAP_INFINITE};
	return neap_tier_wrap(tier, &ops, &spec, calloc(1, sizeof(struct lazy)));
}

#endif

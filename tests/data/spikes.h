/* SPDX-License-Identifier: Apache-2.0 */
/* spikes.h: data sets made up on the spot, for the tests of readers and loaders. */
#ifndef NEAP_TEST_SPIKES_H
#define NEAP_TEST_SPIKES_H

#include "test.h"
#include <neap/data.h>
#include "base/philox.h"

#define ok(expression)                                                                             \
	do {                                                                                       \
		int ok_rc = (expression);                                                          \
		if (ok_rc < 0)                                                                     \
			fail_msg("%s: %d %s", #expression, ok_rc, neap_detail());                  \
	} while (0)

/* The call fails with `code`, and its one line of detail mentions `word`. */
#define refused(expression, code, word)                                                            \
	do {                                                                                       \
		int refused_rc = (expression);                                                     \
		if (refused_rc != (code) || !strstr(neap_detail(), (word)))                        \
			fail_msg("%s: %d '%s', wanted %d '%s'", #expression, refused_rc,           \
				neap_detail(), (code), (word));                                    \
	} while (0)

/* A file of this name in the test's own directory; removed by the test. */
static inline const char *scratch(const char *name)
{
	static char path[4][4200];
	static int turn;
	char *p = path[turn++ % 4];
	const char *dir = getenv("TMPDIR");
	snprintf(
		p, sizeof path[0], "%s/neap-test-%ld-%s", dir ? dir : "/tmp", (long)getpid(), name);
	return p;
}

/* Sample `index`: about `mean` events in 0.1 s on `units` units, at multiples of 1/8 ms. */
static inline struct neap_events some_events(uint64_t seed, int64_t index, int units, int mean)
{
	struct neap_events e = {0};
	uint32_t a = (uint32_t)index;
	e.count = mean ? (int64_t)neap__random_below(
				 seed, NEAP__STREAM_TEST, a, 0, 2u * (uint64_t)mean)
		       : 0;
	e.time = calloc((size_t)e.count + 1, sizeof *e.time);
	e.unit = calloc((size_t)e.count + 1, sizeof *e.unit);
	for (int64_t i = 0; i < e.count; i++) {
		uint64_t b = 2 * (uint64_t)i;
		e.unit[i] = (uint16_t)neap__random_below(
			seed, NEAP__STREAM_TEST, a, b + 1, (uint64_t)units);
		/* Ascending: event i somewhere in the i-th part of 800 eighths of a millisecond. */
		uint64_t low = (uint64_t)i * 800 / (uint64_t)e.count;
		uint64_t high = (uint64_t)(i + 1) * 800 / (uint64_t)e.count;
		uint64_t span = high > low ? high - low : 1;
		e.time[i] = (double)(low +
				     neap__random_below(seed, NEAP__STREAM_TEST, a, b + 2, span)) /
			    8000;
	}
	e.duration = 0.1;
	e.label = (int)(index % 3);
	e.speaker = (int)(index / 3 % 4);
	return e;
}

static const char *const some_classes[] = {"null", "eins", "zw\xc3\xb6lf"};
static const char *const some_speakers[] = {"ann", "bob", "cid", "dee"};

static inline void write_set(const char *path, int64_t samples, int units, int mean)
{
	struct neap_shd_writer *writer;
	const struct neap_attribute attribute = {"gain", 20};
	ok(neap_shd_create(&writer, path, units));
	for (int64_t i = 0; i < samples; i++) {
		struct neap_events e = some_events(1, i, units, mean);
		ok(neap_shd_add(writer, &e));
		neap_events_free(&e);
	}
	ok(neap_shd_finish(writer, some_classes, 3, some_speakers, 4, &attribute, 1));
}

#endif

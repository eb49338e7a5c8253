/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_events.c: events as AEDAT (from '#' on), as arrays of an archive ("PK"), as an array of
 * records ("\x93NUMPY"), else as N-MNIST.
 */
#include "data/events/event_source.h"
#include "data/recordings.h"
#include "fuzz_files.h"

#include <string.h>

static void check(const struct neap__raw_events *events, size_t size)
{
	FUZZ_CHECK(events->count <= (int64_t)size * 1032, "%lld events", (long long)events->count);
	for (int64_t i = 0; i < events->count; i++)
		FUZZ_CHECK(events->x[i] >= 0 && events->y[i] >= 0 && events->p[i] <= 1 &&
				   events->time[i] >= 0,
			"event %lld", (long long)i);
}

static void read_arrays(struct neap__raw_events *events, const char *path, size_t size)
{
	static const char *const classes[] = {"a", "b", "c"};
	struct neap_event_options options = {
		.size = sizeof options, .classes = classes, .nclasses = 3};
	struct neap__event_source *source = NULL;
	const char *where = NULL;
	int rc = neap__array_events_open(
		&source, path, size & 1 ? "folder" : NULL, &options, &neap__recordings_lines);
	fuzz_line(rc);
	/* Samples without events cost nothing in a file of offsets: the first hundred do. */
	for (int i = 0; rc == 0 && i < 100; i++) {
		int got = source->next(source, events, &where);
		fuzz_line(got);
		if (got <= 0)
			break;
		check(events, size);
		FUZZ_CHECK(source->recording
				   ? events->label == -1 && i == 0
				   : events->label >= 0 && events->label < source->classes,
			"label");
	}
	if (rc == 0)
		source->close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int npy = size >= 6 && memcmp(data, "\x93NUMPY", 6) == 0;
	const char *path = fuzz_path(npy ? "events.npy" : "events.npz");
	struct neap__raw_events events = {0};

	fuzz_write(path, data, size);
	if (npy || (size >= 2 && memcmp(data, "PK", 2) == 0)) {
		read_arrays(&events, path, size);
	} else {
		struct neap__event_file file = {.path = path};
		int rc = size && data[0] == '#' ? neap__aedat_read(&events, path, 10, 1000000)
						: neap__nmnist_read(&events, &file);
		fuzz_line(rc);
		if (rc == 0)
			check(&events, size);
	}
	neap__raw_events_free(&events);
	return 0;
}

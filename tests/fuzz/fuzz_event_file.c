/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_event_file.c: a file with one recording of events, read by FUZZ_READER, for which the build
 * compiles this target: first the header only, then all.
 */
#include "data/events/event_source.h"
#include "fuzz_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct neap__event_file file = {.path = fuzz_path("recording")}, head = file;
	struct neap__raw_events events = {0};

	fuzz_write(file.path, data, size);
	int looked = FUZZ_READER(NULL, &head);
	fuzz_line(looked);
	int rc = FUZZ_READER(&events, &file);
	fuzz_line(rc);
	FUZZ_CHECK(looked == 0 || rc < 0, "a header that is damaged, but only if it is read alone");
	/* Compressed events of 16 bytes; a word of EVT21 has 32 of them. */
	FUZZ_CHECK(events.count <= (int64_t)size * 20000, "%lld events", (long long)events.count);
	FUZZ_CHECK(rc < 0 || (file.width == head.width && file.height == head.height &&
				     file.width >= 0 && file.width <= 65536 && file.height >= 0 &&
				     file.height <= 65536),
		"%dx%d pixels", file.width, file.height);
	for (int64_t i = 0; i < events.count; i++)
		FUZZ_CHECK(events.x[i] >= 0 && events.y[i] >= 0 && events.p[i] <= 1 &&
				   events.time[i] >= 0,
			"event %lld", (long long)i);
	neap__raw_events_free(&events);
	return 0;
}

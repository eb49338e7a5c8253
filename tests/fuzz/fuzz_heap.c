/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_heap.c: recordings in HDF5 whose heaps, and the rows that refer to them, were changed. These
 * parts are read by neap itself; the rest of the file is libhdf5's.
 */
#include "data/dataset.h"
#include "fuzz_files.h"
#include <neap/data.h>

#include <string.h>

#define REGIONS 32
enum { SAMPLES = 5, EVENTS = 40, INPUTS = 9 };

static struct fuzz_region regions[REGIONS];
static int nregions;
static uint8_t *sound;
static size_t sound_bytes;

static void make_file(const char *path)
{
	struct neap_shd_writer *writer;
	double time[EVENTS];
	uint16_t unit[EVENTS];
	const char *names[] = {"no", "yes"};

	FUZZ_CHECK(neap_shd_create(&writer, path, INPUTS) == 0, "%s", neap_detail());
	for (int s = 0; s < SAMPLES; s++) {
		struct neap_events e = {
			.count = EVENTS - 7 * s, .time = time, .unit = unit, .duration = 1};
		for (int i = 0; i < e.count; i++) {
			time[i] = i / 64.0;
			unit[i] = (uint16_t)((i * 5 + s) % INPUTS);
		}
		e.label = s % 2;
		FUZZ_CHECK(neap_shd_add(writer, &e) == 0, "%s", neap_detail());
	}
	FUZZ_CHECK(neap_shd_finish(writer, names, 2, NULL, 0, NULL, 0) == 0, "%s", neap_detail());
}

static void read_all(struct neap_dataset *set)
{
	struct neap_dataset_info info = {.size = sizeof info};
	struct neap__event_buffer part = {0};
	struct neap_events events;

	neap_dataset_info(set, &info);
	for (int64_t i = 0; i < info.samples; i++) {
		struct neap__sample_extent extent;
		int rc = neap_dataset_read(set, i, &events);
		fuzz_line(rc);
		for (int64_t k = 0; rc == 0 && k < events.count; k++)
			FUZZ_CHECK(events.unit[k] < info.inputs, "unit %d", events.unit[k]);
		if (rc == 0)
			neap_events_free(&events);
		rc = neap__dataset_extent(set, i, 1, &extent);
		fuzz_line(rc);
		if (rc == 0)
			fuzz_line(neap__dataset_part(set, i, 0.1, 0.4, 64, &part));
	}
	neap__event_buffer_free(&part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_path("spikes.h5");
	struct neap_dataset *set = NULL;

	if (!sound) {
		make_file(path);
		sound = fuzz_read(path, &sound_bytes);
		nregions = fuzz_heaps(sound, sound_bytes, regions, REGIONS);
		FUZZ_CHECK(nregions > SAMPLES, "%d regions", nregions);
	}
	uint8_t *copy = malloc(sound_bytes);
	FUZZ_CHECK(copy, "no memory");
	memcpy(copy, sound, sound_bytes);
	fuzz_edit(copy, regions, nregions, data, size);
	fuzz_write(path, copy, sound_bytes);
	free(copy);
	int rc = neap_dataset_open(&set, path);
	fuzz_line(rc);
	if (rc == 0)
		read_all(set);
	neap_dataset_close(set);
	return 0;
}

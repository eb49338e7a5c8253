/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_event_h5.c: HDF5 files of Metavision (records of events) and of N-TIDIGITS (two arrays for
 * each name), which HDF5 writes; the bytes of the input choose types, lengths and numbers.
 */
#include "data/events/event_source.h"
#include "data/formats/h5.h"
#include "data/recordings.h"
#include "fuzz_files.h"

#include <string.h>

enum { MOST = 12 /* entries */ };

static hid_t kind(struct fuzz_bytes *b)
{
	const hid_t kinds[] = {H5T_STD_U16LE, H5T_STD_I64LE, H5T_IEEE_F64LE, H5T_STD_I16BE,
		H5T_IEEE_F32LE, H5T_C_S1};
	return kinds[fuzz_next(b) % 6];
}

/* A data set of a type, whose bytes are those of the input. */
static void make(hid_t place, const char *name, hid_t type, hsize_t count, struct fuzz_bytes *b)
{
	unsigned char data[MOST * 64];
	hsize_t chunk = 1 + fuzz_next(b) % MOST;
	hid_t space = H5Screate_simple(1, &count, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)fuzz_next(b);
	if (chunk % 3 == 0)
		H5Pset_chunk(how, 1, &chunk);
	if (chunk % 6 == 0)
		H5Pset_deflate(how, 1);
	hid_t set = H5Dcreate2(place, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
	if (set >= 0) {
		if (count)
			H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
		H5Dclose(set);
	}
	H5Pclose(how);
	H5Sclose(space);
}

static void make_metavision(hid_t file, struct fuzz_bytes *b)
{
	static const char *const fields[] = {"x", "y", "p", "t"};
	hid_t group = H5Gcreate2(file, "CD", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	hid_t type = H5Tcreate(H5T_COMPOUND, 64);
	unsigned which = fuzz_next(b);
	for (int i = 0; i < 4; i++)
		if (which >> i & 1)
			H5Tinsert(type, fields[i], (size_t)i * 16, kind(b));
	if (which & 15)
		make(group, "events", type, fuzz_next(b) % (MOST + 1), b);
	H5Tclose(type);
	H5Gclose(group);
}

static void make_ntidigits(hid_t file, struct fuzz_bytes *b)
{
	char names[4][8] = {"a-b-1", "c-d-2", "e", "c-d-2"}, set[32];
	static const char *const kinds[] = {"timestamps", "addresses"};
	hsize_t count = 1 + fuzz_next(b) % 4;
	hid_t text = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &count, NULL);
	H5Tset_size(text, sizeof names[0]);
	hid_t list = H5Dcreate2(
		file, "train_labels", text, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	names[3][0] = (char)fuzz_next(b);
	H5Dwrite(list, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, names);
	H5Dclose(list);
	for (int k = 0; k < 2; k++) {
		snprintf(set, sizeof set, "train_%s", kinds[k]);
		hid_t group = H5Gcreate2(file, set, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		for (int i = 0; i < 3; i++)
			if (fuzz_next(b) != 255)
				make(group, names[i], kind(b), fuzz_next(b) % 3 ? 3 : 4, b);
		H5Gclose(group);
	}
	H5Sclose(space);
	H5Tclose(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const split[] = {"train"};
	struct fuzz_bytes b = {data, size};
	struct neap_event_options options = {.size = sizeof options, .split = split, .nsplit = 1};
	struct neap_event_report report = {.size = sizeof report};
	struct neap__event_source *source = NULL;
	struct neap__raw_events events = {0};
	struct neap__h5_guard guard;
	const char *path = fuzz_path("events.h5"), *where;
	int digits = fuzz_next(&b) & 1;

	neap__h5_enter(&guard);
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	FUZZ_CHECK(file >= 0, "HDF5 makes no file");
	if (digits)
		make_ntidigits(file, &b);
	else
		make_metavision(file, &b);
	H5Fclose(file);
	neap__h5_leave(&guard);

	int rc = neap__ntidigits_open(&source, path, &options, &report);
	FUZZ_CHECK(rc < 0 || rc == digits, "the kind of the file");
	if (!digits)
		rc = neap__array_events_open(
			&source, path, NULL, &options, &neap__recordings_lines);
	fuzz_line(rc);
	while (source && (rc = source->next(source, &events, &where)) != 0) {
		fuzz_line(rc);
		if (rc < 0)
			break;
		FUZZ_CHECK(events.count <= MOST, "%lld events", (long long)events.count);
		for (int64_t i = 0; i < events.count; i++)
			FUZZ_CHECK(events.time[i] >= 0 && events.x[i] >= 0 && events.y[i] >= 0 &&
					   events.p[i] <= 1,
				"event %lld", (long long)i);
	}
	if (source)
		source->close(source);
	neap__raw_events_free(&events);
	return 0;
}

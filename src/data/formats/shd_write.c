/* SPDX-License-Identifier: Apache-2.0 */
/* shd_write.c: writes the layout of the Heidelberg Digits into a file of HDF5 (h5_out.h). */
#include "data/dataset.h"
#include "data/formats/h5_out.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_ROWS = 1024 };

struct neap_shd_writer {
	char *path;
	struct neap__h5_out out;
	hid_t times, units;
	int inputs;
	int64_t count, room;
	uint16_t *label, *speaker;
	double *duration, longest;
	int speakers;	/* 1: some sample has a speaker; 0: none has */
	float *convert; /* one sample's times */
	int64_t convert_room;
};

static int failed(const struct neap_shd_writer *writer, int err)
{
	return neap__h5_out_failed(&writer->out, err);
}

static hid_t create_rows(hid_t file, const char *name, hid_t base)
{
	hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk = CHUNK_ROWS;
	hid_t type = H5Tvlen_create(base), space = H5Screate_simple(1, &none, &unlimited);
	hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(creation, 1, &chunk);
	H5Pset_obj_track_times(creation, 0);
	hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
	H5Pclose(creation);
	H5Sclose(space);
	H5Tclose(type);
	return set;
}

static int create_file(struct neap_shd_writer *writer)
{
	NEAP_TRY(neap__h5_out_open(&writer->out, writer->path));
	hid_t file = writer->out.file;
	if (neap__h5_out_group(file, "/spikes") < 0 || neap__h5_out_group(file, "/extra") < 0)
		return failed(writer, errno);
	writer->times = create_rows(file, "/spikes/times", H5T_IEEE_F32LE);
	writer->units = create_rows(file, "/spikes/units", H5T_STD_U16LE);
	return writer->times < 0 || writer->units < 0 ? failed(writer, errno) : 0;
}

/* Closes the data sets and the file; negative when the last writes failed. */
static int close_hdf5(struct neap_shd_writer *writer)
{
	int rc = 0;
	errno = 0;
	if (writer->times >= 0 && H5Dclose(writer->times) < 0)
		rc = -1;
	if (writer->units >= 0 && H5Dclose(writer->units) < 0)
		rc = -1;
	if (neap__h5_out_close(&writer->out) < 0)
		rc = -1;
	writer->times = writer->units = -1;
	return rc;
}

static void release(struct neap_shd_writer *writer)
{
	struct neap__h5_guard guard;
	neap__h5_enter(&guard);
	(void)close_hdf5(writer);
	neap__h5_leave(&guard);
	neap__h5_out_abort(&writer->out);
	free(writer->label);
	free(writer->speaker);
	free(writer->duration);
	free(writer->convert);
	free(writer->path);
	free(writer);
}

int neap_shd_create(struct neap_shd_writer **out, const char *path, int inputs)
{
	NEAP_NEED(out, path);
	struct neap__h5_guard guard;
	*out = NULL;
	if (!path || !*path)
		return neap__fail(NEAP_EUSAGE, "the name of the file to write is empty");
	if (inputs < 1 || inputs > 65536)
		return neap__fail(NEAP_EUSAGE, "'%s': %d channels; it must be between 1 and 65536",
			path, inputs);
	struct neap_shd_writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		return neap__fail_errno(ENOMEM, "cannot write '%s'", path);
	writer->out = (struct neap__h5_out){.fd = -1, .file = -1};
	writer->times = writer->units = -1;
	writer->inputs = inputs;
	writer->path = strdup(path);
	if (!writer->path) {
		release(writer);
		return neap__fail_errno(ENOMEM, "cannot write '%s'", path);
	}
	neap__h5_enter(&guard);
	int rc = create_file(writer);
	neap__h5_leave(&guard);
	if (rc < 0)
		release(writer);
	else
		*out = writer;
	return rc;
}

static int check_events(const struct neap_shd_writer *writer, const struct neap_events *events)
{
	long long sample = (long long)writer->count;
	if (events->label < 0 || events->label > 65535 || events->speaker > 65535)
		return neap__fail(NEAP_EUSAGE,
			"sample %lld: label %d, speaker %d; both must be between 0 and 65535",
			sample, events->label, events->speaker);
	if (events->count < 0 || events->count > UINT32_MAX / 16 ||
		!(events->duration >= 0 && events->duration <= 1e6))
		return neap__fail(NEAP_EUSAGE, "sample %lld: %lld events in %g seconds", sample,
			(long long)events->count, events->duration);
	for (int64_t i = 0; i < events->count; i++)
		if (events->unit[i] >= writer->inputs ||
			!(events->time[i] >= 0 && events->time[i] <= 1e6))
			return neap__fail(NEAP_EUSAGE,
				"sample %lld: unit %d at %g s; units must be below %d and times "
				"between 0 and 1e6 s",
				sample, events->unit[i], events->time[i], writer->inputs);
	return 0;
}

static int grow(struct neap_shd_writer *w, int64_t events)
{
	int64_t want = w->count + 1, labels = w->room, speakers = w->room, durations = w->room;
	if (neap__grow(&w->label, &labels, want, sizeof *w->label) < 0 ||
		neap__grow(&w->speaker, &speakers, want, sizeof *w->speaker) < 0 ||
		neap__grow(&w->duration, &durations, want, sizeof *w->duration) < 0 ||
		neap__grow(&w->convert, &w->convert_room, events, sizeof *w->convert) < 0)
		return failed(w, ENOMEM);
	w->room = labels;
	return 0;
}

/* Appends one row of `n` elements. */
static int append(hid_t set, int64_t row, hid_t base, size_t n, void *data)
{
	hsize_t rows = (hsize_t)row + 1, start = (hsize_t)row, one = 1;
	hvl_t value = {n, data};
	if (H5Dset_extent(set, &rows) < 0)
		return -1;
	hid_t type = H5Tvlen_create(base), file = H5Dget_space(set);
	hid_t memory = H5Screate_simple(1, &one, NULL);
	int rc = H5Sselect_hyperslab(file, H5S_SELECT_SET, &start, NULL, &one, NULL);
	if (rc >= 0)
		rc = H5Dwrite(set, type, memory, file, H5P_DEFAULT, &value);
	H5Sclose(memory);
	H5Sclose(file);
	H5Tclose(type);
	return rc;
}

int neap_shd_add(struct neap_shd_writer *writer, const struct neap_events *events)
{
	NEAP_NEED(writer, events);
	struct neap__h5_guard guard;
	NEAP_TRY(check_events(writer, events));
	size_t n = (size_t)events->count;
	NEAP_TRY(grow(writer, events->count));
	for (size_t i = 0; i < n; i++)
		writer->convert[i] = (float)events->time[i];
	/* Both rows, their heaps' waste, the references. */
	NEAP_TRY(neap__h5_out_reserve(&writer->out, n * 6 + 2 * 4096 + 256));
	neap__h5_enter(&guard);
	errno = 0;
	int rc = append(writer->times, writer->count, H5T_NATIVE_FLOAT, n, writer->convert);
	if (rc >= 0)
		rc = append(writer->units, writer->count, H5T_NATIVE_UINT16, n, events->unit);
	int err = errno;
	neap__h5_leave(&guard);
	if (rc < 0)
		return failed(writer, err);
	writer->label[writer->count] = (uint16_t)events->label;
	writer->speaker[writer->count] = (uint16_t)(events->speaker < 0 ? 0 : events->speaker);
	writer->speakers |= events->speaker >= 0;
	writer->duration[writer->count] = events->duration;
	double end = n > 0 ? events->time[n - 1] : 0;
	writer->longest = fmax(writer->longest, fmax(end, events->duration));
	writer->count++;
	return 0;
}

int neap__shd_leave_out(struct neap_shd_writer *writer, int are_speakers, char **names, int count,
	const unsigned char *used)
{
	uint16_t *of_sample = are_speakers ? writer->speaker : writer->label;
	uint16_t *number = calloc((size_t)count + 1, sizeof *number);
	char **sorted = calloc((size_t)count + 1, sizeof *sorted);
	int kept = 0, rc = number && sorted ? 0 : failed(writer, ENOMEM);

	for (int pass = 1, n = 0; pass >= 0 && rc == 0; pass--)
		for (int i = 0; i < count; i++)
			if ((used[i] != 0) == pass) {
				sorted[n] = names[i];
				number[i] = (uint16_t)n++;
				kept += pass;
			}
	for (int i = 0; i < count && rc == 0; i++)
		names[i] = sorted[i];
	for (int64_t i = 0; i < writer->count && kept < count && rc == 0; i++)
		if (of_sample[i] < count)
			of_sample[i] = number[of_sample[i]];
	free(number);
	free(sorted);
	return rc < 0 ? rc : kept;
}

static int write_attribute(hid_t file, const char *name, double value)
{
	hid_t space = H5Screate(H5S_SCALAR);
	hid_t attribute = H5Acreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT);
	int rc = attribute >= 0 ? H5Awrite(attribute, H5T_NATIVE_DOUBLE, &value) : -1;
	if (attribute >= 0)
		H5Aclose(attribute);
	H5Sclose(space);
	return rc;
}

/* Everything after the spikes; negative when HDF5 failed. */
static int write_rest(struct neap_shd_writer *writer, const char *const *class_names, int classes,
	const char *const *speaker_names, int speakers, const struct neap_attribute *attributes,
	int nattributes)
{
	hid_t file = writer->out.file;
	int64_t n = writer->count;
	int rc = neap__h5_out_vector(
		file, "/labels", H5T_STD_U16LE, H5T_NATIVE_UINT16, n, writer->label);
	if (rc >= 0)
		rc = neap__h5_out_vector(file, "/extra/duration", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE,
			n, writer->duration);
	if (rc >= 0 && writer->speakers)
		rc = neap__h5_out_vector(file, "/extra/speaker", H5T_STD_U16LE, H5T_NATIVE_UINT16,
			n, writer->speaker);
	if (rc >= 0 && classes > 0)
		rc = neap__h5_out_names(file, "/extra/keys", class_names, classes);
	if (rc >= 0 && speakers > 0)
		rc = neap__h5_out_names(file, "/extra/speaker_names", speaker_names, speakers);
	if (rc >= 0)
		rc = write_attribute(file, "inputs", writer->inputs);
	if (rc >= 0)
		rc = write_attribute(file, "longest", writer->longest);
	for (int i = 0; rc >= 0 && i < nattributes; i++)
		rc = write_attribute(file, attributes[i].name, attributes[i].value);
	return rc;
}

int neap_shd_finish(struct neap_shd_writer *writer, const char *const *class_names, int classes,
	const char *const *speaker_names, int speakers, const struct neap_attribute *attributes,
	int nattributes)
{
	NEAP_NEED(writer);
	struct neap__h5_guard guard;
	int rc = 0;
	for (int64_t i = 0; rc == 0 && i < writer->count; i++)
		if (classes > 0 && writer->label[i] >= classes)
			rc = neap__fail(NEAP_EUSAGE,
				"'%s': sample %lld has label %d, but there are %d classes",
				writer->path, (long long)i, writer->label[i], classes);
	if (rc == 0)
		rc = neap__h5_out_reserve(&writer->out,
			(uint64_t)writer->count * 16 + (uint64_t)nattributes * 256 +
				neap__h5_out_text_bytes(class_names, classes) +
				neap__h5_out_text_bytes(speaker_names, speakers) + 65536);
	if (rc < 0) {
		release(writer);
		return rc;
	}
	neap__h5_enter(&guard);
	errno = 0;
	rc = write_rest(
		writer, class_names, classes, speaker_names, speakers, attributes, nattributes);
	int err = errno;
	if (close_hdf5(writer) < 0)
		rc = -1;
	if (rc < 0)
		rc = failed(writer, err ? err : errno);
	neap__h5_leave(&guard);
	if (rc == 0)
		rc = neap__h5_out_commit(&writer->out);
	release(writer);
	return rc;
}

void neap_shd_abort(struct neap_shd_writer *writer)
{
	if (writer)
		release(writer);
}

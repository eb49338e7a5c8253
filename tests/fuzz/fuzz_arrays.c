/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_arrays.c: data sets of arrays. What begins with "PK" is an archive of NumPy; the bytes of
 * any other input choose types, shapes and numbers of an HDF5 file's arrays, which HDF5 writes.
 */
#include "fuzz_files.h"
#include "data/dataset.h"
#include "data/formats/h5.h"
#include "data/step_rows.h"

#include <math.h>
#include <string.h>

enum { MOST = 64 /* numbers of an array that is made, and steps that are read */ };

static double number(struct fuzz_bytes *b)
{
	static const double odd[] = {
		NAN, INFINITY, -1, 0.5, 1e300, 65535, 65536, 2147483648.0, -1e18};
	unsigned v = fuzz_next(b);
	return v < 200 ? v % 8 : odd[v % (sizeof odd / sizeof odd[0])];
}

/* An array of the shape [samples, steps, width], as far as `dims` goes, more often than not. */
static void make(hid_t file, const char *name, const int *shape, int usual, struct fuzz_bytes *b)
{
	static const char *const texts[] = {"a", "b", "", "c", "a"};
	const hid_t kinds[] = {
		H5T_IEEE_F64LE, H5T_STD_I32LE, H5T_STD_U8LE, H5T_IEEE_F32BE, H5T_C_S1};
	unsigned how = fuzz_next(b), dims = how % 8 ? (unsigned)usual : how / 8 % 5;
	hsize_t size[4], chunk[4], count = 1;
	double data[MOST * 4];
	const char *text[MOST * 4];

	if (how == 255)
		return;
	for (unsigned i = 0; i < dims; i++) {
		unsigned odd = fuzz_next(b);
		size[i] = odd < 230 && i < 3 ? (hsize_t)shape[i] : odd % 5;
		chunk[i] = size[i] ? 1 + odd % size[i] : 1;
		count *= size[i];
	}
	if (count > MOST * 4)
		return;
	hid_t kind = H5Tcopy(kinds[fuzz_next(b) % 5]), memory = H5T_NATIVE_DOUBLE;
	int is_text = H5Tget_class(kind) == H5T_STRING;
	if (is_text) {
		H5Tset_size(kind, H5T_VARIABLE);
		memory = kind;
	}
	for (hsize_t i = 0; i < count; i++) {
		data[i] = is_text ? 0 : number(b);
		text[i] = texts[is_text ? fuzz_next(b) % 5 : 0];
	}
	hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
	hid_t space = dims ? H5Screate_simple((int)dims, size, NULL) : H5Screate(H5S_SCALAR);
	if (dims && fuzz_next(b) % 2)
		H5Pset_chunk(creation, (int)dims, chunk);
	hid_t set = H5Dcreate2(file, name, kind, space, H5P_DEFAULT, creation, H5P_DEFAULT);
	if (set >= 0 && count)
		H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT,
			is_text ? (const void *)text : data);
	if (set >= 0)
		H5Dclose(set);
	H5Sclose(space);
	H5Pclose(creation);
	H5Tclose(kind);
}

static void make_file(const char *path, struct fuzz_bytes *b)
{
	struct neap__h5_guard guard;
	unsigned which = fuzz_next(b);
	const int shape[3] = {(int)(1 + fuzz_next(b) % 4), (int)(1 + fuzz_next(b) % 6),
		(int)(1 + fuzz_next(b) % 3)};

	neap__h5_enter(&guard);
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	FUZZ_CHECK(file >= 0, "HDF5 makes no file");
	make(file, "x", shape, 3, b);
	if (which & 1)
		make(file, "lengths", shape, 1, b);
	if (which & 2)
		make(file, "mask", shape, 2, b);
	if (which & 4)
		make(file, "y", shape, 1 + (int)(which / 16 % 3), b);
	if (which & 8)
		make(file, "classes", shape, 1, b);
	H5Fclose(file);
	neap__h5_leave(&guard);
}

/* Reads what a loader would read of a sample. */
static void read_sample(struct neap_dataset *set, const struct neap_dataset_info *info, int64_t i)
{
	int64_t length = neap__steps_of(set, i, 0), width = info->classes > 0 ? info->classes : 1;
	FUZZ_CHECK(length > 0 && length <= info->steps, "sample %lld: %lld steps", (long long)i,
		(long long)length);
	if (info->target == NEAP_TARGET_LABEL && info->classes > 0)
		FUZZ_CHECK(neap_dataset_label(set, i) < info->classes, "a label");
	length = length < MOST ? length : MOST;
	if (info->inputs > 4096 || width > 4096)
		return;
	float *values = calloc((size_t)(length * info->inputs), sizeof *values);
	float *series = calloc((size_t)(length * width), sizeof *series);
	int32_t labels[MOST];
	FUZZ_CHECK(values && series, "memory");
	fuzz_line(neap__step_values(set, i, 0, length, values));
	if (neap__has_step_targets(set)) {
		int rc = neap__step_targets(set, i, 0, length, labels, series);
		fuzz_line(rc);
		for (int64_t t = 0; rc == 0 && info->target == NEAP_TARGET_LABELS && t < length;
			t++)
			FUZZ_CHECK(labels[t] >= -1 && labels[t] < info->classes, "a label");
	}
	free(values);
	free(series);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int npz = size >= 2 && memcmp(data, "PK", 2) == 0;
	const char *path = fuzz_path(npz ? "arrays.npz" : "arrays.h5");
	struct fuzz_bytes bytes = {data, size};
	struct neap_dataset *set;
	struct neap_dataset_info info = {.size = sizeof info};

	if (npz)
		fuzz_write(path, data, size);
	else
		make_file(path, &bytes);
	int rc = neap_dataset_open(&set, path);
	fuzz_line(rc);
	if (rc < 0)
		return 0;
	FUZZ_CHECK(neap_dataset_info(set, &info) == 0 && info.samples > 0 && info.values, "info");
	for (int64_t i = 0; i < info.samples && i < 8; i++)
		read_sample(set, &info, i);
	neap_dataset_close(set);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5_arrays.c: the arrays of an HDF5 file, in its root (arrays.h). Integers, reals, bool as h5py
 * writes it (an enum of a byte), texts. Parts are read as they are asked for; HDF5 keeps the chunks
 * that it unpacked last.
 */
#include "data/formats/arrays.h"
#include "data/dataset.h"
#include "data/formats/h5.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_ARRAYS = 8, CHUNK_CACHE = 1 << 20 };

struct h5_arrays {
	struct neap__array_file file;
	struct neap__h5_file h5;
	struct neap__h5_set set[MOST_ARRAYS];
	char name[MOST_ARRAYS][32];
	int sets;
};

static int is_bool(hid_t type)
{
	return H5Tget_class(type) == H5T_ENUM && H5Tget_size(type) == 1;
}

/* Bytes of a chunk of the data set, 0 where it has none. */
static size_t chunk_bytes(const struct neap__h5_set *set)
{
	hsize_t sides[NEAP__H5_DIMS], count = 1;

	if (H5Pget_layout(set->creation) != H5D_CHUNKED ||
		H5Pget_chunk(set->creation, set->dims, sides) != set->dims)
		return 0;
	for (int i = 0; i < set->dims; i++)
		count *= sides[i];
	return (size_t)count * H5Tget_size(set->type);
}

static int describe(struct h5_arrays *a, const struct neap__h5_set *set, struct neap__array *array)
{
	H5T_class_t kind = H5Tget_class(set->type);

	array->there = 1;
	array->dims = set->dims;
	if (set->count > INT64_MAX / 16)
		return neap__fail(
			NEAP_EFORMAT, "'%s': '%s' is too large", a->file.path, array->name);
	array->count = (int64_t)set->count;
	for (int i = 0; i < set->dims; i++)
		array->size[i] = (int64_t)set->size[i];
	array->number = a->sets;
	if (kind == H5T_STRING)
		array->kind = NEAP__ARRAY_TEXTS;
	else if (kind == H5T_FLOAT)
		array->kind = NEAP__ARRAY_REALS;
	else if (kind == H5T_INTEGER || is_bool(set->type))
		array->kind = NEAP__ARRAY_INTEGERS;
	else
		return neap__fail(NEAP_EFORMAT, "'%s': '%s' contains neither numbers nor text",
			a->file.path, array->name);
	return 0;
}

/*
 * A chunk of many samples is unpacked as a whole for each of them, since samples are read in random
 * order: HDF5 keeps the last few chunks only.
 */
static void look_at_chunks(struct h5_arrays *a, const struct neap__h5_set *set, const char *name)
{
	hsize_t sides[NEAP__H5_DIMS];
	size_t bytes = H5Tget_size(set->type);

	if (strcmp(name, "x") != 0 || set->dims < 2 || H5Pget_nfilters(set->creation) < 1 ||
		H5Pget_chunk(set->creation, set->dims, sides) != set->dims || sides[0] < 2 ||
		set->count <= CHUNK_CACHE / bytes)
		return;
	neap__print(a->file.slow, sizeof a->file.slow,
		"'%.60s': a chunk of its 'x' holds %llu samples and is unpacked for each of them: "
		"h5repack -l x:CHUNK=1x%llu%s%.0llu makes a file that is read faster",
		a->file.path, (unsigned long long)sides[0], (unsigned long long)set->size[1],
		set->dims > 2 ? "x" : "", (unsigned long long)(set->dims > 2 ? set->size[2] : 0));
}

static int find(struct h5_arrays *a, struct neap__array *array)
{
	struct neap__h5_set *set = &a->set[a->sets];
	char *name = a->name[a->sets];
	size_t chunk;
	int there;

	if (a->sets == MOST_ARRAYS)
		return neap__fail(NEAP_EFORMAT, "'%s': too many arrays", a->file.path);
	neap__print(name, sizeof a->name[0], "/%s", array->name);
	NEAP_TRY(there = neap__h5_has(&a->h5, name));
	array->there = 0;
	if (!there)
		return 0;
	NEAP_TRY(neap__h5_block_open(set, &a->h5, name));
	int rc = describe(a, set, array);
	if (rc < 0) {
		neap__h5_set_close(set);
		return rc;
	}
	look_at_chunks(a, set, array->name);
	a->sets++;
	chunk = chunk_bytes(set);
	a->file.read_bytes += 2 * chunk + (chunk ? CHUNK_CACHE : 0);
	return 0;
}

static int h5_find(struct neap__array_file *file, const char *name, struct neap__array *array)
{
	struct neap__h5_guard guard;
	(void)name;
	neap__h5_enter(&guard);
	int rc = find((struct h5_arrays *)file, array);
	neap__h5_leave(&guard);
	return rc;
}

/* Reads a bool's bytes as they are; they are made numbers from the end on. */
static int read_block(
	const struct neap__h5_set *set, hid_t memory, hid_t space, double *numbers, int64_t count)
{
	if (!is_bool(set->type))
		return H5Dread(set->id, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, numbers);
	unsigned char *bytes = (unsigned char *)numbers;
	if (H5Dread(set->id, set->type, memory, space, H5P_DEFAULT, bytes) < 0)
		return -1;
	for (int64_t i = count - 1; i >= 0; i--) {
		unsigned char one = bytes[i];
		numbers[i] = one;
	}
	return 0;
}

static int read_numbers(struct h5_arrays *a, const struct neap__array *array, int64_t at,
	int64_t count, double *numbers)
{
	const struct neap__h5_set *set = &a->set[array->number];
	hsize_t start[3] = {0, 0, 0}, size[3] = {1, 1, 1}, all = (hsize_t)count;
	hsize_t first = (hsize_t)at;

	if (set->dims == 3) { /* whole rows of one sample */
		start[0] = first / (set->size[1] * set->size[2]);
		start[1] = first / set->size[2] % set->size[1];
		size[1] = all / set->size[2];
		size[2] = set->size[2];
	} else if (set->dims == 2) {
		start[0] = first / set->size[1];
		start[1] = first % set->size[1];
		size[1] = all;
	} else {
		start[0] = first;
		size[0] = all;
	}
	hid_t space = H5Dget_space(set->id), memory = H5Screate_simple(1, &all, NULL);
	int bad = space < 0 || memory < 0 ||
		  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL) < 0 ||
		  read_block(set, memory, space, numbers, count) < 0;
	if (memory >= 0)
		H5Sclose(memory);
	if (space >= 0)
		H5Sclose(space);
	return bad ? neap__fail(NEAP_EFORMAT, "'%s': '%s' cannot be read; the file is damaged",
			     a->file.path, array->name)
		   : 0;
}

static int h5_read(struct neap__array_file *file, const struct neap__array *array, int64_t at,
	int64_t count, double *numbers)
{
	struct neap__h5_guard guard;
	neap__h5_enter(&guard);
	int rc = read_numbers((struct h5_arrays *)file, array, at, count, numbers);
	neap__h5_leave(&guard);
	return rc;
}

static int h5_texts(struct neap__array_file *file, const struct neap__array *array, int most,
	char ***texts, int *count)
{
	struct h5_arrays *a = (struct h5_arrays *)file;
	struct neap__h5_guard guard;
	neap__h5_enter(&guard);
	int rc = neap__h5_strings(&a->h5, a->name[array->number], most, texts, count);
	neap__h5_leave(&guard);
	return rc;
}

static void close_all(struct h5_arrays *a)
{
	for (int i = 0; i < a->sets; i++)
		neap__h5_set_close(&a->set[i]);
	neap__h5_close(&a->h5);
	free(a->file.path);
	free(a);
}

static void h5_close(struct neap__array_file *file)
{
	struct neap__h5_guard guard;
	neap__h5_enter(&guard);
	close_all((struct h5_arrays *)file);
	neap__h5_leave(&guard);
}

static const struct neap__array_file_ops ops = {h5_find, h5_read, h5_texts, h5_close};

/* Opens an HDF5 file for its arrays. */
static int open_arrays(struct neap__array_file **out, const char *path)
{
	struct h5_arrays *a = calloc(1, sizeof *a);
	char *copy = strdup(path);
	struct neap__h5_guard guard;

	if (!a || !copy) {
		free(a);
		free(copy);
		return neap__fail_errno(ENOMEM, "%s", path);
	}
	a->file = (struct neap__array_file){.ops = &ops, .path = copy};
	neap__h5_enter(&guard);
	int rc = neap__h5_open(&a->h5, copy);
	neap__h5_leave(&guard);
	if (rc < 0) {
		free(a);
		free(copy);
		return rc;
	}
	*out = &a->file;
	return 0;
}

/* What a trial opens, and what was found. */
struct probe {
	const char *path;
	int has_rows; /* 1: an array x of steps, as array_set.c reads */
};

static void probe_file(void *arg)
{
	struct probe *p = arg;
	struct neap__h5_guard guard;
	struct neap__h5_file file;
	struct neap__h5_set set;

	neap__h5_enter(&guard);
	if (neap__h5_open(&file, p->path) == 0) {
		if (neap__h5_has(&file, "/x") == 1) {
			int rc = neap__h5_block_open(&set, &file, "/x");
			/* One that is packed by an unknown filter is refused by this format. */
			p->has_rows = set.dims > 1 && (rc == 0 || set.elsewhere);
			if (rc == 0)
				neap__h5_set_close(&set);
		}
		neap__h5_close(&file);
	}
	neap__h5_leave(&guard);
}

static int takes_h5_arrays(const char *name)
{
	static const char signature[] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
	char found[sizeof signature];
	struct stat st;
	struct probe probe = {name, 0};

	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return 0;
	int is = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		 pread(fd, found, sizeof found, 0) == (ssize_t)sizeof found &&
		 memcmp(found, signature, sizeof found) == 0;
	close(fd);
	/* A file that ends HDF5 is left to the format that refuses it. */
	if (!is || neap__data_try(probe_file, &probe) != 0)
		return 0;
	probe_file(&probe);
	return probe.has_rows;
}

static int open_set(struct neap_dataset **set, const char *path)
{
	struct neap__array_file *file = NULL;
	NEAP_TRY(open_arrays(&file, path));
	return neap__array_set_open(set, file);
}

static void try_open(void *path)
{
	struct neap_dataset *set;
	(void)open_set(&set, path);
}

static int h5_arrays_open(struct neap_dataset **set, const char *path)
{
	/* HDF5 1.10 may crash where the structures of a file are damaged. */
	int died = neap__data_try(try_open, (void *)(uintptr_t)path);
	if (died)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is damaged: reading it crashed HDF5 (signal %d). Copy or write it "
			"again",
			path, died);
	return open_set(set, path);
}

const struct neap__dataset_format neap__format_h5_arrays = {
	"h5_arrays", takes_h5_arrays, h5_arrays_open};

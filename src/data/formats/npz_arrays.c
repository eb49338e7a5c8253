/* SPDX-License-Identifier: Apache-2.0 */
/* npz_arrays.c: the arrays of a NumPy archive (.npz), as data sets of numbers have them (arrays.h).
 */
#include "data/formats/arrays.h"
#include "data/formats/contents.h"
#include "data/dataset.h"
#include "data/missing_file.h"
#include "data/npy/npz.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ARRAYS = 8, READING = 1 << 20 };

struct npz_arrays {
	struct neap__array_file file;
	struct neap__npz *archive;
	struct neap__npy *array[MOST_ARRAYS];
	int arrays;
};

static int describe(const struct npz_arrays *a, struct neap__npy *npy, struct neap__array *array)
{
	const struct neap__npy_header *h = neap__npy_shape(npy);
	enum neap__npy_kind kind = h->field[0].kind;

	if (h->records || h->dims < 1 || h->dims > NEAP__ARRAY_DIMS)
		return neap__fail(NEAP_EFORMAT,
			"'%s': '%s' has %d dimensions, but must have one to three. Reshape it",
			a->file.path, array->name, h->dims);
	if (h->count > INT64_MAX / 16)
		return neap__fail(
			NEAP_EFORMAT, "'%s': '%s' is too large", a->file.path, array->name);
	array->there = 1;
	array->dims = h->dims;
	array->count = h->count;
	memcpy(array->size, h->shape, (size_t)h->dims * sizeof h->shape[0]);
	array->number = a->arrays;
	array->kind = kind == NEAP__NPY_FLOAT				  ? NEAP__ARRAY_REALS
		      : kind == NEAP__NPY_BYTES || kind == NEAP__NPY_UCS4 ? NEAP__ARRAY_TEXTS
									  : NEAP__ARRAY_INTEGERS;
	return 0;
}

static int npz_find(struct neap__array_file *file, const char *name, struct neap__array *array)
{
	struct npz_arrays *a = (struct npz_arrays *)file;
	struct neap__npy *npy;

	array->there = 0;
	if (!neap__npz_has(a->archive, name))
		return 0;
	if (a->arrays == MOST_ARRAYS)
		return neap__fail(NEAP_EFORMAT, "'%s': too many arrays", a->file.path);
	NEAP_TRY(neap__npz_array(&npy, a->archive, name));
	int rc = describe(a, npy, array);
	if (rc < 0)
		neap__npy_close(npy);
	else
		a->array[a->arrays++] = npy;
	return rc;
}

static int npz_read(struct neap__array_file *file, const struct neap__array *array, int64_t at,
	int64_t count, double *numbers)
{
	struct npz_arrays *a = (struct npz_arrays *)file;
	return neap__npy_doubles(a->array[array->number], 0, at, count, numbers);
}

static int npz_texts(struct neap__array_file *file, const struct neap__array *array, int most,
	char ***texts, int *count)
{
	struct npz_arrays *a = (struct npz_arrays *)file;
	return neap__npy_strings(a->array[array->number], most, texts, count);
}

static void npz_close(struct neap__array_file *file)
{
	struct npz_arrays *a = (struct npz_arrays *)file;
	for (int i = 0; i < a->arrays; i++)
		neap__npy_close(a->array[i]);
	if (a->archive)
		neap__npz_close(a->archive);
	free(a->file.path);
	free(a);
}

static const struct neap__array_file_ops ops = {npz_find, npz_read, npz_texts, npz_close};

/* Whether the archive has an array x of steps; its other kinds are of other formats. */
static int has_rows(struct neap__npz *archive)
{
	struct neap__npy *x;
	int rows = 0;

	if (!neap__npz_has(archive, "x") || neap__npz_array(&x, archive, "x") < 0)
		return 0;
	rows = neap__npy_shape(x)->dims > 1 && neap__npy_shape(x)->dims <= NEAP__ARRAY_DIMS;
	neap__npy_close(x);
	return rows;
}

/* One array (.npy) is no data set: the line that refuses it names what it lacks. */
static int takes_npz_arrays(const char *name)
{
	size_t n = strlen(name);
	return n >= 4 && (strcmp(name + n - 4, ".npz") == 0 || strcmp(name + n - 4, ".npy") == 0);
}

/* What keeps the file from being a data set: text that follows its name; NULL: nothing. */
static const char *problem_of(struct neap__npz *archive, const struct neap__contents *contents)
{
	static const char *const names[] = {"x", "y", "lengths", "mask", "classes"};
	for (int i = 0; i < contents->count; i++)
		for (size_t k = 0; k < sizeof names / sizeof *names; k++)
			if (contents->item[i].object &&
				strcmp(contents->item[i].name, names[k]) == 0)
				return "has an array of Python objects (dtype object), which are "
				       "not read";
	return has_rows(archive)
		       ? NULL
		       : "has no array 'x' of rows of numbers, (samples, steps, features)";
}

static int npz_arrays_open(struct neap_dataset **set, const char *path)
{
	struct npz_arrays *a = calloc(1, sizeof *a);
	char *copy = strdup(path);

	if (!a || !copy) {
		free(a);
		free(copy);
		return neap__fail_errno(ENOMEM, "%s", path);
	}
	a->file = (struct neap__array_file){.ops = &ops, .path = copy, .read_bytes = READING};
	int rc = access(path, F_OK) < 0 && errno == ENOENT ? neap__missing_file(ENOENT, path)
		 : strcmp(path + strlen(path) - 4, ".npy") == 0
			 ? neap__contents_refuse(path, "is one array, not a data set")
			 : neap__npz_open(&a->archive, copy);
	if (rc < 0) {
		a->archive = NULL;
		npz_close(&a->file);
		return rc;
	}
	struct neap__contents contents;
	neap__contents_list(&contents, path);
	const char *problem = problem_of(a->archive, &contents);
	if (problem) {
		npz_close(&a->file);
		return neap__contents_refuse(path, problem);
	}
	return neap__array_set_open(set, &a->file);
}

const struct neap__dataset_format neap__format_npz_arrays = {
	"npz_arrays", takes_npz_arrays, npz_arrays_open};

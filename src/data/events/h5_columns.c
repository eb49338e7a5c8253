/* SPDX-License-Identifier: Apache-2.0 */
/* h5_columns.c: one-dimensional data sets of an HDF5 file, in the root or in groups. */
#include "data/event_names.h"
#include "data/events/columns.h"
#include "data/dataset.h"
#include "data/formats/h5.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct h5_columns {
	struct neap__columns columns;
	struct neap__h5_file file;
};

static int open_set(struct h5_columns *c, const char *name, struct neap__column *column)
{
	struct neap__h5_set *set = malloc(sizeof *set);
	if (!set)
		return neap__fail_errno(ENOMEM, "'%s'", c->columns.path);
	int rc = neap__h5_set_open(set, &c->file, name);
	if (rc < 0) {
		free(set);
		return rc;
	}
	H5T_class_t kind = H5Tget_class(set->type);
	*column = (struct neap__column){.count = (int64_t)set->count,
		.real = kind == H5T_FLOAT,
		.text = kind == H5T_STRING,
		.array = set};
	/* h5py keeps booleans as an enumeration of one byte. */
	if (column->real || column->text || kind == H5T_INTEGER || kind == H5T_ENUM)
		return 1;
	rc = neap__fail(NEAP_EFORMAT,
		"'%s': '%s' contains neither numbers nor text. Save it as numbers", c->columns.path,
		name);
	neap__h5_set_close(set);
	free(set);
	return rc;
}

static int find(struct neap__columns *columns, const char *name, struct neap__column *column)
{
	struct h5_columns *c = (struct h5_columns *)columns;
	struct neap__h5_guard guard;
	char full[96];
	memset(column, 0, sizeof *column);
	neap__print(full, sizeof full, "/%s", name);
	neap__h5_enter(&guard);
	int rc = neap__h5_has(&c->file, full);
	if (rc > 0)
		rc = open_set(c, full, column);
	neap__h5_leave(&guard);
	return rc;
}

static int read_set(const struct neap__h5_set *set, hsize_t first, hsize_t count, double *out)
{
	hid_t file = H5Dget_space(set->id), memory = H5Screate_simple(1, &count, NULL);
	hid_t type = H5Tget_class(set->type) == H5T_ENUM ? H5Tget_super(set->type) : -1;
	int rc = file >= 0 && memory >= 0 &&
				 H5Sselect_hyperslab(
					 file, H5S_SELECT_SET, &first, NULL, &count, NULL) >= 0
			 ? 0
			 : -1;
	if (rc == 0 && type < 0)
		rc = H5Dread(set->id, H5T_NATIVE_DOUBLE, memory, file, H5P_DEFAULT, out) < 0;
	else if (rc == 0) { /* an enumeration is no number to HDF5: read as it is stored */
		size_t bytes = H5Tget_size(set->type);
		rc = bytes != 1 || H5Dread(set->id, set->type, memory, file, H5P_DEFAULT, out) < 0;
		for (hsize_t i = count; rc == 0 && i-- > 0;)
			out[i] = ((const unsigned char *)out)[i];
	}
	if (type >= 0)
		H5Tclose(type);
	if (memory >= 0)
		H5Sclose(memory);
	if (file >= 0)
		H5Sclose(file);
	return rc;
}

static int read_part(struct neap__columns *columns, const struct neap__column *column,
	int64_t first, int64_t count, double *out)
{
	struct neap__h5_guard guard;
	if (column->text)
		return neap__fail(NEAP_EFORMAT,
			"'%s' contains text in an array that must be numbers. Save it as numbers",
			columns->path);
	if (count == 0)
		return 0;
	neap__h5_enter(&guard);
	int rc = read_set(column->array, (hsize_t)first, (hsize_t)count, out);
	neap__h5_leave(&guard);
	return rc ? neap__fail(NEAP_EFORMAT,
			    "'%s' is damaged: a data set cannot be read. Copy or "
			    "write it again",
			    columns->path)
		  : 0;
}

static void shut(struct neap__columns *columns, struct neap__column *column)
{
	struct neap__h5_guard guard;
	(void)columns;
	neap__h5_enter(&guard);
	neap__h5_set_close(column->array);
	neap__h5_leave(&guard);
	free(column->array);
	column->array = NULL;
}

static int texts(struct neap__columns *columns, const char *name, int most, char ***out, int *count)
{
	struct h5_columns *c = (struct h5_columns *)columns;
	struct neap__h5_guard guard;
	char full[96];
	neap__print(full, sizeof full, "/%s", name);
	neap__h5_enter(&guard);
	int rc = neap__h5_strings(&c->file, full, most, out, count);
	neap__h5_leave(&guard);
	return rc;
}

static void close_all(struct neap__columns *columns)
{
	struct neap__h5_guard guard;
	neap__h5_enter(&guard);
	neap__h5_close(&((struct h5_columns *)columns)->file);
	neap__h5_leave(&guard);
	free(columns);
}

/* Opens the sets of these names behind a prefix, as far as there are any. */
static void try_names(struct h5_columns *c, const char *prefix, const char *const *names)
{
	struct neap__column column;
	char full[96];
	for (; *names; names++) {
		neap__print(full, sizeof full, "/%s%s", prefix, *names);
		if (neap__h5_has(&c->file, full) > 0)
			(void)open_set(c, full, &column);
	}
}

static void try_open(void *arg)
{
	static const char *const others[] = {
		"offsets", "labels", "classes", "sensor_size", "inputs", NULL};
	struct h5_columns *c = arg;
	if (neap__h5_open(&c->file, c->columns.path) < 0)
		return;
	try_names(c, "", others);
	for (const char *const *prefix = neap__event_prefixes; *prefix; prefix++)
		for (int k = 0; k < NEAP__EVENT_COLUMNS; k++)
			try_names(c, *prefix, neap__event_names[k]);
}

int neap__h5_columns_open(struct neap__columns **columns, const char *path)
{
	struct neap__h5_guard guard;
	struct h5_columns *c = calloc(1, sizeof *c);
	if (!c)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	c->columns = (struct neap__columns){path, find, read_part, texts, shut, close_all};
	neap__h5_enter(&guard);
	int died = neap__data_try(try_open, c);
	int rc = died ? neap__fail(NEAP_EFORMAT,
				"'%s' is damaged: reading it crashed HDF5 (signal %d). Copy or "
				"write it again",
				path, died)
		      : neap__h5_open(&c->file, path);
	neap__h5_leave(&guard);
	if (rc < 0)
		free(c);
	else
		*columns = &c->columns;
	return rc;
}

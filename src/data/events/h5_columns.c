/* SPDX-License-Identifier: Apache-2.0 */
/* h5_columns.c: one-dimensional data sets of an HDF5 file and scalars, in the root or in groups, or
 * fields of records in such a data set. */
#include "data/event_names.h"
#include "data/events/columns.h"
#include "data/dataset.h"
#include "data/formats/h5.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_PIXELS = 65536 };

struct h5_columns {
	struct neap__columns columns;
	struct neap__h5_file file;
	int *size; /* of the sensor, while the file is opened */
};

/* The kind of a column of this type, or of this field of records. 1 or NEAP_EFORMAT. */
static int take_kind(
	struct h5_columns *c, const char *name, struct neap__column *column, hid_t type)
{
	H5T_class_t kind = H5Tget_class(type);
	column->real = kind == H5T_FLOAT;
	column->text = kind == H5T_STRING;
	/* h5py keeps booleans as an enumeration of one byte. */
	if (column->real || column->text || kind == H5T_INTEGER || kind == H5T_ENUM)
		return 1;
	return neap__fail(NEAP_EFORMAT,
		"'%s': '%s' contains neither numbers nor text. Save it as numbers", c->columns.path,
		name);
}

/* Opens a data set, or the field of one of records, which is -1 if they are no records. */
static int open_set(
	struct h5_columns *c, const char *name, const char *field, struct neap__column *column)
{
	struct neap__h5_set *set = malloc(sizeof *set);
	if (!set)
		return neap__fail_errno(ENOMEM, "'%s'", c->columns.path);
	int rc = neap__h5_list_open(set, &c->file, name);
	if (rc < 0) {
		c->columns.unreadable |= set->elsewhere;
		free(set);
		return rc;
	}
	*column = (struct neap__column){.count = (int64_t)set->count,
		.array = set,
		.field = field ? H5Tget_member_index(set->type, field) : -1};
	hid_t type =
		field ? H5Tget_member_type(set->type, (unsigned)column->field) : H5Tcopy(set->type);
	rc = take_kind(c, name, column, type);
	H5Tclose(type);
	if (rc < 0) {
		neap__h5_set_close(set);
		free(set);
	}
	return rc;
}

/* 1: the data set holds records with this field. */
static int has_field(const struct neap__h5_file *file, const char *name, const char *field)
{
	hid_t set = H5Dopen2(file->id, name, H5P_DEFAULT);
	hid_t type = set >= 0 ? H5Dget_type(set) : -1;
	int has = type >= 0 && H5Tget_class(type) == H5T_COMPOUND &&
		  H5Tget_member_index(type, field) >= 0;
	if (type >= 0)
		H5Tclose(type);
	if (set >= 0)
		H5Dclose(set);
	return has;
}

static int find_guarded(struct h5_columns *c, const char *name, struct neap__column *column)
{
	char full[96], *field;
	neap__print(full, sizeof full, "/%s", name);
	int rc = neap__h5_has(&c->file, full);
	if (rc > 0)
		return open_set(c, full, NULL, column);
	field = strrchr(full, '/');
	if (rc < 0 || field == full)
		return rc;
	*field++ = '\0';
	rc = neap__h5_has(&c->file, full);
	return rc > 0 && has_field(&c->file, full, field) ? open_set(c, full, field, column)
	       : rc < 0					  ? rc
							  : 0;
}

static int find(struct neap__columns *columns, const char *name, struct neap__column *column)
{
	struct neap__h5_guard guard;
	memset(column, 0, sizeof *column);
	neap__h5_enter(&guard);
	int rc = find_guarded((struct h5_columns *)columns, name, column);
	neap__h5_leave(&guard);
	return rc;
}

/* The type of a number in memory: a double, or an enumeration as it is stored, of one byte, since
   it is no number to HDF5. */
static hid_t number_type(hid_t stored, size_t *bytes)
{
	int is_enum = H5Tget_class(stored) == H5T_ENUM;
	*bytes = is_enum ? H5Tget_size(stored) : sizeof(double);
	return *bytes == 1 || !is_enum ? H5Tcopy(is_enum ? stored : H5T_NATIVE_DOUBLE) : -1;
}

/* The type of a column in memory, -1 if there is none: a number, or a record of this number. */
static hid_t memory_type(const struct neap__h5_set *set, int field, size_t *bytes)
{
	if (field < 0)
		return number_type(set->type, bytes);
	hid_t stored = H5Tget_member_type(set->type, (unsigned)field), type = -1;
	char *name = H5Tget_member_name(set->type, (unsigned)field);
	hid_t number = stored >= 0 ? number_type(stored, bytes) : -1;
	if (name && number >= 0 && (type = H5Tcreate(H5T_COMPOUND, *bytes)) >= 0)
		H5Tinsert(type, name, 0, number);
	H5free_memory(name);
	if (number >= 0)
		H5Tclose(number);
	if (stored >= 0)
		H5Tclose(stored);
	return type;
}

/* 1: a number of an enumeration is signed, as in {OFF: -1, ON: 1}. */
static int is_signed_enum(const struct neap__h5_set *set, int field)
{
	hid_t stored =
		field < 0 ? H5Tcopy(set->type) : H5Tget_member_type(set->type, (unsigned)field);
	hid_t number = stored >= 0 && H5Tget_class(stored) == H5T_ENUM ? H5Tget_super(stored) : -1;
	int found = number >= 0 && H5Tget_sign(number) == H5T_SGN_2;
	if (number >= 0)
		H5Tclose(number);
	if (stored >= 0)
		H5Tclose(stored);
	return found;
}

static int read_set(const struct neap__column *column, hsize_t first, hsize_t count, double *out)
{
	const struct neap__h5_set *set = column->array;
	size_t bytes = 0;
	int is_signed = is_signed_enum(set, column->field);
	hid_t file = H5Dget_space(set->id), memory = H5Screate_simple(1, &count, NULL);
	hid_t type = memory_type(set, column->field, &bytes);
	/* A scalar has no hyperslabs, and is selected as a whole. */
	int rc = file >= 0 && memory >= 0 && type >= 0 &&
				 (set->dims == 0 || H5Sselect_hyperslab(file, H5S_SELECT_SET,
							    &first, NULL, &count, NULL) >= 0) &&
				 H5Dread(set->id, type, memory, file, H5P_DEFAULT, out) >= 0
			 ? 0
			 : -1;
	for (hsize_t i = count; rc == 0 && bytes == 1 && i-- > 0;)
		out[i] = is_signed ? (double)((const signed char *)out)[i]
				   : (double)((const unsigned char *)out)[i];
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
	int rc = read_set(column, (hsize_t)first, (hsize_t)count, out);
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

/*
 * The size of the sensor in the attribute `geometry` of the root, "1280x720", to size[2]. It may be
 * a text of variable length, whose length HDF5 1.10 trusts; so only the trial reads it.
 */
static void read_geometry(hid_t file, int size[2])
{
	char text[32] = "", *variable = NULL, *end;
	if (H5Aexists(file, "geometry") <= 0)
		return;
	hid_t attribute = H5Aopen(file, "geometry", H5P_DEFAULT);
	hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
	int is_text = H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1;
	if (is_text && H5Tis_variable_str(type) > 0 && H5Aread(attribute, type, &variable) >= 0)
		neap__print(text, sizeof text, "%s", variable ? variable : "");
	else if (is_text && H5Tget_size(type) < sizeof text)
		H5Aread(attribute, type, text);
	long width = strtol(text, &end, 10), height = *end == 'x' ? strtol(end + 1, &end, 10) : 0;
	if (width < 1 || width > MOST_PIXELS || height < 1 || height > MOST_PIXELS || *end)
		return;
	size[0] = (int)width;
	size[1] = (int)height;
}

/* Opens the arrays of these names behind a prefix, as far as there are any. */
static void try_names(struct h5_columns *c, const char *prefix, const char *const *names)
{
	struct neap__column column;
	char full[96];
	for (; *names; names++) {
		neap__print(full, sizeof full, "%s%s", prefix, *names);
		(void)find_guarded(c, full, &column);
	}
}

static void try_open(void *arg)
{
	static const char *const others[] = {"offsets", "labels", "classes", "sensor_size",
		"inputs", "train_labels", "test_labels", NULL};
	struct h5_columns *c = arg;
	if (neap__h5_open(&c->file, c->columns.path) < 0)
		return;
	try_names(c, "", others);
	for (const char *const *prefix = neap__event_prefixes; *prefix; prefix++)
		for (int k = 0; k < NEAP__EVENT_COLUMNS; k++)
			try_names(c, *prefix, neap__event_names[k]);
	if (c->size)
		read_geometry(c->file.id, c->size);
}

int neap__h5_columns_open(struct neap__columns **columns, const char *path)
{
	struct neap__h5_guard guard;
	struct h5_columns *c = calloc(1, sizeof *c);
	if (!c)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	c->columns = (struct neap__columns){.path = path,
		.find = find,
		.read = read_part,
		.texts = texts,
		.shut = shut,
		.close = close_all};
	/* The trial may be another process: memory that both have. */
	void *shared = mmap(NULL, 2 * sizeof *c->size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	c->size = shared == MAP_FAILED ? NULL : shared;
	neap__h5_enter(&guard);
	int died = neap__data_try(try_open, c);
	int rc = died ? neap__fail(NEAP_EFORMAT,
				"'%s' is damaged: reading it crashed HDF5 (signal %d). Copy or "
				"write it again",
				path, died)
		      : neap__h5_open(&c->file, path);
	neap__h5_leave(&guard);
	if (c->size) {
		c->columns.width = c->size[0];
		c->columns.height = c->size[1];
		munmap(c->size, 2 * sizeof *c->size);
	}
	if (rc < 0)
		free(c);
	else
		*columns = &c->columns;
	return rc;
}

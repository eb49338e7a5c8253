/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npz_columns.c: one-dimensional arrays of a .npz archive, fields of records among them, and single
 * numbers and texts, as numpy.savez(..., inputs=20) saves them, which are read as arrays of one; or
 * the fields of the one array of records of a .npy file.
 */
#include "data/events/columns.h"
#include "data/npy/npz.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct npz_columns {
	struct neap__columns columns;
	struct neap__npz *archive; /* NULL: a .npy file */
};

/* Refuses an array of several dimensions, or of records where plain numbers are expected. */
static int refuse(const struct npz_columns *c, struct neap__npy *array, const char *name)
{
	const struct neap__npy_header *h = neap__npy_shape(array);
	const char *key = neap__python_quoted(name);
	int rc;
	if (!c->archive || strchr(name, '/'))
		rc = neap__fail(NEAP_EFORMAT,
			"%s has %d dimensions, but must have one. Save it with .ravel()",
			neap__npy_where(array), h->dims);
	else if (h->records)
		rc = neap__fail(NEAP_EFORMAT,
			"%s contains records, but must be a plain array. Save its fields as arrays "
			"of their own: python3 -c \"import numpy; d = dict(numpy.load(%s)); r = "
			"d.pop(%s); numpy.savez('neap.npz', **{**d, **{k: r[k] for k in "
			"r.dtype.names}})\"",
			neap__npy_where(array), neap__python_quoted(c->columns.path), key);
	else
		rc = neap__fail(NEAP_EFORMAT,
			"%s has %d dimensions, but must have one. Save all arrays with one: "
			"python3 -c \"import numpy; d = numpy.load(%s); numpy.savez('neap.npz', "
			"**{k: d[k].ravel() for k in d})\"",
			neap__npy_where(array), h->dims, neap__python_quoted(c->columns.path));
	neap__npy_close(array);
	return rc;
}

/* `field` -1: the array has records, where plain numbers are expected. */
static int fits(const struct npz_columns *c, struct neap__npy *array, const char *name, int field,
	struct neap__column *column)
{
	const struct neap__npy_header *h = neap__npy_shape(array);
	if (h->dims > 1 || field < 0)
		return refuse(c, array, name);
	enum neap__npy_kind kind = h->field[field].kind;
	*column = (struct neap__column){.count = h->count,
		.real = kind == NEAP__NPY_FLOAT,
		.text = kind == NEAP__NPY_BYTES || kind == NEAP__NPY_UCS4,
		.array = array,
		.field = field};
	return 1;
}

/* The field of an array of records, which is closed if it has none of that name. */
static int find_field(const struct npz_columns *c, struct neap__npy *array, const char *full,
	const char *name, struct neap__column *column)
{
	int field = neap__npy_shape(array)->records ? neap__npy_field(array, name) : -1;
	if (field >= 0)
		return fits(c, array, full, field, column);
	neap__npy_close(array);
	return 0;
}

static int find(struct neap__columns *columns, const char *name, struct neap__column *column)
{
	struct npz_columns *c = (struct npz_columns *)columns;
	const char *slash = strrchr(name, '/');
	struct neap__npy *array;
	char record[64];
	memset(column, 0, sizeof *column);
	if (!c->archive) {
		NEAP_TRY(neap__npy_open(&array, columns->path));
		return find_field(c, array, name, name, column);
	}
	if (neap__npz_has(c->archive, name)) {
		NEAP_TRY(neap__npz_array(&array, c->archive, name));
		return fits(c, array, name, neap__npy_shape(array)->records ? -1 : 0, column);
	}
	if (!slash || (size_t)(slash - name) >= sizeof record)
		return 0;
	neap__print(record, sizeof record, "%.*s", (int)(slash - name), name);
	if (!neap__npz_has(c->archive, record))
		return 0;
	NEAP_TRY(neap__npz_array(&array, c->archive, record));
	return find_field(c, array, name, slash + 1, column);
}

static int read_part(struct neap__columns *columns, const struct neap__column *column,
	int64_t first, int64_t count, double *out)
{
	(void)columns;
	return neap__npy_doubles(column->array, column->field, first, count, out);
}

static void shut(struct neap__columns *columns, struct neap__column *column)
{
	(void)columns;
	neap__npy_close(column->array);
	column->array = NULL;
}

static int texts(struct neap__columns *columns, const char *name, int most, char ***out, int *count)
{
	struct npz_columns *c = (struct npz_columns *)columns;
	struct neap__npy *array;
	if (!c->archive) /* a field is no array of texts */
		return neap__fail(NEAP_EFORMAT,
			"'%s': field '%s' contains text; events need numbers. Save it as numbers",
			columns->path, name);
	NEAP_TRY(neap__npz_array(&array, c->archive, name));
	int rc = neap__npy_strings(array, most, out, count);
	neap__npy_close(array);
	return rc;
}

static void close_all(struct neap__columns *columns)
{
	neap__npz_close(((struct npz_columns *)columns)->archive);
	free(columns);
}

int neap__npz_columns_open(struct neap__columns **columns, const char *path)
{
	struct npz_columns *c = calloc(1, sizeof *c);
	if (!c)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	c->columns = (struct neap__columns){.path = path,
		.find = find,
		.read = read_part,
		.texts = texts,
		.shut = shut,
		.close = close_all};
	size_t n = strlen(path);
	int rc = n > 4 && strcasecmp(path + n - 4, ".npy") == 0 ? 0
								: neap__npz_open(&c->archive, path);
	if (rc < 0)
		free(c);
	else
		*columns = &c->columns;
	return rc;
}

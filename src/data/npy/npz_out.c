/* SPDX-License-Identifier: Apache-2.0 */
/* npz_out.c: rows in files without names, then the archive through libzip (npz_out.h). */
#include "data/npy/npz_out.h"
#include "data/npy/npz_spread.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

enum { HEADER = 256 }; /* bytes before the rows, a multiple of 64 as NumPy aligns them */

struct growing_array {
	const char *name, *type;
	int columns;
	size_t bytes;
	int64_t rows;
	int lengths; /* the array that says how long samples are; -1: rows stand for themselves */
	int64_t samples, longest;
	FILE *file;
};

struct neap__npz_out {
	struct neap__atomic_file *beside;
	char *path;
	struct growing_array array[NEAP__NPZ_OUT_MOST];
	int arrays;
	int written; /* the archive stands beside its name */
};

static int failed(const struct neap__npz_out *out, int err)
{
	return neap__fail_errno(err ? err : EIO, "cannot write '%s'", out->path);
}

static void release(struct neap__npz_out *out)
{
	for (int i = 0; i < out->arrays; i++)
		if (out->array[i].file)
			fclose(out->array[i].file);
	free(out->path);
	free(out);
}

void neap__npz_out_abort(struct neap__npz_out *out)
{
	if (!out)
		return;
	neap__atomic_file_abort(out->beside);
	release(out);
}

int neap__npz_out_open(struct neap__npz_out **into, const char *path)
{
	struct neap__npz_out *out = calloc(1, sizeof *out);
	int rc = out && (out->path = strdup(path)) ? 0 : neap__fail_errno(ENOMEM, "%s", path);

	*into = NULL;
	if (rc == 0)
		rc = neap__atomic_file_open(&out->beside, path);
	if (rc == 0 && !neap__atomic_file_name(out->beside))
		rc = neap__fail(NEAP_EUSAGE,
			"'%s' is not a regular file, which .npz requires. Choose another output "
			"file",
			path);
	if (rc < 0 && out)
		neap__npz_out_abort(out);
	else
		*into = out;
	return rc;
}

/* A file without a name in the folder of the archive. 0 or an errno. */
static int open_rows(struct growing_array *array, const char *beside)
{
	char name[4200];

	neap__print(name, sizeof name, "%s-XXXXXX", beside);
	int fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return errno;
	unlink(name);
	array->file = fdopen(fd, "w+b");
	if (!array->file) {
		int err = errno;
		close(fd);
		return err;
	}
	return fseeko(array->file, HEADER, SEEK_SET) < 0 ? errno : 0;
}

int neap__npz_out_array(
	struct neap__npz_out *out, const char *name, const char *type, int columns, size_t bytes)
{
	if (out->arrays == NEAP__NPZ_OUT_MOST)
		return failed(out, EOVERFLOW);
	struct growing_array *array = &out->array[out->arrays++];
	*array = (struct growing_array){
		.name = name, .type = type, .columns = columns, .bytes = bytes, .lengths = -1};
	int err = open_rows(array, neap__atomic_file_name(out->beside));
	return err ? failed(out, err) : out->arrays - 1;
}

int neap__npz_out_row(struct neap__npz_out *out, int array, const void *row)
{
	struct growing_array *a = &out->array[array];

	if (fwrite(row, a->bytes, 1, a->file) != 1)
		return failed(out, errno);
	a->rows++;
	return 0;
}

void neap__npz_out_samples(struct neap__npz_out *out, int array, int lengths)
{
	out->array[array].lengths = lengths;
}

/* The shape as Python writes it. */
static void show_shape(char *room, size_t size, const struct growing_array *a)
{
	if (a->columns == NEAP__NPZ_OUT_SCALAR)
		neap__print(room, size, "()");
	else if (a->lengths >= 0)
		neap__print(room, size, "(%" PRId64 ", %" PRId64 ", %d)", a->samples, a->longest,
			a->columns);
	else if (a->columns > 0)
		neap__print(room, size, "(%" PRId64 ", %d)", a->rows, a->columns);
	else
		neap__print(room, size, "(%" PRId64 ",)", a->rows);
}

/* Writes the header before the rows. 0 or an errno. */
static int write_header(struct growing_array *a)
{
	char text[HEADER], shape[80];

	show_shape(shape, sizeof shape, a);
	memset(text, ' ', sizeof text);
	memcpy(text, "\x93NUMPY\x01\x00", 8);
	text[8] = (char)((HEADER - 10) & 0xff);
	text[9] = (char)((HEADER - 10) >> 8);
	int n = neap__print(text + 10, sizeof text - 11,
		"{'descr': '%s', 'fortran_order': False, 'shape': %s, }", a->type, shape);
	text[10 + n] = ' '; /* where the zero at the end was */
	text[HEADER - 1] = '\n';
	errno = 0;
	if (fseeko(a->file, 0, SEEK_SET) < 0 || fwrite(text, sizeof text, 1, a->file) != 1 ||
		fflush(a->file) != 0 ||
		fseeko(a->file, 0, SEEK_SET) < 0) /* a source that begins at 0 does not seek */
		return errno ? errno : EIO;
	return 0;
}

static int error_of(zip_error_t *error)
{
	return zip_error_system_type(error) == ZIP_ET_SYS ? zip_error_code_system(error) : EIO;
}

/* Gives the file of an array to the archive. 0 or an errno. */
static int add_member(zip_t *zip, struct growing_array *a)
{
	char name[80];
	int err = write_header(a);

	if (err)
		return err;
	zip_source_t *source = zip_source_filep(zip, a->file, 0, -1);
	if (!source)
		return ENOMEM;
	a->file = NULL; /* the source closes it */
	neap__print(name, sizeof name, "%s.npy", a->name);
	zip_int64_t index = zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8);
	if (index < 0) {
		zip_source_free(source);
		return ENOMEM;
	}
	zip_file_set_mtime(
		zip, (zip_uint64_t)index, 315619200, 0); /* 1980: bytes without a clock */
	return zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) < 0 ? ENOMEM : 0;
}

/* libzip puts another file in the place of the one beside, which is flushed here. 0 or an errno. */
static int flush_named(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	int err = fsync(fd) < 0 ? errno : 0;
	close(fd);
	return err;
}

/* Moves the samples of an array apart. 0 or an errno. */
static int spread(struct neap__npz_out *out, struct growing_array *a)
{
	struct growing_array *lengths = &out->array[a->lengths];
	struct neap__npz_samples samples = {.from = HEADER,
		.row = a->bytes,
		.item = strcmp(a->type, "<f8") == 0 ? sizeof(double) : sizeof(float),
		.rows = a->rows,
		.samples = lengths->rows};

	if (fflush(a->file) != 0 || fflush(lengths->file) != 0)
		return errno ? errno : EIO;
	int err = neap__npz_spread(&samples, fileno(a->file), fileno(lengths->file));
	a->samples = samples.samples;
	a->longest = samples.longest;
	return err;
}

static int spread_all(struct neap__npz_out *out)
{
	int err = 0;

	for (int i = 0; i < out->arrays && !err; i++)
		if (out->array[i].lengths >= 0)
			err = spread(out, &out->array[i]);
	return err ? failed(out, err) : 0;
}

static int write_archive(struct neap__npz_out *out)
{
	const char *name = neap__atomic_file_name(out->beside);
	int code = 0, err = 0;
	zip_t *zip = zip_open(name, ZIP_CREATE | ZIP_TRUNCATE, &code);

	if (!zip)
		return failed(out, errno);
	for (int i = 0; i < out->arrays && !err; i++)
		err = add_member(zip, &out->array[i]);
	if (!err && zip_close(zip) < 0)
		err = error_of(zip_get_error(zip));
	else if (!err)
		zip = NULL;
	if (zip)
		zip_discard(zip);
	if (!err)
		err = flush_named(name);
	return err ? failed(out, err) : 0;
}

int neap__npz_out_write(struct neap__npz_out *out)
{
	if (out->written)
		return 0;
	NEAP_TRY(spread_all(out));
	NEAP_TRY(write_archive(out));
	out->written = 1;
	return 0;
}

int neap__npz_out_finish(struct neap__npz_out *out)
{
	int rc = neap__npz_out_write(out);

	if (rc < 0)
		neap__atomic_file_abort(out->beside);
	else
		rc = neap__atomic_file_commit(out->beside);
	release(out);
	return rc;
}

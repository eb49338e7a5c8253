/* SPDX-License-Identifier: Apache-2.0 */
/* h5.c: the lock around HDF5; opening files; reading numbers, attributes and names. */
#include "data/formats/h5.h"
#include "data/missing_file.h"
#include "base/checked.h"
#include "data/recordings.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Guards all calls of HDF5, which may be built without support of threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * Every file is closed by us. HDF5's own clean-up at exit prints on standard error
 * where a damaged file would not close.
 */
static void no_cleanup_at_exit(void)
{
	H5dont_atexit();
}

void neap__h5_enter(struct neap__h5_guard *guard)
{
	pthread_once(&once, no_cleanup_at_exit);
	pthread_mutex_lock(&lock);
	H5Eget_auto2(H5E_DEFAULT, &guard->print, &guard->data);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void neap__h5_leave(const struct neap__h5_guard *guard)
{
	H5Eset_auto2(H5E_DEFAULT, guard->print, guard->data);
	pthread_mutex_unlock(&lock);
}

/* A file that is not HDF5. */
static int refuse_other(struct neap__h5_file *file)
{
	static const char *const endings[] = {".h5", ".hdf5", ".hdf", ".he5", NULL};

	if (file->bytes == 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is empty. Restore it from its source, or rewrite it", file->path);
	if (neap__recordings_ends(file->path, endings))
		return neap__fail(NEAP_EFORMAT,
			"'%s' is not an HDF5 file, although its name ends as one. Restore it from "
			"its source, rewrite it, or rename it with the ending of its contents",
			file->path);
	file->is_other = 1;
	return neap__fail(NEAP_EFORMAT,
		"'%s' is not an HDF5 file. Check the path, or restore the file from its source",
		file->path);
}

/* Checks that the open file is a regular one, and HDF5 by its first bytes. */
static int check_kind(struct neap__h5_file *file)
{
	const char *path = file->path;
	struct stat st;

	if (fstat(file->fd, &st) < 0)
		return neap__fail_errno(errno, "cannot read '%s'", path);
	if (S_ISDIR(st.st_mode))
		return neap__fail(-EISDIR, "'%s' is a folder. Pass a file in it", path);
	if (!S_ISREG(st.st_mode))
		return neap__fail(NEAP_EFORMAT, "'%s' is not a regular file", path);
	file->bytes = (uint64_t)st.st_size;
	return H5Fis_hdf5(path) > 0 ? 0 : refuse_other(file);
}

/* Opens the file in HDF5, and reads the sizes of its addresses and lengths. */
static int open_hdf5(struct neap__h5_file *file)
{
	hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation;
	hsize_t user_block = 0;
	int rc = 0;

	H5Pset_file_locking(access, 0, 1); /* read only: some file systems have no locks */
	file->id = H5Fopen(file->path, H5F_ACC_RDONLY, access);
	if (access >= 0)
		H5Pclose(access);
	if (file->id < 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is damaged or truncated: HDF5 cannot open it. Copy or write it again",
			file->path);
	creation = H5Fget_create_plist(file->id);
	if (creation < 0 || H5Pget_sizes(creation, &file->address_bytes, &file->length_bytes) < 0 ||
		H5Pget_userblock(creation, &user_block) < 0 || user_block != 0 ||
		file->address_bytes > 8 || file->length_bytes > 8)
		rc = neap__fail(NEAP_EFORMAT,
			"'%s' has a user block or unusual address sizes. Rewrite it with h5repack",
			file->path);
	if (creation >= 0)
		H5Pclose(creation);
	return rc;
}

int neap__h5_open(struct neap__h5_file *file, const char *path)
{
	memset(file, 0, sizeof *file);
	file->id = -1;
	file->path = path;
	file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file->fd < 0)
		return neap__missing_file(errno, path);
	int rc = check_kind(file);
	if (rc == 0)
		rc = open_hdf5(file);
	if (rc < 0)
		neap__h5_close(file);
	return rc;
}

void neap__h5_close(struct neap__h5_file *file)
{
	if (file->id >= 0)
		H5Fclose(file->id);
	if (file->fd >= 0)
		close(file->fd);
	file->id = -1;
	file->fd = -1;
}

int neap__h5_attribute(const struct neap__h5_file *file, const char *name, double *value)
{
	if (H5Aexists(file->id, name) <= 0)
		return 0;
	hid_t attribute = H5Aopen(file->id, name, H5P_DEFAULT);
	hid_t space = attribute >= 0 ? H5Aget_space(attribute) : -1;
	hid_t type = attribute >= 0 ? H5Aget_type(attribute) : -1;
	H5T_class_t kind = type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS;
	int ok = space >= 0 && H5Sget_simple_extent_npoints(space) == 1 &&
		 (kind == H5T_INTEGER || kind == H5T_FLOAT) &&
		 H5Aread(attribute, H5T_NATIVE_DOUBLE, value) >= 0;
	if (type >= 0)
		H5Tclose(type);
	if (space >= 0)
		H5Sclose(space);
	if (attribute >= 0)
		H5Aclose(attribute);
	return ok ? 1
		  : neap__fail(NEAP_EFORMAT, "'%s': attribute '%s' must be a single number",
			    file->path, name);
}

/* Reads `count` numbers as `memory`, 8 bytes each. */
static int read_vector(const struct neap__h5_file *file, const char *name, int64_t count,
	H5T_class_t kind, hid_t memory, void **out)
{
	struct neap__h5_set set;
	NEAP_TRY(neap__h5_set_open(&set, file, name));
	int rc = 0;
	hsize_t length = set.count;
	H5T_class_t found = H5Tget_class(set.type);
	void *data = NULL;
	if (found != H5T_INTEGER && (found != H5T_FLOAT || kind != H5T_FLOAT))
		rc = neap__fail(NEAP_EFORMAT, "'%s': '%s' must contain %s", file->path, name,
			kind == H5T_FLOAT ? "numbers. Rewrite it as numbers"
			: found == H5T_STRING
				? "integers. Number the classes from 0, and write their names to "
				  "'/extra/keys'"
				: "integers. Rewrite it with astype(int)");
	else if (length != (hsize_t)count)
		rc = neap__fail(NEAP_EFORMAT,
			"'%s': '%s' has %llu entries, but there are %lld samples. Rewrite it "
			"with one entry per sample",
			file->path, name, (unsigned long long)length, (long long)count);
	else if (!(data = malloc((size_t)(count ? count : 1) * 8)))
		rc = neap__fail_errno(ENOMEM, "'%s': '%s'", file->path, name);
	else if (count > 0 && H5Dread(set.id, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
		rc = neap__fail(NEAP_EFORMAT, "'%s': '%s' cannot be read; the file is damaged",
			file->path, name);
	neap__h5_set_close(&set);
	if (rc < 0)
		free(data);
	else
		*out = data;
	return rc;
}

int neap__h5_integers(const struct neap__h5_file *file, const char *name, int64_t count,
	int64_t least, int64_t most, int32_t **out)
{
	void *data;
	NEAP_TRY(read_vector(file, name, count, H5T_INTEGER, H5T_NATIVE_INT64, &data));
	const int64_t *wide = data;
	int32_t *narrow = malloc((size_t)(count ? count : 1) * sizeof *narrow);
	int rc = narrow ? 0 : neap__fail_errno(ENOMEM, "'%s': '%s'", file->path, name);
	for (int64_t i = 0; rc == 0 && i < count; i++) {
		if (wide[i] < least || wide[i] > most)
			rc = neap__fail(NEAP_EFORMAT,
				"'%s': '%s'[%lld] is %lld; it must be between %lld and %lld. "
				"Correct "
				"the entry",
				file->path, name, (long long)i, (long long)wide[i],
				(long long)least, (long long)most);
		narrow[i] = (int32_t)wide[i];
	}
	free(data);
	if (rc < 0)
		free(narrow);
	else
		*out = narrow;
	return rc;
}

int neap__h5_reals(const struct neap__h5_file *file, const char *name, int64_t count, double **out)
{
	void *data;
	NEAP_TRY(read_vector(file, name, count, H5T_FLOAT, H5T_NATIVE_DOUBLE, &data));
	*out = data;
	return 0;
}

/* Fixed-length strings: one read of count * size bytes, then copies. */
static int fixed_strings(const struct neap__h5_file *file, const char *name, int most, hid_t set,
	hid_t type, hsize_t length, char **names)
{
	size_t size = H5Tget_size(type), bytes;
	if (length > (hsize_t)most || size == 0 || size > 4096 ||
		neap__mul_size(&bytes, (size_t)length, size) < 0)
		return neap__fail(NEAP_EFORMAT, "'%s': the names in '%s' are too many or too long",
			file->path, name);
	char *all = malloc(bytes ? bytes : 1);
	int rc = all ? 0 : neap__fail_errno(ENOMEM, "'%s': '%s'", file->path, name);
	if (rc == 0 && length > 0 && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) < 0)
		rc = neap__fail(NEAP_EFORMAT, "'%s': '%s' cannot be read; the file is damaged",
			file->path, name);
	for (hsize_t i = 0; rc == 0 && i < length; i++) {
		names[i] = strndup(all + i * size, size);
		if (!names[i])
			rc = neap__fail_errno(ENOMEM, "'%s': '%s'", file->path, name);
	}
	free(all);
	return rc;
}

static int variable_strings(
	const struct neap__h5_file *file, const char *name, int count, char **names)
{
	struct neap__vlen rows;
	NEAP_TRY(neap__vlen_open(&rows, file, name, H5T_STRING));
	int rc = 0;
	for (int i = 0; rc == 0 && i < count; i++) {
		const unsigned char *data;
		uint32_t length;
		rc = neap__vlen_row(&rows, i, &data, &length);
		if (rc == 0 && !(names[i] = strndup((const char *)data, length)))
			rc = neap__fail_errno(ENOMEM, "'%s': '%s'", file->path, name);
	}
	neap__vlen_close(&rows);
	return rc;
}

int neap__h5_strings(
	const struct neap__h5_file *file, const char *name, int most, char ***out, int *count)
{
	struct neap__h5_set set;
	NEAP_TRY(neap__h5_list_open(&set, file, name));
	int rc = 0;
	char **names = NULL;
	hsize_t length = set.count;
	if (H5Tget_class(set.type) != H5T_STRING)
		rc = neap__fail(NEAP_EFORMAT, "'%s': '%s' must contain strings", file->path, name);
	else if (length > (hsize_t)most)
		rc = neap__fail(NEAP_EFORMAT, "'%s': '%s' has %llu names, more than %d", file->path,
			name, (unsigned long long)length, most);
	else if (!(names = calloc((size_t)length + 1, sizeof *names)))
		rc = neap__fail_errno(ENOMEM, "'%s': '%s'", file->path, name);
	else if (H5Tis_variable_str(set.type) > 0)
		rc = variable_strings(file, name, (int)length, names);
	else
		rc = fixed_strings(file, name, most, set.id, set.type, length, names);
	neap__h5_set_close(&set);
	if (rc < 0) {
		for (hsize_t i = 0; names && i < length; i++)
			free(names[i]);
		free(names);
		return rc;
	}
	*out = names;
	*count = (int)length;
	return 0;
}

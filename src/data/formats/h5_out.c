/* SPDX-License-Identifier: Apache-2.0 */
/* h5_out.c: reserving, closing and renaming of files that HDF5 writes (h5_out.h). */
#include "data/formats/h5_out.h"
#include "base/fail.h"
#include "sys/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OVERHEAD = 96 * 1024, /* of HDF5, whatever a file contains: about 35 KiB in small files */
	ROOM_STEP = 32 * 1024
};

int neap__h5_out_failed(const struct neap__h5_out *out, int err)
{
	return neap__fail_errno(err ? err : EIO, "cannot write '%s'", out->path);
}

int neap__h5_out_reserve(struct neap__h5_out *out, uint64_t bytes)
{
	out->need += bytes;
	if (out->need <= out->reserved)
		return 0;
	/* A part more, so that a long file is extended seldom. */
	uint64_t want = out->need + ROOM_STEP + out->need / 8;
	if (fallocate(out->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)want) < 0 && errno != EOPNOTSUPP &&
		errno != ENOSYS)
		return neap__h5_out_failed(out, errno);
	out->reserved = want;
	return 0;
}

int neap__h5_out_open(struct neap__h5_out *out, const char *path)
{
	*out = (struct neap__h5_out){.path = path, .fd = -1, .file = -1};
	NEAP_TRY(neap__atomic_file_open(&out->beside, path));
	const char *name = neap__atomic_file_name(out->beside);
	if (!name)
		return neap__fail(NEAP_EUSAGE,
			"'%s' is not a regular file, which HDF5 requires. Pass the path of a new "
			"file, such as FILE.h5",
			path);
	out->fd = open(name, O_WRONLY | O_CLOEXEC);
	if (out->fd < 0)
		return neap__h5_out_failed(out, errno);
	NEAP_TRY(neap__h5_out_reserve(out, OVERHEAD));
	hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
	H5Pset_obj_track_times(creation, 0);
	H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
	H5Pset_file_locking(access, 0, 1);
	errno = 0;
	/* Creation truncates; what was reserved is asked for again. */
	out->file = H5Fcreate(name, H5F_ACC_TRUNC, creation, access);
	H5Pclose(access);
	H5Pclose(creation);
	if (out->file < 0)
		return neap__h5_out_failed(out, errno);
	out->reserved = 0;
	return neap__h5_out_reserve(out, 0);
}

int neap__h5_out_close(struct neap__h5_out *out)
{
	int rc = out->file >= 0 && H5Fclose(out->file) < 0 ? -1 : 0;
	out->file = -1;
	return rc;
}

int neap__h5_out_commit(struct neap__h5_out *out)
{
	struct stat st;
	if (fstat(out->fd, &st) < 0 || ftruncate(out->fd, st.st_size) < 0)
		return neap__h5_out_failed(out, errno);
	int rc = neap__atomic_file_commit(out->beside);
	out->beside = NULL;
	return rc;
}

void neap__h5_out_abort(struct neap__h5_out *out)
{
	struct neap__h5_guard guard;
	neap__h5_enter(&guard);
	(void)neap__h5_out_close(out);
	neap__h5_leave(&guard);
	if (out->fd >= 0)
		close(out->fd);
	out->fd = -1;
	neap__atomic_file_abort(out->beside);
	out->beside = NULL;
}

/* Without the time of day: the same spikes make the same file. */
int neap__h5_out_group(hid_t file, const char *name)
{
	hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
	H5Pset_obj_track_times(creation, 0);
	hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, creation, H5P_DEFAULT);
	H5Pclose(creation);
	return group >= 0 ? H5Gclose(group) : -1;
}

int neap__h5_out_vector(
	hid_t file, const char *name, hid_t stored, hid_t memory, int64_t count, const void *data)
{
	hsize_t n = (hsize_t)count, chunk = 4096;
	hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &n, NULL);
	H5Pset_obj_track_times(creation, 0);
	if (H5Tget_class(stored) != H5T_STRING && count > 256) {
		chunk = n < chunk ? n : chunk;
		H5Pset_chunk(creation, 1, &chunk);
		H5Pset_deflate(creation, 6);
		H5Pset_fletcher32(creation);
	}
	hid_t set = H5Dcreate2(file, name, stored, space, H5P_DEFAULT, creation, H5P_DEFAULT);
	int rc = set >= 0 && n > 0 ? H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data)
				   : (set >= 0 ? 0 : -1);
	if (set >= 0)
		H5Dclose(set);
	H5Sclose(space);
	H5Pclose(creation);
	return rc;
}

int neap__h5_out_names(hid_t file, const char *path, const char *const *names, int count)
{
	hid_t type = H5Tcopy(H5T_C_S1);
	H5Tset_size(type, H5T_VARIABLE);
	H5Tset_cset(type, H5T_CSET_UTF8);
	int rc = neap__h5_out_vector(file, path, type, type, count, names);
	H5Tclose(type);
	return rc;
}

uint64_t neap__h5_out_text_bytes(const char *const *names, int count)
{
	uint64_t bytes = 0;
	for (int i = 0; i < count; i++)
		bytes += strlen(names[i]) + 64;
	return bytes;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* npz.c: members of a zip archive as arrays. libzip checks the archive's own structure. */
#include "data/npy/npz.h"
#include "data/npy/npy_source.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

enum {
	IN_MEMORY = 1 << 20, /* bytes of an unpacked array that stay in memory */
	PIECE = 65536,
	MOST_UNPACKED = 1032, /* deflate makes 258 bytes of 2 bits, at best */
	MOST_NAME = 255,
};

struct neap__npz {
	zip_t *zip;
	char *path;
	int64_t arrays;
	char **name; /* without ".npy" */
};

static const char suffix[] = ".npy";

static int is_array(const char *name)
{
	size_t n = strlen(name), s = sizeof suffix - 1;
	return n > s && n - s <= MOST_NAME && strcmp(name + n - s, suffix) == 0;
}

static int list(struct neap__npz *archive)
{
	zip_int64_t entries = zip_get_num_entries(archive->zip, 0);
	archive->name = calloc((size_t)entries + 1, sizeof *archive->name);
	if (!archive->name)
		return neap__fail_errno(ENOMEM, "'%s'", archive->path);
	for (zip_int64_t i = 0; i < entries; i++) {
		const char *name = zip_get_name(archive->zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW);
		if (!name || !is_array(name))
			continue; /* a note that somebody put in is no array */
		char *copy = strndup(name, strlen(name) - (sizeof suffix - 1));
		if (!copy)
			return neap__fail_errno(ENOMEM, "'%s'", archive->path);
		archive->name[archive->arrays++] = copy;
	}
	if (archive->arrays == 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has no NumPy array. Write it with numpy.savez", archive->path);
	return 0;
}

static int open_zip(struct neap__npz *archive)
{
	struct stat st;
	zip_error_t error;
	int code = 0, fd = open(archive->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return neap__fail_errno(errno, "cannot read '%s'", archive->path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return neap__fail(NEAP_EFORMAT, "'%s' is not a regular file", archive->path);
	}
	archive->zip = zip_fdopen(fd, ZIP_CHECKCONS, &code);
	if (archive->zip)
		return list(archive);
	close(fd);
	zip_error_init_with_code(&error, code);
	int rc = code == ZIP_ER_MEMORY ? neap__fail_errno(ENOMEM, "'%s'", archive->path)
				       : neap__fail(NEAP_EFORMAT,
						 "'%s' is not a zip archive of arrays (.npz), or "
						 "is damaged: %s. Write it with numpy.savez",
						 archive->path, zip_error_strerror(&error));
	zip_error_fini(&error);
	return rc;
}

int neap__npz_open(struct neap__npz **out, const char *path)
{
	struct neap__npz *archive = calloc(1, sizeof *archive);
	int rc = 0;
	if (!archive || !(archive->path = strdup(path)))
		rc = neap__fail_errno(ENOMEM, "'%s'", path);
	if (rc == 0)
		rc = open_zip(archive);
	if (rc < 0)
		neap__npz_close(archive);
	else
		*out = archive;
	return rc;
}

void neap__npz_close(struct neap__npz *archive)
{
	if (!archive)
		return;
	if (archive->zip)
		zip_discard(archive->zip);
	for (int64_t i = 0; i < archive->arrays; i++)
		free(archive->name[i]);
	free(archive->name);
	free(archive->path);
	free(archive);
}

int64_t neap__npz_arrays(const struct neap__npz *archive)
{
	return archive->arrays;
}

const char *neap__npz_name(const struct neap__npz *archive, int64_t number)
{
	return number >= 0 && number < archive->arrays ? archive->name[number] : NULL;
}

static zip_int64_t locate(const struct neap__npz *archive, const char *name)
{
	char member[MOST_NAME + sizeof suffix];
	if (strlen(name) > MOST_NAME)
		return -1;
	neap__print(member, sizeof member, "%s%s", name, suffix);
	return zip_name_locate(archive->zip, member, ZIP_FL_ENC_RAW);
}

int neap__npz_has(const struct neap__npz *archive, const char *name)
{
	return locate(archive, name) >= 0;
}

static int member_read(void *user, void *out, uint64_t offset, size_t bytes, const char *where)
{
	if (zip_fseek(user, (zip_int64_t)offset, SEEK_SET) < 0)
		return neap__fail(NEAP_EFORMAT, "%s: damaged: %s", where, zip_file_strerror(user));
	for (char *p = out; bytes > 0;) {
		zip_int64_t n = zip_fread(user, p, bytes);
		if (n <= 0)
			return neap__fail(NEAP_EFORMAT, "%s: damaged: %s", where,
				n < 0 ? zip_file_strerror(user) : "it ends early");
		p += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static void member_close(void *user)
{
	zip_fclose(user);
}

static int unnamed_file(const char *where)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	if (!folder || !*folder)
		folder = "/var/tmp";
	neap__print(path, sizeof path, "%s/neap-unpacked-XXXXXX", folder);
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return neap__fail_errno(errno,
			"%s cannot be unpacked into '%s'. Set TMPDIR to a folder with more space",
			where, folder);
	unlink(path);
	return fd;
}

static int write_all(int fd, const char *data, size_t bytes, const char *where)
{
	while (bytes > 0) {
		ssize_t n = write(fd, data, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return neap__fail_errno(errno,
				"%s cannot be unpacked. Set TMPDIR to a folder with more space",
				where);
		data += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* The end is read as well: libzip compares the checksum there. */
static int ends_here(zip_file_t *member, const char *where)
{
	char byte;
	zip_int64_t n = zip_fread(member, &byte, 1);
	return n == 0 ? 0
		      : neap__fail(NEAP_EFORMAT, "%s: damaged: %s", where,
				n < 0 ? zip_file_strerror(member) : "it is longer than declared");
}

static int unpack_to(int fd, char *data, zip_file_t *member, uint64_t bytes, const char *where)
{
	char *piece = data ? data : malloc(PIECE);
	int rc = piece ? 0 : neap__fail_errno(ENOMEM, "%s", where);
	for (uint64_t done = 0; rc == 0 && done < bytes;) {
		uint64_t left = bytes - done, want = !data && left > PIECE ? PIECE : left;
		zip_int64_t n = zip_fread(member, data ? data + done : piece, want);
		if (n <= 0)
			rc = neap__fail(NEAP_EFORMAT, "%s: damaged: %s", where,
				n < 0 ? zip_file_strerror(member) : "it ends early");
		else if (!data)
			rc = write_all(fd, piece, (size_t)n, where);
		done += n > 0 ? (uint64_t)n : 0;
	}
	if (rc == 0)
		rc = ends_here(member, where);
	if (!data)
		free(piece);
	return rc;
}

/* A source with the unpacked bytes of a member, which it closes. */
static int unpack(
	struct neap__npy_source *source, zip_file_t *member, uint64_t bytes, const char *where)
{
	int fd = -1, rc = 0;
	char *data = bytes <= IN_MEMORY ? malloc((size_t)bytes + 1) : NULL;
	if (bytes <= IN_MEMORY && !data)
		rc = neap__fail_errno(ENOMEM, "%s", where);
	else if (!data)
		rc = fd = unnamed_file(where);
	if (rc >= 0)
		rc = unpack_to(fd, data, member, bytes, where);
	zip_fclose(member);
	if (rc < 0) {
		free(data);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	if (!data)
		return neap__npy_file(source, fd, bytes);
	neap__npy_memory(source, data, bytes);
	return 0;
}

static int open_member(struct neap__npy_source *source, struct neap__npz *archive,
	zip_uint64_t index, const char *where)
{
	zip_stat_t st;
	uint64_t most;
	const zip_uint64_t need = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD |
				  ZIP_STAT_ENCRYPTION_METHOD;
	if (zip_stat_index(archive->zip, index, 0, &st) < 0 || (st.valid & need) != need)
		return neap__fail(NEAP_EFORMAT, "%s: damaged: its entry cannot be read", where);
	if (st.encryption_method != ZIP_EM_NONE)
		return neap__fail(NEAP_EFORMAT, "%s is encrypted, which is not supported", where);
	if (st.comp_method != ZIP_CM_STORE && st.comp_method != ZIP_CM_DEFLATE)
		return neap__fail(NEAP_EFORMAT,
			"%s is compressed by method %d of zip; only stored and deflated arrays are "
			"supported. Write it with numpy.savez_compressed",
			where, st.comp_method);
	if (neap__mul_u64(&most, st.comp_size, MOST_UNPACKED) < 0)
		most = UINT64_MAX;
	if (st.size > INT64_MAX || st.size > (st.comp_method == ZIP_CM_STORE ? st.comp_size : most))
		return neap__fail(NEAP_EFORMAT,
			"%s: damaged: it declares %llu bytes, more than its stored bytes can hold",
			where, (unsigned long long)st.size);
	zip_file_t *member = zip_fopen_index(archive->zip, index, 0);
	if (!member)
		return neap__fail(
			NEAP_EFORMAT, "%s: damaged: %s", where, zip_strerror(archive->zip));
	if (st.comp_method == ZIP_CM_DEFLATE)
		return unpack(source, member, st.size, where);
	*source = (struct neap__npy_source){member_read, member_close, member, st.size};
	return 0;
}

int neap__npz_array(struct neap__npy **out, struct neap__npz *archive, const char *name)
{
	struct neap__npy_source source;
	zip_int64_t index = locate(archive, name);
	if (index < 0)
		return neap__fail(NEAP_EFORMAT, "'%s' has no array '%s'", archive->path, name);
	size_t room = strlen(archive->path) + strlen(name) + 8;
	char *where = malloc(room);
	if (!where)
		return neap__fail_errno(ENOMEM, "'%s'", archive->path);
	neap__print(where, room, "'%s': '%s'", archive->path, name);
	int rc = open_member(&source, archive, (zip_uint64_t)index, where);
	if (rc < 0) {
		free(where);
		return rc;
	}
	return neap__npy_new(out, &source, where);
}

int neap__npz_header(struct neap__npy_header *header, struct neap__npz *archive, int64_t number)
{
	const char *name = neap__npz_name(archive, number);
	zip_int64_t index = name ? locate(archive, name) : -1;
	char *head = index < 0 ? NULL : malloc(NEAP__NPY_MOST_HEADER), where[80];
	zip_file_t *member = head ? zip_fopen_index(archive->zip, (zip_uint64_t)index, 0) : NULL;
	zip_int64_t n = member ? zip_fread(member, head, NEAP__NPY_MOST_HEADER) : -1;
	neap__print(where, sizeof where, "'%.70s'", name ? name : "");
	int rc = n < 0 ? neap__fail(NEAP_EFORMAT, "%s: cannot be read", where)
		       : neap__npy_header_parse(header, head, (size_t)n, where);
	if (member)
		zip_fclose(member);
	free(head);
	return rc;
}

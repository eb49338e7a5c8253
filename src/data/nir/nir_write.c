/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nir_write.c: writes a graph as a NIR file of format 1.0 that Python's nir reads. The same graph
 * makes the same bytes: no times of day are kept.
 */
#include "data/nir/nir_graph.h"
#include "data/formats/h5.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION "1.0"
enum { NAME_ROOM = 256, SLACK = 1 << 20 /* structures of HDF5 */ };

/* Without the time of day. */
static hid_t make_group(hid_t in, const char *name)
{
	hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
	H5Pset_obj_track_times(creation, 0);
	hid_t group = H5Gcreate2(in, name, H5P_DEFAULT, creation, H5P_DEFAULT);
	H5Pclose(creation);
	return group;
}

/* Makes a data set of a type and writes it. -1 on failure. */
static int put(hid_t in, const char *name, hid_t file_type, hid_t type, int dims,
	const hsize_t *size, const void *data)
{
	hid_t space = dims ? H5Screate_simple(dims, size, NULL) : H5Screate(H5S_SCALAR);
	hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_obj_track_times(creation, 0);
	hid_t set = H5Dcreate2(in, name, file_type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
	int rc = set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0 ? 0 : -1;
	if (set >= 0 && H5Dclose(set) < 0)
		rc = -1;
	H5Pclose(creation);
	H5Sclose(space);
	return rc;
}

/* Texts of variable length in UTF-8. */
static int put_texts(
	hid_t in, const char *name, int dims, const hsize_t *size, const char *const *texts)
{
	hid_t type = H5Tcopy(H5T_C_S1);
	H5Tset_size(type, H5T_VARIABLE);
	H5Tset_cset(type, H5T_CSET_UTF8);
	int rc = put(in, name, type, type, dims, size, texts);
	H5Tclose(type);
	return rc;
}

static int put_text(hid_t in, const char *name, const char *text)
{
	return put_texts(in, name, 0, NULL, &text);
}

static int put_array(hid_t in, const char *name, const struct neap__nir_array *array, int is_shape)
{
	hsize_t size[NEAP__NIR_DIMS];
	hid_t type = is_shape ? H5T_STD_I64LE : array->is_single ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;

	for (int i = 0; i < array->dims; i++)
		size[i] = (hsize_t)array->size[i];
	return put(in, name, type, H5T_NATIVE_DOUBLE, array->dims, size, array->data);
}

/* 1: a parameter of whole numbers. */
static int is_whole(const char *param)
{
	static const char *const whole[] = {"shape", "input_shape", "stride", "padding", "dilation",
		"groups", "kernel_size", "start_dim", "end_dim", "input_type"};

	for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
		if (strcmp(whole[i], param) == 0)
			return 1;
	return 0;
}

static int put_node(hid_t nodes, const struct neap__nir_node *node)
{
	char part[16];
	int optional, rc;
	hid_t group = make_group(nodes, node->name);

	if (group < 0)
		return -1;
	rc = put_text(group, "type", neap__nir_type_name(node->type));
	for (int i = 0; rc == 0 && neap__nir_param_name(part, node->type, i, &optional) == 0; i++)
		if (node->param[i].data)
			rc = put_array(group, part, &node->param[i], is_whole(part));
	if (H5Gclose(group) < 0)
		rc = -1;
	return rc;
}

static int put_edges(hid_t in, const struct neap__nir_graph *graph)
{
	const hsize_t size[2] = {(hsize_t)graph->edges, 2};
	const char **names = calloc((size_t)graph->edges * 2 + 1, sizeof *names);

	if (!names)
		return -1;
	for (int i = 0; i < graph->edges; i++) {
		names[2 * i] = graph->node[graph->edge[i].from].name;
		names[2 * i + 1] = graph->node[graph->edge[i].to].name;
	}
	int rc = put_texts(in, "edges", 2, size, names);
	free(names);
	return rc;
}

static int put_metadata(hid_t in, const struct neap__nir_graph *graph)
{
	hid_t group = graph->metas ? make_group(in, "metadata") : -1;
	int rc = 0;

	if (graph->metas && group < 0)
		return -1;
	for (int i = 0; rc == 0 && i < graph->metas; i++) {
		const struct neap__nir_meta *meta = &graph->meta[i];
		rc = meta->text ? put_text(group, meta->name, meta->text)
				: put_array(group, meta->name, &meta->array, 0);
	}
	if (group >= 0 && H5Gclose(group) < 0)
		rc = -1;
	return rc;
}

static int put_graph(hid_t file, const struct neap__nir_graph *graph)
{
	hid_t root = make_group(file, "node"), nodes = root >= 0 ? make_group(root, "nodes") : -1;
	int rc = nodes >= 0 && put_text(file, "version", VERSION) == 0 &&
				 put_text(root, "type", "NIRGraph") == 0
			 ? 0
			 : -1;

	for (int i = 0; rc == 0 && i < graph->nodes; i++)
		rc = put_node(nodes, &graph->node[i]);
	if (rc == 0)
		rc = put_edges(root, graph);
	if (rc == 0)
		rc = put_metadata(root, graph);
	if (nodes >= 0 && H5Gclose(nodes) < 0)
		rc = -1;
	if (root >= 0 && H5Gclose(root) < 0)
		rc = -1;
	return rc;
}

/* Bytes that the file takes at most. */
static off_t most_bytes(const struct neap__nir_graph *graph)
{
	off_t bytes = SLACK;

	for (int i = 0; i < graph->nodes; i++) {
		bytes += 8192;
		for (int p = 0; p < NEAP__NIR_PARAMS; p++)
			bytes += (off_t)graph->node[i].param[p].count * 8;
	}
	for (int i = 0; i < graph->metas; i++)
		bytes += graph->meta[i].text ? (off_t)strlen(graph->meta[i].text)
					     : (off_t)graph->meta[i].array.count * 8;
	return bytes + (off_t)graph->edges * 256;
}

static int write_file(const struct neap__nir_graph *graph, const char *name)
{
	hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);

	H5Pset_obj_track_times(creation, 0);
	H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110); /* with checksums */
	H5Pset_file_locking(access, 0, 1);
	hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, creation, access);
	H5Pclose(access);
	H5Pclose(creation);
	if (file < 0)
		return -1;
	/* HDF5 may crash when the disk is full: room is reserved before it writes. */
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	int full = fd >= 0 && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, most_bytes(graph)) < 0 &&
		   errno != EOPNOTSUPP && errno != ENOSYS;
	int err = errno;
	if (fd >= 0)
		close(fd);
	int rc = full ? -1 : put_graph(file, graph);
	if (H5Fclose(file) < 0)
		rc = -1;
	if (full)
		errno = err;
	return rc;
}

int neap__nir_write(const struct neap__nir_graph *graph, const char *path)
{
	struct neap__atomic_file *beside;
	struct neap__h5_guard guard;

	struct stat st;

	/* Before it is opened: a FIFO would wait for a reader. */
	if (strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode)))
		return neap__fail(NEAP_EUSAGE,
			"'%s' is not a regular file, which HDF5 requires. Pass the path of a new "
			"file, such as FILE.nir",
			path);
	NEAP_TRY(neap__atomic_file_open(&beside, path));
	const char *name = neap__atomic_file_name(beside);
	neap__h5_enter(&guard);
	errno = 0;
	int rc = write_file(graph, name);
	int err = errno;
	neap__h5_leave(&guard);
	if (rc < 0) {
		neap__atomic_file_abort(beside);
		return neap__fail_errno(err ? err : EIO, "cannot write '%s'", path);
	}
	return neap__atomic_file_commit(beside);
}

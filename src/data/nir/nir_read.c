/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nir_read.c: a NIR file as a flat graph. A file has /version and /node; a graph has `type`
 * "NIRGraph", a group `nodes` with a group a node, and `edges`, pairs of names; a node has `type`
 * and a data set a parameter. A group `metadata` may stand anywhere; that of the outermost graph is
 * read. HDF5 is asked for nothing that h5.h has not checked first.
 */
#include "data/nir/nir_graph.h"
#include "data/dataset.h"
#include "data/formats/h5.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	NODES_MOST = 4096,
	EDGES_MOST = 65536,
	DEPTH_MOST = 8, /* graphs within graphs; a file can claim endless ones */
	NAME_MOST = 200,
	TEXT_MOST = 1 << 20 /* of a text beside the graph */
};

struct reading {
	struct neap__nir_graph *graph;
	struct neap__h5_file file;
};

/* A node or an inner graph by its name within one graph: what edges to and from it mean. */
struct local {
	char *name;
	int in, out; /* numbers of nodes; -1: none */
};

static int say_text(const struct reading *r, const char *path, const char *what)
{
	return neap__fail(NEAP_EFORMAT, "'%s': '%s' %s", r->file.path, path, what);
}

/* Copies `n` texts of `width` bytes each into `out`. */
static int copy_fixed(struct reading *r, const char *path, const struct neap__h5_set *set,
	int64_t n, size_t width, char **out)
{
	size_t bytes;
	int rc = 0;

	if (width == 0 || width > TEXT_MOST || neap__mul_size(&bytes, (size_t)n, width) < 0)
		return say_text(r, path, "has texts that are too long");
	char *all = malloc(bytes + 1);
	if (!all)
		return neap__fail_errno(ENOMEM, "'%s'", r->file.path);
	if (n > 0 && H5Dread(set->id, set->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) < 0)
		rc = say_text(r, path, "cannot be read: damaged");
	for (int64_t i = 0; rc == 0 && i < n; i++)
		if (!(out[i] = strndup(all + (size_t)i * width, width)))
			rc = neap__fail_errno(ENOMEM, "'%s'", r->file.path);
	free(all);
	return rc;
}

/* Copies `n` texts of any length into `out`. */
static int copy_variable(struct reading *r, const char *path, int64_t n, char **out)
{
	struct neap__vlen rows;
	int rc = neap__vlen_open(&rows, &r->file, path, H5T_STRING);

	for (int64_t i = 0; rc == 0 && i < n; i++) {
		const unsigned char *data;
		uint32_t length;
		rc = neap__vlen_row(&rows, i, &data, &length);
		if (rc == 0 && !(out[i] = strndup((const char *)data, length)))
			rc = neap__fail_errno(ENOMEM, "'%s'", r->file.path);
	}
	neap__vlen_close(&rows);
	return rc;
}

/* Copies the rows of a data set of texts, `count` of them in all or any (-1); free the texts. */
static int read_texts(struct reading *r, const char *path, int64_t count, int64_t most, char ***out,
	int64_t *found)
{
	struct neap__h5_set set;
	int variable, rc = 0;

	*out = NULL;
	NEAP_TRY(neap__h5_any_open(&set, &r->file, path));
	variable = H5Tget_class(set.type) == H5T_STRING && H5Tis_variable_str(set.type) > 0;
	int64_t n = set.count <= (hsize_t)most ? (int64_t)set.count : -1;
	if (H5Tget_class(set.type) != H5T_STRING)
		rc = say_text(r, path, "must contain text");
	else if (n < 0 || (count >= 0 && n != count))
		rc = say_text(r, path, "has an unexpected number of texts");
	if (rc == 0 && !(*out = calloc((size_t)n + 1, sizeof **out)))
		rc = neap__fail_errno(ENOMEM, "'%s'", r->file.path);
	if (rc == 0 && !variable)
		rc = copy_fixed(r, path, &set, n, H5Tget_size(set.type), *out);
	neap__h5_set_close(&set);
	if (rc == 0 && variable)
		rc = copy_variable(r, path, n, *out);
	if (rc < 0) {
		for (int64_t i = 0; *out && i < n; i++)
			free((*out)[i]);
		free(*out);
		*out = NULL;
		return rc;
	}
	*found = n;
	return 0;
}

static int read_text(struct reading *r, const char *path, char **out)
{
	char **list;
	int64_t n;

	NEAP_TRY(read_texts(r, path, 1, 1, &list, &n));
	*out = list[0];
	free(list);
	return 0;
}

static int read_array(struct reading *r, const char *path, struct neap__nir_array *array)
{
	struct neap__h5_set set;
	size_t bytes;

	NEAP_TRY(neap__h5_any_open(&set, &r->file, path));
	H5T_class_t kind = H5Tget_class(set.type);
	int rc = 0;
	if (kind != H5T_FLOAT && kind != H5T_INTEGER)
		rc = say_text(r, path, "must contain numbers");
	else if (set.dims > NEAP__NIR_DIMS)
		rc = say_text(r, path, "has more than four dimensions");
	else if (set.count > INT64_MAX / 16 ||
		 neap__mul_size(&bytes, (size_t)set.count, sizeof(double)) < 0)
		rc = say_text(r, path, "is too large");
	else if (!(array->data = malloc(bytes ? bytes : 1)))
		rc = neap__fail_errno(
			ENOMEM, "'%s': %llu numbers", r->file.path, (unsigned long long)set.count);
	else if (set.count > 0 &&
		 H5Dread(set.id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, array->data) < 0)
		rc = say_text(r, path, "cannot be read: damaged");
	array->dims = set.dims;
	array->count = (int64_t)set.count;
	for (int i = 0; i < set.dims && i < NEAP__NIR_DIMS; i++)
		array->size[i] = (int64_t)set.size[i];
	array->is_single = kind == H5T_FLOAT && H5Tget_size(set.type) <= sizeof(float);
	neap__h5_set_close(&set);
	for (int64_t i = 0; rc == 0 && i < array->count; i++)
		if (!isfinite(array->data[i]))
			rc = say_text(r, path, "contains numbers that are not finite");
	return rc;
}

/* Path of a part of a node; -1 with a line where it is too long. */
static int join(
	char room[NEAP__H5_PATH], const struct reading *r, const char *path, const char *part)
{
	if (strlen(path) + strlen(part) + 2 > NEAP__H5_PATH)
		return neap__fail(
			NEAP_EFORMAT, "'%s': the name of a node is too long", r->file.path);
	neap__print(room, NEAP__H5_PATH, "%s/%s", path, part);
	return 0;
}

/* The padding of a convolution may be a text: "valid" is 0, and "same" is read as -1. */
static int read_padding(struct reading *r, const char *path, struct neap__nir_array *array)
{
	struct neap__h5_set set;
	char *text;

	NEAP_TRY(neap__h5_any_open(&set, &r->file, path));
	int is_text = H5Tget_class(set.type) == H5T_STRING;
	neap__h5_set_close(&set);
	if (!is_text)
		return read_array(r, path, array);
	NEAP_TRY(read_text(r, path, &text));
	int is_same = strcmp(text, "same") == 0, known = is_same || strcmp(text, "valid") == 0;
	free(text);
	if (!known)
		return say_text(r, path, "must be numbers, 'same' or 'valid'");
	if (!(array->data = calloc(1, sizeof *array->data)))
		return neap__fail_errno(ENOMEM, "'%s'", r->file.path);
	array->count = 1;
	array->data[0] = -is_same;
	return 0;
}

static int read_params(struct reading *r, const char *path, int node)
{
	char part[16], room[NEAP__H5_PATH];
	int optional;

	for (int i = 0;; i++) {
		struct neap__nir_node *n = &r->graph->node[node];
		if (neap__nir_param_name(part, n->type, i, &optional) < 0)
			return 0;
		NEAP_TRY(join(room, r, path, part));
		int there = neap__h5_has(&r->file, room);
		if (there < 0)
			return there;
		if (!there && optional)
			continue;
		if (!there)
			return neap__fail(NEAP_EFORMAT, "'%s': node '%s', of type %s, has no '%s'",
				r->file.path, n->name, neap__nir_type_name(n->type), part);
		NEAP_TRY((strcmp(part, "padding") == 0 ? read_padding : read_array)(
			r, room, &n->param[i]));
	}
}

static int refuse_type(const struct reading *r, const char *name, const char *type)
{
	struct neap__text known = {0};

	for (int i = 0; i < NEAP__NIR_TYPES; i++)
		neap__text_add(&known, "%s%s", i ? ", " : "", neap__nir_type_name(i));
	int rc = neap__fail(NEAP_EFORMAT,
		"'%s': node '%.80s' is of type %.40s, which neap does not support; supported are "
		"%s",
		r->file.path, name, type, known.data ? known.data : "");
	neap__text_free(&known);
	return rc;
}

static int read_graph(
	struct reading *r, const char *path, const char *outer, int depth, struct local *self);

static int read_node(
	struct reading *r, const char *path, const char *full, int depth, struct local *local)
{
	char room[NEAP__H5_PATH], *type;

	NEAP_TRY(join(room, r, path, "type"));
	NEAP_TRY(read_text(r, room, &type));
	if (strcmp(type, "NIRGraph") == 0) {
		free(type);
		return read_graph(r, path, full, depth + 1, local);
	}
	int kind = 0;
	while (kind < NEAP__NIR_TYPES && strcmp(neap__nir_type_name(kind), type) != 0)
		kind++;
	int rc = kind == NEAP__NIR_TYPES ? refuse_type(r, full, type) : 0;
	free(type);
	NEAP_TRY(rc);
	if (r->graph->nodes >= NODES_MOST)
		return neap__fail(
			NEAP_EFORMAT, "'%s' has more than %d nodes", r->file.path, NODES_MOST);
	NEAP_TRY(rc = neap__nir_add_node(r->graph, full, (enum neap__nir_type)kind));
	local->in = local->out = rc;
	r->graph->node[rc].inner = depth > 0;
	return read_params(r, path, rc);
}

static const struct local *find(const struct local *list, int64_t count, const char *name)
{
	for (int64_t i = 0; i < count; i++)
		if (list[i].name && strcmp(list[i].name, name) == 0)
			return &list[i];
	return NULL;
}

static int read_edges(struct reading *r, const char *path, const struct local *list, int64_t count)
{
	char room[NEAP__H5_PATH], **names;
	int64_t n;
	int rc = 0;

	NEAP_TRY(join(room, r, path, "edges"));
	NEAP_TRY(read_texts(r, room, -1, 2 * EDGES_MOST, &names, &n));
	if (n % 2)
		rc = say_text(r, room, "must contain pairs of names");
	for (int64_t i = 0; rc == 0 && i + 1 < n; i += 2) {
		const struct local *a = find(list, count, names[i]);
		const struct local *b = find(list, count, names[i + 1]);
		if (!a || !b)
			rc = neap__fail(NEAP_EFORMAT,
				"'%s': an edge of '%s' refers to '%.80s', which is not a node",
				r->file.path, room, a ? names[i + 1] : names[i]);
		else if (a->out < 0 || b->in < 0)
			rc = neap__fail(NEAP_EFORMAT,
				"'%s': an edge of '%s': the graph '%.80s' has no %s node",
				r->file.path, room, a->out < 0 ? names[i] : names[i + 1],
				a->out < 0 ? "Output" : "Input");
		else if (r->graph->edges >= EDGES_MOST)
			rc = neap__fail(NEAP_EFORMAT, "'%s' has more than %d edges", r->file.path,
				EDGES_MOST);
		else
			rc = neap__nir_add_edge(r->graph, a->out, b->in);
	}
	for (int64_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return rc;
}

/* The Input and the Output node of a graph, from its first node on: one each, at most. */
static int find_ends(const struct reading *r, const char *path, const struct local *list,
	int64_t count, struct local *self)
{
	self->in = self->out = -1;
	for (int64_t i = 0; i < count; i++) {
		int node = list[i].in;
		/* Ends of graphs further inside are not this graph's. */
		if (node < 0 || node != list[i].out)
			continue;
		enum neap__nir_type type = r->graph->node[node].type;
		int *end = type == NEAP__NIR_INPUT    ? &self->in
			   : type == NEAP__NIR_OUTPUT ? &self->out
						      : NULL;
		if (end && *end >= 0)
			return neap__fail(NEAP_EFORMAT,
				"'%s': '%s' has more than one %s node; only one is supported",
				r->file.path, path, neap__nir_type_name(type));
		if (end)
			*end = node;
	}
	return 0;
}

static int read_nodes(struct reading *r, const char *path, const char *outer, int depth,
	hid_t group, struct local *list, int64_t count)
{
	char name[NAME_MOST + 1], room[NEAP__H5_PATH], full[NEAP__H5_PATH];

	for (int64_t i = 0; i < count; i++) {
		ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC,
			(hsize_t)i, name, sizeof name, H5P_DEFAULT);
		if (length <= 0 || length > NAME_MOST)
			return neap__fail(NEAP_EFORMAT,
				"'%s': a node of '%s' has no name of 1 to %d bytes", r->file.path,
				path, NAME_MOST);
		NEAP_TRY(join(room, r, path, name));
		int there = neap__h5_has(&r->file, room);
		if (there <= 0)
			return there < 0 ? there : say_text(r, room, "cannot be read: damaged");
		list[i].name = strdup(name);
		if (!list[i].name)
			return neap__fail_errno(ENOMEM, "'%s'", r->file.path);
		neap__print(full, sizeof full, "%s%s%s", outer, *outer ? "/" : "", name);
		NEAP_TRY(read_node(r, room, full, depth, &list[i]));
	}
	return 0;
}

static int read_graph(
	struct reading *r, const char *path, const char *outer, int depth, struct local *self)
{
	char room[NEAP__H5_PATH];
	H5G_info_t info;
	int64_t count = 0;
	struct local *list = NULL;

	if (depth > DEPTH_MOST)
		return neap__fail(NEAP_EFORMAT, "'%s': graphs are nested more than %d deep",
			r->file.path, DEPTH_MOST);
	NEAP_TRY(join(room, r, path, "nodes"));
	int rc = neap__h5_has(&r->file, room);
	if (rc <= 0)
		return rc < 0 ? rc : say_text(r, path, "is a graph without nodes");
	hid_t group = H5Gopen2(r->file.id, room, H5P_DEFAULT);
	rc = group >= 0 && H5Gget_info(group, &info) >= 0 ? 0 : say_text(r, room, "is not a group");
	if (rc == 0 && info.nlinks > NODES_MOST)
		rc = neap__fail(
			NEAP_EFORMAT, "'%s' has more than %d nodes", r->file.path, NODES_MOST);
	if (rc == 0) {
		count = (int64_t)info.nlinks;
		list = calloc((size_t)count + 1, sizeof *list);
		if (!list)
			rc = neap__fail_errno(ENOMEM, "'%s'", r->file.path);
	}
	if (rc == 0)
		rc = read_nodes(r, room, outer, depth, group, list, count);
	if (group >= 0)
		H5Gclose(group);
	if (rc == 0)
		rc = read_edges(r, path, list, count);
	if (rc == 0)
		rc = find_ends(r, path, list, count, self);
	for (int64_t i = 0; list && i < count; i++)
		free(list[i].name);
	free(list);
	return rc;
}

/* One text or one row of numbers of the group metadata; others are not neap's and are left. */
static int read_meta(struct reading *r, const char *name)
{
	char room[NEAP__H5_PATH];
	struct neap__nir_array array = {0};
	struct neap__h5_set set;
	char *text = NULL;

	NEAP_TRY(join(room, r, "/node/metadata", name));
	int there = neap__h5_has(&r->file, room);
	H5O_info_t object;
	if (there <= 0 || H5Oget_info_by_name1(r->file.id, room, &object, H5P_DEFAULT) < 0 ||
		object.type != H5O_TYPE_DATASET)
		return there < 0 ? there : 0;
	NEAP_TRY(neap__h5_any_open(&set, &r->file, room));
	H5T_class_t kind = H5Tget_class(set.type);
	int is_one = set.count == 1 && kind == H5T_STRING;
	int numbers = set.dims <= 1 && (kind == H5T_FLOAT || kind == H5T_INTEGER);
	neap__h5_set_close(&set);
	int rc = 0;
	if (is_one) {
		rc = read_text(r, room, &text);
		if (rc == 0)
			rc = neap__nir_add_text(r->graph, name, text);
	} else if (numbers) {
		rc = read_array(r, room, &array);
		if (rc == 0)
			rc = neap__nir_add_numbers(r->graph, name, &array);
	}
	free(text);
	free(array.data);
	return rc;
}

static int read_metadata(struct reading *r)
{
	char name[NAME_MOST + 1];
	H5G_info_t info;

	int there = neap__h5_has(&r->file, "/node/metadata");
	if (there <= 0)
		return there;
	hid_t group = H5Gopen2(r->file.id, "/node/metadata", H5P_DEFAULT);
	if (group < 0 || H5Gget_info(group, &info) < 0)
		info.nlinks = 0;
	int rc = 0;
	for (hsize_t i = 0; rc == 0 && i < info.nlinks && r->graph->metas < NEAP__NIR_META; i++) {
		ssize_t length = H5Lget_name_by_idx(
			group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT);
		if (length > 0 && length <= NAME_MOST)
			rc = read_meta(r, name);
	}
	if (group >= 0)
		H5Gclose(group);
	return rc;
}

static int read_all(struct reading *r)
{
	struct local self;
	char *type;

	NEAP_TRY(neap__h5_open(&r->file, r->file.path));
	int rc = read_text(r, "/node/type", &type);
	if (rc == NEAP_EFORMAT)
		return neap__fail(rc,
			"'%s' is not a graph in NIR: it has no '/node/type'. Pass such a graph, or "
			"the folder of a run",
			r->file.path);
	NEAP_TRY(rc);
	int is_graph = strcmp(type, "NIRGraph") == 0;
	free(type);
	if (!is_graph)
		return say_text(r, "/node/type", "is not NIRGraph");
	NEAP_TRY(read_graph(r, "/node", "", 0, &self));
	if (self.in < 0 || self.out < 0)
		return neap__fail(NEAP_EFORMAT, "'%s': the graph has no %s node", r->file.path,
			self.in < 0 ? "Input" : "Output");
	return read_metadata(r);
}

static void try_read(void *path)
{
	struct neap__nir_graph graph = {0};
	struct reading r = {.graph = &graph, .file = {.id = -1, .fd = -1, .path = path}};

	(void)read_all(&r);
	neap__h5_close(&r.file);
	neap__nir_free(&graph);
}

int neap__nir_takes(const char *path)
{
	static const unsigned char signature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
	unsigned char found[sizeof signature];
	struct stat st;

	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return 0;
	int is = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		 pread(fd, found, sizeof found, 0) == (ssize_t)sizeof found &&
		 memcmp(found, signature, sizeof found) == 0;
	close(fd);
	return is;
}

int neap__nir_read(struct neap__nir_graph *graph, const char *path)
{
	struct reading r = {.graph = graph, .file = {.id = -1, .fd = -1, .path = path}};
	struct neap__h5_guard guard;

	*graph = (struct neap__nir_graph){0};
	neap__h5_enter(&guard);
	/* HDF5 1.10 may crash where the structures of a file are damaged. */
	int died = neap__data_try(try_read, (void *)(uintptr_t)path);
	int rc = died ? neap__fail(NEAP_EFORMAT,
				"'%s' is damaged: reading it crashed HDF5 (signal %d). Copy or "
				"write it again",
				path, died)
		      : read_all(&r);
	neap__h5_close(&r.file);
	neap__h5_leave(&guard);
	if (rc < 0)
		neap__nir_free(graph);
	return rc;
}

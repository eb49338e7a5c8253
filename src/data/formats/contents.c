/* SPDX-License-Identifier: Apache-2.0 */
/* contents.c: lists the arrays of a file (contents.h). */
#include "data/formats/contents.h"
#include "data/dataset.h"
#include "data/event_names.h"
#include "data/formats/h5.h"
#include "data/npy/npz.h"
#include "data/recordings.h"
#include "base/fail.h"
#include "base/print.h"

#include <string.h>
#include <strings.h>

static int is_among(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static struct neap__content *add(struct neap__contents *c, const char *name)
{
	if (c->count == NEAP__CONTENTS_MOST) {
		c->more++;
		return NULL;
	}
	struct neap__content *item = &c->item[c->count++];
	*item = (struct neap__content){.dims = -1};
	neap__print(item->name, sizeof item->name, "%s", name);
	return item;
}

static void describe_fields(struct neap__content *item, const struct neap__npy_header *h)
{
	int t = 0, x = 0;
	size_t n = (size_t)neap__print(item->type, sizeof item->type, "records of");
	for (int f = 0; f < h->fields; f++) {
		const char *name = h->field[f].name;
		if (n < sizeof item->type)
			n += (size_t)neap__print(
				item->type + n, sizeof item->type - n, "%s %s", f ? "," : "", name);
		t |= is_among(neap__event_names[NEAP__EVENT_T], name);
		x |= is_among(neap__event_names[NEAP__EVENT_X], name);
	}
	item->has_t_and_x = t && x;
}

static void describe(struct neap__content *item, const struct neap__npy_header *h)
{
	static const char *const kinds[] = {[NEAP__NPY_BOOL] = "bool",
		[NEAP__NPY_INT] = "int",
		[NEAP__NPY_UINT] = "uint",
		[NEAP__NPY_FLOAT] = "float",
		[NEAP__NPY_BYTES] = "text",
		[NEAP__NPY_UCS4] = "text",
		[NEAP__NPY_OBJECT] = "object"};
	const struct neap__npy_field *f = &h->field[0];
	item->dims = h->dims;
	memcpy(item->size, h->shape, sizeof item->size);
	item->object = f->kind == NEAP__NPY_OBJECT && !h->records;
	item->text = f->kind == NEAP__NPY_BYTES || f->kind == NEAP__NPY_UCS4 || h->records;
	int sized =
		f->kind == NEAP__NPY_INT || f->kind == NEAP__NPY_UINT || f->kind == NEAP__NPY_FLOAT;
	if (h->records)
		describe_fields(item, h);
	else if (sized)
		neap__print(item->type, sizeof item->type, "%s%zu", kinds[f->kind], 8 * f->bytes);
	else
		neap__print(item->type, sizeof item->type, "%s", kinds[f->kind]);
}

static void list_npz(struct neap__contents *c, const char *path)
{
	struct neap__npz *archive;
	struct neap__npy_header header;
	if (neap__npz_open(&archive, path) < 0)
		return;
	for (int64_t i = 0; i < neap__npz_arrays(archive); i++) {
		struct neap__content *item = add(c, neap__npz_name(archive, i));
		if (item && neap__npz_header(&header, archive, i) == 0)
			describe(item, &header);
	}
	neap__npz_close(archive);
}

static void list_npy(struct neap__contents *c, const char *path)
{
	struct neap__npy_header header;
	if (neap__npy_header(&header, path) == 0)
		describe(add(c, ""), &header);
}

/* Type and shape of a data set, whatever they are: its data is not read. */
static void describe_set(struct neap__content *item, hid_t set)
{
	hsize_t size[H5S_MAX_RANK];
	hid_t type = H5Dget_type(set), space = H5Dget_space(set);
	H5T_class_t kind = type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS;
	int dims = space >= 0 ? H5Sget_simple_extent_dims(space, size, NULL) : -1;
	item->dims = dims > NEAP__CONTENTS_DIMS ? NEAP__CONTENTS_DIMS : dims;
	for (int d = 0; d < item->dims; d++)
		item->size[d] = (int64_t)size[d];
	item->text = kind != H5T_INTEGER && kind != H5T_FLOAT;
	neap__print(item->type, sizeof item->type, item->text ? "%s" : "%s%zu",
		kind == H5T_INTEGER  ? "int"
		: kind == H5T_FLOAT  ? "float"
		: kind == H5T_STRING ? "text"
				     : "other",
		type >= 0 ? 8 * H5Tget_size(type) : 0);
	if (space >= 0)
		H5Sclose(space);
	if (type >= 0)
		H5Tclose(type);
}

/* A data set, or the members of the root or of a group in it. */
static void list_object(
	struct neap__contents *c, const struct neap__h5_file *file, const char *name, int depth)
{
	char inner[sizeof c->item[0].name];
	H5G_info_t info;
	hid_t set = depth > 0 ? H5Dopen2(file->id, name, H5P_DEFAULT) : -1;
	if (set >= 0) {
		struct neap__content *item = add(c, name + 1);
		if (item)
			describe_set(item, set);
		H5Dclose(set);
		return;
	}
	hid_t group = depth < 2 ? H5Gopen2(file->id, name, H5P_DEFAULT) : -1;
	if (group >= 0 && H5Gget_info(group, &info) >= 0)
		for (hsize_t i = 0; i < info.nlinks && i < NEAP__CONTENTS_MOST; i++) {
			size_t n = (size_t)neap__print(
				inner, sizeof inner, "%s%s", name, name[1] ? "/" : "");
			if (n < sizeof inner &&
				H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i,
					inner + n, sizeof inner - n, H5P_DEFAULT) > 0 &&
				neap__h5_has(file, inner) > 0)
				list_object(c, file, inner, depth + 1);
		}
	if (group >= 0)
		H5Gclose(group);
}

struct h5_listing {
	struct neap__contents *contents;
	const char *path;
};

static void list_h5(void *arg)
{
	struct h5_listing *l = arg;
	struct neap__h5_guard guard;
	struct neap__h5_file file;
	neap__h5_enter(&guard);
	if (neap__h5_open(&file, l->path) == 0) {
		list_object(l->contents, &file, "/", 0);
		neap__h5_close(&file);
	}
	neap__h5_leave(&guard);
}

void neap__contents_list(struct neap__contents *c, const char *path)
{
	struct h5_listing listing = {c, path};
	c->count = 0;
	c->more = 0;
	static const char *const npz[] = {".npz", NULL}, *const npy[] = {".npy", NULL};
	if (neap__recordings_ends(path, npz))
		list_npz(c, path);
	else if (neap__recordings_ends(path, npy))
		list_npy(c, path);
	else if (neap__data_try(list_h5, &listing) == 0) /* which HDF5 survived */
		list_h5(&listing);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5_object.c: finds data sets in an HDF5 file, and refuses what does not lie in the file itself.
 * HDF5 can be told by a file to read other files: through links, external storage and virtual
 * data sets. A file of a stranger could so bring any file of the machine into a model.
 */
#include "data/formats/h5.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FILTERS = 32 };

/* Says where a link leads that is no hard one. */
static int refuse_link(const struct neap__h5_file *file, const char *name, const H5L_info_t *info)
{
	char *value = calloc(info->u.val_size + 1, 1);
	const char *target = "?", *path = NULL;
	unsigned flags;
	if (value && info->u.val_size < 65536 &&
		H5Lget_val(file->id, name, value, info->u.val_size, H5P_DEFAULT) >= 0) {
		if (info->type == H5L_TYPE_SOFT)
			target = value;
		else if (info->type == H5L_TYPE_EXTERNAL)
			H5Lunpack_elink_val(value, info->u.val_size, &flags, &target, &path);
	}
	int rc = neap__fail(NEAP_EFORMAT,
		"'%s': '%s' is %s link to '%.200s'. Store the data in the file itself", file->path,
		name,
		info->type == H5L_TYPE_EXTERNAL ? "an external"
		: info->type == H5L_TYPE_SOFT	? "a soft"
						: "a user-defined",
		target);
	free(value);
	return rc;
}

int neap__h5_has(const struct neap__h5_file *file, const char *name)
{
	char part[NEAP__H5_PATH];
	size_t n = strlen(name);
	if (n >= sizeof part)
		return 0;
	for (size_t i = 1; i <= n; i++) {
		H5L_info_t info;
		if (name[i] != '/' && name[i] != '\0')
			continue;
		memcpy(part, name, i);
		part[i] = '\0';
		if (H5Lexists(file->id, part, H5P_DEFAULT) <= 0)
			return 0;
		if (H5Lget_info(file->id, part, &info, H5P_DEFAULT) < 0)
			return neap__fail(NEAP_EFORMAT,
				"'%s': '%s' cannot be read; the file is damaged", file->path, part);
		if (info.type != H5L_TYPE_HARD)
			return refuse_link(file, part, &info);
	}
	return 1;
}

enum { ENOUGH = 160 /* bytes of a text about a data set */ };

/* The name of a filter that is registered with The HDF Group, or that HDF5 has. */
static const char *filter_name(H5Z_filter_t filter)
{
	static const struct {
		H5Z_filter_t filter;
		const char *name;
	} known[] = {{H5Z_FILTER_SZIP, "szip"}, {H5Z_FILTER_NBIT, "nbit"},
		{H5Z_FILTER_SCALEOFFSET, "scaleoffset"}, {32000, "LZF"}, {32001, "Blosc"},
		{32004, "LZ4"}, {32008, "bitshuffle"}, {32015, "Zstandard"}, {32026, "Blosc2"},
		{36559, "Metavision ECF"}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].filter == filter)
			return known[i].name;
	return "an unknown filter";
}

/* NULL, or what keeps the data set from being read, maybe in `room`. */
static const char *outside(const struct neap__h5_set *set, char room[ENOUGH])
{
	switch (H5Pget_layout(set->creation)) {
	case H5D_COMPACT:
	case H5D_CONTIGUOUS:
	case H5D_CHUNKED:
		break;
	case H5D_VIRTUAL:
		return "is virtual, a view of other files";
	default:
		return "has an unknown layout";
	}
	if (H5Pget_external_count(set->creation) != 0)
		return "keeps its data in other files";
	int filters = H5Pget_nfilters(set->creation);
	if (filters < 0 || filters > MOST_FILTERS)
		return "has filters that cannot be read";
	for (int i = 0; i < filters; i++) {
		unsigned flags, config;
		size_t nvalues = 0;
		H5Z_filter_t filter = H5Pget_filter2(
			set->creation, (unsigned)i, &flags, &nvalues, NULL, 0, NULL, &config);
		if (filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SHUFFLE ||
			filter == H5Z_FILTER_FLETCHER32)
			continue;
		neap__print(room, ENOUGH,
			"is packed by a filter other than gzip, shuffle and fletcher32: %s "
			"(%d)",
			filter_name(filter), (int)filter);
		return room;
	}
	return NULL;
}

/* Does the data set claim more than what is stored of it could hold? */
static int claims_too_much(const struct neap__h5_file *file, const struct neap__h5_set *set)
{
	hsize_t stored = H5Dget_storage_size(set->id), sides[NEAP__H5_DIMS];
	double chunk = 1, bytes = (double)H5Tget_size(set->type);
	if (stored > file->bytes)
		stored = file->bytes;
	double most = (double)stored * NEAP__H5_MOST_UNPACKED + NEAP__H5_FREE_BYTES;
	if (H5Pget_layout(set->creation) == H5D_CHUNKED) {
		if (H5Pget_chunk(set->creation, set->dims, sides) != set->dims)
			return 1;
		for (int i = 0; i < set->dims; i++)
			chunk *= (double)sides[i];
		if (!(chunk >= 1) || chunk * bytes > most)
			return 1;
	}
	return (double)set->count * bytes > most;
}

/* The sizes of a data set of so many dimensions; 1, or 0 where it has others. */
static int has_size(struct neap__h5_set *set, hid_t space, int least, int most)
{
	if (set->type < 0 || set->creation < 0 || space < 0)
		return 0;
	set->dims = H5Sget_simple_extent_ndims(space);
	if (set->dims < least || set->dims > most || H5Sget_simple_extent_type(space) == H5S_NULL ||
		H5Sget_simple_extent_dims(space, set->size, NULL) != set->dims)
		return 0;
	set->count = 1;
	for (int i = 0; i < set->dims; i++)
		if (__builtin_mul_overflow(set->count, set->size[i], &set->count))
			set->count = UINT64_MAX;
	return 1;
}

static int check_set(struct neap__h5_set *set, const struct neap__h5_file *file, const char *name,
	hid_t space, int least, int most)
{
	if (!has_size(set, space, least, most)) {
		const char *key = neap__python_quoted(name + (name[0] == '/'));
		return set->dims > 1 && most == 1
			       ? neap__fail(NEAP_EFORMAT,
					 "'%s': '%s' has %d dimensions, but must have one. Save "
					 "it with one: python3 -c \"import h5py; f = h5py.File(%s, "
					 "'a'); v = f.pop(%s)[()].ravel(); f[%s] = v\"",
					 file->path, name, set->dims,
					 neap__python_quoted(file->path), key, key)
			       : neap__fail(NEAP_EFORMAT, "'%s': '%s' must be a data set of %s",
					 file->path, name,
					 most == 1    ? "one dimension"
					 : least == 0 ? "at most four dimensions"
						      : "one to three dimensions");
	}
	char room[ENOUGH];
	const char *why = outside(set, room);
	set->elsewhere = why != NULL;
	if (why)
		return neap__fail(NEAP_EFORMAT, "'%s': '%s' %s. %s", file->path, name, why,
			why == room
				? "Rewrite it without the filter, with its plugin in the folder "
				  "HDF5_PLUGIN_PATH: h5repack -f NONE IN.h5 OUT.h5"
				: "Store the data in the file itself: rewrite it with h5repack");
	if (claims_too_much(file, set))
		return neap__fail(NEAP_EFORMAT,
			"'%s': '%s' is damaged: it declares %llu entries, more than its stored "
			"bytes can hold",
			file->path, name, (unsigned long long)set->count);
	return 0;
}

/* What a data set that is missing contains. */
static const char *what_to_add(const char *name)
{
	static const struct {
		const char *name, *what;
	} sets[] = {{"/labels", "Add it, with the number of the class of each sample, from 0: "
				"h5py.File(FILE, 'a')['labels'] = labels"},
		{"/spikes/times",
			"Rewrite the file with the times of the spikes in seconds, a list for "
			"each sample, and their channels in '/spikes/units'"},
		{"/spikes/units", "Rewrite the file with the channels of the spikes, a list for "
				  "each sample like '/spikes/times'"}};
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		if (strcmp(sets[i].name, name) == 0)
			return sets[i].what;
	return "Rewrite the file with all of them";
}

static int open_set(struct neap__h5_set *set, const struct neap__h5_file *file, const char *name,
	int least, int most)
{
	int there = neap__h5_has(file, name);
	*set = (struct neap__h5_set){.id = -1, .type = -1, .creation = -1};
	if (there < 0)
		return there;
	if (there == 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has no data set '%s'. %s; docs/data.md lists the data sets of a file",
			file->path, name, what_to_add(name));
	set->id = H5Dopen2(file->id, name, H5P_DEFAULT);
	set->type = set->id >= 0 ? H5Dget_type(set->id) : -1;
	set->creation = set->id >= 0 ? H5Dget_create_plist(set->id) : -1;
	hid_t space = set->id >= 0 ? H5Dget_space(set->id) : -1;
	int rc = check_set(set, file, name, space, least, most);
	if (space >= 0)
		H5Sclose(space);
	int elsewhere = set->elsewhere, dims = set->dims;
	if (rc < 0)
		neap__h5_set_close(set);
	set->elsewhere = elsewhere;
	set->dims = dims;
	return rc;
}

int neap__h5_set_open(struct neap__h5_set *set, const struct neap__h5_file *file, const char *name)
{
	return open_set(set, file, name, 1, 1);
}

int neap__h5_list_open(struct neap__h5_set *set, const struct neap__h5_file *file, const char *name)
{
	return open_set(set, file, name, 0, 1);
}

int neap__h5_block_open(
	struct neap__h5_set *set, const struct neap__h5_file *file, const char *name)
{
	return open_set(set, file, name, 1, NEAP__H5_BLOCK_DIMS);
}

int neap__h5_any_open(struct neap__h5_set *set, const struct neap__h5_file *file, const char *name)
{
	return open_set(set, file, name, 0, NEAP__H5_DIMS);
}

void neap__h5_set_close(struct neap__h5_set *set)
{
	if (set->creation >= 0)
		H5Pclose(set->creation);
	if (set->type >= 0)
		H5Tclose(set->type);
	if (set->id >= 0)
		H5Dclose(set->id);
	*set = (struct neap__h5_set){.id = -1, .type = -1, .creation = -1};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vlen.c: reads rows of variable length from the global heap and checks every number in it.
 * HDF5 gives the place of the references (contiguous or chunk by chunk, filters
 * undone here); a reference is {length 4, heap address, object 4}.
 */
#include "data/formats/h5.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

uint64_t neap__h5_little(const unsigned char *p, size_t bytes)
{
	uint64_t value = 0;
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)p[i] << (8 * i);
	return value;
}

int neap__vlen_damaged(const struct neap__vlen *vlen, const char *what)
{
	return neap__fail(NEAP_EFORMAT, "'%s': '%s' is damaged: %s. Copy or write the file again",
		vlen->file->path, vlen->name, what);
}

int neap__vlen_read_at(const struct neap__vlen *vlen, void *data, size_t bytes, uint64_t offset)
{
	unsigned char *p = data;
	if (offset > vlen->file->bytes || bytes > vlen->file->bytes - offset)
		return neap__vlen_damaged(vlen, "a reference points outside the file");
	while (bytes > 0) {
		ssize_t n = pread(vlen->file->fd, p, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return neap__fail_errno(errno, "cannot read '%s'", vlen->file->path);
		if (n == 0)
			return neap__vlen_damaged(vlen, "the file was cut short while it was read");
		p += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

static void unshuffle(unsigned char *out, const unsigned char *in, size_t bytes, size_t width)
{
	size_t n = bytes / width;
	for (size_t j = 0; j < width; j++)
		for (size_t i = 0; i < n; i++)
			out[i * width + j] = in[j * n + i];
	memcpy(out + n * width, in + n * width, bytes - n * width);
}

const char *neap__h5_unfilter(const int *filter, int count, uint32_t skipped, size_t width,
	unsigned char **data, unsigned char **spare, size_t bytes, size_t want)
{
	for (int i = count - 1; i >= 0; i--) {
		unsigned char *out = *spare;
		uLongf got = (uLongf)want + NEAP__H5_SPARE;
		if (skipped >> i & 1)
			continue;
		switch (filter[i]) {
		case H5Z_FILTER_DEFLATE:
			if (uncompress(out, &got, *data, (uLong)bytes) != Z_OK)
				return "a compressed chunk does not unpack";
			bytes = got;
			break;
		case H5Z_FILTER_SHUFFLE:
			unshuffle(out, *data, bytes, width);
			break;
		case H5Z_FILTER_FLETCHER32: /* what it guards is checked value by value */
			if (bytes < 4)
				return "a chunk is short";
			bytes -= 4;
			continue;
		default:
			return "it is packed by a filter other than gzip, shuffle and fletcher32";
		}
		*spare = *data;
		*data = out;
	}
	return bytes == want ? NULL : "a chunk has the wrong size";
}

/* The filters of a data set; their number, or -1. */
static int filters_of(hid_t creation, int filter[H5Z_MAX_NFILTERS])
{
	int count = H5Pget_nfilters(creation);
	for (int i = 0; i < count && i < H5Z_MAX_NFILTERS; i++) {
		unsigned flags, config;
		size_t nvalues = 0;
		filter[i] = H5Pget_filter2(
			creation, (unsigned)i, &flags, &nvalues, NULL, 0, NULL, &config);
	}
	return count <= H5Z_MAX_NFILTERS ? count : -1;
}

static int read_chunk(
	struct neap__vlen *vlen, hid_t set, hid_t creation, hsize_t first, hsize_t chunk)
{
	hsize_t stored = 0;
	haddr_t at = HADDR_UNDEF;
	unsigned skipped = 0;
	size_t want, rows = (size_t)((hsize_t)vlen->rows - first);
	unsigned char *to = vlen->reference + first * vlen->reference_bytes;
	/* H5Dread_chunk believes the size in the index whatever room there is: read it here. */
	if (H5Dget_chunk_info_by_coord(set, &first, &skipped, &at, &stored) < 0)
		return neap__vlen_damaged(vlen, "its index of chunks cannot be read");
	if (at == HADDR_UNDEF || stored == 0)
		return 0; /* never written: empty rows */
	if (stored > vlen->file->bytes || chunk > UINT32_MAX ||
		neap__mul_size(&want, (size_t)chunk, vlen->reference_bytes) < 0)
		return neap__vlen_damaged(vlen, "a chunk is larger than the file");
	int filter[H5Z_MAX_NFILTERS], filters = filters_of(creation, filter);
	if (filters < 0 || (filters == 0 && stored != want))
		return neap__vlen_damaged(vlen, "a chunk has the wrong size");
	size_t room = (stored > want ? (size_t)stored : want) + NEAP__H5_SPARE;
	unsigned char *data = malloc(room), *spare = malloc(room);
	int rc = data && spare ? 0 : neap__fail_errno(ENOMEM, "'%s'", vlen->file->path);
	if (rc == 0)
		rc = neap__vlen_read_at(vlen, data, (size_t)stored, at);
	if (rc == 0) {
		const char *wrong = neap__h5_unfilter(filter, filters, skipped,
			vlen->reference_bytes, &data, &spare, (size_t)stored, want);
		rc = wrong ? neap__vlen_damaged(vlen, wrong) : 0;
	}
	if (rc == 0)
		memcpy(to, data, (rows < chunk ? rows : (size_t)chunk) * vlen->reference_bytes);
	free(data);
	free(spare);
	return rc;
}

static int read_references(struct neap__vlen *vlen, hid_t set, hid_t creation)
{
	size_t bytes;
	hsize_t chunk = 0;
	if (neap__mul_size(&bytes, (size_t)vlen->rows, vlen->reference_bytes) < 0)
		return neap__vlen_damaged(vlen, "it claims too many rows");
	vlen->reference = calloc(bytes ? bytes : 1, 1);
	if (!vlen->reference)
		return neap__fail_errno(ENOMEM, "'%s': '%s'", vlen->file->path, vlen->name);
	switch (H5Pget_layout(creation)) {
	case H5D_CONTIGUOUS: {
		haddr_t at = H5Dget_offset(set);
		return at == HADDR_UNDEF || bytes == 0
			       ? 0
			       : neap__vlen_read_at(vlen, vlen->reference, bytes, at);
	}
	case H5D_CHUNKED:
		if (H5Pget_chunk(creation, 1, &chunk) != 1 || chunk == 0) /* or more dimensions */
			return neap__vlen_damaged(vlen, "no chunk size");
		for (hsize_t first = 0; first < (hsize_t)vlen->rows; first += chunk)
			NEAP_TRY(read_chunk(vlen, set, creation, first, chunk));
		return 0;
	default:
		return neap__fail(NEAP_EFORMAT,
			"'%s': '%s' is neither contiguous nor chunked. Rewrite it with h5repack",
			vlen->file->path, vlen->name);
	}
}

/* Whether elements of the type are what the caller takes: simple and at most 8 bytes. */
static int base_type(struct neap__vlen *vlen, hid_t type, H5T_class_t kind)
{
	int ok;
	if (kind == H5T_STRING) {
		ok = H5Tis_variable_str(type) > 0;
		vlen->base_bytes = 1;
	} else {
		vlen->base = H5Tget_class(type) == H5T_VLEN ? H5Tget_super(type) : -1;
		vlen->base_bytes = vlen->base >= 0 ? H5Tget_size(vlen->base) : 0;
		ok = vlen->base >= 0 && H5Tget_class(vlen->base) == kind && vlen->base_bytes >= 1 &&
		     vlen->base_bytes <= 8;
		vlen->layout = ok ? neap__vlen_layout_of(vlen->base) : NEAP__VLEN_OTHER;
	}
	return ok ? 0
		  : neap__fail(NEAP_EFORMAT, "'%s': '%s' must contain rows of %s", vlen->file->path,
			    vlen->name,
			    kind == H5T_FLOAT	  ? "floating-point numbers"
			    : kind == H5T_INTEGER ? "integers"
						  : "text");
}

/* Rows that share bytes could ask for any amount of time and memory. */
static int check_lengths(const struct neap__vlen *vlen)
{
	uint64_t all = 0;
	for (int64_t row = 0; row < vlen->rows; row++)
		all += (uint64_t)neap__vlen_length(vlen, row) * vlen->base_bytes;
	return all <= vlen->file->bytes
		       ? 0
		       : neap__vlen_damaged(vlen, "its rows claim more bytes than the file has");
}

int neap__vlen_open(struct neap__vlen *vlen, const struct neap__h5_file *file, const char *name,
	H5T_class_t kind)
{
	struct neap__h5_set set;
	memset(vlen, 0, sizeof *vlen);
	vlen->file = file;
	vlen->name = name;
	vlen->base = -1;
	vlen->reference_bytes = 8 + file->address_bytes;
	NEAP_TRY(kind == H5T_STRING ? neap__h5_any_open(&set, file, name)
				    : neap__h5_set_open(&set, file, name));
	int rc = base_type(vlen, set.type, kind);
	if (rc == 0) {
		vlen->rows = set.count > INT64_MAX ? INT64_MAX : (int64_t)set.count;
		rc = read_references(vlen, set.id, set.creation);
	}
	if (rc == 0)
		rc = check_lengths(vlen);
	if (rc == 0)
		rc = neap__heap_index_new(vlen);
	neap__h5_set_close(&set);
	if (rc < 0)
		neap__vlen_close(vlen);
	return rc;
}

uint32_t neap__vlen_length(const struct neap__vlen *vlen, int64_t row)
{
	return (uint32_t)neap__h5_little(vlen->reference + (size_t)row * vlen->reference_bytes, 4);
}

int neap__vlen_place(struct neap__vlen *vlen, int64_t row, struct neap__vlen_place *place)
{
	const unsigned char *reference = vlen->reference + (size_t)row * vlen->reference_bytes;
	size_t address_bytes = vlen->file->address_bytes;
	uint64_t address = neap__h5_little(reference + 4, address_bytes), size;
	uint64_t number = neap__h5_little(reference + 4 + address_bytes, 4);
	*place = (struct neap__vlen_place){0, neap__vlen_length(vlen, row)};
	if (place->length == 0)
		return 0;
	if (number > UINT16_MAX)
		return neap__vlen_damaged(vlen, "a row is missing from its heap");
	NEAP_TRY(neap__heap_index_find(vlen, address, (unsigned)number, &place->offset, &size));
	if (size < (uint64_t)place->length * vlen->base_bytes)
		return neap__vlen_damaged(vlen, "a row is longer than what is stored of it");
	return 0;
}

int neap__vlen_row(
	struct neap__vlen *vlen, int64_t row, const unsigned char **data, uint32_t *length)
{
	struct neap__vlen_place place;
	*data = (const unsigned char *)"";
	*length = 0;
	NEAP_TRY(neap__vlen_place(vlen, row, &place));
	size_t bytes = (size_t)place.length * vlen->base_bytes;
	if (bytes == 0)
		return 0;
	if (neap__grow(&vlen->row, &vlen->row_room, (int64_t)bytes, 1) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", vlen->file->path);
	NEAP_TRY(neap__vlen_read_at(vlen, vlen->row, bytes, place.offset));
	*data = vlen->row;
	*length = place.length;
	return 0;
}

void neap__vlen_close(struct neap__vlen *vlen)
{
	if (vlen->base >= 0)
		H5Tclose(vlen->base);
	free(vlen->reference);
	free(vlen->row);
	neap__heap_index_free(vlen->index);
	memset(vlen, 0, sizeof *vlen);
	vlen->base = -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.c: reads elements of an array as numbers or text. They are converted 64 KiB at a time. An
 * array in Fortran order is brought to C order in memory when it is opened, up to 64 MiB.
 */
#include "data/npy/npy.h"
#include "data/npy/npy_source.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/half.h"
#include "base/print.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW = 65536, MOST_TURNED = 64 << 20 };

struct neap__npy {
	struct neap__npy_header header;
	struct neap__npy_source source;
	char *where;
	unsigned char window[WINDOW];
};

const struct neap__npy_header *neap__npy_shape(const struct neap__npy *array)
{
	return &array->header;
}

const char *neap__npy_where(const struct neap__npy *array)
{
	return array->where;
}

int neap__npy_field(const struct neap__npy *array, const char *name)
{
	for (int i = 0; i < array->header.fields; i++)
		if (strcmp(array->header.field[i].name, name) == 0)
			return i;
	return -1;
}

void neap__npy_close(struct neap__npy *array)
{
	if (!array)
		return;
	array->source.close(array->source.user);
	free(array->where);
	free(array);
}

/* Where the C-ordered elements of a Fortran-ordered array lie. */
static void turn(unsigned char *out, const unsigned char *in, const struct neap__npy_header *h)
{
	int64_t index[NEAP__NPY_MOST_DIMS] = {0}, step[NEAP__NPY_MOST_DIMS], from = 0;
	for (int d = 0; d < h->dims; d++)
		step[d] = d == 0 ? 1 : step[d - 1] * h->shape[d - 1];
	for (int64_t i = 0; i < h->count; i++) {
		memcpy(out + (size_t)i * h->item_bytes, in + (size_t)from * h->item_bytes,
			h->item_bytes);
		for (int d = h->dims - 1; d >= 0; d--) {
			from += step[d];
			if (++index[d] < h->shape[d])
				break;
			from -= step[d] * h->shape[d];
			index[d] = 0;
		}
	}
}

static int to_c_order(struct neap__npy *array)
{
	struct neap__npy_header *h = &array->header;
	size_t bytes = (size_t)h->count * h->item_bytes;
	if (bytes > MOST_TURNED)
		return neap__fail(NEAP_EFORMAT,
			"%s is in Fortran order and larger than %d MiB. Save "
			"numpy.ascontiguousarray(array) instead",
			array->where, MOST_TURNED >> 20);
	unsigned char *in = malloc(bytes + 1), *out = malloc(bytes + 1);
	int rc = in && out ? 0 : neap__fail_errno(ENOMEM, "%s", array->where);
	if (rc == 0)
		rc = array->source.read(array->source.user, in, h->data_at, bytes, array->where);
	if (rc == 0) {
		turn(out, in, h);
		array->source.close(array->source.user);
		neap__npy_memory(&array->source, out, bytes);
		h->data_at = 0;
	} else {
		free(out);
	}
	free(in);
	return rc;
}

static int check(struct neap__npy *array)
{
	struct neap__npy_header *h = &array->header;
	size_t head = array->source.bytes < WINDOW ? (size_t)array->source.bytes : WINDOW;
	uint64_t bytes, all;
	NEAP_TRY(array->source.read(array->source.user, array->window, 0, head, array->where));
	NEAP_TRY(neap__npy_header_parse(h, array->window, head, array->where));
	for (int f = 0; f < h->fields; f++)
		if (h->field[f].kind == NEAP__NPY_OBJECT)
			return neap__fail(NEAP_EFORMAT,
				"%s contains Python objects (dtype object), which are not read. "
				"Save "
				"numbers of one type instead: .astype(float), or .astype(str) of "
				"names; samples of different lengths padded, with 'lengths' "
				"(docs/data.md)",
				array->where);
	if (neap__mul_u64(&bytes, (uint64_t)h->count, h->item_bytes) < 0 ||
		neap__add_u64(&all, bytes, h->data_at) < 0 || all != array->source.bytes)
		return neap__fail(NEAP_EFORMAT,
			"%s is damaged or truncated: it has %llu bytes for %lld elements of %zu "
			"bytes. Copy or write it again",
			array->where, (unsigned long long)(array->source.bytes - h->data_at),
			(long long)h->count, h->item_bytes);
	if (h->item_bytes > WINDOW)
		return neap__fail(NEAP_EFORMAT,
			"%s has elements of %zu bytes, more than the %d that are supported. Save "
			"its parts as separate arrays",
			array->where, h->item_bytes, WINDOW);
	return h->fortran && h->dims > 1 ? to_c_order(array) : 0;
}

int neap__npy_new(struct neap__npy **out, const struct neap__npy_source *source, char *where)
{
	struct neap__npy *array = malloc(sizeof *array);
	if (!array || !where) {
		source->close(source->user);
		free(array);
		free(where);
		return neap__fail_errno(ENOMEM, "opening an array");
	}
	array->source = *source;
	array->where = where;
	int rc = check(array);
	if (rc < 0)
		neap__npy_close(array);
	else
		*out = array;
	return rc;
}

static int file_read(void *user, void *out, uint64_t offset, size_t bytes, const char *where)
{
	int fd = *(int *)user;
	for (char *p = out; bytes > 0;) {
		ssize_t n = pread(fd, p, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return neap__fail_errno(errno, "%s: cannot be read", where);
		if (n == 0)
			return neap__fail(NEAP_EFORMAT,
				"%s was truncated while it was read. Run the command again", where);
		p += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

static void file_close(void *user)
{
	close(*(int *)user);
	free(user);
}

int neap__npy_file(struct neap__npy_source *source, int fd, uint64_t bytes)
{
	int *user = malloc(sizeof *user);
	if (!user) {
		close(fd);
		return neap__fail_errno(ENOMEM, "opening an array");
	}
	*user = fd;
	*source = (struct neap__npy_source){file_read, file_close, user, bytes};
	return 0;
}

static int memory_read(void *user, void *out, uint64_t offset, size_t bytes, const char *where)
{
	(void)where;
	memcpy(out, (const char *)user + offset, bytes);
	return 0;
}

void neap__npy_memory(struct neap__npy_source *source, void *data, uint64_t bytes)
{
	*source = (struct neap__npy_source){memory_read, free, data, bytes};
}

int neap__npy_header(struct neap__npy_header *header, const char *path)
{
	char *head = malloc(NEAP__NPY_MOST_HEADER), where[80];
	FILE *file = head ? fopen(path, "re") : NULL;
	int rc = head ? file ? 0 : -errno : -ENOMEM;
	neap__print(where, sizeof where, "'%.70s'", path);
	if (rc == 0)
		rc = neap__npy_header_parse(
			header, head, fread(head, 1, NEAP__NPY_MOST_HEADER, file), where);
	if (file)
		fclose(file);
	free(head);
	return rc;
}

int neap__npy_open(struct neap__npy **out, const char *path)
{
	struct neap__npy_source source;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return neap__fail_errno(errno, "cannot read '%s'", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return neap__fail(NEAP_EFORMAT, "'%s' is not a regular file", path);
	}
	NEAP_TRY(neap__npy_file(&source, fd, (uint64_t)st.st_size));
	size_t room = strlen(path) + 3;
	char *where = malloc(room);
	if (where)
		neap__print(where, room, "'%s'", path);
	return neap__npy_new(out, &source, where);
}

static uint64_t bits_of(const struct neap__npy_field *f, const unsigned char *p)
{
	uint64_t bits = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	if (!f->big) { /* a copy of known length is one instruction */
		switch (f->bytes) {
		case 8:
			return memcpy(&bits, p, 8), bits;
		case 4:
			return memcpy(&bits, p, 4), bits;
		case 2:
			return memcpy(&bits, p, 2), bits;
		default:
			return *p;
		}
	}
#endif
	for (size_t i = 0; i < f->bytes; i++)
		bits |= (uint64_t)p[f->big ? f->bytes - 1 - i : i] << 8 * i;
	return bits;
}

static double real_of(const struct neap__npy_field *f, uint64_t bits)
{
	double wide;
	float narrow;
	uint32_t half = (uint32_t)bits;
	if (f->bytes == 2)
		return neap__half_to_double((uint16_t)bits);
	if (f->bytes == 4) {
		memcpy(&narrow, &half, sizeof narrow);
		return (double)narrow;
	}
	memcpy(&wide, &bits, sizeof wide);
	return wide;
}

static int64_t integer_of(const struct neap__npy_field *f, uint64_t bits)
{
	unsigned shift = 64 - 8 * (unsigned)f->bytes;
	return (int64_t)(bits << shift) >> shift;
}

static double number(const struct neap__npy_field *f, const unsigned char *p)
{
	uint64_t bits = bits_of(f, p);
	switch (f->kind) {
	case NEAP__NPY_BOOL:
		return bits != 0;
	case NEAP__NPY_INT:
		return (double)integer_of(f, bits);
	case NEAP__NPY_UINT:
		return (double)bits;
	default:
		return real_of(f, bits);
	}
}

/* Whether the number is an integer of 64 bits, which *out becomes. */
static int whole(const struct neap__npy_field *f, const unsigned char *p, int64_t *out)
{
	uint64_t bits = bits_of(f, p);
	if (f->kind == NEAP__NPY_FLOAT) {
		double value = real_of(f, bits);
		/* NaN compares false; 2^63 is the first number too large. */
		if (!(fabs(value) < 0x1p63) || value != floor(value))
			return 0;
		*out = (int64_t)value;
		return 1;
	}
	if (f->kind == NEAP__NPY_UINT && bits > INT64_MAX)
		return 0;
	*out = f->kind == NEAP__NPY_BOOL  ? bits != 0
	       : f->kind == NEAP__NPY_INT ? integer_of(f, bits)
					  : (int64_t)bits;
	return 1;
}

/* Reads as many elements as fit the window: their number, or a negative code. */
static int64_t fill(struct neap__npy *array, int64_t first, int64_t count)
{
	const struct neap__npy_header *h = &array->header;
	int64_t most = (int64_t)(WINDOW / h->item_bytes);
	int64_t n = count < most ? count : most;
	int rc = array->source.read(array->source.user, array->window,
		h->data_at + (uint64_t)first * h->item_bytes, (size_t)n * h->item_bytes,
		array->where);
	return rc < 0 ? rc : n;
}

enum wanted { DOUBLES, INTEGERS };

static int convert(struct neap__npy *array, int field, int64_t first, int64_t count,
	enum wanted wanted, void *out)
{
	const struct neap__npy_header *h = &array->header;
	assert(field >= 0 && field < h->fields && first >= 0 && count >= 0);
	assert(first <= h->count && count <= h->count - first);
	const struct neap__npy_field *f = &h->field[field];
	if (f->kind == NEAP__NPY_BYTES || f->kind == NEAP__NPY_UCS4)
		return neap__fail(NEAP_EFORMAT, "%s contains text%s%s; it must contain numbers",
			array->where, h->records ? " in field " : "", f->name);
	for (int64_t done = 0; done < count;) {
		int64_t n = fill(array, first + done, count - done);
		if (n < 0)
			return (int)n;
		for (int64_t i = 0; i < n; i++) {
			const unsigned char *p =
				array->window + (size_t)i * h->item_bytes + f->offset;
			if (wanted == DOUBLES)
				((double *)out)[done + i] = number(f, p);
			else if (!whole(f, p, &((int64_t *)out)[done + i]))
				return neap__fail(NEAP_EFORMAT,
					"%s: element %lld is %.17g; it must be a 64-bit integer",
					array->where, (long long)(first + done + i), number(f, p));
		}
		done += n;
	}
	return 0;
}

int neap__npy_doubles(struct neap__npy *array, int field, int64_t first, int64_t count, double *out)
{
	return convert(array, field, first, count, DOUBLES, out);
}

int neap__npy_integers(
	struct neap__npy *array, int field, int64_t first, int64_t count, int64_t *out)
{
	return convert(array, field, first, count, INTEGERS, out);
}

static size_t put_utf8(char *out, uint32_t c)
{
	if (c >= 0xd800 && (c < 0xe000 || c > 0x10ffff))
		c = 0xfffd; /* no character */
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)((0xf00u >> n & 0xf0u) | c);
	return n;
}

/* Zeros at the end of a text are padding. */
static char *text_of(const struct neap__npy_field *f, const unsigned char *p)
{
	size_t width = f->kind == NEAP__NPY_UCS4 ? 4 : 1, length = f->bytes / width, n = 0;
	struct neap__npy_field character = {.bytes = width, .big = f->big};
	char *out = malloc(length * 4 + 1);
	if (!out)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		uint32_t c = (uint32_t)bits_of(&character, p + i * width);
		if (c == 0)
			break;
		if (width == 1)
			out[n++] = (char)c;
		else
			n += put_utf8(out + n, c);
	}
	out[n] = '\0';
	return out;
}

int neap__npy_strings(struct neap__npy *array, int64_t most, char ***out, int *count)
{
	const struct neap__npy_header *h = &array->header;
	const struct neap__npy_field *f = &h->field[0];
	if (h->records || h->dims > 1 || (f->kind != NEAP__NPY_BYTES && f->kind != NEAP__NPY_UCS4))
		return neap__fail(
			NEAP_EFORMAT, "%s must be a one-dimensional array of text", array->where);
	if (h->count > most || h->count > INT32_MAX)
		return neap__fail(NEAP_EFORMAT, "%s has %lld names, more than %lld", array->where,
			(long long)h->count, (long long)most);
	char **names = calloc((size_t)h->count + 1, sizeof *names);
	int64_t done = 0, n = 0;
	int rc = names ? 0 : neap__fail_errno(ENOMEM, "%s", array->where);
	while (rc == 0 && done < h->count) {
		n = fill(array, done, h->count - done);
		rc = n < 0 ? (int)n : 0;
		for (int64_t i = 0; rc == 0 && i < n; i++, done++) {
			names[done] = text_of(f, array->window + (size_t)i * h->item_bytes);
			if (!names[done])
				rc = neap__fail_errno(ENOMEM, "%s", array->where);
		}
	}
	if (rc < 0) {
		for (int64_t i = 0; names && i < done; i++)
			free(names[i]);
		free(names);
		return rc;
	}
	*out = names;
	*count = (int)h->count;
	return 0;
}

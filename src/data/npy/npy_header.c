/* SPDX-License-Identifier: Apache-2.0 */
/* npy_header.c: the Python literal in a .npy header, with every number and length checked. */
#include "data/npy/npy_header.h"
#include "base/checked.h"
#include "base/fail.h"

#include <string.h>

enum { DESCR, ORDER, SHAPE, KEYS };

struct literal {
	const char *at, *end, *where;
};

static int wrong(const struct literal *in, const char *what)
{
	return neap__fail(NEAP_EFORMAT, "%s: the header has no %s. Write the file with numpy.save",
		in->where, what);
}

static void skip_space(struct literal *in)
{
	while (in->at < in->end && strchr(" \t\r\n", *in->at) && *in->at)
		in->at++;
}

/* Whether the next character is `c`, which is then passed. */
static int take(struct literal *in, char c)
{
	skip_space(in);
	if (in->at >= in->end || *in->at != c)
		return 0;
	in->at++;
	return 1;
}

/* A string in quotes, without escapes, shorter than `room`. */
static int take_text(struct literal *in, char *out, size_t room)
{
	skip_space(in);
	if (in->at >= in->end || (*in->at != '\'' && *in->at != '"'))
		return 0;
	char quote = *in->at++;
	size_t n = 0;
	for (; in->at < in->end && *in->at != quote; in->at++) {
		if (n + 1 >= room || *in->at == '\\' || *in->at == '\0')
			return 0;
		out[n++] = *in->at;
	}
	out[n] = '\0';
	return in->at++ < in->end;
}

static int take_word(struct literal *in, const char *word)
{
	size_t n = strlen(word);
	skip_space(in);
	if ((size_t)(in->end - in->at) < n || memcmp(in->at, word, n) != 0)
		return 0;
	in->at += n;
	return 1;
}

/* A number of digits alone; Python 2 wrote an L behind long ones. */
static int take_count(struct literal *in, int64_t *out)
{
	uint64_t value = 0;
	skip_space(in);
	const char *first = in->at;
	for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++)
		if (neap__mul_u64(&value, value, 10) < 0 ||
			neap__add_u64(&value, value, (uint64_t)(*in->at - '0')) < 0)
			return 0;
	if (in->at == first || value > INT64_MAX)
		return 0;
	if (in->at < in->end && *in->at == 'L')
		in->at++;
	*out = (int64_t)value;
	return 1;
}

static int unread(const struct literal *in, const char *descr)
{
	return neap__fail(NEAP_EFORMAT,
		"%s has the type '%.40s', which is not read. Save it as booleans, integers, "
		"float16, float32, float64 or text",
		in->where, descr);
}

/* "<f4" and the like. *skip where the bytes are padding of a record. */
static int parse_type(
	const struct literal *in, const char *descr, struct neap__npy_field *field, int *skip)
{
	struct literal digits = {descr + 2, descr + strlen(descr), in->where};
	int64_t bytes;
	*skip = 0;
	if (strcmp(descr, "|O") == 0 || strcmp(descr, "O") == 0) {
		field->kind = NEAP__NPY_OBJECT;
		field->bytes = sizeof(void *); /* in memory: a file has pickles instead */
		return 0;
	}
	if (strlen(descr) < 3 || !strchr("<>|=", descr[0]) || !take_count(&digits, &bytes) ||
		digits.at != digits.end || bytes > 4096)
		return unread(in, descr);
	field->bytes = (size_t)bytes;
	field->big = descr[0] == '>';
	int word = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
	switch (descr[1]) {
	case 'b':
		field->kind = NEAP__NPY_BOOL;
		return bytes == 1 ? 0 : unread(in, descr);
	case 'i':
		field->kind = NEAP__NPY_INT;
		return word ? 0 : unread(in, descr);
	case 'u':
		field->kind = NEAP__NPY_UINT;
		return word ? 0 : unread(in, descr);
	case 'f':
		field->kind = NEAP__NPY_FLOAT;
		return word && bytes > 1 ? 0 : unread(in, descr);
	case 'S':
	case 'a':
		field->kind = NEAP__NPY_BYTES;
		return bytes > 0 ? 0 : unread(in, descr);
	case 'U':
		field->kind = NEAP__NPY_UCS4;
		field->bytes *= 4;
		return bytes > 0 ? 0 : unread(in, descr);
	case 'V':
		*skip = 1;
		return bytes > 0 ? 0 : unread(in, descr);
	default:
		return unread(in, descr);
	}
}

/* ('x', '<i2') of a record. */
static int parse_field(struct literal *in, struct neap__npy_header *h)
{
	char descr[64];
	int skip;
	struct neap__npy_field field = {.offset = h->item_bytes};
	if (!take(in, '(') || !take_text(in, field.name, sizeof field.name) || !take(in, ','))
		return wrong(in, "fields of (name, type)");
	skip_space(in);
	if (in->at < in->end && *in->at == '[')
		return neap__fail(NEAP_EFORMAT,
			"%s: field '%s' is itself a record, which is not supported. Save its parts "
			"as separate arrays",
			in->where, field.name);
	if (!take_text(in, descr, sizeof descr))
		return wrong(in, "fields of (name, type)");
	if (take(in, ','))
		return neap__fail(NEAP_EFORMAT,
			"%s: field '%s' is itself an array, which is not supported. Save it as a "
			"separate array",
			in->where, field.name);
	if (!take(in, ')'))
		return wrong(in, "fields of (name, type)");
	NEAP_TRY(parse_type(in, descr, &field, &skip));
	h->item_bytes += skip ? field.bytes : 0;
	if (skip)
		return 0;
	if (h->fields == NEAP__NPY_MOST_FIELDS)
		return neap__fail(NEAP_EFORMAT, "%s has more than %d fields", in->where,
			NEAP__NPY_MOST_FIELDS);
	h->item_bytes += field.bytes;
	h->field[h->fields++] = field;
	return 0;
}

static int parse_descr(struct literal *in, struct neap__npy_header *h)
{
	char descr[64];
	int skip;
	if (!take(in, '[')) {
		if (!take_text(in, descr, sizeof descr))
			return wrong(in, "'descr' of a type");
		NEAP_TRY(parse_type(in, descr, &h->field[0], &skip));
		if (skip)
			return unread(in, descr);
		h->fields = 1;
		h->item_bytes = h->field[0].bytes;
		return 0;
	}
	h->records = 1;
	/* Padding alone is no field; its repetition is bounded by the header's length. */
	while (!take(in, ']')) {
		NEAP_TRY(parse_field(in, h));
		if (!take(in, ',')) {
			if (!take(in, ']'))
				return wrong(in, "end of its fields");
			break;
		}
	}
	return h->fields ? 0 : wrong(in, "field with data");
}

static int parse_order(struct literal *in, struct neap__npy_header *h)
{
	h->fortran = take_word(in, "True");
	return h->fortran || take_word(in, "False") ? 0 : wrong(in, "'fortran_order'");
}

static int parse_shape(struct literal *in, struct neap__npy_header *h)
{
	uint64_t count = 1;
	if (!take(in, '('))
		return wrong(in, "'shape'");
	while (!take(in, ')')) {
		if (h->dims == NEAP__NPY_MOST_DIMS)
			return neap__fail(NEAP_EFORMAT, "%s has more than %d dimensions", in->where,
				NEAP__NPY_MOST_DIMS);
		if (!take_count(in, &h->shape[h->dims]))
			return wrong(in, "'shape' of whole numbers");
		h->dims++;
		if (!take(in, ',')) {
			if (!take(in, ')'))
				return wrong(in, "end of 'shape'");
			break;
		}
	}
	/* Zero times anything is zero, but no product of the others may overflow either. */
	int empty = 0;
	for (int d = 0; d < h->dims; d++) {
		empty |= h->shape[d] == 0;
		if (h->shape[d] > 0 && neap__mul_u64(&count, count, (uint64_t)h->shape[d]) < 0)
			count = UINT64_MAX;
	}
	if (count > INT64_MAX)
		return neap__fail(NEAP_EFORMAT, "%s has too many elements", in->where);
	h->count = empty ? 0 : (int64_t)count;
	return 0;
}

static int parse_dictionary(struct literal *in, struct neap__npy_header *h)
{
	static const char *const names[KEYS] = {"descr", "fortran_order", "shape"};
	static int (*const parse[KEYS])(struct literal *, struct neap__npy_header *) = {
		parse_descr, parse_order, parse_shape};
	int seen[KEYS] = {0};
	if (!take(in, '{'))
		return wrong(in, "dictionary");
	while (!take(in, '}')) {
		char name[32];
		int key = 0;
		if (!take_text(in, name, sizeof name) || !take(in, ':'))
			return wrong(in, "key where one should be");
		while (key < KEYS && strcmp(name, names[key]) != 0)
			key++;
		if (key == KEYS || seen[key]++)
			return neap__fail(NEAP_EFORMAT,
				"%s: key '%s' of the header is unknown or repeated. Write the file "
				"with numpy.save",
				in->where, name);
		NEAP_TRY(parse[key](in, h));
		if (!take(in, ',')) {
			if (!take(in, '}'))
				return wrong(in, "end of the dictionary");
			break;
		}
	}
	for (int key = 0; key < KEYS; key++)
		if (!seen[key])
			return neap__fail(NEAP_EFORMAT,
				"%s: the header has no '%s'. Write the file with numpy.save",
				in->where, names[key]);
	skip_space(in);
	return in->at == in->end ? 0 : wrong(in, "end after the dictionary");
}

int neap__npy_header_parse(
	struct neap__npy_header *header, const void *bytes, size_t size, const char *where)
{
	const unsigned char *p = bytes;
	memset(header, 0, sizeof *header);
	if (size < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
		return neap__fail(NEAP_EFORMAT,
			"%s is not a NumPy array (.npy). Write it with numpy.save or numpy.savez",
			where);
	if (p[6] < 1 || p[6] > 3 || p[7] != 0)
		return neap__fail(NEAP_EFORMAT,
			"%s has format version %d.%d; 1.0, 2.0 and 3.0 are supported", where, p[6],
			p[7]);
	size_t head = p[6] == 1 ? 10 : 12;
	size_t length = p[8] | (size_t)p[9] << 8;
	if (p[6] > 1 && size >= 12)
		length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
	if (length > NEAP__NPY_MOST_HEADER - 12)
		return neap__fail(NEAP_EFORMAT, "%s has a header of %zu bytes, more than %d", where,
			length, NEAP__NPY_MOST_HEADER - 12);
	if (size < head || size - head < length)
		return neap__fail(NEAP_EFORMAT,
			"%s is truncated within its header. Copy or write it again", where);
	const char *text = (const char *)p + head;
	struct literal in = {text, text + length, where};
	NEAP_TRY(parse_dictionary(&in, header));
	header->data_at = head + length;
	return 0;
}

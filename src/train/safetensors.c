/* SPDX-License-Identifier: Apache-2.0 */
#include "train/safetensors.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/atomic_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors are read and written in the byte order of the machine: little-endian"
#endif

static const struct {
	const char *name;
	size_t bytes;
} dtypes[] = {
#define NEAP__X(name, bytes) {#name, bytes},
	NEAP__DTYPE_TABLE(NEAP__X)
#undef NEAP__X
};

size_t neap__dtype_bytes(enum neap__dtype dtype)
{
	return dtypes[dtype].bytes;
}

const char *neap__dtype_name(enum neap__dtype dtype)
{
	return dtypes[dtype].name;
}

/* A name from the file, fit to stand in one line of a message. */
struct shown {
	char text[64];
};

static struct shown show(const char *name)
{
	struct shown s;
	snprintf(s.text, sizeof s.text, "%s", name);
	for (char *c = s.text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	return s;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* No key of a JSON object may stand there twice. */
static int check_duplicates(const cJSON *object, const char *where)
{
	size_t n = 0;
	const cJSON *item;
	cJSON_ArrayForEach(item, object) n++;
	if (n < 2)
		return 0;
	const char **names = malloc(n * sizeof *names);
	if (!names)
		return neap__fail_errno(ENOMEM, "header");
	n = 0;
	cJSON_ArrayForEach(item, object) names[n++] = item->string;
	qsort(names, n, sizeof *names, compare_names);
	int rc = 0;
	for (size_t i = 1; i < n && rc == 0; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			rc = neap__fail(NEAP_EFORMAT, "%s has the key '%s' twice", where,
				show(names[i]).text);
	free(names);
	return rc;
}

/* A whole number that a double holds exactly. */
static int take_integer(uint64_t *out, const cJSON *item)
{
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
		item->valuedouble > 9007199254740992.0 ||
		item->valuedouble != (double)(uint64_t)item->valuedouble)
		return -1;
	*out = (uint64_t)item->valuedouble;
	return 0;
}

static int parse_dtype(struct neap__file_tensor *tensor, const cJSON *item)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "dtype"));
	for (int i = 0; name && i < NEAP__DTYPES; i++) {
		if (strcmp(dtypes[i].name, name) == 0) {
			tensor->dtype = (enum neap__dtype)i;
			return 0;
		}
	}
	return neap__fail(NEAP_EFORMAT, "tensor '%s': dtype '%s' is not known",
		show(tensor->name).text, name ? show(name).text : "(none)");
}

static int parse_shape(struct neap__file_tensor *tensor, uint64_t *bytes, const cJSON *item)
{
	const cJSON *shape = cJSON_GetObjectItemCaseSensitive(item, "shape"), *side;

	if (!cJSON_IsArray(shape))
		return neap__fail(
			NEAP_EFORMAT, "tensor '%s': shape is missing", show(tensor->name).text);
	*bytes = neap__dtype_bytes(tensor->dtype);
	cJSON_ArrayForEach(side, shape)
	{
		if (tensor->dims == NEAP__SHAPE_MAX)
			return neap__fail(NEAP_EFORMAT, "tensor '%s': more than %d dimensions",
				show(tensor->name).text, NEAP__SHAPE_MAX);
		if (take_integer(&tensor->shape[tensor->dims], side) < 0)
			return neap__fail(NEAP_EFORMAT,
				"tensor '%s': dimension %d of its shape is not a whole number",
				show(tensor->name).text, tensor->dims);
		if (neap__mul_u64(bytes, *bytes, tensor->shape[tensor->dims]) < 0)
			return neap__fail(NEAP_EFORMAT, "tensor '%s': its size overflows",
				show(tensor->name).text);
		tensor->dims++;
	}
	return 0;
}

static int parse_offsets(uint64_t *begin, uint64_t *end, const char *name, const cJSON *item)
{
	const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(item, "data_offsets");

	if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
		take_integer(begin, offsets->child) < 0 ||
		take_integer(end, offsets->child->next) < 0)
		return neap__fail(NEAP_EFORMAT,
			"tensor '%s': data_offsets is not two whole numbers", show(name).text);
	if (*end < *begin)
		return neap__fail(NEAP_EFORMAT, "tensor '%s': its data ends before it begins",
			show(name).text);
	return 0;
}

/* One entry of the header; `room` bytes of data stand at `data`. */
static int parse_tensor(
	struct neap__file_tensor *tensor, const cJSON *item, const char *data, size_t room)
{
	uint64_t begin = 0, end = 0, bytes = 0;

	*tensor = (struct neap__file_tensor){.name = item->string};
	if (!cJSON_IsObject(item))
		return neap__fail(NEAP_EFORMAT, "tensor '%s': not described by an object",
			show(item->string).text);
	NEAP_TRY(check_duplicates(item, "a tensor"));
	NEAP_TRY(parse_dtype(tensor, item));
	NEAP_TRY(parse_shape(tensor, &bytes, item));
	NEAP_TRY(parse_offsets(&begin, &end, tensor->name, item));
	if (end > room)
		return neap__fail(NEAP_EFORMAT,
			"tensor '%s': its data ends at byte %llu of %zu: truncated?",
			show(tensor->name).text, (unsigned long long)end, room);
	if (end - begin != bytes)
		return neap__fail(NEAP_EFORMAT,
			"tensor '%s': its shape takes %llu bytes, its data has %llu",
			show(tensor->name).text, (unsigned long long)bytes,
			(unsigned long long)(end - begin));
	tensor->data = data + begin;
	tensor->bytes = (size_t)bytes;
	return 0;
}

static int compare_places(const void *a, const void *b)
{
	const struct neap__file_tensor *x = a, *y = b;
	if (x->data != y->data)
		return (const char *)x->data < (const char *)y->data ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* The data must be covered once: no holes, no overlaps, nothing behind. */
static int check_cover(struct neap__safetensors *file, const char *data, size_t room)
{
	size_t at = 0;

	qsort(file->tensor, (size_t)file->tensors, sizeof *file->tensor, compare_places);
	for (int i = 0; i < file->tensors; i++) {
		const struct neap__file_tensor *t = &file->tensor[i];
		size_t begin = (size_t)((const char *)t->data - data);
		if (begin != at)
			return neap__fail(NEAP_EFORMAT, "tensor '%s': %s at byte %zu of the data",
				show(t->name).text, begin < at ? "an overlap" : "a hole before it",
				begin < at ? begin : at);
		at = begin + t->bytes;
	}
	if (at != room)
		return neap__fail(NEAP_EFORMAT,
			"the tensors take %zu bytes, the file has %zu behind its header", at, room);
	return 0;
}

static int parse_metadata(struct neap__safetensors *file, const cJSON *item)
{
	const cJSON *pair;

	if (!cJSON_IsObject(item))
		return neap__fail(NEAP_EFORMAT, "__metadata__ is not an object");
	NEAP_TRY(check_duplicates(item, "__metadata__"));
	file->pair = calloc((size_t)cJSON_GetArraySize(item) + 1, sizeof *file->pair);
	if (!file->pair)
		return neap__fail_errno(ENOMEM, "header");
	cJSON_ArrayForEach(pair, item)
	{
		if (!cJSON_IsString(pair))
			return neap__fail(NEAP_EFORMAT, "__metadata__ '%s' is not a text",
				show(pair->string).text);
		file->pair[file->pairs++] =
			(struct neap__metadata){pair->string, pair->valuestring};
	}
	return 0;
}

static int parse_header(struct neap__safetensors *file, const char *data, size_t bytes)
{
	uint64_t length;
	const char *end;

	if (bytes < sizeof length)
		return neap__fail(NEAP_EFORMAT, "%zu bytes are no safetensors file", bytes);
	memcpy(&length, data, sizeof length);
	if (length > NEAP__HEADER_MAX)
		return neap__fail(NEAP_EFORMAT, "a header of %llu bytes; at most %u are allowed",
			(unsigned long long)length, NEAP__HEADER_MAX);
	if (length > bytes - sizeof length)
		return neap__fail(NEAP_EFORMAT,
			"the header has %llu bytes, the file %zu: truncated?",
			(unsigned long long)length, bytes);
	const char *text = data + sizeof length;
	if (length == 0 || text[0] != '{')
		return neap__fail(NEAP_EFORMAT, "the header does not begin with '{'");
	cJSON *header = cJSON_ParseWithLengthOpts(text, (size_t)length, &end, 0);
	if (!header)
		return neap__fail(NEAP_EFORMAT, "the header is not JSON");
	file->header = header;
	for (; end < text + length; end++)
		if (*end != ' ' && *end != '\n' && *end != '\0')
			return neap__fail(NEAP_EFORMAT, "the header goes on behind its JSON");
	return 0;
}

static int parse_all(struct neap__safetensors *file, const char *data, size_t bytes)
{
	uint64_t length;
	const cJSON *item;

	NEAP_TRY(parse_header(file, data, bytes));
	memcpy(&length, data, sizeof length);
	NEAP_TRY(check_duplicates(file->header, "the header"));
	size_t room = bytes - sizeof length - (size_t)length;
	const char *values = data + sizeof length + length;
	file->tensor = calloc((size_t)cJSON_GetArraySize(file->header) + 1, sizeof *file->tensor);
	if (!file->tensor)
		return neap__fail_errno(ENOMEM, "header");
	cJSON_ArrayForEach(item, (cJSON *)file->header)
	{
		if (strcmp(item->string, "__metadata__") == 0)
			NEAP_TRY(parse_metadata(file, item));
		else
			NEAP_TRY(parse_tensor(&file->tensor[file->tensors++], item, values, room));
	}
	return check_cover(file, values, room);
}

int neap__safetensors_parse(struct neap__safetensors *file, const void *data, size_t bytes)
{
	*file = (struct neap__safetensors){0};
	int rc = parse_all(file, data, bytes);
	if (rc < 0)
		neap__safetensors_free(file);
	return rc;
}

int neap__safetensors_read(struct neap__safetensors *file, const char *path)
{
	char *buffer;
	size_t bytes;

	*file = (struct neap__safetensors){0};
	NEAP_TRY(neap__read_file(&buffer, &bytes, path, SIZE_MAX / 2));
	int rc = neap__safetensors_parse(file, buffer, bytes);
	if (rc < 0) {
		free(buffer);
		return neap__fail_in(rc, "%s: ", path);
	}
	file->buffer = buffer;
	return 0;
}

const struct neap__file_tensor *neap__safetensors_find(
	const struct neap__safetensors *file, const char *name)
{
	for (int i = 0; i < file->tensors; i++)
		if (strcmp(file->tensor[i].name, name) == 0)
			return &file->tensor[i];
	return NULL;
}

const char *neap__safetensors_meta(const struct neap__safetensors *file, const char *key)
{
	for (int i = 0; i < file->pairs; i++)
		if (strcmp(file->pair[i].key, key) == 0)
			return file->pair[i].value;
	return NULL;
}

void neap__safetensors_free(struct neap__safetensors *file)
{
	cJSON_Delete(file->header);
	free(file->tensor);
	free(file->pair);
	free(file->buffer);
	*file = (struct neap__safetensors){0};
}

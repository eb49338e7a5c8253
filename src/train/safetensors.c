/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.c: types of elements; reading a file, with every rule of the format
 * checked; lists of texts in its metadata. */
#include "train/safetensors.h"
#include "train/model.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/quote.h"
#include "data/recordings.h"
#include "base/json.h"
#include "base/print.h"
#include "sys/atomic_file.h"

#include <errno.h>
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
	neap__print(s.text, sizeof s.text, "%s", name);
	neap__plain(s.text);
	return s;
}

static int take_integer(uint64_t *out, const json_t *item)
{
	if (!json_is_integer(item) || json_integer_value(item) < 0)
		return -1;
	*out = (uint64_t)json_integer_value(item);
	return 0;
}

static int parse_dtype(struct neap__file_tensor *tensor, const json_t *item)
{
	const char *name = json_string_value(json_object_get(item, "dtype"));
	for (int i = 0; name && i < NEAP__DTYPES; i++) {
		if (strcmp(dtypes[i].name, name) == 0) {
			tensor->dtype = (enum neap__dtype)i;
			return 0;
		}
	}
	return neap__fail(NEAP_EFORMAT, "tensor '%s' has the unknown dtype '%s'",
		show(tensor->name).text, name ? show(name).text : "(none)");
}

static int parse_shape(struct neap__file_tensor *tensor, uint64_t *bytes, const json_t *item)
{
	const json_t *shape = json_object_get(item, "shape");

	if (!json_is_array(shape))
		return neap__fail(
			NEAP_EFORMAT, "tensor '%s' has no shape", show(tensor->name).text);
	*bytes = neap__dtype_bytes(tensor->dtype);
	for (size_t i = 0; i < json_array_size(shape); i++) {
		if (tensor->dims == NEAP__SHAPE_MAX)
			return neap__fail(NEAP_EFORMAT, "tensor '%s' has more than %d dimensions",
				show(tensor->name).text, NEAP__SHAPE_MAX);
		if (take_integer(&tensor->shape[tensor->dims], json_array_get(shape, i)) < 0)
			return neap__fail(NEAP_EFORMAT,
				"tensor '%s': dimension %d of the shape is not a whole number",
				show(tensor->name).text, tensor->dims);
		if (neap__mul_u64(bytes, *bytes, tensor->shape[tensor->dims]) < 0)
			return neap__fail(NEAP_EFORMAT,
				"tensor '%s' is too large: its size overflows",
				show(tensor->name).text);
		tensor->dims++;
	}
	return 0;
}

static int parse_offsets(uint64_t *begin, uint64_t *end, const char *name, const json_t *item)
{
	const json_t *offsets = json_object_get(item, "data_offsets");

	if (json_array_size(offsets) != 2 || take_integer(begin, json_array_get(offsets, 0)) < 0 ||
		take_integer(end, json_array_get(offsets, 1)) < 0)
		return neap__fail(NEAP_EFORMAT,
			"tensor '%s': data_offsets must be two whole numbers", show(name).text);
	if (*end < *begin)
		return neap__fail(NEAP_EFORMAT, "tensor '%s': the data ends before it begins",
			show(name).text);
	return 0;
}

/* One entry of the header; `room` bytes of data stand at `data`. */
static int parse_tensor(struct neap__file_tensor *tensor, const char *name, const json_t *item,
	const char *data, size_t room)
{
	uint64_t begin = 0, end = 0, bytes = 0;

	*tensor = (struct neap__file_tensor){.name = name};
	if (!json_is_object(item))
		return neap__fail(NEAP_EFORMAT, "tensor '%s' is not described by a JSON object",
			show(name).text);
	NEAP_TRY(parse_dtype(tensor, item));
	NEAP_TRY(parse_shape(tensor, &bytes, item));
	NEAP_TRY(parse_offsets(&begin, &end, tensor->name, item));
	if (end > room)
		return neap__fail(NEAP_EFORMAT,
			"tensor '%s': its data ends at byte %llu of %zu. The file may be "
			"truncated; copy it from its source",
			show(tensor->name).text, (unsigned long long)end, room);
	if (end - begin != bytes)
		return neap__fail(NEAP_EFORMAT,
			"tensor '%s': its shape needs %llu bytes, but its data has %llu",
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
				show(t->name).text,
				begin < at ? "it overlaps another tensor"
					   : "there is a gap before it",
				begin < at ? begin : at);
		at = begin + t->bytes;
	}
	if (at != room)
		return neap__fail(NEAP_EFORMAT,
			"the tensors take %zu bytes, but %zu bytes follow the header", at, room);
	return 0;
}

static int parse_metadata(struct neap__safetensors *file, json_t *item)
{
	const char *key;
	json_t *value;

	if (!json_is_object(item))
		return neap__fail(NEAP_EFORMAT, "__metadata__ is not an object");
	file->pair = calloc(json_object_size(item) + 1, sizeof *file->pair);
	if (!file->pair)
		return neap__fail_errno(ENOMEM, "header");
	json_object_foreach(item, key, value)
	{
		if (!json_is_string(value))
			return neap__fail(
				NEAP_EFORMAT, "__metadata__ '%s' is not a string", show(key).text);
		file->pair[file->pairs++] = (struct neap__metadata){key, json_string_value(value)};
	}
	return 0;
}

static int parse_header(struct neap__safetensors *file, const char *data, size_t bytes)
{
	uint64_t length;
	char why[NEAP__JSON_WHY];

	if (bytes < sizeof length)
		return neap__fail(NEAP_EFORMAT,
			"the file has %zu bytes, too few for a safetensors file", bytes);
	memcpy(&length, data, sizeof length);
	if (data[0] == '{')
		return neap__fail(NEAP_EFORMAT, "it is a JSON file, not a safetensors file. Pass "
						"the folder of a run, or its "
						"model.safetensors");
	if (length > NEAP__HEADER_MAX)
		return neap__fail(NEAP_EFORMAT,
			"it is not a safetensors file%s. Pass the folder of a run, or its "
			"model.safetensors",
			memcmp(data, "PK", 2) == 0	  ? ", but an archive such as .npz"
			: memcmp(data + 1, "HDF", 3) == 0 ? ", but an HDF5 file"
							  : "");
	if (length > bytes - sizeof length)
		return neap__fail(NEAP_EFORMAT,
			"the header has %llu bytes, but the file has %zu. It may be truncated; "
			"copy it from its source",
			(unsigned long long)length, bytes);
	const char *text = data + sizeof length;
	if (length == 0 || text[0] != '{')
		return neap__fail(NEAP_EFORMAT,
			"it is not a safetensors file: the header does not begin with '{'. Pass "
			"the folder of a run, or its model.safetensors");
	while (text[length - 1] == '\0') /* padding of some writers */
		length--;
	file->header = neap__json_read(text, (size_t)length, why);
	return file->header ? 0 : neap__fail(NEAP_EFORMAT, "header, %s", why);
}

static int parse_all(struct neap__safetensors *file, const char *data, size_t bytes)
{
	uint64_t length;
	const char *name;
	json_t *item;

	NEAP_TRY(parse_header(file, data, bytes));
	memcpy(&length, data, sizeof length);
	size_t room = bytes - sizeof length - (size_t)length;
	const char *values = data + sizeof length + length;
	file->tensor = calloc(json_object_size(file->header) + 1, sizeof *file->tensor);
	if (!file->tensor)
		return neap__fail_errno(ENOMEM, "header");
	json_object_foreach(file->header, name, item)
	{
		if (strcmp(name, "__metadata__") == 0)
			NEAP_TRY(parse_metadata(file, item));
		else
			NEAP_TRY(parse_tensor(
				&file->tensor[file->tensors++], name, item, values, room));
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

/* 1: PyTorch wrote the file: an archive that begins with NAME/data.pkl, or in the form of PyTorch
 * 1.5 and older a pickle. */
static int is_torch(const char *path, const char *data, size_t bytes)
{
	static const char *const endings[] = {".pt", ".pth", ".ckpt", ".bin", NULL};
	static const char inside[] = "/data.pkl";

	if (bytes < 200)
		return 0;
	if (memcmp(data, "PK\3\4", 4) == 0)
		return memmem(data, 200, inside, sizeof inside - 1) != NULL;
	return (unsigned char)data[0] == 0x80 && neap__recordings_ends(path, endings);
}

static int refuse_torch(const char *path)
{
	return neap__fail(NEAP_EFORMAT,
		"'%s' is a file of PyTorch, not a safetensors file. If it is a state dict with "
		"tensors named as docs/weights.md lists them, and RUN is a run of the same "
		"network, "
		"this command writes given.safetensors, to be passed instead: python3 -c \"import "
		"torch, safetensors, safetensors.torch as s; d = torch.load(%s, "
		"map_location='cpu'); f = safetensors.safe_open('RUN/model.safetensors', 'pt'); "
		"s.save_file({k: d[k].contiguous() for k in f.keys()}, 'given.safetensors', "
		"metadata=f.metadata())\". A network of snnTorch can be passed as a NIR graph",
		path, neap__python_quoted(path));
}

int neap__safetensors_read(struct neap__safetensors *file, const char *path)
{
	char *buffer;
	size_t bytes;

	*file = (struct neap__safetensors){0};
	NEAP_TRY(neap__read_file(&buffer, &bytes, path, SIZE_MAX / 2));
	if (is_torch(path, buffer, bytes)) {
		free(buffer);
		return refuse_torch(path);
	}
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
	json_decref(file->header);
	free(file->tensor);
	free(file->pair);
	free(file->buffer);
	*file = (struct neap__safetensors){0};
}

void neap__model_class_names_free(char **names, int classes)
{
	for (int i = 0; names && i < classes; i++)
		free(names[i]);
	free(names);
}

/* A list of `count` texts from the metadata; NULL for those that are no texts, and behind its end.
 */
static int read_names(char ***names, const char *text, int count)
{
	json_t *list = text ? json_loads(text, 0, NULL) : NULL;
	int rc = 0;

	*names = calloc((size_t)count + 1, sizeof **names);
	for (int i = 0; *names && rc == 0 && i < count; i++) {
		const char *name = json_string_value(json_array_get(list, (size_t)i));
		(*names)[i] = name ? strdup(name) : NULL;
		rc = name && !(*names)[i] ? -ENOMEM : 0;
	}
	json_decref(list);
	if (*names && rc == 0)
		return 0;
	neap__model_class_names_free(*names, count);
	*names = NULL;
	return neap__fail_errno(ENOMEM, "names of classes or features");
}

int neap__model_class_names(char ***names, const struct neap__safetensors *file, int classes)
{
	return read_names(names, neap__safetensors_meta(file, "neap.classes"), classes);
}

int neap__model_texts(
	char ***names, int *count, const struct neap__safetensors *file, const char *key)
{
	const char *text = neap__safetensors_meta(file, key);
	json_t *list = text ? json_loads(text, 0, NULL) : NULL;

	*count = (int)json_array_size(list);
	json_decref(list);
	NEAP_TRY(read_names(names, text, *count));
	for (int i = 0; i < *count; i++)
		if (!(*names)[i]) {
			neap__model_class_names_free(*names, *count);
			*names = NULL;
			return neap__fail(NEAP_EFORMAT, "its metadata %s is damaged", key);
		}
	return 0;
}

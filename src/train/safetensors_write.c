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

/* Tensors by falling element size, then as given. */
static int *make_order(const struct neap__file_tensor *tensors, int n)
{
	int *order = malloc(((size_t)n + 1) * sizeof *order), at = 0;

	for (size_t width = 8; order && width >= 1; width /= 2)
		for (int i = 0; i < n; i++)
			if (neap__dtype_bytes(tensors[i].dtype) == width)
				order[at++] = i;
	return order;
}

static int add_whole(cJSON *array, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	return cJSON_AddItemToArray(array, cJSON_CreateRaw(text));
}

static int add_tensor(cJSON *header, const struct neap__file_tensor *tensor, uint64_t begin)
{
	cJSON *item = cJSON_AddObjectToObject(header, tensor->name);
	int fine = cJSON_AddStringToObject(item, "dtype", neap__dtype_name(tensor->dtype)) != NULL;
	cJSON *shape = cJSON_AddArrayToObject(item, "shape");

	for (int i = 0; i < tensor->dims; i++)
		fine &= add_whole(shape, tensor->shape[i]);
	cJSON *offsets = cJSON_AddArrayToObject(item, "data_offsets");
	fine &= add_whole(offsets, begin);
	fine &= add_whole(offsets, begin + tensor->bytes);
	return fine ? 0 : -1;
}

/* The header's text, padded with blanks so that 8 + *length is a multiple of 8. */
static char *make_header(size_t *length, const struct neap__file_tensor *tensors, const int *order,
	int n, const struct neap__metadata *pairs, int npairs)
{
	cJSON *header = cJSON_CreateObject();
	uint64_t at = 0;
	int rc = header ? 0 : -1;

	if (npairs > 0) {
		cJSON *meta = cJSON_AddObjectToObject(header, "__metadata__");
		for (int i = 0; i < npairs && rc == 0; i++)
			if (!cJSON_AddStringToObject(meta, pairs[i].key, pairs[i].value))
				rc = -1;
	}
	for (int i = 0; i < n && rc == 0; i++) {
		rc = add_tensor(header, &tensors[order[i]], at);
		at += tensors[order[i]].bytes;
	}
	char *text = rc == 0 ? cJSON_PrintUnformatted(header) : NULL, *padded = NULL;
	cJSON_Delete(header);
	if (text) {
		size_t used = strlen(text);
		*length = (size_t)neap__round_up(used, 8);
		padded = realloc(text, *length + 1);
		if (padded)
			memset(padded + used, ' ', *length - used);
		else
			free(text);
	}
	return padded;
}

int neap__safetensors_write(const char *path, const struct neap__file_tensor *tensors, int ntensors,
	const struct neap__metadata *pairs, int npairs)
{
	struct neap__atomic_file *out = NULL;
	size_t length = 0;
	char *header = NULL;
	int rc, *order = make_order(tensors, ntensors);

	if (order)
		header = make_header(&length, tensors, order, ntensors, pairs, npairs);
	if (!header) {
		free(order);
		return neap__fail_errno(ENOMEM, "cannot write '%s'", path);
	}
	uint64_t prefix = length;
	rc = neap__atomic_file_open(&out, path);
	if (rc == 0)
		rc = neap__atomic_file_write(out, &prefix, sizeof prefix);
	if (rc == 0)
		rc = neap__atomic_file_write(out, header, length);
	for (int i = 0; i < ntensors && rc == 0; i++)
		rc = neap__atomic_file_write(out, tensors[order[i]].data, tensors[order[i]].bytes);
	if (rc == 0)
		rc = neap__atomic_file_commit(out);
	else
		neap__atomic_file_abort(out);
	free(header);
	free(order);
	return rc;
}

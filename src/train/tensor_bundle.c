/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_bundle.c: collects tensors and metadata and writes them as one safetensors file. */
#include "train/model.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *own(struct neap__tensor_bundle *bundle, const char *text)
{
	char *copy = strdup(text);

	if (!copy || neap__grow(&bundle->owned, &bundle->owned_room, bundle->nowned + 1,
			     sizeof *bundle->owned) < 0) {
		free(copy);
		bundle->error = -ENOMEM;
		return "";
	}
	return bundle->owned[bundle->nowned++] = copy;
}

void neap__tensor_bundle_tensor(struct neap__tensor_bundle *bundle, const char *name,
	enum neap__dtype dtype, int dims, const uint64_t *shape, const void *data)
{
	if (neap__grow(&bundle->tensor, &bundle->tensor_room, bundle->tensors + 1,
		    sizeof *bundle->tensor) < 0) {
		bundle->error = -ENOMEM;
		return;
	}
	struct neap__file_tensor *tensor = &bundle->tensor[bundle->tensors++];
	*tensor = (struct neap__file_tensor){.name = own(bundle, name),
		.dtype = dtype,
		.dims = dims,
		.data = data,
		.bytes = neap__dtype_bytes(dtype)};
	for (int i = 0; i < dims; i++) {
		tensor->shape[i] = shape[i];
		tensor->bytes *= (size_t)shape[i];
	}
}

void neap__tensor_bundle_meta(
	struct neap__tensor_bundle *bundle, const char *key, const char *value)
{
	if (neap__grow(&bundle->pair, &bundle->pair_room, bundle->pairs + 1, sizeof *bundle->pair) <
		0) {
		bundle->error = -ENOMEM;
		return;
	}
	const char *own_key = own(bundle, key);
	bundle->pair[bundle->pairs++] = (struct neap__metadata){own_key, own(bundle, value)};
}

void neap__tensor_bundle_json(
	struct neap__tensor_bundle *bundle, const char *key, struct neap__json *json)
{
	if (json->text.error)
		bundle->error = json->text.error;
	else
		neap__tensor_bundle_meta(bundle, key, json->text.data);
	neap__json_free(json);
}

int neap__tensor_bundle_write(struct neap__tensor_bundle *bundle, const char *path)
{
	if (bundle->error < 0)
		return neap__fail_errno(-bundle->error, "cannot write '%s'", path);
	return neap__safetensors_write(
		path, bundle->tensor, bundle->tensors, bundle->pair, bundle->pairs);
}

void neap__tensor_bundle_free(struct neap__tensor_bundle *bundle)
{
	for (int i = 0; i < bundle->nowned; i++)
		free(bundle->owned[i]);
	free(bundle->owned);
	free(bundle->tensor);
	free(bundle->pair);
	*bundle = (struct neap__tensor_bundle){0};
}

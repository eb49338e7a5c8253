/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_write.c: the header of a file as JSON, and writing it with its data. */
#include "train/safetensors.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/json.h"
#include "sys/atomic_file.h"

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

static void add_tensor(
	struct neap__json *header, const struct neap__file_tensor *tensor, uint64_t begin)
{
	neap__json_begin(header, tensor->name, '{');
	neap__json_text(header, "dtype", neap__dtype_name(tensor->dtype));
	neap__json_begin(header, "shape", '[');
	for (int i = 0; i < tensor->dims; i++)
		neap__json_bytes(header, NULL, tensor->shape[i]);
	neap__json_end(header, ']');
	neap__json_begin(header, "data_offsets", '[');
	neap__json_bytes(header, NULL, begin);
	neap__json_bytes(header, NULL, begin + tensor->bytes);
	neap__json_end(header, ']');
	neap__json_end(header, '}');
}

/* The header's text, padded with blanks so that 8 + its length is a multiple of 8. */
static void make_header(struct neap__json *header, const struct neap__file_tensor *tensors,
	const int *order, int n, const struct neap__metadata *pairs, int npairs)
{
	uint64_t at = 0;

	neap__json_begin(header, NULL, '{');
	if (npairs > 0) {
		neap__json_begin(header, "__metadata__", '{');
		for (int i = 0; i < npairs; i++)
			neap__json_text(header, pairs[i].key, pairs[i].value);
		neap__json_end(header, '}');
	}
	for (int i = 0; i < n; i++) {
		add_tensor(header, &tensors[order[i]], at);
		at += tensors[order[i]].bytes;
	}
	neap__json_end(header, '}');
	neap__text_add(&header->text, "%*s",
		(int)(neap__round_up(header->text.length, 8) - header->text.length), "");
}

int neap__safetensors_write(const char *path, const struct neap__file_tensor *tensors, int ntensors,
	const struct neap__metadata *pairs, int npairs)
{
	struct neap__atomic_file *out = NULL;
	struct neap__json header = {0};
	int rc, *order = make_order(tensors, ntensors);

	if (order)
		make_header(&header, tensors, order, ntensors, pairs, npairs);
	if (!order || header.text.error) {
		neap__json_free(&header);
		free(order);
		return neap__fail_errno(ENOMEM, "cannot write '%s'", path);
	}
	uint64_t prefix = header.text.length;
	rc = neap__atomic_file_open(&out, path);
	if (rc == 0)
		rc = neap__atomic_file_write(out, &prefix, sizeof prefix);
	if (rc == 0)
		rc = neap__atomic_file_write(out, header.text.data, header.text.length);
	for (int i = 0; i < ntensors && rc == 0; i++)
		rc = neap__atomic_file_write(out, tensors[order[i]].data, tensors[order[i]].bytes);
	if (rc == 0)
		rc = neap__atomic_file_commit(out);
	else
		neap__atomic_file_abort(out);
	neap__json_free(&header);
	free(order);
	return rc;
}

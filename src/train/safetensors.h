/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.h: files of named tensors. A file is a little-endian u64 N, N bytes of JSON
 * {"name": {"dtype", "shape", "data_offsets": [b, e]}, "__metadata__": {...}}, then the data,
 * without holes or overlaps. Parsing any bytes ends with checked tensors, or with NEAP_EFORMAT and
 * a line that names the place.
 */
#ifndef NEAP_TRAIN_SAFETENSORS_H
#define NEAP_TRAIN_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

#define NEAP__HEADER_MAX 100000000u /* bytes of JSON, by the format's own rule */
#define NEAP__SHAPE_MAX 8

/* X(NAME, bytes an element) */
#define NEAP__DTYPE_TABLE(X)                                                                       \
	X(BOOL, 1)                                                                                 \
	X(U8, 1)                                                                                   \
	X(I8, 1)                                                                                   \
	X(U16, 2)                                                                                  \
	X(I16, 2)                                                                                  \
	X(F16, 2)                                                                                  \
	X(BF16, 2)                                                                                 \
	X(U32, 4)                                                                                  \
	X(I32, 4)                                                                                  \
	X(F32, 4)                                                                                  \
	X(U64, 8)                                                                                  \
	X(I64, 8)                                                                                  \
	X(F64, 8)

enum neap__dtype {
#define NEAP__X(name, bytes) NEAP__##name,
	NEAP__DTYPE_TABLE(NEAP__X)
#undef NEAP__X
		NEAP__DTYPES
};
size_t neap__dtype_bytes(enum neap__dtype dtype);
const char *neap__dtype_name(enum neap__dtype dtype);

struct neap__file_tensor {
	const char *name;
	enum neap__dtype dtype;
	int dims;
	uint64_t shape[NEAP__SHAPE_MAX];
	const void *data; /* row-major; in a parsed file aligned to nothing */
	size_t bytes;
};

struct neap__metadata {
	const char *key, *value;
};

struct neap__safetensors {
	int tensors, pairs;
	struct neap__file_tensor *tensor; /* in the order of their data */
	struct neap__metadata *pair;
	void *header; /* the parsed JSON, which owns the texts */
	char *buffer; /* of neap__safetensors_read; NULL when the data is borrowed */
};

/* Checks and indexes `bytes` of `data`, which is borrowed. 0, NEAP_EFORMAT or -ENOMEM. */
int neap__safetensors_parse(struct neap__safetensors *file, const void *data, size_t bytes);
/* The same for a file; the detail line begins with its path. */
int neap__safetensors_read(struct neap__safetensors *file, const char *path);
/* Finds a tensor, or the value of a metadata key; NULL where there is none. */
const struct neap__file_tensor *neap__safetensors_find(
	const struct neap__safetensors *file, const char *name);
const char *neap__safetensors_meta(const struct neap__safetensors *file, const char *key);
void neap__safetensors_free(struct neap__safetensors *file);

/*
 * Writes a file, whole or not at all. Tensors go in the order of falling element
 * size, so that each is aligned; the header is padded to a multiple of 8.
 */
int neap__safetensors_write(const char *path, const struct neap__file_tensor *tensors, int ntensors,
	const struct neap__metadata *pairs, int npairs);

#endif

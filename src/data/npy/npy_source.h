/* SPDX-License-Identifier: Apache-2.0 */
/* npy_source.h: where the bytes of an array come from: a file, memory, or a member of an archive.
 */
#ifndef NEAP_DATA_NPY_NPY_SOURCE_H
#define NEAP_DATA_NPY_NPY_SOURCE_H

#include "data/npy/npy.h"

struct neap__npy_source {
	/* Reads exactly `bytes` at `offset`; 0, NEAP_EFORMAT or -errno. */
	int (*read)(void *user, void *out, uint64_t offset, size_t bytes, const char *where);
	void (*close)(void *user);
	void *user;
	uint64_t bytes; /* in all, the header included */
};

/* An array over a source, which is closed in any case; takes `where`, from malloc, as well. */
int neap__npy_new(struct neap__npy **out, const struct neap__npy_source *source, char *where);

/* A source over a file from its beginning; takes `fd`. */
int neap__npy_file(struct neap__npy_source *source, int fd, uint64_t bytes);
/* A source over memory from malloc, which it takes. */
void neap__npy_memory(struct neap__npy_source *source, void *data, uint64_t bytes);

#endif

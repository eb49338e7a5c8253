/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h: decompresses blocks of memory with liblz4 and libzstd, as far as neap is built with
 * them.
 */
#ifndef NEAP_DATA_EVENTS_UNPACK_H
#define NEAP_DATA_EVENTS_UNPACK_H

#include <stddef.h>
#include <neap/status.h>

enum neap__packing { NEAP__PLAIN, NEAP__LZ4 /* frames */, NEAP__ZSTD };

/* A block that grows as it is decompressed, so no size in a file is trusted. */
struct neap__unpacked {
	unsigned char *data; /* free it */
	size_t bytes, room;
};

/*
 * Replaces the content of `out`. 0; NEAP_EFORMAT if the block is damaged, has more than
 * NEAP__MOST_UNPACKED bytes, or neap is built without the library; or -ENOMEM. `path` is for
 * messages.
 */
#define NEAP__MOST_UNPACKED ((size_t)1 << 28) /* chosen: 16 million events in a packet */
int neap__unpack(struct neap__unpacked *out, enum neap__packing packing, const unsigned char *in,
	size_t bytes, const char *path);

#endif

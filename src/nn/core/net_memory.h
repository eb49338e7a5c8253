/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_memory.h: where the arrays of a net come from: tensors, gradients, groups of samples, and
 * whatever else a net and its batch need. All of them are taken by the functions below, so that
 *   - another memory than the heap can provide them, by a table of two functions,
 *   - count * size is checked for overflow in one place,
 *   - the bytes that a net holds are counted in one place (neap_net_sizes reports them),
 *   - a net that is freed, also one that was half made, returns every block.
 * A net takes blocks in neap_net_create and neap_net_begin alone, on the thread that calls them.
 * Not counted, and on the heap: struct neap_net, the text of its specification, its threads, and
 * the list of blocks.
 */
#ifndef NEAP_NN_CORE_NET_MEMORY_H
#define NEAP_NN_CORE_NET_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct neap_net;

/* Alignment of every block: a cache line, which is also the widest vector that kernels load. */
enum { NEAP__BLOCK_ALIGN = 64 };

/* A memory that blocks come from. The processor reads and writes them by their address. */
struct neap__net_memory {
	/*
	 * Returns `bytes` bytes, a multiple of NEAP__BLOCK_ALIGN other than 0, aligned to it, or
	 * NULL where none are left. Contents are unspecified.
	 */
	void *(*get)(void *user, size_t bytes);
	/* Takes back what `get` returned for so many bytes. */
	void (*put)(void *user, void *at, size_t bytes);
	void *user;
};

extern const struct neap__net_memory neap__heap_memory;

/* What a net holds of its memory. */
struct neap__net_blocks {
	const struct neap__net_memory *memory; /* borrowed as long as the net lives */
	struct neap__net_block {
		void *at;
		size_t bytes;
	} * block; /* [room], of which `count` are there, in no order */
	int64_t count, room;
	uint64_t bytes; /* of all blocks */
};

/* Bytes of a block of count * size bytes, with what rounding adds; UINT64_MAX: too many. */
uint64_t neap__block_bytes(uint64_t count, uint64_t size);
/*
 * Returns a block of count * size bytes, also where that is 0. NULL: count * size overflows, or
 * memory is short; the caller knows what the block is for, and makes the error.
 */
void *neap__net_get(struct neap_net *net, uint64_t count, uint64_t size);
/* The same, filled with zero bytes. */
void *neap__net_get_zeroed(struct neap_net *net, uint64_t count, uint64_t size);
/* Returns a block to the memory. NULL is fine. */
void neap__net_put(struct neap_net *net, void *at);
/* Returns all blocks, at the end of a net. */
void neap__net_put_all(struct neap_net *net);

#endif

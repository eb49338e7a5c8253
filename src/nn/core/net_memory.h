/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_memory.h: the memory of a net. All its arrays (tensors, gradients, groups of samples, and
 * what a batch needs) are allocated by the functions below, for four reasons:
 *   - a table of two functions can replace the heap, for example by the memory of a device;
 *   - count * size is checked for overflow in one place;
 *   - the allocated bytes are counted in one place; neap_net_get_sizes reports them;
 *   - freeing a net frees every block, including after an error in neap_net_create.
 * Blocks are allocated only by neap_net_create and neap_net_begin (and, before it, by
 * neap__peer_room_make), on the calling thread; the step functions allocate nothing.
 * Struct neap_net, the text of its specification, its thread pool and the list of blocks are on the
 * heap and are not counted.
 */
#ifndef NEAP_NN_CORE_NET_MEMORY_H
#define NEAP_NN_CORE_NET_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct neap_net;

/* Alignment of every block: a cache line, and the widest vector that the kernels load (AVX-512). */
enum { NEAP__BLOCK_ALIGN = 64 };

/* Allocator of blocks. The host must be able to access a block by its address. */
struct neap__net_memory {
	/*
	 * Allocates `bytes` bytes, a positive multiple of NEAP__BLOCK_ALIGN, with that alignment.
	 * The contents are unspecified. NULL: out of memory.
	 */
	void *(*get)(void *user, size_t bytes);
	/* Frees a block that `get` returned for the same number of bytes. */
	void (*put)(void *user, void *at, size_t bytes);
	void *user;
};

extern const struct neap__net_memory neap__heap_memory;

/* The blocks of a net. */
struct neap__net_blocks {
	const struct neap__net_memory *memory; /* borrowed until neap_net_free */
	struct neap__net_block {
		void *at;
		size_t bytes;
	} * block; /* [room], of which `count` are there, in no order */
	int64_t count, room;
	uint64_t bytes; /* of all blocks */
};

/* Allocated size of a block of count * size bytes, rounded up; UINT64_MAX on overflow. */
uint64_t neap__block_bytes(uint64_t count, uint64_t size);
/*
 * Allocates a block of count * size bytes; 0 bytes give a block as well. NULL if count * size
 * overflows or memory is exhausted, without a detail line: the caller knows what the block is for.
 */
void *neap__net_get(struct neap_net *net, uint64_t count, uint64_t size);
/* The same, with all bytes zero. */
void *neap__net_get_zeroed(struct neap_net *net, uint64_t count, uint64_t size);
/* Frees a block; does nothing for NULL. */
void neap__net_put(struct neap_net *net, void *at);
/* Frees all blocks: the end of a net. */
void neap__net_put_all(struct neap_net *net);

#endif

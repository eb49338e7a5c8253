/* SPDX-License-Identifier: Apache-2.0 */
/* net_memory.c: allocates, counts and frees the blocks of a net (net_memory.h). */
#include "nn/core/net_memory.h"
#include "nn/core/net_state.h"
#include "base/checked.h"
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

static void *heap_get(void *user, size_t bytes)
{
	(void)user;
	return aligned_alloc(NEAP__BLOCK_ALIGN, bytes);
}

static void heap_put(void *user, void *at, size_t bytes)
{
	(void)user;
	(void)bytes;
	free(at);
}

const struct neap__net_memory neap__heap_memory = {.get = heap_get, .put = heap_put};

uint64_t neap__block_bytes(uint64_t count, uint64_t size)
{
	uint64_t bytes = neap__sat_mul(count, size);

	/* An empty array is a block as well, so that NULL always means an error. */
	return bytes ? neap__round_up(bytes, NEAP__BLOCK_ALIGN) : NEAP__BLOCK_ALIGN;
}

void *neap__net_get(struct neap_net *net, uint64_t count, uint64_t size)
{
	struct neap__net_blocks *blocks = &net->blocks;
	uint64_t bytes = neap__block_bytes(count, size);

	/* Beyond PTRDIFF_MAX, the difference of two pointers into the block would overflow. */
	if (bytes > PTRDIFF_MAX || neap__grow(&blocks->block, &blocks->room, blocks->count + 1,
					   sizeof *blocks->block) < 0)
		return NULL;
	void *at = blocks->memory->get(blocks->memory->user, bytes);
	if (!at)
		return NULL;
	blocks->block[blocks->count++] = (struct neap__net_block){at, bytes};
	blocks->bytes += bytes;
	return at;
}

void *neap__net_get_zeroed(struct neap_net *net, uint64_t count, uint64_t size)
{
	void *at = neap__net_get(net, count, size);

	return at ? memset(at, 0, neap__block_bytes(count, size)) : NULL;
}

static void put(struct neap__net_blocks *blocks, int64_t index)
{
	struct neap__net_block block = blocks->block[index];

	blocks->block[index] = blocks->block[--blocks->count];
	blocks->bytes -= block.bytes;
	blocks->memory->put(blocks->memory->user, block.at, block.bytes);
}

void neap__net_put(struct neap_net *net, void *at)
{
	struct neap__net_blocks *blocks = &net->blocks;

	/* From the end: blocks that are freed before the net, those of groups, are the newest. */
	for (int64_t i = blocks->count - 1; at && i >= 0; i--)
		if (blocks->block[i].at == at) {
			put(blocks, i);
			return;
		}
}

void neap__net_put_all(struct neap_net *net)
{
	while (net->blocks.count > 0)
		put(&net->blocks, net->blocks.count - 1);
	free(net->blocks.block);
	net->blocks = (struct neap__net_blocks){0};
}

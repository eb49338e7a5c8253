/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn_copies.c: the turn is computed on the host, which needs the readout's part of each sample's
 * state, and writes that of the adjoint; all else of the adjoint is zero. Only these parts are
 * copied, packed by a kernel.
 */
#include "device/device_backend.h"
#include "base/fail.h"

#include <string.h>

/* The readout's part of a sample, which is its last one: bytes of [from, row). */
struct turn_part {
	size_t from, row;
	size_t samples, bytes;
};

static struct turn_part part_of(const struct neap__device_backend *b, size_t from, size_t row)
{
	return (struct turn_part){from, row, (size_t)b->batch.net.batch.samples, row - from};
}

static struct turn_part part_of_state(const struct neap__device_backend *b)
{
	const struct neap_net *net = b->net;
	return part_of(b, net->layers[net->nlayers - 1].state_at, net->sample_state);
}

static struct turn_part part_of_adjoint(const struct neap__device_backend *b)
{
	const struct neap_net *net = b->net;
	return part_of(b, net->layers[net->nlayers - 1].adjoint_at, net->sample_adjoint);
}

uint64_t neap__device_turn_bytes(const struct neap_net *net)
{
	const struct neap__layer *readout = &net->layers[net->nlayers - 1];
	uint64_t state = net->sample_state - readout->state_at;
	uint64_t adjoint = net->sample_adjoint - readout->adjoint_at;

	return state > adjoint ? state : adjoint;
}

/* Copies between the host's array of samples and packed parts. */
static void copy_parts(
	const struct turn_part *p, unsigned char *all, unsigned char *packed, int pack)
{
	for (size_t s = 0; s < p->samples; s++) {
		unsigned char *at = all + s * p->row + p->from, *part = packed + s * p->bytes;
		memcpy(pack ? part : at, pack ? at : part, p->bytes);
	}
}

/* Makes room for the parts on the host, which copies may still write after an error. */
static int make_packed(struct neap__device_backend *b, const struct turn_part *p)
{
	uint64_t bytes = p->samples * p->bytes;
	void *at = NULL;

	if (bytes <= b->turn_bytes)
		return 0;
	neap__pinned_free(b->device, b->turn_parts);
	b->turn_parts = NULL;
	b->turn_bytes = 0;
	NEAP_TRY(neap__pinned_alloc(b->device, &at, bytes));
	b->turn_parts = at;
	b->turn_bytes = bytes;
	return 0;
}

int neap__device_fetch_readout(void *self, struct neap_net *net, const void *state, void *copy)
{
	struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = b->batch.memory;
	const struct turn_part p = part_of_state(b);
	struct copy_rows_arguments a = {.samples = (int)p.samples,
		.words = (int)(p.bytes / sizeof(u32)),
		.from_row = (int)(p.row / sizeof(u32)),
		.to_row = (int)(p.bytes / sizeof(u32)),
		.from = (const u32 *)(uintptr_t)((const unsigned char *)state + p.from),
		.to = b->batch.turn};

	(void)net;
	NEAP_TRY(make_packed(b, &p));
	NEAP_TRY(neap__launch_copy_rows(&b->launcher, &a));
	NEAP_TRY(m->read(m->user, b->turn_parts, b->batch.turn, p.samples * p.bytes));
	copy_parts(&p, copy, b->turn_parts, 0);
	return 0;
}

int neap__device_send_adjoint(void *self, struct neap_net *net, void *adjoint, void *copy)
{
	struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = b->batch.memory;
	const struct turn_part p = part_of_adjoint(b);
	struct copy_rows_arguments a = {.samples = (int)p.samples,
		.words = (int)(p.bytes / sizeof(u32)),
		.from_row = (int)(p.bytes / sizeof(u32)),
		.to_row = (int)(p.row / sizeof(u32)),
		.from = b->batch.turn,
		.to = (u32 *)(void *)((unsigned char *)adjoint + p.from)};

	NEAP_TRY(make_packed(b, &p));
	copy_parts(&p, copy, b->turn_parts, 1);
	NEAP_TRY(m->write(m->user, b->batch.turn, b->turn_parts, p.samples * p.bytes));
	NEAP_TRY(m->fill(m->user, adjoint, 0, net->adjoint_bytes));
	return neap__launch_copy_rows(&b->launcher, &a);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn_copies.c: the turn is computed on the host, which needs the readout's part of each sample's
 * state, and writes that of the adjoint; all else of the adjoint is zero. Only these parts are
 * copied, packed by a kernel.
 */
#include "device/device_backend.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
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

static int make_packed(unsigned char **packed, const struct turn_part *p)
{
	*packed = malloc(p->samples * p->bytes);
	return *packed ? 0
		       : neap__fail_errno(ENOMEM, "the readout's part of %zu samples", p->samples);
}

int neap__device_fetch_readout(void *self, struct neap_net *net, const void *state, void *copy)
{
	const struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = b->batch.memory;
	const struct turn_part p = part_of_state(b);
	struct copy_rows_arguments a = {.samples = (int)p.samples,
		.words = (int)(p.bytes / sizeof(u32)),
		.from_row = (int)(p.row / sizeof(u32)),
		.to_row = (int)(p.bytes / sizeof(u32)),
		.from = (const u32 *)(uintptr_t)((const unsigned char *)state + p.from),
		.to = b->batch.turn};
	unsigned char *packed;

	(void)net;
	NEAP_TRY(make_packed(&packed, &p));
	int rc = neap__launch_copy_rows(&b->launcher, &a);
	if (rc == 0)
		rc = m->read(m->user, packed, b->batch.turn, p.samples * p.bytes);
	if (rc == 0)
		copy_parts(&p, copy, packed, 0);
	free(packed);
	return rc;
}

int neap__device_send_adjoint(void *self, struct neap_net *net, void *adjoint, void *copy)
{
	const struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = b->batch.memory;
	const struct turn_part p = part_of_adjoint(b);
	struct copy_rows_arguments a = {.samples = (int)p.samples,
		.words = (int)(p.bytes / sizeof(u32)),
		.from_row = (int)(p.bytes / sizeof(u32)),
		.to_row = (int)(p.row / sizeof(u32)),
		.from = b->batch.turn,
		.to = (u32 *)(void *)((unsigned char *)adjoint + p.from)};
	unsigned char *packed;

	NEAP_TRY(make_packed(&packed, &p));
	copy_parts(&p, copy, packed, 1);
	int rc = m->write(m->user, b->batch.turn, packed, p.samples * p.bytes);
	free(packed);
	NEAP_TRY(rc);
	NEAP_TRY(m->fill(m->user, adjoint, 0, net->adjoint_bytes));
	return neap__launch_copy_rows(&b->launcher, &a);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* device_parameters.c: memory, copies and updates of parameters (device_parameters.h). */
#include "device/device_parameters.h"
#include "device/device_backend.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Parts of the block, each aligned for the widest loads. NULL `block`: adds up *bytes alone. */
static void *part(void *block, uint64_t *bytes, uint64_t count, uint64_t size)
{
	uint64_t at = *bytes;

	*bytes = neap__sat_add(at, neap__round_up(neap__sat_mul(count, size), 256));
	return block ? (char *)block + at : NULL;
}

/* Lays out weights, and with moments > 0 what an optimizer needs; returns the bytes. */
static uint64_t lay_out(struct neap__device_parameter_memory *p, const struct neap_net *net,
	void *block, int moments)
{
	struct neap__device_parameters *at = &p->at;
	uint64_t bytes = 0;

	for (int i = 0; i < net->ntensors; i++) {
		const struct neap__param *t = &net->tensors[i];
		at->weight[i] = part(block, &bytes, (uint64_t)t->count, sizeof *at->weight[i]);
		if (!t->row_start)
			continue;
		at->row_start[i] =
			part(block, &bytes, (uint64_t)t->rows + 1, sizeof *at->row_start[i]);
		at->column[i] = part(block, &bytes, (uint64_t)t->count, sizeof *at->column[i]);
	}
	if (moments == 0)
		return bytes;
	at->tensor = part(block, &bytes, (uint64_t)net->ntensors, sizeof *at->tensor);
	at->gradient = part(block, &bytes, net->elements, sizeof *at->gradient);
	at->square = part(block, &bytes, neap__device_square_blocks(net), sizeof *at->square);
	at->infinite = part(block, &bytes, 1, sizeof *at->infinite);
	for (int m = 0; m < moments; m++)
		at->moment[m] = part(block, &bytes, net->elements, sizeof *at->moment[m]);
	return bytes;
}

static int make(
	struct neap__device_backend *b, const struct neap_net *net, int moments, uint64_t *bytes)
{
	struct neap__device_parameter_memory *p = &b->batch.parameters;
	const struct neap_memory_ops *m = b->batch.memory;

	NEAP_TRY(neap__device_enter(b->device));
	neap__device_parameters_free(p, b->device);
	p->at.weight = calloc((size_t)net->ntensors, sizeof *p->at.weight);
	p->at.row_start = calloc((size_t)net->ntensors, sizeof *p->at.row_start);
	p->at.column = calloc((size_t)net->ntensors, sizeof *p->at.column);
	p->table = calloc(2 * (size_t)net->ntensors, sizeof *p->table);
	if (!p->at.weight || !p->at.row_start || !p->at.column || !p->table)
		return neap__fail_errno(ENOMEM, "weights on the device");
	p->sent = p->table + net->ntensors;
	*bytes = lay_out(p, net, NULL, moments);
	uint64_t pages = neap__round_up(*bytes, 4096);
	p->block = m->map(m->user, pages);
	if (!p->block)
		return neap__fail_in(-ENOMEM, "weights and moments: ");
	p->bytes = pages;
	lay_out(p, net, p->block, moments);
	return 0;
}

/* What copies of the device may still write after an error. */
static int make_host(struct neap__device_backend *b, const struct neap_net *net)
{
	struct neap__device_parameter_memory *p = &b->batch.parameters;
	size_t squares = neap__device_square_blocks(net);
	void *at = NULL;

	NEAP_TRY(neap__pinned_alloc(b->device, &at, (squares + 1) * sizeof *p->square));
	p->square = at;
	p->infinite = (u32 *)(void *)(p->square + squares);
	return 0;
}

int neap__device_keep(void *self, struct neap_net *net, int moments)
{
	struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = b->batch.memory;
	uint64_t bytes;

	NEAP_TRY(make(b, net, moments, &bytes));
	NEAP_TRY(make_host(b, net));
	NEAP_TRY(m->fill(m->user, b->batch.parameters.block, 0, bytes));
	return neap__device_send_weights(b, net);
}

int neap__device_fetch_weights(void *self, struct neap_net *net)
{
	const struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = b->batch.memory;

	for (int i = 0; i < net->ntensors; i++)
		NEAP_TRY(m->read(m->user, net->tensors[i].data, b->batch.parameters.at.weight[i],
			(uint64_t)net->tensors[i].count * sizeof(float)));
	return 0;
}

/* Which connections there are, of tensors with a density below 1. */
static int send_connections(struct neap__device_backend *b, const struct neap_net *net)
{
	const struct neap__device_parameters *at = &b->batch.parameters.at;
	const struct neap_memory_ops *m = b->batch.memory;

	for (int i = 0; i < net->ntensors; i++) {
		const struct neap__param *t = &net->tensors[i];
		if (!t->row_start)
			continue;
		NEAP_TRY(m->write(m->user, at->row_start[i], t->row_start,
			((uint64_t)t->rows + 1) * sizeof *t->row_start));
		NEAP_TRY(m->write(
			m->user, at->column[i], t->column, (uint64_t)t->count * sizeof *t->column));
	}
	return 0;
}

int neap__device_send_weights(void *self, struct neap_net *net)
{
	struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = b->batch.memory;
	uint64_t bytes;

	if (net->options.precision != NEAP_FLOAT)
		return 0; /* the batch is refused */
	if (!b->batch.parameters.block)
		NEAP_TRY(make(b, net, 0, &bytes));
	for (int i = 0; i < net->ntensors; i++)
		NEAP_TRY(m->write(m->user, b->batch.parameters.at.weight[i], net->tensors[i].data,
			(uint64_t)net->tensors[i].count * sizeof(float)));
	return send_connections(b, net);
}

/* Brings the table of tensors there, if it has changed: the sums may have another place. */
static int send_table(struct neap__device_backend *b, const struct neap_net *net)
{
	struct neap__device_parameter_memory *p = &b->batch.parameters;
	const struct neap_memory_ops *m = b->batch.memory;

	p->at.learning = neap__device_tensor_table(p->table, net, &p->at, b->batch.room.total);
	size_t bytes = (size_t)p->at.learning * sizeof *p->table;
	if (memcmp(p->table, p->sent, bytes) == 0)
		return 0;
	NEAP_TRY(m->write(m->user, p->at.tensor, p->table, bytes));
	memcpy(p->sent, p->table, bytes);
	return 0;
}

int neap__device_add_groups(void *self, struct neap_net *net)
{
	struct neap__device_backend *b = self;

	NEAP_TRY(send_table(b, net));
	return neap__device_sum_groups(
		net, &b->launcher, &b->batch.parameters.at, b->batch.net.groups);
}

int neap__device_fetch_squares(void *self, struct neap_net *net, const double **square)
{
	const struct neap__device_backend *b = self;
	const struct neap__device_parameter_memory *p = &b->batch.parameters;
	const struct neap_memory_ops *m = b->batch.memory;

	*square = p->square;
	return m->read(m->user, p->square, p->at.square,
		neap__device_square_blocks(net) * sizeof *p->square);
}

int neap__device_update_weights(
	void *self, struct neap_net *net, const struct neap__update *update, int *finite)
{
	const struct neap__device_backend *b = self;
	const struct neap__device_parameter_memory *p = &b->batch.parameters;
	const struct neap_memory_ops *m = b->batch.memory;

	*p->infinite = 1; /* until the device reports that all weights are finite */
	NEAP_TRY(neap__device_update(net, &b->launcher, &p->at, update));
	NEAP_TRY(m->read(m->user, p->infinite, p->at.infinite, sizeof *p->infinite));
	*finite = !*p->infinite;
	return 0;
}

/* A moment of a tensor, on the device, and its bytes. */
static double *moment_of(const struct neap__device_backend *b, const struct neap_net *net,
	int tensor, int moment, uint64_t *bytes)
{
	*bytes = (uint64_t)net->tensors[tensor].count * sizeof(double);
	return b->batch.parameters.at.moment[moment] + net->tensors[tensor].offset;
}

int neap__device_fetch_moment(void *self, struct neap_net *net, int tensor, int moment, double *to)
{
	const struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = b->batch.memory;
	uint64_t bytes;
	const double *at = moment_of(b, net, tensor, moment, &bytes);

	return m->read(m->user, to, at, bytes);
}

int neap__device_send_moment(
	void *self, struct neap_net *net, int tensor, int moment, const double *from)
{
	const struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = b->batch.memory;
	uint64_t bytes;
	double *at = moment_of(b, net, tensor, moment, &bytes);

	return m->write(m->user, at, from, bytes);
}

void neap__device_parameters_free(
	struct neap__device_parameter_memory *p, const struct neap_device *device)
{
	if (p->block)
		device->memory.unmap(device->memory.user, p->block, p->bytes);
	neap__pinned_free(device, p->square);
	free(p->at.weight);
	free(p->at.row_start);
	free(p->at.column);
	free(p->table);
	*p = (struct neap__device_parameter_memory){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_sums.c: what the device adds up for the net: counts of spikes, and sums of gradients by
 * groups of samples. Counts of all samples go to the net's first group; they are whole numbers, of
 * which any order gives the same sum.
 */
#include "device/device_backend.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Copies between `count` numbers of a device's array and the host. */
static int copy(const struct neap__device_backend *b, void *host, void *at, uint64_t bytes, int in)
{
	const struct neap_memory_ops *m = b->batch.memory;
	return in ? m->write(m->user, at, host, bytes) : m->read(m->user, host, at, bytes);
}

/*
 * Copies the counts of a layer between `all`, as the device has them, and the groups of the net,
 * where the layer begins at `first`. Those of a spiking net go to the first group; of a dense net
 * each part of a group has its own.
 */
static void copy_counts(const struct neap__device_net *device, struct neap_net *net, double *all,
	size_t units, size_t first, int in)
{
	for (int g = 0; g < (device->dense ? net->ngroups : 1); g++) {
		const struct neap__group *group = &net->groups[g];
		int per_part = device->dense ? group->per_part : group->size;
		size_t part = (size_t)(group->grads - net->grads) * (size_t)device->parts;
		part += (size_t)((group->first - group->grads->first) / per_part);
		for (int s = 0; s < group->size; s += per_part, part++) {
			double *host = neap__unit_spikes(net, group, s) + first;
			double *there = all + (device->dense ? part * units : 0);
			memcpy(in ? there : host, in ? host : there, units * sizeof *all);
		}
	}
}

/* The counts of all layers to the host, or back. */
static int move_counts(const struct neap__device_backend *b, struct neap_net *net, int in)
{
	const struct neap__device_net *device = &b->batch.net;
	size_t parts = (size_t)neap__device_counts(device), first = 0;

	for (int l = 0; l < device->layers; l++) {
		size_t units = (size_t)neap__device_units(device, l);
		size_t bytes = parts * units * sizeof(double);
		double *all = malloc(bytes);
		int rc = all ? 0 : neap__fail_errno(ENOMEM, "counts of %zu units", units);
		if (rc == 0)
			rc = copy(b, all, b->batch.room.count[l], bytes, 0);
		if (rc == 0)
			copy_counts(device, net, all, units, first, in);
		if (rc == 0 && in)
			rc = copy(b, all, b->batch.room.count[l], bytes, 1);
		free(all);
		NEAP_TRY(rc);
		first += units;
	}
	return 0;
}

int neap__device_fetch_counts(void *self, struct neap_net *net)
{
	return move_counts(self, net, 0);
}

int neap__device_send_penalties(void *self, struct neap_net *net)
{
	const struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = b->batch.memory;

	for (int l = 0; net->has_penalty && l < b->batch.net.layers; l++)
		NEAP_TRY(m->write(m->user, (void *)(uintptr_t)b->batch.penalty[l], net->penalty[l],
			(uint64_t)neap__device_units(&b->batch.net, l) * sizeof(float)));
	return 0;
}

/*
 * Copies the sums of a tensor and group, `size` bytes a number, from the device to `sums` or back.
 * Where sums are kept for those inputs alone that spike, by way of all rows in `rows`.
 */
static int copy_sums(const struct neap__device_backend *b, const struct neap__grads *grads,
	int tensor, void *at, void *sums, size_t size, unsigned char *rows, int in)
{
	const struct neap__param *t = &b->net->tensors[tensor];
	size_t row = (size_t)t->columns * size;

	if (!grads->slot || tensor != b->net->layers[0].weight)
		return copy(b, sums, at, (uint64_t)t->count * size, in);
	if (in)
		memset(rows, 0, (size_t)t->count * size);
	else
		NEAP_TRY(copy(b, rows, at, (uint64_t)t->count * size, 0));
	for (int i = 0; i < grads->input_rows; i++) {
		unsigned char *whole = rows + (size_t)grads->input[i] * row;
		unsigned char *part = (unsigned char *)sums + (size_t)i * row;
		memcpy(in ? whole : part, in ? part : whole, row);
	}
	return in ? copy(b, rows, at, (uint64_t)t->count * size, 1) : 0;
}

static int copy_all(struct neap__device_backend *b, int in)
{
	struct neap_net *net = b->net;
	const struct neap__param *inputs = &net->tensors[net->layers[0].weight];
	unsigned char *rows = malloc((size_t)inputs->count * sizeof(double));
	int rc = rows ? 0 : neap__fail_errno(ENOMEM, "a copy of gradients");

	for (int g = 0; g < net->ngrads && rc == 0; g++) {
		struct neap__grads *grads = &net->grads[g];
		for (int i = 0; i < net->ntensors && rc == 0; i++) {
			size_t first = (size_t)g * (size_t)net->tensors[i].count;
			rc = copy_sums(b, grads, i, b->batch.room.total[i] + first, grads->total[i],
				sizeof(double), rows, in);
			if (rc == 0 && b->unfolded)
				rc = copy_sums(b, grads, i, b->batch.room.part[i] + first,
					grads->part[i], sizeof(float), rows, in);
		}
		if (b->unfolded)
			memset(grads->dirty, 1, net->rows);
	}
	free(rows);
	return rc;
}

int neap__device_fetch_sums(void *self, struct neap_net *net)
{
	return neap__has_gradients(net) ? copy_all(self, 0) : 0;
}

int neap__device_send_sums(void *self, struct neap_net *net)
{
	struct neap__device_backend *b = self;

	neap__round_list_clear(&b->rounds, b->batch.net.layers); /* tapes come from a journal */
	NEAP_TRY(move_counts(b, net, 1));
	if (!net->objective.loss)
		return 0;
	b->unfolded = 1;
	return copy_all(b, 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* group_memory.c: the arrays of a group and of gradient sums (group_memory.h). */
#include "nn/batch/group_memory.h"
#include "nn/core/cell.h"
#include "nn/core/on_device.h"
#include "nn/gradients/deferred_sums.h"
#include "nn/replay/replay_memory.h"
#include "base/bump_alloc.h"
#include "base/fail.h"
#include "kern/kern.h"
#include "sys/pool.h"

#include <errno.h>
#include <string.h>

static void take_lists(const struct neap_net *net, struct neap__group *group,
	struct neap__bump *from, int parity, int samples)
{
	size_t lists = (size_t)samples * net->nlayers;
	struct neap__list *spikes = neap__bump_take(from, lists, sizeof *spikes);
	struct neap__list *near = neap__bump_take(from, lists, sizeof *near);

	group->spike_lists[parity] = spikes;
	group->support_lists[parity] = near;
	for (int l = 0; l < net->nlayers - 1; l++) {
		const struct neap__layer *layer = &net->layers[l];
		uint16_t *shared = NULL;
		if (!layer->keeps_support) /* only the present step uses it: one for all samples */
			shared = neap__bump_take(from, layer->n + NEAP__SPARE, sizeof *shared);
		for (int s = 0; s < samples; s++) {
			struct neap__list a = {0}, b = {0};
			a.id = a.room =
				neap__bump_take(from, layer->n + NEAP__SPARE, sizeof *a.room);
			if (layer->outputs != NEAP__OUTPUT_SPIKES)
				a.value_room = neap__bump_take(from, layer->n, net->ops->real);
			b.id = b.room = shared ? shared
					: layer->keeps_support
						? neap__bump_take(from, layer->n + NEAP__SPARE,
							  sizeof *b.room)
						: NULL;
			if (from->base) {
				spikes[(size_t)s * net->nlayers + l] = a;
				near[(size_t)s * net->nlayers + l] = b;
			}
		}
	}
}

/* Takes what a layer's tapes are read into. */
static void take_views(const struct neap_net *net, struct neap__group *group,
	struct neap__bump *from, int l, int samples)
{
	const struct neap__layer *layer = &net->layers[l];
	uint64_t n = (uint64_t)layer->n;

	for (int s = 0; s < samples; s++) {
		struct neap__view view = {0};
		for (int i = 0; i < 3 && !layer->cell->readout; i++) {
			view.ids[i] = neap__bump_take(from, n + NEAP__SPARE, sizeof *view.ids[i]);
			view.numbers[i] = neap__bump_take(from, n + NEAP__SPARE, net->ops->real);
		}
		if (from->base)
			group->views[(size_t)l * samples + s] = view;
	}
}

/* Room for max pooling. */
static void take_pool(
	const struct neap_net *net, struct neap__group *group, struct neap__bump *from, int samples)
{
	uint64_t pooling = net->pools_most ? (uint64_t)samples : 0;
	int widest = net->options.inputs > net->widest ? net->options.inputs : net->widest;

	group->pool.most = net->pools_most > widest ? net->pools_most : widest;
	uint64_t most = (uint64_t)group->pool.most;
	group->pool.ids = neap__bump_take(from, pooling * most, sizeof *group->pool.ids);
	group->pool.values = neap__bump_take(from, pooling * most, net->ops->real);
	group->pool.best =
		neap__bump_take(from, (uint64_t)net->pools_most, sizeof *group->pool.best);
	group->pool.into =
		neap__bump_take(from, (uint64_t)net->pools_of_unit, sizeof *group->pool.into);
	group->pool.products = neap__bump_take(from, (uint64_t)net->pools_of_unit, net->ops->real);
}

static void take_group(
	const struct neap_net *net, struct neap__group *group, struct neap__bump *from, int samples)
{
	size_t bytes = net->ops->real;

	group->spikes = neap__bump_take(from, neap__group_spikes(net), sizeof *group->spikes);
	group->z = neap__bump_take(from, net->options.classes, sizeof *group->z);
	group->dz = neap__bump_take(from, net->options.classes, sizeof *group->dz);
	for (int i = 0; i < 2; i++)
		group->scratch[i] = neap__bump_take(from, 1, net->row_bytes + NEAP__SPARE * bytes);
	group->sums = neap__bump_take(from, samples, net->row_bytes);
	group->products = neap__bump_take(from, net->wide_bytes ? samples : 0, net->wide_bytes);
	group->spread =
		neap__bump_take(from, (uint64_t)net->nwide * (uint64_t)samples, net->wide_bytes);
	group->at = neap__bump_take(from, samples, sizeof *group->at);
	/* Pointers and counts, the same in either precision. */
	group->sample_rows = neap__bump_take(from, samples, sizeof(struct neap__sample_rows));
	int converts = net->options.values && bytes != sizeof(float);
	group->inputs = neap__bump_take(
		from, converts ? samples : 0, (uint64_t)net->options.inputs * bytes);
	group->views =
		neap__bump_take(from, (uint64_t)net->nlayers * samples, sizeof *group->views);
	for (int l = 0; l < net->nlayers; l++)
		take_views(net, group, from, l, samples);
	group->replay = net->has_log ? neap__replay_take(net, from, samples) : NULL;
	uint64_t dropping = net->can_drop ? (uint64_t)samples : 0;
	group->mask.passes = neap__bump_take(from, dropping, (uint64_t)net->hidden);
	group->mask.ids = neap__bump_take(from, dropping * net->widest, sizeof *group->mask.ids);
	group->mask.values = neap__bump_take(from, dropping, net->row_bytes);
	uint64_t late = net->has_delays ? (uint64_t)samples : 0;
	group->late.ids = neap__bump_take(from, late * net->widest, sizeof *group->late.ids);
	group->late.values = neap__bump_take(from, late, net->row_bytes);
	take_pool(net, group, from, samples);
	group->room = samples;
	for (int parity = 0; parity < 2; parity++)
		take_lists(net, group, from, parity, samples);
}

/* 1: the sums of the input weights have rows for the inputs that spike alone. */
static int input_rows_vary(const struct neap_net *net)
{
	return net->layers[0].nsources == 1 && neap__is_deferred(net, net->layers[0].weight);
}

/* All but the sums of deferred input weights, whose rows depend on the batch. */
static void take_grads(
	const struct neap_net *net, struct neap__grads *grads, struct neap__bump *from)
{
	int input = net->layers[0].weight, rows_vary = input_rows_vary(net);

	grads->part = neap__bump_take(from, net->ntensors, sizeof *grads->part);
	grads->total = neap__bump_take(from, net->ntensors, sizeof *grads->total);
	for (int i = 0; i < net->ntensors; i++) {
		uint64_t count = i == input && rows_vary ? 0 : (uint64_t)net->tensors[i].count;
		void *part = neap__bump_take(from, count, net->ops->real);
		double *total = neap__bump_take(from, count, sizeof *total);
		if (from->base) {
			grads->part[i] = part;
			grads->total[i] = total;
		}
	}
	grads->dirty = neap__bump_take(from, net->rows, 1);
	grads->input = grads->slot = NULL;
	if (!rows_vary)
		return;
	grads->input = neap__bump_take(from, net->options.inputs, sizeof *grads->input);
	grads->slot = neap__bump_take(from, net->options.inputs, sizeof *grads->slot);
}

uint64_t neap__grads_bytes(const struct neap_net *net)
{
	struct neap__grads grads;
	struct neap__bump bump = {0};
	take_grads(net, &grads, &bump);
	return bump.used;
}

/* Bytes of the sums of so many rows of input weights: totals, then parts of a block. */
static uint64_t take_rows(
	const struct neap_net *net, int rows, struct neap__bump *from, double **total, void **part)
{
	int64_t columns = net->tensors[net->layers[0].weight].columns;
	uint64_t count = neap__sat_mul((uint64_t)rows, (uint64_t)columns);

	*total = neap__bump_take(from, count, sizeof **total);
	*part = neap__bump_take(from, count, net->ops->real);
	return from->used;
}

uint64_t neap__input_rows_bytes(const struct neap_net *net, int rows)
{
	double *total;
	void *part;

	if (!input_rows_vary(net))
		return 0;
	return neap__block_bytes(take_rows(net, rows, &(struct neap__bump){0}, &total, &part), 1);
}

void neap__grads_free(struct neap_net *net, struct neap__grads *grads)
{
	neap__net_put(net, grads->input_memory);
	neap__net_put(net, grads->memory);
	*grads = (struct neap__grads){0};
}

/* Gives a row to each input that spikes in the samples, or to all where that is not known yet. */
static void find_rows(
	const struct neap_net *net, const struct neap_batch *batch, struct neap__grads *grads)
{
	int inputs = net->options.inputs;

	memset(grads->slot, batch->windows ? 1 : 0, (size_t)inputs * sizeof *grads->slot);
	for (int s = grads->first; !batch->windows && s < grads->first + grads->size; s++) {
		const struct neap_sequence *sample = &batch->sequences[s];
		uint32_t end = sample->length > 0 ? sample->start[sample->length] : 0;
		for (uint32_t e = end ? sample->start[0] : 0; e < end; e++)
			grads->slot[sample->unit[e]] = 1;
	}
	grads->input_rows = 0;
	for (int i = 0; i < inputs; i++)
		if (grads->slot[i]) {
			grads->input[grads->input_rows] = (uint16_t)i;
			grads->slot[i] = (uint16_t)grads->input_rows++;
		}
}

/* Makes room for the rows of the input weights; what there is stays where it is large enough. */
static int make_rows(struct neap_net *net, struct neap__grads *grads)
{
	int input = net->layers[0].weight;

	if (!grads->input_memory || grads->input_rows > grads->input_room) {
		uint64_t bytes = neap__input_rows_bytes(net, grads->input_rows);
		neap__net_put(net, grads->input_memory);
		grads->input_room = 0;
		grads->input_memory = neap__net_get(net, bytes, 1);
		if (!grads->input_memory)
			return neap__fail_errno(ENOMEM, "%llu bytes for gradients of %d inputs",
				(unsigned long long)bytes, grads->input_rows);
		grads->input_room = grads->input_rows;
	}
	take_rows(net, grads->input_rows, &(struct neap__bump){grads->input_memory, 0},
		&grads->total[input], &grads->part[input]);
	return 0;
}

/* What the threads do for the batch with each struct neap__grads. */
struct grads_job {
	struct neap_net *net;
	const struct neap_batch *batch;
};

static void find_item(void *arg, int item, int thread)
{
	const struct grads_job *job = arg;

	(void)thread;
	find_rows(job->net, job->batch, &job->net->grads[item]);
}

static void clear_item(void *arg, int item, int thread)
{
	const struct grads_job *job = arg;
	struct neap_net *net = job->net;
	struct neap__grads *grads = &net->grads[item];

	(void)thread;
	for (int i = 0; i < net->ntensors; i++) {
		size_t count = neap__sum_count(net, grads, i);
		if (count == 0)
			continue;
		memset(grads->part[i], 0, count * net->ops->real);
		memset(grads->total[i], 0, count * sizeof **grads->total);
	}
	memset(grads->dirty, 0, net->rows);
}

int neap__grads_begin(struct neap_net *net, const struct neap_batch *batch)
{
	struct grads_job job = {net, batch};

	if (neap__on_device_keeps(net)) /* then they are on the device alone */
		return 0;
	if (net->ngrads > 0 && net->grads[0].slot)
		neap__thread_pool_run(net->pool, net->ngrads, find_item, &job);
	for (int g = 0; g < net->ngrads; g++)
		if (net->grads[g].slot)
			NEAP_TRY(make_rows(net, &net->grads[g]));
	neap__thread_pool_run(net->pool, net->ngrads, clear_item, &job);
	return 0;
}

int neap__grads_make(struct neap_net *net, struct neap__grads *grads)
{
	uint64_t bytes = neap__grads_bytes(net);
	void *memory = neap__net_get(net, bytes, 1); /* neap__grads_begin zeroes the sums */

	if (!memory)
		return neap__fail_errno(
			ENOMEM, "%llu bytes for gradients", (unsigned long long)bytes);
	*grads = (struct neap__grads){.memory = memory};
	take_grads(net, grads, &(struct neap__bump){memory, 0});
	return 0;
}

void neap__group_free(struct neap_net *net, struct neap__group *group)
{
	neap__net_put(net, group->memory);
	*group = (struct neap__group){0};
}

uint64_t neap__group_bytes(const struct neap_net *net, int samples)
{
	struct neap__group measured;
	struct neap__bump bump = {0};

	take_group(net, &measured, &bump, samples);
	return bump.used;
}

int neap__group_make(struct neap_net *net, struct neap__group *group, int samples)
{
	uint64_t bytes = neap__group_bytes(net, samples);
	void *memory = neap__net_get_zeroed(net, bytes, 1);

	if (!memory)
		return neap__fail_errno(ENOMEM, "%llu bytes for a group of %d samples",
			(unsigned long long)bytes, samples);
	*group = (struct neap__group){.memory = memory};
	take_group(net, group, &(struct neap__bump){memory, 0}, samples);
	return 0;
}

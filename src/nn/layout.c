/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: what layers derive from their keys, offsets and sizes, memory of groups (layout.h). */
#include "nn/layout.h"
#include "nn/core/cell.h"
#include "nn/time_unit.h"
#include "nn/gradients/deferred_sums.h"
#include "base/fail.h"
#include "kern/kern.h"
#include "base/bump_alloc.h"
#include "nn/replay/replay_memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t place(size_t *total, size_t bytes)
{
	size_t at = *total;
	*total = neap__round_up(at + bytes, NEAP__LAYER_ALIGN);
	return at;
}

/* Whether a surrogate is 0 beyond |u - threshold| = width. */
static int is_compact(enum neap_surrogate surrogate)
{
	return surrogate == NEAP_TRIANGLE || surrogate == NEAP_BOXCAR;
}

static void derive(const struct neap_net *net, struct neap__layer *layer)
{
	const struct neap_net_options *o = &net->options;
	const struct neap__layer *above = layer + 1;

	layer->cut = is_compact(layer->surrogate) ? layer->width : INFINITY;
	if (layer->support > 0 && layer->support < layer->cut)
		layer->cut = layer->support;
	layer->slope = neap__unit_slope(net, layer);
	layer->smooth = o->smooth;
	layer->dense = o->dense || o->smooth || isinf(layer->cut) ||
		       neap__layer_code(net, layer)->is_dense;
	layer->outputs = o->smooth ? NEAP__OUTPUT_ALL : neap__layer_code(net, layer)->outputs;
	layer->keeps_spikes = layer->is_recurrent || above->delay ||
			      layer->reset == NEAP_RESET_SUBTRACT ||
			      layer->reset == NEAP_RESET_ZERO;
	layer->keeps_support = layer->reset == NEAP_RESET_ZERO && !layer->detach && !layer->dense;
}

static void derive_widths(const struct neap_net *net, struct neap__layer *layer)
{
	struct neap__widths w = neap__layer_code(net, layer)->widths;

	if (!w.sums)
		w = (struct neap__widths){1, 1, 1, 0, 0};
	layer->widths = (struct neap__widths){w.in * layer->n, w.own * layer->n, w.sums * layer->n,
		w.own_at * layer->n, w.candidate_at * layer->n};
}

/* Which spikes go into the log: those that others than the readout see. */
static void derive_log(struct neap_net *net)
{
	net->has_log =
		!net->options.smooth && !net->options.values && net->nlayers <= NEAP__LAYERS_MOST;
	for (int l = 0; l < net->nlayers - 1; l++) {
		struct neap__layer *layer = &net->layers[l];
		layer->logged = layer->is_recurrent || l + 1 < net->nlayers - 1;
		if (layer->logged)
			net->sample_log += (1 + (size_t)layer->n) * sizeof(uint16_t);
		/* What dropout lets through has another weight, which a walk does not know. */
		if (layer->density < 1 || !neap__layer_code(net, layer)->walk ||
			neap__learned(layer) || (l > 0 && layer[-1].dropout > 0))
			net->has_log = 0;
	}
	net->strip_units = (size_t)net->ops->strip_units(net);
}

static void derive_dense(struct neap_net *net)
{
	net->dense = net->nlayers > 1;
	for (int l = 0; l < net->nlayers - 1; l++)
		net->dense &= neap__layer_code(net, &net->layers[l])->outputs == NEAP__OUTPUT_ALL &&
			      net->layers[l].density >= 1;
	net->dense &= net->layers[net->nlayers - 1].density >= 1;
	for (int l = 0; l < net->nlayers; l++) /* their gradients are added step by step */
		net->dense &= !neap__learned(&net->layers[l]);
}

static size_t bytes_of(const struct neap_net *net, const struct neap__layer *layer, int rows,
	size_t (*bytes)(const struct neap_net *net, const struct neap__layer *layer))
{
	return bytes ? bytes(net, layer) : (size_t)rows * layer->n * net->ops->real;
}

int neap__net_layout(struct neap_net *net)
{
	size_t state = 0, adjoint = 0, tape = 0, bytes = net->ops->real;
	int row = 0;

	for (int l = 0; l < net->nlayers; l++) {
		struct neap__layer *layer = &net->layers[l];
		const struct neap__cell_code *c = neap__layer_code(net, layer);
		size_t bits = (size_t)(layer->n + 7) / 8;
		int hidden = !layer->cell->readout;

		derive_widths(net, layer);
		if (hidden)
			derive(net, layer);
		layer->state_at =
			place(&state, bytes_of(net, layer, c->rows.state, c->state_bytes));
		if (neap__learned(layer))
			layer->traces_at = place(&state, (size_t)c->traces * layer->n * bytes);
		if (hidden && layer->keeps_spikes)
			layer->spikes_at = place(&state,
				layer->outputs == NEAP__OUTPUT_ALL ? layer->n * bytes : bits);
		if (hidden && layer->keeps_support)
			layer->support_at = place(&state, bits);
		layer->adjoint_at =
			place(&adjoint, bytes_of(net, layer, c->rows.adjoint, c->adjoint_bytes));
		tape += neap__layer_tape(net, layer);
		net->widest = layer->n > net->widest ? layer->n : net->widest;
		row = layer->widths.sums > row ? layer->widths.sums : row;
		layer->hidden_at = net->hidden;
		net->can_drop |= hidden && layer->dropout > 0;
		net->hidden += hidden ? layer->n : 0;
	}
	net->sample_state = neap__round_up(state, NEAP__SAMPLE_ALIGN);
	net->sample_adjoint = neap__round_up(adjoint, NEAP__SAMPLE_ALIGN);
	net->sample_tape = tape;
	net->row_bytes = neap__round_up((uint64_t)row * bytes, 64);
	derive_log(net);
	derive_dense(net);
	int all = net->options.values && net->options.inputs > net->widest ? net->options.inputs
									   : net->widest;
	net->identity = malloc((size_t)all * sizeof *net->identity);
	if (!net->identity)
		return neap__fail_errno(ENOMEM, "net");
	for (int i = 0; i < all; i++)
		net->identity[i] = (uint16_t)i;
	return 0;
}

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

static void take_group(
	const struct neap_net *net, struct neap__group *group, struct neap__bump *from, int samples)
{
	size_t bytes = net->ops->real;

	group->spikes = neap__bump_take(from, net->hidden, sizeof *group->spikes);
	group->z = neap__bump_take(from, net->options.classes, sizeof *group->z);
	group->dz = neap__bump_take(from, net->options.classes, sizeof *group->dz);
	for (int i = 0; i < 2; i++)
		group->scratch[i] = neap__bump_take(from, 1, net->row_bytes + NEAP__SPARE * bytes);
	group->sums = neap__bump_take(from, samples, net->row_bytes);
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
	group->room = samples;
	for (int parity = 0; parity < 2; parity++)
		take_lists(net, group, from, parity, samples);
}

/* All but the sums of deferred input weights, whose rows depend on the batch. */
static void take_grads(
	const struct neap_net *net, struct neap__grads *grads, struct neap__bump *from)
{
	int input = net->layers[0].weight, rows_vary = neap__is_deferred(net, input);

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

size_t neap__grads_bytes(const struct neap_net *net)
{
	struct neap__grads grads;
	struct neap__bump bump = {0};
	take_grads(net, &grads, &bump);
	return bump.used;
}

size_t neap__grads_row_bytes(const struct neap_net *net)
{
	size_t columns = (size_t)net->tensors[net->layers[0].weight].columns;
	return columns * (net->ops->real + sizeof(double));
}

void neap__grads_free(struct neap__grads *grads)
{
	free(grads->input_memory);
	free(grads->memory);
	*grads = (struct neap__grads){0};
}

/* Gives a row to each input that spikes in the samples, or to all where that is not known yet. */
static void find_rows(const struct neap_net *net, struct neap__grads *grads)
{
	const struct neap_batch *batch = net->batch;
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
static int make_rows(const struct neap_net *net, struct neap__grads *grads)
{
	int input = net->layers[0].weight;
	uint64_t count = neap__sum_count(net, grads, input);
	uint64_t total = neap__round_up(neap__sat_mul(count, sizeof **grads->total), 64);
	uint64_t part = neap__round_up(neap__sat_mul(count, net->ops->real), 64);

	if (!grads->input_memory || grads->input_rows > grads->input_room) {
		uint64_t bytes = neap__sat_add(neap__sat_add(total, part), 64);
		free(grads->input_memory);
		grads->input_room = 0;
		grads->input_memory = bytes <= PTRDIFF_MAX ? aligned_alloc(64, bytes) : NULL;
		if (!grads->input_memory)
			return neap__fail_errno(ENOMEM, "%llu bytes for gradients of %d inputs",
				(unsigned long long)bytes, grads->input_rows);
		grads->input_room = grads->input_rows;
	}
	grads->total[input] = grads->input_memory;
	grads->part[input] = (char *)grads->input_memory + total;
	return 0;
}

int neap__grads_begin(const struct neap_net *net, struct neap__grads *grads)
{
	if (grads->slot) {
		find_rows(net, grads);
		NEAP_TRY(make_rows(net, grads));
	}
	for (int i = 0; i < net->ntensors; i++) {
		size_t count = neap__sum_count(net, grads, i);
		if (count == 0)
			continue;
		memset(grads->part[i], 0, count * net->ops->real);
		memset(grads->total[i], 0, count * sizeof **grads->total);
	}
	memset(grads->dirty, 0, net->rows);
	return 0;
}

int neap__grads_make(struct neap_net *net, struct neap__grads *grads)
{
	size_t bytes = neap__grads_bytes(net);
	void *memory = bytes <= PTRDIFF_MAX ? aligned_alloc(64, bytes) : NULL;

	if (!memory)
		return neap__fail_errno(ENOMEM, "%zu bytes for gradients", bytes);
	*grads = (struct neap__grads){.memory = memory};
	take_grads(net, grads, &(struct neap__bump){memory, 0});
	return 0;
}

void neap__group_free(struct neap__group *group)
{
	free(group->memory);
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
	struct neap__bump bump = {.used = neap__group_bytes(net, samples)};

	if (bump.used > PTRDIFF_MAX)
		return neap__fail(
			NEAP_EOVERFLOW, "net too large for a group of %d samples", samples);
	void *memory = aligned_alloc(64, bump.used);
	if (!memory)
		return neap__fail_errno(ENOMEM, "%llu bytes for a group of %d samples",
			(unsigned long long)bump.used, samples);
	memset(memory, 0, bump.used);
	net->group_memory = bump.used;
	bump = (struct neap__bump){memory, 0};
	*group = (struct neap__group){.memory = memory};
	take_group(net, group, &bump, samples);
	return 0;
}

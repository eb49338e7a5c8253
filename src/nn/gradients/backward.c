/* SPDX-License-Identifier: Apache-2.0 */
/* backward.c: a step of all samples backward, and ranges of such steps (backward.h). */
#include "nn/gradients/backward.h"
#include "nn/core/dropout.h"
#include "nn/core/forward.h"
#include "nn/core/pooling.h"
#include "nn/core/port_rows.h"
#include "nn/core/products.h"
#include "nn/core/sum_pool.h"
#include "nn/gradients/deferred_sums.h"
#include "nn/gradients/delay_gradients.h"
#include "nn/gradients/weight_gradients.h"

#include <string.h>

static const real *din_of(const struct neap__at *at, const struct neap__layer *layer)
{
	return (const real *)(const void *)(at->adjoint + layer->adjoint_at);
}

/*
 * dS of the active units = what is no product: the penalty, the extra row, and gradients of the
 * caller.
 */
static void start_others(const struct neap__at *at, real *ds)
{
	const struct neap_net *net = at->net;
	const struct neap__layer *layer = at->layer;
	const real *penalty = net->has_penalty ? net->penalty[layer->index] : NULL;
	const struct neap__view *view = neap__view_of(at, layer->index);
	const struct neap__cell_code *code = neap__code(layer);
	size_t extra_at = code->extra_at ? code->extra_at(layer) : 0;
	const real *extra = extra_at ? (const real *)(const void *)(at->adjoint + extra_at) : NULL;
	const real *outputs = neap__port_gradients(at);

	for (int k = 0; k < view->active; k++)
		ds[k] = (penalty ? penalty[view->active_id[k]] : 0) +
			(extra ? extra[view->active_id[k]] : 0);
	for (int k = 0; outputs && k < view->active; k++)
		ds[k] += outputs[view->active_id[k]];
}

/* Steps after which outputs of a source arrive, all alike: those that have one delay, too. */
static int steps_of(const struct neap__layer *layer, const struct neap__layer_source *source)
{
	return source->is_delayed ? layer->delays.most : source->late;
}

/* d(in) of a layer as its products see it, of the step or of so many steps after, where the sample
 * has these. */
static const real *source_din(
	const struct neap__at *at, const struct neap__layer *layer, int tensor, int next)
{
	if (layer->wide && tensor == layer->weight)
		return neap__spread_row(at->net, at->group, layer, at->slot);
	if (next > 1)
		return neap__delays_din(at, layer, next);
	return next ? neap__deferred_din(at, layer->index) : din_of(at, layer);
}

/*
 * dS += V d(in) of `layer`, which the outputs of the samples' layer enter in the same step or,
 * where `next` is 1, in the step after: the last step of a sample has none after.
 */
static void add_products(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *layer, int tensor, int row, int next)
{
	struct neap__sample_rows *samples = group->sample_rows;
	int count = 0, column = neap__column_of(layer, tensor);

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		const struct neap__view *view = neap__view_of(at, at->layer->index);
		if (next && at->t + 1 >= at->sequence->length)
			continue;
		samples[count++] = (struct neap__sample_rows){.id = view->active_id,
			.count = view->active,
			.out = neap__scratch_row(net, group->sums, at->slot),
			.in = column + source_din(at, layer, tensor, next)};
	}
	neap__products_dot(net, samples, count, tensor, row);
}

/* The outputs of the samples' layer that arrive at a layer above it. */
static struct neap__list outputs_above(
	const struct neap_net *net, struct neap__group *group, const struct neap__at *at)
{
	struct neap__list outputs = neap__view_of(at, at->layer->index)->spikes;

	return neap__drops(net, at->layer)
		       ? neap__dropout_list(net, group, at->layer, at->slot, &outputs)
		       : outputs;
}

/* dS += W d(in) of a layer whose max pooling has windows that overlap. */
static void add_pools(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *layer, int next)
{
	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		if (at->t + next >= at->sequence->length)
			continue;
		struct neap__list outputs = outputs_above(net, group, at);
		neap__pool_products(net, group, layer, at->slot,
			neap__view_of(at, at->layer->index), &outputs,
			source_din(at, layer, layer->weight, next),
			neap__scratch_row(net, group->sums, at->slot));
	}
}

/* dS += W d(in) of the layers that receive the samples' layer: of those above it (skip
 * connections), or with `back` of those below. */
static void add_readers(struct neap_net *net, struct neap__group *group, int alive, int back)
{
	const struct neap__layer *layer = group->at->layer;
	int own = layer->index, end = neap__computed_layers(net);

	for (int l = layer->first_reader; l <= layer->last_reader && l < end; l++)
		for (int k = 0; k < net->layers[l].nsources; k++) {
			const struct neap__layer_source *from = &net->layers[l].source[k];
			if (from->layer != own || from->is_back != back || l < net->learns_from)
				continue;
			if (net->layers[l].pool_start)
				add_pools(net, group, alive, &net->layers[l],
					steps_of(&net->layers[l], from));
			else if (from->is_delayed)
				neap__delays_outputs(net, group, alive, &net->layers[l], from);
			else
				add_products(net, group, alive, &net->layers[l],
					net->layers[l].weight, from->row, from->late);
		}
}

/* The layer whose max pooling selects outputs of a layer; it is the only one that receives it. */
static const struct neap__layer *pooling_reader(
	const struct neap_net *net, const struct neap__layer *layer)
{
	for (int l = 0; l < net->nlayers && net->pools_most; l++)
		if (net->layers[l].pooled && net->layers[l].source[0].layer == layer->index)
			return &net->layers[l];
	return NULL;
}

/* dS from the layers above, and what is no product; outputs that dropout or max pooling stopped get
 * nothing from above. */
static void start_ds(struct neap_net *net, struct neap__group *group, int alive)
{
	const struct neap__layer *layer = group->at->layer, *above = pooling_reader(net, layer);
	real *others = group->scratch[0];
	int drops = neap__drops(net, layer), stops = drops || above;

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		real *ds = neap__scratch_row(net, group->sums, at->slot);
		if (stops)
			memset(ds, 0, (size_t)layer->n * sizeof *ds);
		else
			start_others(at, ds);
	}
	add_readers(net, group, alive, 0);
	for (int i = 0; stops && i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		const struct neap__view *view = neap__view_of(at, layer->index);
		real *ds = neap__scratch_row(net, group->sums, at->slot);
		struct neap__list outputs = outputs_above(net, group, at);
		if (drops)
			neap__dropout_gradient(net, group, layer, at->slot, view, ds);
		if (above && !above->pool_start)
			neap__pool_gradient(net, group, above, view, &outputs, ds);
		start_others(at, others);
		for (int k = 0; k < view->active; k++)
			ds[k] += others[k];
	}
	add_readers(net, group, alive, 1);
}

/* Gradients of the sums whose maxima a layer receives: computes the products of what arrives a
 * second time. */
static void spread_maxima(
	struct neap_net *net, struct neap__group *group, int alive, const struct neap__layer *layer)
{
	const struct neap__layer_source *from = &layer->source[0];
	int next = steps_of(layer, from);

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		if (at->t + next >= at->sequence->length)
			continue; /* outputs of the last steps enter no step */
		struct neap__list list = neap__arriving(at, layer, 0,
			from->layer < 0 ? neap__inputs_of(net, at)
					: neap__view_of(at, from->layer)->spikes);
		struct neap__sample_rows sample = {.id = list.id,
			.v = list.value,
			.count = list.count,
			.out = neap__products_row(net, group, at->slot)};
		memset(sample.out, 0, (size_t)layer->wide * sizeof *sample.out);
		neap__products_add(net, &sample, 1, layer->weight, 0);
		neap__sum_pool_spread(layer, neap__products_row(net, group, at->slot),
			next > 1 ? neap__delays_din(at, layer, next)
			: next	 ? neap__deferred_din(at, layer->index)
				 : din_of(at, layer),
			neap__spread_row(net, group, layer, at->slot));
	}
}

/* Backward through the second product, and the gradient of its weights. */
static void reverse_candidate(struct neap_net *net, struct neap__group *group, int alive)
{
	const struct neap__layer *layer = group->at->layer;
	struct neap__sample_rows *samples = group->sample_rows;

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		const struct neap__list *gated = &neap__view_of(at, layer->index)->gated;
		samples[i] = (struct neap__sample_rows){.id = gated->id,
			.count = gated->count,
			.out = neap__scratch_row(net, group->sums, at->slot),
			.in = din_of(at, layer) + layer->widths.candidate_at};
		memset(samples[i].out, 0, (size_t)gated->count * sizeof(real));
	}
	neap__products_dot(net, samples, alive, layer->candidate, 0);
	for (int i = 0; i < alive; i++) {
		struct neap__view *view = neap__view_of(&group->at[i], layer->index);
		neap__code(layer)->ungate(&group->at[i], view, samples[i].out);
		samples[i].id = view->gated.id;
		samples[i].v = view->gated.value;
		samples[i].count = view->gated.count;
	}
	if (!net->tensors[layer->candidate].is_frozen)
		neap__weights_add_now(net, group, alive, layer->candidate, 0);
}

/* Moves the adjoint of layer `l` through its cell. */
static void reverse_cell(struct neap_net *net, struct neap__group *group, int alive, int l)
{
	const struct neap__layer *layer = &net->layers[l];

	if (!layer->cell->readout)
		start_ds(net, group, alive);
	if (layer->is_recurrent)
		add_products(net, group, alive, layer, layer->recurrent, 0, 1);
	for (int i = 0; i < alive; i++) {
		struct neap__at *at = &group->at[i];
		neap__code(layer)->backward(
			at, neap__view_of(at, l), neap__scratch_row(net, group->sums, at->slot));
	}
	if (layer->candidate >= 0)
		reverse_candidate(net, group, alive);
	for (int i = 0; i < alive; i++)
		neap__weights_store(&group->at[i]);
	if (layer->wide)
		spread_maxima(net, group, alive, layer);
	if (l == 0 && net->ports.input_grads)
		neap__port_input_grads(net, group, alive);
}

/* Adds what a step contributes to the gradients of a layer. */
static void add_gradients(
	struct neap_net *net, struct neap__group *group, int alive, const struct neap__layer *layer)
{
	neap__bias_add(net, group, alive, layer);
	for (int i = 0; i < alive && neap__has_delays(layer); i++)
		neap__delays_store(&group->at[i]);
	for (int k = 0; k < layer->nsources; k++)
		if (layer->source[k].is_delayed)
			neap__delays_weights(net, group, alive, layer, &layer->source[k]);
		else
			neap__weights_add(net, group, alive, layer, &layer->source[k]);
	if (layer->is_recurrent)
		neap__weights_add(net, group, alive, layer, NULL);
}

/* Moves the adjoints of all samples from step t + 1 to t. */
static void reverse_step(
	struct neap_net *net, struct neap__group *group, int alive, const unsigned char *tape)
{
	for (int l = net->taped_from; l < neap__computed_layers(net); l++)
		for (int i = 0; i < alive; i++) {
			struct neap__at *at = &group->at[i];
			at->layer = &net->layers[l];
			tape += neap__code(at->layer)->view(at, tape, neap__view_of(at, l));
		}
	for (int l = net->nlayers - 1; l >= net->learns_from; l--) {
		const struct neap__layer *layer = &net->layers[l];
		for (int i = 0; i < alive; i++)
			group->at[i].layer = layer;
		if (l >= neap__computed_layers(net)) { /* its d(in) is 0 */
			for (int i = 0; i < alive; i++)
				neap__weights_store(&group->at[i]);
			continue;
		}
		reverse_cell(net, group, alive, l);
		if (net->dense) { /* neap__outer_tile_add sums later, with those of other groups */
			for (int i = 0; i < alive && !layer->cell->readout; i++)
				neap__outputs_store(&group->at[i]);
			for (int i = 0; i < alive && l == 0 && group->deferred->inputs; i++)
				neap__inputs_store(&group->at[i]);
			continue;
		}
		add_gradients(net, group, alive, layer);
	}
	if (net->dense && net->learns_from > 0) /* the inputs of the first layer that learns */
		for (int i = 0; i < alive; i++) {
			group->at[i].layer = &net->layers[net->taped_from];
			neap__outputs_store(&group->at[i]);
		}
}

/* The factor of dropout of a row of a tensor whose sources have rows each. */
static double row_factor(const struct neap_net *net, const struct neap__param *tensor, int64_t row)
{
	const struct neap__layer *layer = tensor->sources;
	int k = layer->nsources - 1;

	while (k > 0 && layer->source[k].row > row)
		k--;
	const struct neap__layer *from = neap__source_of(layer, k);
	return from && !layer->source[k].is_back && neap__drops(net, from)
		       ? neap__dropout_scale(from)
		       : 1;
}

void neap__fold_part(const struct neap_net *net, struct neap__grads *grads, int tensor, int64_t at,
	int64_t count)
{
	const struct neap__param *t = &net->tensors[tensor];
	real *part = (real *)grads->part[tensor] + at;

	if (t->factor != 1)
		net->kernels->scale(part, (real)t->factor, (int)count);
	net->kernels->fold(grads->total[tensor] + at, part, count);
}

void neap__fold_tensor(struct neap_net *net, struct neap__grads *grads, int index)
{
	const struct neap__param *tensor = &net->tensors[index];
	uint8_t *dirty = grads->dirty + tensor->row_offset;
	int64_t rows = neap__sum_rows(net, grads, index);

	for (int64_t row = 0; row < rows; row++) {
		if (!dirty[row])
			continue;
		int64_t at = tensor->row_start ? tensor->row_start[row] : row * tensor->columns;
		int64_t end = tensor->row_start ? tensor->row_start[row + 1] : at + tensor->columns;
		dirty[row] = 0;
		if (tensor->sources && net->drops)
			net->kernels->scale((real *)grads->part[index] + at,
				(real)row_factor(net, tensor, row), (int)(end - at));
		neap__fold_part(net, grads, index, at, end - at);
	}
}

/*
 * Asks for the tape of the step that is reversed next, while this one is computed: the views of its
 * samples follow each other by the counts that each one begins with, so that every sample would
 * wait for the third-level cache. Of a dense tape, the beginning is enough for the caches to go on
 * alone.
 */
static void expect_tape(const unsigned char *tape, size_t bytes)
{
	enum { LINE = 64, MOST = 8192 };
	size_t most = bytes < MOST ? bytes : MOST;

	for (size_t i = 0; i < most; i += LINE)
		__builtin_prefetch(tape + i);
}

void neap__backward_group(struct neap_net *net, struct neap__group *group, unsigned char *adjoint,
	int64_t t1, int64_t t0, const unsigned char *tape, int64_t tape_t0)
{
	const uint32_t *offset = (const uint32_t *)(const void *)tape;

	neap__weights_begin(net, group, adjoint);
	for (int64_t t = t1 - 1; t >= t0; t--) {
		int alive = neap__group_alive(net, group, t);
		for (int i = 0; i < alive; i++)
			group->at[i].adjoint = adjoint + group->adjoint_at +
					       group->at[i].slot * net->sample_adjoint;
		if (net->dense)
			group->step = (int)(t1 - t);
		if (!alive)
			continue;
		if (!net->dense)
			neap__weights_step(net, group);
		if (t > t0)
			expect_tape(tape + offset[t - 1 - tape_t0],
				offset[t - tape_t0] - offset[t - 1 - tape_t0]);
		reverse_step(net, group, alive, tape + offset[t - tape_t0]);
		if (t % NEAP__GRADIENT_BLOCK == 0 && !net->dense) {
			neap__weights_end(net, group);
			for (int i = 0; i < net->ntensors; i++)
				neap__fold_tensor(net, group->grads, i);
		}
	}
	if (!net->dense)
		neap__weights_end(net, group);
}

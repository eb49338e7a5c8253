/* SPDX-License-Identifier: Apache-2.0 */
/* dropout.c: drawing the units that pass, and what passes of outputs and gradients (dropout.h). */
#include "nn/core/dropout.h"
#include "base/philox.h"

static uint8_t *passes_of(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot)
{
	return group->mask.passes + (size_t)slot * net->hidden + layer->hidden_at;
}

void neap__dropout_draw(struct neap_net *net, struct neap__group *group)
{
	for (int s = 0; s < group->size; s++) {
		int64_t index = net->batch->sequences[group->first + s].index;
		uint64_t key = neap__random_u64(net->options.seed, NEAP__STREAM_DROPOUT,
			net->objective.dropout, (uint64_t)index);
		for (int l = 0; l < net->nlayers - 1; l++) {
			const struct neap__layer *layer = &net->layers[l];
			uint8_t *passes = passes_of(net, group, layer, s);
			for (int i = 0; layer->dropout > 0 && i < layer->n; i++)
				passes[i] = neap__random_uniform(key, NEAP__STREAM_DROPOUT,
						    (uint32_t)l, (uint64_t)i) >= layer->dropout;
		}
	}
}

int neap__drops(const struct neap_net *net, const struct neap__layer *layer)
{
	return net->drops && layer->dropout > 0;
}

struct neap__list neap__dropout_list(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, const struct neap__list *outputs)
{
	const uint8_t *passes = passes_of(net, group, layer, slot);
	uint16_t *id = group->mask.ids + (size_t)slot * net->widest;
	real *value = neap__scratch_row(net, group->mask.values, slot);
	const real *all = outputs->value;
	int count = 0;

	for (int k = 0; k < outputs->count; k++) {
		if (!passes[outputs->id[k]])
			continue;
		if (all)
			value[count] = all[k];
		id[count++] = outputs->id[k];
	}
	return (struct neap__list){.count = count, .id = id, .value = all ? value : NULL};
}

void neap__dropout_raise(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, struct neap__list *list)
{
	real *value = neap__scratch_row(net, group->mask.values, slot);
	real scale = (real)neap__dropout_scale(layer);

	for (int k = 0; k < list->count; k++)
		value[k] = list->value ? scale * value[k] : scale;
	list->value = value;
}

void neap__dropout_all(real *to, const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, const real *outputs, real scale)
{
	const uint8_t *passes = passes_of(net, group, layer, slot);

	for (int i = 0; i < layer->n; i++)
		to[i] = passes[i] ? scale * outputs[i] : 0;
}

void neap__dropout_gradient(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, const struct neap__view *view, real *ds)
{
	const uint8_t *passes = passes_of(net, group, layer, slot);
	real scale = (real)neap__dropout_scale(layer);

	for (int k = 0; k < view->active; k++)
		ds[k] = passes[view->active_id[k]] ? scale * ds[k] : 0;
}

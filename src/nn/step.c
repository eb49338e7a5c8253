/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of steps of one group: forward, with or without tape, and backward.
 * Samples take turns within a step, in their order, so that sums over samples
 * do not depend on how a range was cut.
 */
#include "nn/engine.h"

#include <string.h>

_Static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are searched from the lowest byte");

static int bitmap_read(uint16_t *id, const unsigned char *bits, int n)
{
	int count = 0;

	for (int base = 0; base < n; base += 64) {
		uint64_t word = 0;
		int bytes = (n - base + 7) / 8;
		memcpy(&word, bits + base / 8, bytes < 8 ? (size_t)bytes : 8);
		for (; word; word &= word - 1)
			id[count++] = (uint16_t)(base + __builtin_ctzll(word));
	}
	return count;
}

static void bitmap_write(unsigned char *bits, const struct neap__list *list, int n)
{
	memset(bits, 0, (size_t)(n + 7) / 8);
	for (int k = 0; k < list->count; k++)
		bits[list->id[k] >> 3] |= (unsigned char)(1 << (list->id[k] & 7));
}

/* The lists of the step before t0, from the state. */
static void load_lists(
	struct neap_net *net, struct neap__group *group, unsigned char *state, int s, int64_t t0)
{
	int parity = !(t0 & 1);

	for (int l = 0; l < net->nlayers - 1; l++) {
		const struct neap__layer *layer = &net->layers[l];
		struct neap__list *list = neap__list_of(group->spike_lists[parity], net, s, l);
		struct neap__list *near = neap__list_of(group->support_lists[parity], net, s, l);
		list->count = near->count = 0;
		if (layer->keeps_spikes && layer->smooth) {
			memcpy(list->value_room, state + layer->spikes_at,
				(size_t)layer->n * sizeof(real));
			list->id = net->identity;
			list->value = list->value_room;
			list->count = layer->n;
		} else if (layer->keeps_spikes) {
			list->count = bitmap_read(list->room, state + layer->spikes_at, layer->n);
		}
		if (layer->keeps_support)
			near->count = bitmap_read(near->room, state + layer->support_at, layer->n);
	}
}

/* The lists of step t1 - 1, into the state. */
static void save_lists(
	struct neap_net *net, struct neap__group *group, unsigned char *state, int s, int64_t t1)
{
	int parity = !(t1 & 1);

	for (int l = 0; l < net->nlayers - 1; l++) {
		const struct neap__layer *layer = &net->layers[l];
		struct neap__list *list = neap__list_of(group->spike_lists[parity], net, s, l);
		if (layer->keeps_spikes && layer->smooth)
			memcpy(state + layer->spikes_at, list->value,
				(size_t)layer->n * sizeof(real));
		else if (layer->keeps_spikes)
			bitmap_write(state + layer->spikes_at, list, layer->n);
		if (layer->keeps_support)
			bitmap_write(state + layer->support_at,
				neap__list_of(group->support_lists[parity], net, s, l), layer->n);
	}
}

static void count_spikes(double *total, const struct neap__list *list)
{
	const real *s = list->value;
	for (int k = 0; k < list->count; k++)
		total[list->id[k]] += s ? (double)s[k] : 1.0;
}

size_t neap__sample_step(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int s, int64_t t, int first, unsigned char *tape, void *const *rows)
{
	struct neap__list **spikes = group->spike_lists, **near = group->support_lists;
	int now = (int)(t & 1), prev = !now;
	const struct neap_sequence *sequence = &net->batch->sequences[group->first + s];
	struct neap__list events = neap__input_events(net, group->first + s, t);
	const struct neap__list *below = &events;
	double *total = group->spikes;
	size_t bytes = 0;

	for (int l = 0; l < net->nlayers; l++) {
		const struct neap__layer *layer = &net->layers[l];
		struct neap__at at = {.net = net,
			.group = group,
			.layer = layer,
			.sequence = sequence,
			.sample = group->first + s,
			.t = t,
			.first = first,
			.state = state,
			.prev = neap__list_of(spikes[prev], net, s, l),
			.now = neap__list_of(spikes[now], net, s, l),
			.near_prev = neap__list_of(near[prev], net, s, l),
			.near_now = neap__list_of(near[now], net, s, l)};
		at.below = l && layer->delay ? neap__list_of(spikes[prev], net, s, l - 1) : below;
		unsigned char *to = tape ? tape + bytes : NULL;
		bytes += rows && !layer->cell->readout ? neap__code(layer)->finish(&at, rows[l], to)
						       : neap__code(layer)->forward(&at, to);
		if (layer->cell->readout)
			break;
		if (first)
			count_spikes(total, at.now);
		total += layer->n;
		below = at.now;
	}
	return bytes;
}

static void advance_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, int first)
{
	if (net->options.smooth && t1 - t0 > 1) { /* sums of spikes in record's order */
		for (int64_t t = t0; t < t1; t++)
			advance_group(net, group, state, t, t + 1, first);
		return;
	}
	state += group->state_at;
	for (int s = 0; s < group->size; s++, state += net->sample_state) {
		int64_t end =
			neap__length_of(net, group, s) < t1 ? neap__length_of(net, group, s) : t1;
		if (end <= t0)
			continue;
		load_lists(net, group, state, s, t0);
		for (int64_t t = t0; t < end; t++)
			neap__sample_step(net, group, state, s, t, first, NULL, NULL);
		save_lists(net, group, state, s, end);
	}
}

void neap__group_load(
	struct neap_net *net, struct neap__group *group, unsigned char *state, int64_t t0)
{
	state += group->state_at;
	for (int s = 0; s < group->size; s++)
		if (neap__length_of(net, group, s) > t0)
			load_lists(net, group, state + s * net->sample_state, s, t0);
}

void neap__group_save(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1)
{
	state += group->state_at;
	for (int s = 0; s < group->size; s++) {
		int64_t length = neap__length_of(net, group, s), end = length < t1 ? length : t1;
		if (end > t0)
			save_lists(net, group, state + s * net->sample_state, s, end);
	}
}

static size_t record_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, int first, unsigned char *tape)
{
	size_t bytes = ((size_t)(t1 - t0) * sizeof(uint32_t) + 7) & ~(size_t)7, head = bytes;
	uint32_t *offset = (uint32_t *)(void *)tape;

	memset(tape, 0, bytes);
	neap__group_load(net, group, state, t0);
	for (int64_t t = t0; t < t1; t++) {
		offset[t - t0] = (uint32_t)bytes;
		for (int s = 0; s < group->size; s++) {
			if (neap__length_of(net, group, s) <= t)
				continue;
			bytes += neap__sample_step(net, group,
				state + group->state_at + s * net->sample_state, s, t, first,
				tape + bytes, NULL);
			group->tape_steps += 1;
		}
	}
	neap__group_save(net, group, state, t0, t1);
	group->tape_bytes += (double)(bytes - head);
	memset(tape + bytes, 0, -bytes & 7);
	return (bytes + 7) & ~(size_t)7;
}

/* dW += S' d(in) in the block's sums. */
static void weight_gradient(const struct neap__kernels *k, struct neap_net *net,
	struct neap__group *group, int tensor, const struct neap__list *list, const real *din)
{
	struct neap__matrix m = neap__weights(net, tensor);
	const struct neap__tensor *shape = &net->tensors[tensor];
	uint8_t *dirty = group->dirty + shape->row_offset;

	for (int j = 0; j < list->count; j++)
		dirty[list->id[j]] = 1;
	neap__rows(k, &m)->grad(
		(real *)group->part + shape->offset, &m, list->id, list->value, list->count, din);
}

static void bias_gradient(const struct neap__kernels *k, struct neap_net *net,
	struct neap__group *group, int tensor, const real *din)
{
	const struct neap__tensor *shape = &net->tensors[tensor];
	group->dirty[shape->row_offset] = 1;
	k->sum((real *)group->part + shape->offset, din, (int)shape->columns);
}

/*
 * What reaches the spikes of a layer's active units, and the weight gradients
 * of connections that carry them one step on: recurrent ones, and those of a
 * layer above that sees them late (its d(in) at t + 1 is in late).
 */
static void spike_gradient(const struct neap__kernels *k, struct neap__at *at,
	const unsigned char *adjoint, const struct neap__view *view, real *ds)
{
	struct neap_net *net = at->net;
	const struct neap__layer *layer = at->layer, *above = layer + 1;
	const real *din = (const real *)(const void *)(adjoint + layer->adjoint_at);
	const real *up = above->delay ? at->group->late[above->index]
				      : (const real *)(const void *)(adjoint + above->adjoint_at);
	const real *penalty = net->has_penalty ? net->penalty[layer->index] : NULL;
	size_t extra_at = neap__code(layer)->extra_at(layer);
	const real *extra = extra_at ? (const real *)(const void *)(adjoint + extra_at) : NULL;
	struct neap__matrix m = neap__weights(net, above->weight);
	int later = at->t + 1 < at->sequence->length;

	for (int i = 0; i < view->active; i++)
		ds[i] = (penalty ? penalty[view->active_id[i]] : 0) +
			(extra ? extra[view->active_id[i]] : 0);
	neap__rows(k, &m)->dot(ds, &m, view->active_id, view->active, up);
	if (above->delay && later)
		weight_gradient(k, net, at->group, above->weight, &view->spikes, up);
	if (layer->is_recurrent && later) {
		m = neap__weights(net, layer->recurrent);
		neap__rows(k, &m)->dot(ds, &m, view->active_id, view->active, din);
		weight_gradient(k, net, at->group, layer->recurrent, &view->spikes, din);
	}
}

static size_t sample_reverse(const struct neap__kernels *k, struct neap_net *net,
	struct neap__group *group, unsigned char *adjoint, int s, int64_t t,
	const unsigned char *tape)
{
	struct neap__at at = {.net = net,
		.group = group,
		.sample = group->first + s,
		.t = t,
		.sequence = &net->batch->sequences[group->first + s]};
	struct neap__list events = neap__input_events(net, at.sample, t);
	struct neap__view *views = group->views;
	size_t bytes = 0;

	for (int l = 0; l < net->nlayers; l++) {
		at.layer = &net->layers[l];
		bytes += neap__code(at.layer)->view(&at, tape + bytes, &views[l]);
	}
	for (int l = net->nlayers - 1; l >= 0; l--) {
		const struct neap__layer *layer = at.layer = &net->layers[l];
		real *din = (real *)(void *)(adjoint + layer->adjoint_at), *ds = group->wide[2];
		if (layer->delay)
			memcpy(group->late[l], din, (size_t)layer->n * sizeof *din);
		if (!layer->cell->readout)
			spike_gradient(k, &at, adjoint, &views[l], ds);
		neap__code(layer)->backward(&at, adjoint, &views[l], ds);
		bias_gradient(k, net, group, layer->bias, din);
		if (!layer->delay)
			weight_gradient(k, net, group, layer->weight,
				l ? &views[l - 1].spikes : &events, din);
	}
	return bytes;
}

static void fold_group(struct neap_net *net, struct neap__group *group)
{
	const struct neap__kernels *k = neap__kernels_get();

	for (int i = 0; i < net->ntensors; i++) {
		const struct neap__tensor *tensor = &net->tensors[i];
		uint8_t *dirty = group->dirty + tensor->row_offset;
		real *part = (real *)group->part + tensor->offset;
		double *total = group->total + tensor->offset;
		for (int64_t row = 0; row < tensor->rows; row++) {
			if (!dirty[row])
				continue;
			int64_t at =
				tensor->row_start ? tensor->row_start[row] : row * tensor->columns;
			int64_t end = tensor->row_start ? tensor->row_start[row + 1]
							: at + tensor->columns;
			dirty[row] = 0;
			k->fold(total + at, part + at, end - at);
		}
	}
}

static void backward_group(struct neap_net *net, struct neap__group *group, unsigned char *adjoint,
	int64_t t1, int64_t t0, const unsigned char *tape)
{
	const struct neap__kernels *k = neap__kernels_get();
	const uint32_t *offset = (const uint32_t *)(const void *)tape;

	adjoint += group->adjoint_at;
	for (int64_t t = t1 - 1; t >= t0; t--) {
		const unsigned char *p = tape + offset[t - t0];
		for (int s = 0; s < group->size; s++)
			if (neap__length_of(net, group, s) > t)
				p += sample_reverse(
					k, net, group, adjoint + s * net->sample_adjoint, s, t, p);
		if (t % NEAP__BLOCK == 0 && group->steps > t)
			fold_group(net, group);
	}
}

static void set_penalty(struct neap_net *net, int layer, int unit, double value)
{
	((real *)net->penalty[layer])[unit] = (real)value;
}

const struct neap__engine neap__engine_this = {
	.real = sizeof(real),
	.advance = advance_group,
	.record = record_group,
	.log = neap__log_group,
	.replay = neap__replay_group,
	.strip = neap__walk_units,
	.pack = neap__pack_net,
	.backward = backward_group,
	.turn = neap__turn_sample,
	.penalty = set_penalty,
	.fold = fold_group,
};

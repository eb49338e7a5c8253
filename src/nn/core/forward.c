/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c: a step of all samples, and the ranges made of steps (forward.h). */
#include "nn/core/forward.h"
#include "nn/core/delays.h"
#include "nn/core/dropout.h"
#include "nn/core/norm.h"
#include "nn/core/pooling.h"
#include "nn/core/port_rows.h"
#include "nn/core/products.h"
#include "nn/core/spike_lists.h"
#include "nn/core/spike_log.h"
#include "nn/core/sum_pool.h"
#include "nn/core/whole_steps.h"

#include <string.h>

int neap__group_alive(struct neap_net *net, struct neap__group *group, int64_t t)
{
	int alive = 0;

	for (int s = 0; s < group->size; s++) {
		if (neap__length_of(net, group, s) <= t)
			continue;
		group->at[alive++] = (struct neap__at){.net = net,
			.group = group,
			.sequence = &net->batch->sequences[group->first + s],
			.sample = group->first + s,
			.slot = s,
			.t = t};
	}
	return alive;
}

void *neap__start_bias(struct neap__at *at, void *row)
{
	const struct neap__layer *layer = at->layer;
	return memcpy(row, neap__biases(at->net, layer), (size_t)layer->widths.sums * sizeof(real));
}

static void count_spikes(double *total, const struct neap__list *list)
{
	const real *s = list->value;
	for (int k = 0; k < list->count; k++)
		total[list->id[k]] += s ? (double)s[k] : 1.0;
}

/* Points the samples at layer l and at its lists. */
static void enter_layer(struct neap_net *net, struct neap__group *group, int alive, int l)
{
	const struct neap__layer *layer = &net->layers[l];
	struct neap__list **spikes = group->spike_lists, **near = group->support_lists;

	for (struct neap__at *at = group->at; at < group->at + alive; at++) {
		int now = (int)(at->t & 1), prev = !now, s = at->slot;
		at->layer = layer;
		at->prev = neap__list_of(spikes[prev], net, s, l);
		at->now = neap__list_of(spikes[now], net, s, l);
		at->near_prev = neap__list_of(near[prev], net, s, l);
		at->near_now = neap__list_of(near[now], net, s, l);
	}
}

/*
 * Asks for the rows of a list. Each field is written by itself: a struct that is made on the stack
 * and then copied is read in other parts than it was written in, which waits for the cache.
 * Measured: 8% of a step of 256 units without a tape.
 */
static inline void ask_rows(
	struct neap__sample_rows *rows, const struct neap__list *list, real *out)
{
	rows->id = list->id;
	rows->v = list->value;
	rows->count = list->count;
	rows->out = out;
}

struct neap__list neap__inputs_of(const struct neap_net *net, const struct neap__at *at)
{
	if (!net->options.values)
		return neap__input_events(net, at->sample, at->t);
	real *room = (real *)at->group->inputs + (size_t)at->slot * net->options.inputs;
	return neap__input_list(net, at->sample, at->t, room);
}

struct neap__list neap__arriving(const struct neap__at *at, const struct neap__layer *layer,
	int source, struct neap__list list)
{
	const struct neap_net *net = at->net;
	const struct neap__layer *below = neap__source_of(layer, source);
	struct neap__group *group = at->group;
	int drops = below && !layer->source[source].is_back && neap__drops(net, below);

	if (drops && below->outputs == NEAP__OUTPUT_ALL) {
		real *to = neap__scratch_row(net, group->mask.values, at->slot);
		neap__dropout_all(to, net, group, below, at->slot, list.value,
			(real)neap__dropout_scale(below));
		list.value = to;
	} else if (drops) {
		list = neap__dropout_list(net, group, below, at->slot, &list);
		neap__dropout_raise(net, group, below, at->slot, &list);
	}
	return layer->pooled ? neap__pool_list(net, group, layer, at->slot, &list) : list;
}

/* at->sums += W x of a source of the layer. */
static void add_source(struct neap_net *net, struct neap__group *group, int alive, int source)
{
	const struct neap__layer *layer = group->at->layer, *below = neap__source_of(layer, source);
	const struct neap__layer_source *from = &layer->source[source];
	struct neap__sample_rows *samples = group->sample_rows;
	int is_plain = !from->is_delayed && !net->drops && !layer->pooled;

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		const struct neap__list *sent =
			below ? neap__list_of(group->spike_lists[(at->t - from->late) & 1], net,
					at->slot, from->layer)
			      : NULL;
		if (is_plain && below) {
			ask_rows(&samples[i], sent, at->sums);
			continue;
		}
		if (is_plain && !net->options.values) {
			struct neap__list events = neap__input_events(net, at->sample, at->t);
			ask_rows(&samples[i], &events, at->sums);
			continue;
		}
		struct neap__list list = from->is_delayed ? neap__delays_arrive(at, from)
					 : below	  ? *sent
							  : neap__inputs_of(net, at);
		if (net->drops || layer->pooled)
			list = neap__arriving(at, layer, source, list);
		ask_rows(&samples[i], &list, at->sums);
	}
	neap__products_add(net, samples, alive, layer->weight, from->row);
}

/*
 * at->sums = what the cell starts with + W x, made apart: the first pass counts its statistics, and
 * its maxima may be what counts.
 */
static void make_apart(struct neap_net *net, struct neap__group *group, int alive)
{
	const struct neap__layer *layer = group->at->layer;

	for (int i = 0; i < alive; i++)
		group->at[i].sums = memset(neap__products_row(net, group, group->at[i].slot), 0,
			(size_t)neap__products_of(layer) * sizeof(real));
	for (int k = 0; k < layer->nsources; k++)
		add_source(net, group, alive, k);
	for (int i = 0; i < alive; i++) {
		struct neap__at *at = &group->at[i];
		const real *products = at->sums;
		at->sums =
			neap__code(layer)->start(at, neap__scratch_row(net, group->sums, at->slot));
		if (at->first && layer->norm.kind)
			neap__norm_count(at, products);
		if (layer->wide)
			neap__sum_pool_add(layer, products, at->sums);
		else
			net->kernels->sum(at->sums, products, layer->n);
	}
}

/* at->sums = what the cell starts with + W x + V S_{-1} + the second product. */
static void make_sums(struct neap_net *net, struct neap__group *group, int alive)
{
	const struct neap__layer *layer = group->at->layer;
	struct neap__sample_rows *samples = group->sample_rows;
	int is_apart = neap__is_apart(layer);

	for (int i = 0; i < alive && !is_apart; i++) {
		struct neap__at *at = &group->at[i];
		at->sums =
			neap__code(layer)->start(at, neap__scratch_row(net, group->sums, at->slot));
	}
	for (int k = 0; k < layer->nsources && !is_apart; k++)
		add_source(net, group, alive, k);
	if (is_apart)
		make_apart(net, group, alive);
	if (!layer->is_recurrent)
		return;
	for (int i = 0; i < alive; i++)
		ask_rows(&samples[i], group->at[i].prev,
			(real *)group->at[i].sums + layer->widths.own_at);
	neap__products_add(net, samples, alive, layer->recurrent, 0);
	if (layer->candidate < 0)
		return;
	for (int i = 0; i < alive; i++) {
		struct neap__at *at = &group->at[i];
		void *room = group->views[(size_t)layer->index * group->room + at->slot].numbers[0];
		struct neap__list gated = neap__code(layer)->gate(at, at->sums, room);
		ask_rows(&samples[i], &gated, (real *)at->sums + layer->widths.candidate_at);
	}
	neap__products_add(net, samples, alive, layer->candidate, 0);
}

size_t neap__group_step(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t, int first, unsigned char *tape,
	size_t (*walked)(struct neap__at *at, unsigned char *tape))
{
	int alive = neap__group_alive(net, group, t);
	struct neap__leak_step leak_step;
	size_t bytes = 0;

	for (int i = 0; i < alive; i++) {
		struct neap__at *at = &group->at[i];
		at->first = first;
		at->state = state + group->state_at + at->slot * net->sample_state;
	}
	for (int l = 0; l < neap__computed_layers(net) && alive; l++) {
		const struct neap__layer *layer = &net->layers[l];
		int known = walked && !layer->cell->readout;
		int sends = net->has_delays && !layer->cell->readout;
		if (net->skips_readout && layer->cell->readout)
			continue;
		enter_layer(net, group, alive, l);
		int whole =
			!known && neap__whole_begin(net, group, alive, tape != NULL, &leak_step);
		if (!known && !whole)
			make_sums(net, group, alive);
		for (int i = 0; i < alive; i++) {
			struct neap__at *at = &group->at[i];
			unsigned char *to = tape && l >= net->taped_from ? tape + bytes : NULL;
			bytes += known	 ? walked(at, to)
				 : whole ? neap__whole_step(at, &leak_step, to)
					 : neap__code(layer)->finish(at, at->sums, to);
			if (sends)
				neap__delays_send(at);
			if (first && !layer->cell->readout)
				count_spikes(
					neap__unit_spikes(net, group, at->slot) + layer->hidden_at,
					at->now);
			if (first && net->ports.outputs && l == net->nlayers - 2)
				neap__port_outputs(at);
		}
	}
	if (tape)
		group->tape_steps += alive;
	return bytes;
}

void neap__advance_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, int first)
{
	neap__group_load(net, group, state, t0);
	for (int64_t t = t0; t < t1; t++)
		neap__group_step(net, group, state, t, first, NULL, NULL);
	neap__group_save(net, group, state, t0, t1);
}

size_t neap__tapes_begin(unsigned char *tape, int64_t n)
{
	size_t bytes = ((size_t)n * sizeof(uint32_t) + 7) & ~(size_t)7;
	memset(tape, 0, bytes);
	return bytes;
}

size_t neap__tapes_end(unsigned char *tape, size_t bytes)
{
	memset(tape + bytes, 0, -bytes & 7);
	return (bytes + 7) & ~(size_t)7;
}

size_t neap__record_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, int first, unsigned char *tape)
{
	size_t head = neap__tapes_begin(tape, t1 - t0), bytes = head;
	uint32_t *offset = (uint32_t *)(void *)tape;

	neap__group_load(net, group, state, t0);
	for (int64_t t = t0; t < t1; t++) {
		offset[t - t0] = (uint32_t)bytes;
		bytes += neap__group_step(net, group, state, t, first, tape + bytes, NULL);
	}
	neap__group_save(net, group, state, t0, t1);
	group->tape_bytes += (double)(bytes - head);
	return neap__tapes_end(tape, bytes);
}

static size_t write_list(
	unsigned char *to, const struct neap__layer *layer, const struct neap__list *list)
{
	uint16_t *id = (uint16_t *)(void *)to;
	size_t bytes = (size_t)list->count * sizeof *id;

	if (!neap__log_marks(layer)) {
		*id++ = (uint16_t)list->count;
		memcpy(id, list->id, bytes);
		return bytes + sizeof *id;
	}
	if (!list->count) {
		*id = NEAP__LOG_NONE;
		return sizeof *id;
	}
	memcpy(id, list->id, bytes);
	id[list->count - 1] |= NEAP__LOG_LAST;
	return bytes;
}

/* Writes the log of the step just made (spike_log.h); returns its bytes. */
static size_t write_log(
	const struct neap_net *net, struct neap__group *group, int64_t t, unsigned char *log)
{
	size_t bytes = 0;

	for (int s = 0; s < group->size; s++) {
		if (neap__length_of(net, group, s) <= t)
			continue;
		for (int l = 0; l < net->nlayers - 1; l++)
			if (net->layers[l].logged)
				bytes += write_list(log + bytes, &net->layers[l],
					neap__list_of(group->spike_lists[t & 1], net, s, l));
		group->log_steps += 1;
	}
	return bytes;
}

size_t neap__log_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, int first, unsigned char *log)
{
	size_t head = neap__tapes_begin(log, t1 - t0), bytes = head;
	uint32_t *offset = (uint32_t *)(void *)log;

	neap__group_load(net, group, state, t0);
	for (int64_t t = t0; t < t1; t++) {
		offset[t - t0] = (uint32_t)bytes;
		neap__group_step(net, group, state, t, first, NULL, NULL);
		bytes += write_log(net, group, t, log + bytes);
	}
	neap__group_save(net, group, state, t0, t1);
	group->log_bytes += (double)(bytes - head);
	return neap__tapes_end(log, bytes);
}

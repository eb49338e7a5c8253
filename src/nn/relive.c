/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relive: the spikes of a group as a log, and its tapes made again from state and log.
 *
 * A group's log of a range: a table of offsets, then steps; in a step samples that have
 * not ended, in them a list (replay.h) of each layer whose spikes others than the readout see.
 *
 * All spikes known, a layer's membranes wait for nothing but their own past: strips of
 * units walk over up to NEAP__REPLAYED steps at a time (kern/walk.c), so that a strip's
 * weights are fetched once for many steps and samples. Where a sparse tape needs no more,
 * only the membranes inside the support are kept. Else the walk keeps all of them as they
 * are before the reset, and from there on each step goes the way of record. Either way the
 * tape is the same.
 */
#include "nn/engine.h"
#include "nn/replay.h"

#include <string.h>

/* Spikes known of row l (0: the inputs) and a sample: [0] before the first step, then of each. */
static struct neap__events *known(const struct neap__group *group, int row, int s)
{
	return group->replay->known + ((size_t)row * group->room + s) * (NEAP__REPLAYED + 1);
}

static int steps_of(
	const struct neap_net *net, const struct neap__group *group, int s, int64_t t0, int64_t t1)
{
	int64_t end = neap__length_of(net, group, s);
	end = end < t1 ? end : t1;
	return end > t0 ? (int)(end - t0) : 0;
}

/* A list of the log, its last unit marked; p moves behind it. */
static struct neap__events read_list(const struct neap__layer *layer, const unsigned char **p)
{
	const uint16_t *id = (const uint16_t *)(const void *)*p;
	int count = 0;

	if (!neap__log_marks(layer)) {
		count = *id++;
		*p += sizeof *id;
	} else if (*id == NEAP__LOG_NONE) {
		*p += sizeof *id;
	} else {
		while (!(id[count++] & NEAP__LOG_LAST))
			;
	}
	*p += (size_t)count * sizeof *id;
	return (struct neap__events){id, count};
}

/* What of an id of layer `index` is its unit; index -1: of an input. */
static unsigned unit_bits(const struct neap_net *net, int index)
{
	return index >= 0 && neap__log_marks(&net->layers[index]) ? NEAP__LOG_LAST - 1 : 0xFFFF;
}

/* Everything that is known of [t0, t1): inputs, and the log's spikes. */
static void learn(struct neap_net *net, struct neap__group *group, int64_t t0, int64_t t1,
	const unsigned char *const *logs)
{
	for (int s = 0; s < group->size; s++)
		for (int l = 0; l < net->nlayers - 1; l++) {
			const struct neap__list *list =
				neap__list_of(group->spike_lists[!(t0 & 1)], net, s, l);
			*known(group, l + 1, s) = (struct neap__events){list->id, list->count};
		}
	for (int64_t t = t0; t < t1; t++) {
		const unsigned char *p = logs[t - t0];
		for (int s = 0; s < group->size; s++) {
			if (neap__length_of(net, group, s) <= t)
				continue;
			struct neap__list input = neap__input_events(net, group->first + s, t);
			known(group, 0, s)[t - t0 + 1] =
				(struct neap__events){input.id, input.count};
			for (int l = 0; l < net->nlayers - 1; l++) {
				if (net->layers[l].logged)
					known(group, l + 1, s)[t - t0 + 1] =
						read_list(&net->layers[l], &p);
			}
		}
	}
}

/* Spikes that arrive at a layer, and its own of the step before each. */
static const struct neap__events *arriving(
	const struct neap__group *group, const struct neap__layer *layer, int s)
{
	return known(group, layer->index, s) + !(layer->index && layer->delay);
}

static const struct neap__events *own(
	const struct neap__group *group, const struct neap__layer *layer, int s)
{
	return known(group, layer->index + 1, s);
}

static int rows_of(const struct neap__group *group, const struct neap__layer *layer, int s, int t)
{
	int count = arriving(group, layer, s)[t].count;
	return count + (layer->is_recurrent ? own(group, layer, s)[t].count : 0);
}

static real *row_of(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int s, int t)
{
	return (real *)group->replay->rows[layer->index] +
	       ((size_t)s * (NEAP__REPLAYED + 1) + t) * neap__replay_stride(net, layer);
}

/* The units of a row that holds those inside the support: behind their membranes. */
static uint16_t *near_of(const struct neap_net *net, const struct neap__layer *layer, real *row)
{
	return (uint16_t *)(void *)(row + neap__replay_most(net, layer) + NEAP__STRIP_SPARE);
}

static int *kept_of(const struct neap__group *group, const struct neap__layer *layer, int s)
{
	return group->replay->kept[layer->index] + (size_t)s * NEAP__REPLAYED;
}

/* Do the lists of [t0, t1) fit, for each layer? */
static int fits(const struct neap_net *net, const struct neap__group *group, int64_t t0, int64_t t1)
{
	for (int l = 0; l < net->nlayers - 1; l++) {
		uint64_t rows = 0;
		for (int s = 0; s < group->size; s++)
			for (int t = 0; t < steps_of(net, group, s, t0, t1); t++)
				rows += (uint64_t)rows_of(group, &net->layers[l], s, t);
		if (rows > group->replay->list_room)
			return 0;
	}
	return 1;
}

static uint32_t *put_rows(
	uint32_t *to, const struct neap__events *e, unsigned unit, int first, uint32_t bytes)
{
	for (int k = 0; k < e->count; k++)
		*to++ = ((uint32_t)first + (e->id[k] & unit)) * bytes;
	return to;
}

/* The rows that a sample's spikes add, step by step. */
static uint32_t *list_rows(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int s, int steps, int *counts, uint32_t *to)
{
	uint32_t bytes = (uint32_t)(net->strip * sizeof(real));
	unsigned below = unit_bits(net, layer->index - 1), here = unit_bits(net, layer->index);

	for (int t = 0; t < steps; t++) {
		counts[t] = rows_of(group, layer, s, t);
		to = put_rows(to, arriving(group, layer, s) + t, below, 0, bytes);
		if (layer->is_recurrent)
			to = put_rows(to, own(group, layer, s) + t, here, layer->below, bytes);
	}
	return to;
}

/* A bit for each unit of a sample's list. */
static const uint64_t *mark(
	const struct neap__group *group, int s, const struct neap__events *e, unsigned unit)
{
	struct neap__replay *r = group->replay;
	uint64_t *bits = r->spiked + (size_t)s * r->words;

	memset(bits, 0, r->words * sizeof *bits);
	for (int k = 0; k < e->count; k++)
		bits[(e->id[k] & unit) / 64] |= (uint64_t)1 << (e->id[k] & unit) % 64;
	return bits;
}

/* The samples that walk through a layer, and by what rows; returns how many. */
static int gather_walkers(struct neap_net *net, struct neap__group *group, unsigned char *state,
	const struct neap__layer *layer, int64_t t0, int64_t t1, int listed)
{
	struct neap__replay *r = group->replay;
	uint32_t *rows = r->lists;
	int count = 0;

	for (int s = 0; s < group->size; s++) {
		int steps = steps_of(net, group, s, t0, t1), *kept = kept_of(group, layer, s);
		int *counts = r->counts + (size_t)s * NEAP__REPLAYED;
		real *to = row_of(net, group, layer, s, 0);
		void *u = state + group->state_at + s * net->sample_state + layer->state_at;
		if (!steps)
			continue;
		r->walkers[count++] = (struct neap__walker){.steps = steps,
			.count = counts,
			.from = rows,
			.spiked =
				mark(group, s, own(group, layer, s), unit_bits(net, layer->index)),
			.u = u,
			.value = to,
			.near = listed ? near_of(net, layer, to) : NULL,
			.kept = kept};
		rows = list_rows(net, group, layer, s, steps, counts, rows);
		for (int t = 0; t < steps; t++)
			kept[t] = listed ? 0 : NEAP__ALL_UNITS;
		if (listed)
			memcpy(row_of(net, group, layer, s, NEAP__REPLAYED), u,
				(size_t)layer->n * sizeof(real));
	}
	return count;
}

/* Does each step have a tape that needs no more than was kept? */
static int is_enough(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int64_t t0, int64_t t1)
{
	for (int s = 0; s < group->size; s++)
		for (int t = 0; t < steps_of(net, group, s, t0, t1); t++)
			if (!neap__code(layer)->lists(net, layer, own(group, layer, s)[t + 1].count,
				    kept_of(group, layer, s)[t]))
				return 0;
	return 1;
}

/* The membranes of a layer: strips outside, so that their weights stay near. */
static void walk_layer(struct neap_net *net, struct neap__group *group, unsigned char *state,
	const struct neap__layer *layer, int64_t t0, int64_t t1)
{
	struct neap__walk w = {.n = layer->n,
		.stride = (int)neap__replay_stride(net, layer),
		.cut = (real)layer->cut,
		.rows = (int)neap__walk_rows(layer),
		.most = neap__replay_most(net, layer),
		.bias = net->tensors[layer->bias].data,
		.w = net->packed[layer->index]};
	int listed = layer->logged && neap__code(layer)->lists(net, layer, 0, 0);

	neap__code(layer)->walk(layer, &w);
	for (;; listed = 0) {
		int count = gather_walkers(net, group, state, layer, t0, t1, listed);
		for (int strip = 0; strip * (int)net->strip < layer->n; strip++)
			for (int i = 0; i < count; i++)
				net->kernels->walk(&w, &group->replay->walkers[i], strip);
		if (!listed || is_enough(net, group, layer, t0, t1))
			return;
		for (int s = 0; s < group->size; s++) /* again, from where it began */
			if (steps_of(net, group, s, t0, t1))
				memcpy(state + group->state_at + s * net->sample_state +
						layer->state_at,
					row_of(net, group, layer, s, NEAP__REPLAYED),
					(size_t)layer->n * sizeof(real));
	}
}

/* The step of a sample that walked. */
static size_t finish(struct neap__at *at, unsigned char *tape)
{
	struct neap__group *group = at->group;
	int t = (int)(at->t - group->replay->from), near = kept_of(group, at->layer, at->slot)[t];
	const struct neap__cell_code *code = neap__code(at->layer);
	real *row = row_of(at->net, group, at->layer, at->slot, t);

	if (near == NEAP__ALL_UNITS)
		return code->finish(at, row, tape);
	const struct neap__events *now = own(group, at->layer, at->slot) + t + 1;
	memcpy(at->now->room, now->id, (size_t)now->count * sizeof *now->id);
	at->now->count = now->count;
	if (now->count)
		at->now->room[now->count - 1] &= (uint16_t)unit_bits(at->net, at->layer->index);
	group->support += near;
	group->recorded += at->layer->n;
	struct neap__list list = {.count = near, .id = near_of(at->net, at->layer, row)};
	return code->listed(at, &list, row, tape);
}

size_t neap__replay_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, const unsigned char *const *logs, unsigned char *tape)
{
	size_t head = neap__tapes_begin(tape, t1 - t0), bytes = head;
	uint32_t *offset = (uint32_t *)(void *)tape;

	neap__group_load(net, group, state, t0);
	for (int64_t from = t0, to; from < t1; from = to) {
		to = from + NEAP__REPLAYED < t1 ? from + NEAP__REPLAYED : t1;
		group->replay->from = from;
		learn(net, group, from, to, logs + (from - t0));
		while (to - from > 1 && !fits(net, group, from, to))
			to = from + (to - from + 1) / 2;
		for (int l = 0; l < net->nlayers - 1; l++)
			walk_layer(net, group, state, &net->layers[l], from, to);
		for (int64_t t = from; t < to; t++) {
			offset[t - t0] = (uint32_t)bytes;
			bytes += neap__group_step(net, group, state, t, 0, tape + bytes, finish);
		}
	}
	neap__group_save(net, group, state, t0, t1);
	group->tape_bytes += (double)(bytes - head);
	return neap__tapes_end(tape, bytes);
}

void neap__pack_net(struct neap_net *net)
{
	int strip = (int)net->strip;

	for (int l = 0; l < net->nlayers - 1; l++) {
		const struct neap__layer *layer = &net->layers[l];
		int all = (int)neap__walk_rows(layer), n = layer->n, in = layer->below;
		neap__pack_part(
			net->packed[l], net->tensors[layer->weight].data, in, n, strip, 0, all);
		if (layer->is_recurrent)
			neap__pack_part(net->packed[l], net->tensors[layer->recurrent].data, n, n,
				strip, in, all);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* replay_steps.c: reads a log, walks the layers over a range, and puts its steps on tape. */
#include "nn/replay/replay_steps.h"
#include "nn/core/forward.h"
#include "nn/core/spike_lists.h"
#include "nn/core/spike_log.h"
#include "nn/replay/replay_events.h"

#include <string.h>

enum { LINE = 64 }; /* bytes of a cache line */

/* A list of the log, its last unit still marked; *p moves behind it. */
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

/* Collects the events of [t0, t1): inputs, and the spikes of the log. */
static void read_events(struct neap_net *net, struct neap__group *group, int64_t t0, int64_t t1,
	const unsigned char *const *logs)
{
	for (int s = 0; s < group->size; s++)
		for (int l = 0; l < net->nlayers - 1; l++) {
			const struct neap__list *list =
				neap__list_of(group->spike_lists[!(t0 & 1)], net, s, l);
			*neap__events_of(group, l + 1, s) =
				(struct neap__events){list->id, list->count};
		}
	for (int64_t t = t0; t < t1; t++) {
		const unsigned char *p = logs[t - t0];
		for (int s = 0; s < group->size; s++) {
			if (neap__length_of(net, group, s) <= t)
				continue;
			struct neap__list input = neap__input_events(net, group->first + s, t);
			neap__events_of(group, 0, s)[t - t0 + 1] =
				(struct neap__events){input.id, input.count};
			for (int l = 0; l < net->nlayers - 1; l++) {
				if (net->layers[l].logged)
					neap__events_of(group, l + 1, s)[t - t0 + 1] =
						read_list(&net->layers[l], &p);
			}
		}
	}
}

static size_t strip_at(
	const struct neap_net *net, const struct neap__layer *layer, int s, int strip)
{
	return (size_t)s * neap__walk_strips(net, layer) + strip;
}

static int *near_counts_of(const struct neap__group *group, const struct neap__layer *layer, int s)
{
	return group->replay->near_counts[layer->index] + (size_t)s * NEAP__REPLAY_STEPS;
}

/* The bits of the units that spiked in the step before. */
static uint64_t *bits_of(const struct neap__group *group, int s)
{
	return group->replay->spiked + (size_t)s * group->replay->words;
}

static void set_bits(uint64_t *bits, size_t words, const struct neap__events *e, unsigned unit)
{
	memset(bits, 0, words * sizeof *bits);
	for (int k = 0; k < e->count; k++)
		bits[(e->id[k] & unit) / 64] |= (uint64_t)1 << (e->id[k] & unit) % 64;
}

/* A layer that walks from t0 to t1. */
struct replay_walk {
	struct neap_net *net;
	struct neap__group *group;
	const struct neap__layer *layer;
	unsigned char *state;
	int64_t t0, t1;
	struct neap__membrane_walk constants;
	int listed; /* only membranes inside the support are kept */
};

static real *sums_of(const struct replay_walk *w, int s)
{
	size_t slot = neap__walk_parts(w->net, w->layer) > 1 ? (size_t)s : 0;
	return (real *)w->group->replay->sums + slot * NEAP__REPLAY_STEPS * w->net->strip_units;
}

/* The weights of a strip and a part. */
static const real *weights_of(const struct replay_walk *w, int strip, int part)
{
	size_t rows = (size_t)neap__walk_rows(w->layer);
	size_t first = (size_t)part * neap__part_rows(w->net, w->layer);

	return (const real *)w->net->packed[w->layer->index] +
	       ((size_t)strip * rows + first) * w->net->strip_units;
}

/* Adds what arrives at a strip of a sample, of a part of the weights. */
static void add_currents(const struct replay_walk *w, int strip, int part, int s)
{
	const struct neap_net *net = w->net;
	const struct neap__replay *r = w->group->replay;
	size_t at = (size_t)part * w->group->room + s;
	int from = strip * (int)net->strip_units, left = w->layer->n - from;
	struct neap__arrivals a = {.steps = neap__steps_in(net, w->group, s, w->t0, w->t1),
		.units = left < (int)net->strip_units ? left : (int)net->strip_units,
		.count = r->counts + at * NEAP__REPLAY_STEPS,
		.row = r->rows[at],
		.begin = part ? NULL : (const real *)net->tensors[w->layer->bias].data + from,
		.sums = sums_of(w, s)};

	net->kernels->currents(weights_of(w, strip, part), &a);
}

static real *values_of(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int s)
{
	return (real *)group->replay->values[layer->index] +
	       (size_t)s * neap__value_room(net, layer);
}

/* Moves a strip of a sample; where r->used is more than there is room for, some was lost. */
static void walk_strip(struct replay_walk *w, int strip, int s)
{
	const struct neap_net *net = w->net;
	struct neap__replay *r = w->group->replay;
	const struct neap__layer *layer = w->layer;
	size_t at = strip_at(net, layer, s, strip);
	int from = strip * (int)net->strip_units, left = layer->n - from;
	int used = w->listed ? r->used[s] : from * NEAP__WHOLE_STEPS;
	unsigned char *near =
		(unsigned char *)r->near_masks[layer->index] + at * neap__near_mask_bytes(net);
	struct neap__walker walker = {.steps = neap__steps_in(net, w->group, s, w->t0, w->t1),
		.units = left < (int)net->strip_units ? left : (int)net->strip_units,
		.sums = sums_of(w, s),
		.spiked = bits_of(w->group, s)[from / 64] >> from % 64,
		.u = (real *)(void *)(w->state + w->group->state_at + s * net->sample_state +
				      layer->state_at) +
		     from,
		.value = values_of(net, w->group, layer, s) + used,
		.near = w->listed ? near : NULL,
		.near_count = near_counts_of(w->group, layer, s),
		.most = (int)neap__value_most(net, layer) - used};

	r->found[layer->index][at] = (struct neap__found){near, walker.value};
	r->used[s] += net->kernels->walk(&w->constants, &walker);
}

/* Prefetches a strip's weights of a part: steps read rows in an order that no cache foresees. */
static void prefetch_weights(const struct replay_walk *w, int strip, int part)
{
	int left = (int)neap__walk_rows(w->layer) - part * neap__part_rows(w->net, w->layer);
	int rows = neap__part_rows(w->net, w->layer);
	size_t bytes = (size_t)(rows < left ? rows : left) * w->net->strip_units * sizeof(real);
	const char *from = (const char *)weights_of(w, strip, part);

	for (size_t i = 0; i < bytes; i += LINE)
		__builtin_prefetch(from + i, 0, 2);
}

/* Walks strip by strip, weights outside, so that they stay in a near cache. 0: there was no room.
 */
static int walk_strips(struct replay_walk *w)
{
	int parts = neap__walk_parts(w->net, w->layer), size = w->group->size;
	int *used = w->group->replay->used, most = (int)neap__value_most(w->net, w->layer);

	memset(used, 0, (size_t)size * sizeof *used);
	for (int strip = 0; strip < neap__walk_strips(w->net, w->layer); strip++) {
		for (int part = 0; part < parts - 1; part++) {
			prefetch_weights(w, strip, part);
			for (int s = 0; s < size; s++)
				add_currents(w, strip, part, s);
		}
		prefetch_weights(w, strip, parts - 1);
		for (int s = 0; s < size; s++) {
			add_currents(w, strip, parts - 1, s);
			walk_strip(w, strip, s);
			if (used[s] > most)
				return 0;
		}
	}
	return 1;
}

/* Whether each sample could keep three times as many, so that twice the steps will do. */
static int has_spare_room(const struct replay_walk *w)
{
	int64_t most = neap__value_most(w->net, w->layer);

	for (int s = 0; s < w->group->size; s++)
		if (3 * (int64_t)w->group->replay->used[s] > most)
			return 0;
	return 1;
}

/* Whether each step has a tape that needs no more than was kept. */
static int near_is_enough(const struct replay_walk *w)
{
	for (int s = 0; s < w->group->size; s++) {
		const int *near_count = near_counts_of(w->group, w->layer, s);
		const struct neap__events *own = neap__own_events(w->group, w->layer, s) + 1;
		for (int t = 0; t < neap__steps_in(w->net, w->group, s, w->t0, w->t1); t++)
			if (!neap__code(w->layer)->lists(
				    w->net, w->layer, own[t].count, near_count[t]))
				return 0;
	}
	return 1;
}

/* Whether a layer's tapes can do with membranes inside the support. */
static int lists(const struct neap_net *net, const struct neap__layer *layer)
{
	return layer->logged && neap__code(layer)->lists(net, layer, 0, 0);
}

enum outcome { WALKED, TOO_MANY, TOO_DENSE };
enum { WHOLE_FOR = 16 }; /* ranges that keep all membranes, once a tape was dense */

static enum outcome walk_layer(struct neap_net *net, struct neap__group *group,
	unsigned char *state, const struct neap__layer *layer, int64_t t0, int64_t t1, int *spare)
{
	struct replay_walk w = {.net = net,
		.group = group,
		.layer = layer,
		.state = state,
		.t0 = t0,
		.t1 = t1,
		.listed = !group->replay->whole_ranges && lists(net, layer)};

	w.constants.cut = (real)layer->cut;
	neap__code(layer)->walk(layer, &w.constants);
	for (int s = 0; s < group->size; s++) {
		int *near_count = near_counts_of(group, layer, s);
		for (int t = 0; t < NEAP__REPLAY_STEPS; t++)
			near_count[t] = w.listed ? 0 : NEAP__ALL_UNITS;
		set_bits(bits_of(group, s), group->replay->words, neap__own_events(group, layer, s),
			neap__unit_bits(net, layer->index));
	}
	neap__replay_events_list(net, group, layer, t0, t1);
	if (!walk_strips(&w))
		return TOO_MANY;
	*spare &= has_spare_room(&w);
	return !w.listed || near_is_enough(&w) ? WALKED : TOO_DENSE;
}

/* Walks all layers from t0 to t1 and returns 1; or none, and the next range is shorter, or whole.
 */
static int walk_layers(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1)
{
	struct neap__replay *r = group->replay;
	size_t bytes = (size_t)group->size * net->sample_state;
	enum outcome outcome = WALKED;
	int spare = 1;

	memcpy(r->before, state + group->state_at, bytes);
	for (int l = 0; l < net->nlayers - 1 && outcome == WALKED; l++)
		outcome = walk_layer(net, group, state, &net->layers[l], t0, t1, &spare);
	if (outcome == WALKED) {
		r->whole_ranges -= r->whole_ranges > 0;
		if (spare && r->steps < NEAP__REPLAY_STEPS)
			r->steps *= 2;
		return 1;
	}
	memcpy(state + group->state_at, r->before, bytes);
	if (outcome == TOO_MANY)
		r->steps /= 2;
	else
		r->whole_ranges = WHOLE_FOR;
	return 0;
}

/* How many steps to walk from t0 on. */
static int64_t steps_from(const struct neap_net *net, const struct neap__replay *r, int64_t left)
{
	int64_t most = r->steps;

	for (int l = 0; l < net->nlayers - 1; l++)
		if (r->whole_ranges || !lists(net, &net->layers[l]))
			most = most < NEAP__WHOLE_STEPS ? most : NEAP__WHOLE_STEPS;
	return most < left ? most : left;
}

/* The membranes [n] of all units of a step, from those of strips. */
static real *whole_row(const struct neap__at *at, int t)
{
	const real *from = values_of(at->net, at->group, at->layer, at->slot);
	int strips = neap__walk_strips(at->net, at->layer);
	size_t units = at->net->strip_units;
	real *row = at->group->replay->row;

	for (int i = 0; i < strips; i++, from += NEAP__WHOLE_STEPS * units)
		memcpy(row + i * units, from + (size_t)t * units, units * sizeof *row);
	return row;
}

/* The tape of a step from what strips kept; in scratch first where kernels may write beyond its
 * room. */
static size_t put_listed(const struct neap__at *at, int near, int t, unsigned char *tape)
{
	struct neap__replay *r = at->group->replay;
	const struct neap__layer *layer = at->layer;
	const struct neap__kernels *k = at->net->kernels;
	int strips = neap__walk_strips(at->net, layer);
	struct neap__found *found = r->found[layer->index] + strip_at(at->net, layer, at->slot, 0);
	struct neap__listing to;
	size_t bytes = neap__code(layer)->listed(layer, at->now->count, near, tape, &to);

	if (bytes + NEAP__SPARE * sizeof(real) <= neap__layer_tape(at->net, layer)) {
		k->collect(to.near, to.membranes, found, strips, t);
		memset(to.near + near, 0,
			(size_t)(tape + bytes - (unsigned char *)(to.near + near)));
	} else {
		k->collect(r->ids, r->row, found, strips, t);
		memcpy(to.membranes, r->row, (size_t)near * sizeof(real));
		memcpy(to.near, r->ids, (size_t)near * sizeof *r->ids);
	}
	memcpy(to.spikes, at->now->id, (size_t)at->now->count * sizeof *at->now->id);
	return bytes;
}

/* Ends a step of a sample in a layer that walked: a `walked` of neap__group_step. */
static size_t finish(struct neap__at *at, unsigned char *tape)
{
	struct neap__group *group = at->group;
	const struct neap__layer *layer = at->layer;
	int t = (int)(at->t - group->replay->from),
	    near = near_counts_of(group, layer, at->slot)[t];

	if (near == NEAP__ALL_UNITS)
		return neap__code(layer)->walked(at, whole_row(at, t), tape);
	const struct neap__events *now = neap__own_events(group, layer, at->slot) + t + 1;
	memcpy(at->now->room, now->id, (size_t)now->count * sizeof *now->id);
	at->now->count = now->count;
	if (now->count)
		at->now->room[now->count - 1] &= (uint16_t)neap__unit_bits(at->net, layer->index);
	group->support += near;
	group->recorded += layer->n;
	return put_listed(at, near, t, tape);
}

size_t neap__replay_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, const unsigned char *const *logs, unsigned char *tape)
{
	size_t head = neap__tapes_begin(tape, t1 - t0), bytes = head;
	uint32_t *offset = (uint32_t *)(void *)tape;
	struct neap__replay *r = group->replay;

	neap__group_load(net, group, state, t0);
	for (int64_t from = t0, to; from < t1; from = to) {
		do {
			to = from + steps_from(net, r, t1 - from);
			r->from = from;
			read_events(net, group, from, to, logs + (from - t0));
			while (to - from > 1 && !neap__replay_events_fit(net, group, from, to))
				to = from + (to - from + 1) / 2;
		} while (!walk_layers(net, group, state, from, to));
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
	int strip = (int)net->strip_units;

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

/* SPDX-License-Identifier: Apache-2.0 */
/* delays.c: the ring of the outputs that are on their way (delays.h). */
#include "nn/core/delays.h"

#include <math.h>
#include <string.h>

void neap__delays_begin(struct neap_net *net, const struct neap__layer *layer)
{
	const struct neap__delays *delays = &layer->delays;
	real *p = delays->tensor < 0 ? NULL : net->tensors[delays->tensor].data;
	real *part = delays->part;

	for (int i = 0; delays->most && i < delays->units; i++) {
		/* fmax first: it makes a number of NaN. */
		double d = p ? fmin(fmax((double)p[i], delays->least), delays->most) : delays->most;
		double whole = delays->learns ? fmin(floor(d), delays->most - 1) : rint(d);
		delays->whole[i] = (uint8_t)whole;
		part[i] = (real)(delays->learns ? d - whole : 0);
		if (p)
			p[i] = (real)(delays->learns ? d : whole);
	}
}

static void send_numbers(const struct neap__at *at, const struct neap__delays *delays,
	const struct neap__layer_source *source)
{
	real *ring = (real *)(void *)(at->state + source->ring_at);
	const uint8_t *whole = delays->whole + source->delay_at;
	const real *value = at->now->value;
	int n = at->layer->n, rows = delays->most + 1;

	for (int i = 0; i < n; i++)
		ring[(size_t)((at->t + whole[i]) % rows) * n + i] = value[i];
}

static void send(const struct neap__at *at, const struct neap__delays *delays,
	const struct neap__layer_source *source)
{
	const uint8_t *whole = delays->whole + source->delay_at;
	const struct neap__list *now = at->now;
	size_t bytes = (size_t)(at->layer->n + 7) / 8;
	unsigned char *ring = at->state + source->ring_at;
	int rows = delays->most + 1, row = (int)(at->t % rows);
	int last = row + delays->most - delays->learns;

	if (at->layer->smooth) {
		send_numbers(at, delays, source);
		return;
	}
	/* The latest row of this step was read for the last time in the step before. */
	memset(ring + (size_t)(last < rows ? last : last - rows) * bytes, 0, bytes);
	for (int k = 0; k < now->count; k++) {
		int i = now->id[k], to = row + whole[i];
		ring[(size_t)(to < rows ? to : to - rows) * bytes + (i >> 3)] |=
			(unsigned char)(1 << (i & 7));
	}
}

void neap__delays_send(const struct neap__at *at)
{
	const struct neap__layer *layers = at->net->layers;

	for (int l = at->layer->first_reader; l <= at->layer->last_reader; l++)
		for (int k = 0; neap__has_delays(&layers[l]) && k < layers[l].nsources; k++)
			if (layers[l].source[k].layer == at->layer->index &&
				layers[l].source[k].is_delayed)
				send(at, &layers[l].delays, &layers[l].source[k]);
}

static uint64_t word_of(const unsigned char *bits, int base, int n)
{
	uint64_t word = 0;
	int bytes = (n - base + 7) / 8;

	memcpy(&word, bits + base / 8, bytes < 8 ? (size_t)bytes : 8);
	return word;
}

static struct neap__list arrive_numbers(
	const struct neap__at *at, const struct neap__layer_source *source, real *value)
{
	const struct neap__delays *delays = &at->layer->delays;
	const real *ring = (const real *)(const void *)(at->state + source->ring_at);
	int n = at->net->layers[source->layer].n, rows = delays->most + 1;
	const real *now = ring + (size_t)(at->t % rows) * n;
	const real *before = ring + (size_t)((at->t + rows - 1) % rows) * n;
	const real *part = (const real *)delays->part + source->delay_at;

	for (int i = 0; i < n; i++)
		value[i] = delays->learns ? (1 - part[i]) * now[i] + part[i] * before[i] : now[i];
	return (struct neap__list){.count = n, .id = at->net->identity, .value = value};
}

struct neap__list neap__delays_arrive(
	const struct neap__at *at, const struct neap__layer_source *source)
{
	const struct neap__layer *below = &at->net->layers[source->layer];
	const struct neap__delays *delays = &at->layer->delays;
	struct neap__group *group = at->group;
	uint16_t *id = group->late.ids + (size_t)at->slot * at->net->widest;
	real *value = neap__scratch_row(at->net, group->late.values, at->slot);
	const real *part = (const real *)delays->part + source->delay_at;
	int n = below->n, rows = delays->most + 1, count = 0;
	size_t bytes = (size_t)(n + 7) / 8;
	const unsigned char *ring = at->state + source->ring_at;
	const unsigned char *now = ring + (size_t)(at->t % rows) * bytes;
	const unsigned char *before = ring + (size_t)((at->t + rows - 1) % rows) * bytes;

	if (below->smooth)
		return arrive_numbers(at, source, value);
	for (int base = 0; base < n; base += 64) {
		uint64_t first = word_of(now, base, n), second = 0;
		if (delays->learns)
			second = word_of(before, base, n);
		for (uint64_t word = first | second; word; word &= word - 1) {
			int bit = __builtin_ctzll(word), i = base + bit;
			if (delays->learns)
				value[count] = (first >> bit & 1 ? 1 - part[i] : 0) +
					       (second >> bit & 1 ? part[i] : 0);
			id[count++] = (uint16_t)i;
		}
	}
	return (struct neap__list){
		.count = count, .id = id, .value = delays->learns ? value : NULL};
}

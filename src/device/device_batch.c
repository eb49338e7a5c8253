/* SPDX-License-Identifier: Apache-2.0 */
/* device_batch.c: the memory of a batch on the device (device_batch.h). */
#include "device/device_batch.h"
#include "nn/batch/batch.h"
#include "nn/core/net_state.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Steps whose events are on the device at a time: at 1,000 samples their offsets take 16 MiB. */
enum { EVENT_STEPS = 4096 };
/* Bytes of tapes, of all samples of a layer, before they are moved together. */
#define TAPES_MOST ((uint64_t)32 << 20)

/* Parts of a block of memory; `at` NULL: their sizes are added up. */
struct parts {
	unsigned char *at;
	uint64_t used;
};

static void *take(struct parts *p, uint64_t count, uint64_t size)
{
	uint64_t bytes = neap__round_up(neap__sat_mul(count, size), 256), first = p->used;

	p->used = neap__sat_add(p->used, bytes);
	return p->at ? p->at + first : NULL;
}

static void take_layer(
	struct neap__device_batch_memory *b, struct parts *p, const struct neap_net *net, int l)
{
	const struct neap__device_lif *lif = &b->net.lif[l];
	uint64_t samples = (uint64_t)b->net.batch.samples, units = (uint64_t)lif->units;
	uint64_t most = neap__device_tape_most(lif), steps = NEAP__DEVICE_STEPS;
	uint64_t all = neap__sat_mul(samples * steps, most);
	uint64_t share = neap__round_up((all < TAPES_MOST ? all : TAPES_MOST) / samples, 8);

	share = share < most ? neap__round_up(most, 8) : share;
	b->share[l] = (u32)share;
	b->tape[l] = take(p, samples, share);
	b->packed[l] = take(p, 1, sizeof **b->packed);
	b->room.spikes[l] = take(p, steps * samples, neap__device_words(lif) * sizeof(u32));
	b->room.count[l] = take(p, units, sizeof(double));
	if (!net->objective.loss)
		return;
	b->room.currents[l] = take(p, (steps + 1) * samples, units * sizeof(float));
	b->room.rows[l] = take(
		p, 2 * (uint64_t)b->net.groups * units, (uint64_t)b->net.batch.group * sizeof(u32));
	b->penalty[l] = take(p, units, sizeof(float));
}

static void take_progress(struct neap__device_progress *progress, struct parts *p, uint64_t rows)
{
	const uint64_t words = rows * (2 + NEAP__DEVICE_STEPS + 1);

	progress->bytes = words * sizeof(u32);
	progress->done = take(p, words, sizeof(u32));
	if (!progress->done)
		return;
	progress->near = (u32 *)progress->done + rows;
	progress->offset = progress->near + rows;
}

/* The sums of gradients, in one block, which is cleared at once. */
static void take_sums(
	struct neap__device_batch_memory *b, struct parts *p, const struct neap_net *net)
{
	uint64_t first = p->used, groups = (uint64_t)b->net.groups;

	for (int i = 0; i < net->ntensors && net->objective.loss; i++) {
		uint64_t count = (uint64_t)net->tensors[i].count;
		b->room.part[i] = take(p, groups * count, sizeof(float));
		b->room.total[i] = take(p, groups * count, sizeof(double));
	}
	b->sums = p->at ? p->at + first : NULL;
	b->sums_bytes = p->used - first;
}

static void take_all(
	struct neap__device_batch_memory *b, struct parts *p, const struct neap_net *net)
{
	uint64_t samples = (uint64_t)b->net.batch.samples,
		 classes = (uint64_t)b->net.readout.classes;
	uint64_t steps = NEAP__DEVICE_STEPS;

	b->length = take(p, samples, sizeof *b->length);
	b->second = take(p, 1, net->state_bytes);
	b->turn = take(p, samples, neap__device_turn_bytes(net));
	b->room.outputs = take(p, steps * samples, classes * sizeof(float));
	take_progress(&b->progress, p, samples * (uint64_t)b->net.layers);
	take_sums(b, p, net);
	for (int l = 0; l < b->net.layers; l++)
		take_layer(b, p, net, l);
	if (!net->objective.loss)
		return;
	b->room.readout_currents = take(p, (steps + 1) * samples, classes * sizeof(float));
	b->room.errors = take(p, steps * samples, classes * sizeof(float));
	b->room.input_rows = take(p, 2 * (uint64_t)b->net.groups * (uint64_t)b->net.batch.inputs,
		(uint64_t)b->net.batch.group * sizeof(u32));
}

/* The arrays of pointers, and the host's copies. */
static int make_host(struct neap__device_batch_memory *b, const struct neap_net *net)
{
	size_t layers = (size_t)net->nlayers, tensors = (size_t)net->ntensors;
	size_t rows = (size_t)b->net.layers * (size_t)b->net.batch.samples;
	size_t outputs = (size_t)NEAP__DEVICE_STEPS * (size_t)b->net.batch.samples *
			 (size_t)b->net.readout.classes;

	free(b->pointers);
	free(b->share);
	free(b->host.done);
	free(b->host_outputs);
	b->pointers = calloc(7 * layers + 2 * tensors, sizeof *b->pointers);
	b->share = calloc(layers, sizeof *b->share);
	b->host.bytes = rows * (2 + NEAP__DEVICE_STEPS + 1) * sizeof(u32);
	b->host.done = malloc(b->host.bytes);
	b->host_outputs =
		malloc((2 * outputs + 3 * (size_t)b->net.readout.classes) * sizeof(float));
	if (!b->pointers || !b->share || !b->host.done || !b->host_outputs)
		return neap__fail_errno(ENOMEM, "a batch on the device");
	b->host.near = (u32 *)b->host.done + rows;
	b->host.offset = b->host.near + rows;
	b->host_errors = b->host_outputs + outputs;
	b->work = b->host_errors + outputs;
	b->room.spikes = (u32 **)b->pointers;
	b->room.currents = (float **)(b->pointers + layers);
	b->room.rows = (u32 **)(b->pointers + 2 * layers);
	b->room.count = (double **)(b->pointers + 3 * layers);
	b->penalty = (const float **)(b->pointers + 4 * layers);
	b->tape = (unsigned char **)(b->pointers + 5 * layers);
	b->packed = (u32 **)(b->pointers + 6 * layers);
	b->room.part = (float **)(b->pointers + 7 * layers);
	b->room.total = (double **)(b->pointers + 7 * layers + tensors);
	return 0;
}

/* Makes sure that *block has `bytes` bytes. */
static int grow(const struct neap_memory_ops *memory, void **block, uint64_t *have, uint64_t bytes)
{
	if (bytes <= *have)
		return 0;
	bytes = neap__round_up(bytes, 4096);
	if (*block)
		memory->unmap(memory->user, *block, *have);
	*have = 0;
	*block = memory->map(memory->user, bytes);
	if (!*block)
		return neap__fail_in(-ENOMEM, "a batch: ");
	*have = bytes;
	return 0;
}

static int send(const struct neap__device_batch_memory *b, const struct neap_net *net)
{
	const struct neap_memory_ops *m = b->memory;
	int samples = b->net.batch.samples, rc = 0;
	int *length = malloc((size_t)samples * sizeof *length);

	if (!length)
		return neap__fail_errno(ENOMEM, "%d samples", samples);
	for (int s = 0; s < samples; s++)
		length[s] = (int)net->batch->sequences[s].length;
	rc = m->write(m->user, b->length, length, (size_t)samples * sizeof *length);
	free(length);
	return rc;
}

static int clear(const struct neap__device_batch_memory *b)
{
	const struct neap_memory_ops *m = b->memory;

	for (int l = 0; l < b->net.layers; l++)
		NEAP_TRY(m->fill(m->user, b->room.count[l], 0,
			(uint64_t)b->net.lif[l].units * sizeof(double)));
	return b->sums_bytes ? m->fill(m->user, b->sums, 0, b->sums_bytes) : 0;
}

int neap__device_batch_begin(struct neap__device_batch_memory *b, struct neap_net *net)
{
	struct parts parts = {0};

	if (net->batch->steps > INT32_MAX - NEAP__DEVICE_STEPS)
		return neap__fail(NEAP_EUSAGE,
			"devices take at most %d steps, but a sample has %lld; train on the CPU",
			INT32_MAX - NEAP__DEVICE_STEPS, (long long)net->batch->steps);
	neap__device_net_free(&b->net);
	NEAP_TRY(neap__device_net_describe(
		&b->net, net, (const float *const *)b->parameters.at.weight));
	NEAP_TRY(make_host(b, net));
	take_all(b, &parts, net);
	NEAP_TRY(grow(b->memory, &b->block, &b->block_bytes, parts.used));
	parts = (struct parts){.at = b->block};
	take_all(b, &parts, net);
	b->net.batch.length = b->length;
	b->room.steps = NEAP__DEVICE_STEPS;
	b->room.penalty = net->has_penalty ? b->penalty : NULL;
	b->events_from = b->events_to = 0;
	NEAP_TRY(send(b, net));
	return clear(b);
}

/* The events of steps [from, to) of a sample, of which it may have fewer. */
struct sample_events {
	int64_t steps;
	const u32 *start; /* [steps + 1] */
	size_t count;
};

static struct sample_events events_of(
	const struct neap_net *net, size_t sample, int64_t from, int64_t to)
{
	int64_t length = net->batch->sequences[sample].length, end = length < to ? length : to;
	struct sample_events e = {.steps = end > from ? end - from : 0};

	if (e.steps > 0) {
		e.start = net->events[sample].start + (from - net->events_from);
		e.count = e.start[e.steps] - e.start[0];
	}
	return e;
}

/*
 * Copies them to b->staging, of all samples: where the samples begin, the starts, and the units,
 * which begin at word *units; returns the bytes.
 */
static size_t gather_events(struct neap__device_batch_memory *b, const struct neap_net *net,
	int64_t from, int64_t to, size_t *units)
{
	size_t samples = (size_t)b->net.batch.samples, starts = 0, events = 0;
	u32 *at = b->staging, *start = at + samples;

	for (size_t s = 0; s < samples; s++) {
		struct sample_events e = events_of(net, s, from, to);
		at[s] = (u32)starts;
		for (int64_t t = 0; t < e.steps; t++)
			start[starts++] = (u32)events + e.start[t] - e.start[0];
		events += e.count;
		start[starts++] = (u32)events;
	}
	*units = samples + starts;
	u16 *unit = (u16 *)(void *)(at + *units);
	for (size_t s = 0; s < samples; s++) {
		struct sample_events e = events_of(net, s, from, to);
		if (e.count > 0)
			memcpy(unit, net->events[s].unit + e.start[0], e.count * sizeof *unit);
		unit += e.count;
	}
	return *units * sizeof(u32) + events * sizeof(u16);
}

static size_t events_most(const struct neap__device_batch_memory *b, const struct neap_net *net,
	int64_t from, int64_t to)
{
	size_t samples = (size_t)b->net.batch.samples, bytes;

	bytes = samples * (size_t)(to - from + 2) * sizeof(u32);
	for (size_t s = 0; s < samples; s++)
		bytes += events_of(net, s, from, to).count * sizeof(u16);
	return bytes;
}

int neap__device_batch_events(
	struct neap__device_batch_memory *b, struct neap_net *net, int64_t t, int64_t *to)
{
	const struct neap_memory_ops *m = b->memory;

	*to = b->events_to;
	if (b->events_from <= t && t < b->events_to)
		return 0;
	NEAP_TRY(neap__net_window(net, t));
	int64_t from = t / EVENT_STEPS * EVENT_STEPS, end = from + EVENT_STEPS;
	from = from > net->events_from ? from : net->events_from;
	end = end < net->events_to ? end : net->events_to;
	end = end < net->batch->steps ? end : net->batch->steps;
	size_t most = events_most(b, net, from, end), samples = (size_t)b->net.batch.samples;
	if (most > b->staging_bytes) {
		free(b->staging);
		b->staging_bytes = 0;
		b->staging = malloc(most);
		if (!b->staging)
			return neap__fail_errno(ENOMEM, "events of %zu bytes", most);
		b->staging_bytes = most;
	}
	b->events_to = 0;
	NEAP_TRY(grow(m, &b->events, &b->events_bytes, most));
	size_t units, bytes = gather_events(b, net, from, end, &units);
	NEAP_TRY(m->write(m->user, b->events, b->staging, bytes));
	b->net.batch.events_at = b->events;
	b->net.batch.start = (u32 *)b->events + samples;
	b->net.batch.unit = (u16 *)((u32 *)b->events + units);
	b->net.batch.first_step = (int)from;
	b->events_from = from;
	b->events_to = *to = end;
	return 0;
}

void neap__device_batch_free(struct neap__device_batch_memory *b)
{
	const struct neap_memory_ops *m = b->memory;

	if (b->block)
		m->unmap(m->user, b->block, b->block_bytes);
	if (b->events)
		m->unmap(m->user, b->events, b->events_bytes);
	neap__device_net_free(&b->net);
	free(b->pointers);
	free(b->share);
	free(b->host.done);
	free(b->host_outputs);
	free(b->staging);
	*b = (struct neap__device_batch_memory){.memory = m};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* device_batch.c: the memory of a batch on the device (device_batch.h). */
#include "device/device_batch.h"
#include "cuda/device.h"
#include "nn/batch/batch.h"
#include "nn/core/net_state.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of tapes, of all samples of a layer, before they are moved together. */
#define TAPES_MOST ((uint64_t)32 << 20)
/* Bytes of spikes, outputs and offsets of the steps of a launch, where that is more than a block.
 */
#define STEPS_BYTES ((uint64_t)32 << 20)

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

static void take_tapes(struct neap__device_batch_memory *b, struct parts *p, int l)
{
	uint64_t samples = (uint64_t)b->net.batch.samples, steps = (uint64_t)b->room.steps;
	uint64_t most = neap__device_tape_most(&b->net, l);
	uint64_t all = neap__sat_mul(samples * steps, most);
	uint64_t share = neap__round_up((all < TAPES_MOST ? all : TAPES_MOST) / samples, 8);

	share = share < most ? neap__round_up(most, 8) : share;
	if (b->net.dense) /* all tapes have this size, and there are few steps of them */
		share = neap__round_up(steps * most, 8);
	b->share[l] = (u32)share;
	b->tape[l] = take(p, samples, share);
}

/* Delays and decays of the units of a layer, or of the readout, and the terms of gradients. */
static void take_units(struct neap__device_batch_memory *b, struct parts *p, int l)
{
	const struct neap__layer *layer = &b->net.net->layers[l];
	uint64_t rows = (DEVICE_BLOCK_STEPS + 1) * (uint64_t)b->net.batch.samples;
	uint64_t units = (uint64_t)layer->n;

	if (neap__has_delays(layer))
		b->delays[l] =
			take(p, (uint64_t)layer->delays.units, sizeof(float) + sizeof **b->delays);
	if (neap__device_leaks(layer))
		b->leaks[l] = take(p, 3 * DEVICE_LEAKS, units * sizeof(float));
	for (int k = 0; k < neap__learned(layer) && neap__has_gradients(b->net.net); k++)
		b->room.leak_terms[DEVICE_LEAKS * l + k] = take(p, rows, units * sizeof(float));
}

static void take_layer(
	struct neap__device_batch_memory *b, struct parts *p, const struct neap_net *net, int l)
{
	const struct neap__device_dense *dense = b->net.dense ? &b->net.dense[l] : NULL;
	uint64_t samples = (uint64_t)b->net.batch.samples, steps = (uint64_t)b->room.steps;
	uint64_t units = (uint64_t)neap__device_units(&b->net, l);
	uint64_t rows = (DEVICE_BLOCK_STEPS + 1) * samples;

	take_tapes(b, p, l);
	if (neap__device_drops(&b->net, l))
		b->passes[l] = take(p, samples, neap__device_words((int)units) * sizeof(u32));
	if (dense)
		b->room.dense_outputs[l] = take(p, (steps + 1) * samples, units * sizeof(float));
	else
		b->room.spikes[l] = take(
			p, (steps + 1) * samples, neap__device_words((int)units) * sizeof(u32));
	b->room.count[l] = take(p, units * (uint64_t)neap__device_counts(&b->net), sizeof(double));
	take_units(b, p, l);
	if (!neap__has_gradients(net))
		return;
	b->room.currents[l] =
		take(p, rows, (dense ? (uint64_t)dense->sums : units) * sizeof(float));
	b->penalty[l] = take(p, units, sizeof(float));
	if (dense)
		b->room.values[l] = take(p, rows, units * sizeof(float));
	if (dense && dense->candidate)
		b->room.gated_values[l] = take(p, rows, units * sizeof(float));
}

/* What layers of a dense net use one after the other. */
static void take_dense(struct neap__device_batch_memory *b, struct parts *p)
{
	uint64_t samples = (uint64_t)b->net.batch.samples, steps = (uint64_t)b->room.steps;
	uint64_t columns = (uint64_t)b->net.readout.classes, units = 0, dropped = 0;

	for (int l = 0; l < b->net.layers; l++) {
		const struct neap__device_dense *layer = &b->net.dense[l];
		columns = (uint64_t)layer->in > columns ? (uint64_t)layer->in : columns;
		if (layer->candidate && (uint64_t)layer->units > units)
			units = (uint64_t)layer->units;
		if (neap__device_drops(&b->net, l) && (uint64_t)layer->units > dropped)
			dropped = (uint64_t)layer->units;
	}
	b->room.passed = take(p, (DEVICE_BLOCK_STEPS + 1) * samples, dropped * sizeof(float));
	b->room.sums = take(p, steps * samples, columns * sizeof(float));
	b->room.gated = take(p, samples, units * sizeof(float));
}

static void take_progress(struct neap__device_progress *progress, struct parts *p, uint64_t rows)
{
	progress->done = take(p, 3 * rows, sizeof(u32));
	if (!progress->done)
		return;
	progress->near = (u32 *)progress->done + rows;
	progress->bytes = progress->near + rows;
}

/* The bitmaps of rows of gradients, in one block. */
static void take_rows(struct neap__device_batch_memory *b, struct parts *p)
{
	uint64_t bits = 2 * (uint64_t)b->net.groups * (uint64_t)b->net.batch.group * sizeof(u32);
	uint64_t first = p->used;

	for (int l = 0; l < b->net.layers && !b->net.dense; l++)
		b->room.rows[l] = take(p, (uint64_t)b->net.lif[l].units, bits);
	if (!b->net.net->options.values)
		b->room.input_rows = take(p, (uint64_t)b->net.batch.inputs, bits);
	b->room.row_bits = p->at ? p->at + first : NULL;
	b->room.row_bytes = p->used - first;
}

/* The sums of gradients, in one block, which is cleared at once. */
static void take_sums(
	struct neap__device_batch_memory *b, struct parts *p, const struct neap_net *net)
{
	uint64_t first = p->used, groups = (uint64_t)b->net.groups;

	for (int i = 0; i < net->ntensors && neap__has_gradients(net); i++) {
		uint64_t count = (uint64_t)net->tensors[i].count;
		b->room.part[i] = take(p, groups * count, sizeof(float));
		b->room.total[i] = take(p, groups * count, sizeof(double));
	}
	b->sums = p->at ? p->at + first : NULL;
	b->sums_bytes = p->used - first;
}

/* Weights in other forms, for kernels. */
static void take_weights(
	struct neap__device_batch_memory *b, struct parts *p, const struct neap_net *net)
{
	for (int i = 0; i < net->ntensors; i++) {
		uint64_t places =
			(uint64_t)net->tensors[i].rows * (uint64_t)net->tensors[i].columns;
		if (neap__device_spreads(&b->net, i))
			b->room.spread[i] = take(p, places, sizeof(float));
		if (neap__has_gradients(net) && neap__device_turns(&b->net, i))
			b->room.turned[i] = take(p, places, sizeof(float));
	}
}

static void take_all(
	struct neap__device_batch_memory *b, struct parts *p, const struct neap_net *net)
{
	uint64_t samples = (uint64_t)b->net.batch.samples,
		 classes = (uint64_t)b->net.readout.classes;
	uint64_t steps = (uint64_t)b->room.steps, rows = samples * (uint64_t)b->net.layers;

	b->length = take(p, samples, sizeof *b->length);
	b->second = take(p, 1, net->state_bytes);
	b->turn = take(p, samples, neap__device_turn_bytes(net));
	b->room.outputs = b->room.errors = b->room.factors = NULL;
	if (b->net.has_errors) {
		b->room.outputs = take(p, steps * samples, classes * sizeof(float));
		b->room.errors = take(p, steps * samples, classes * sizeof(float));
	}
	take_progress(&b->progress, p, rows);
	b->offset = take(p, rows, (steps + 1) * sizeof(u32));
	take_sums(b, p, net);
	take_weights(b, p, net);
	for (int l = 0; l < b->net.layers; l++)
		take_layer(b, p, net, l);
	if (b->net.dense)
		take_dense(b, p);
	if (b->net.readout.classes)
		take_units(b, p, b->net.layers);
	if (b->net.readout.learned)
		b->room.factors = take(p, steps * samples, classes * sizeof(float));
	if (!neap__has_gradients(net))
		return;
	b->room.readout_currents =
		take(p, (DEVICE_BLOCK_STEPS + 1) * samples, classes * sizeof(float));
	take_rows(b, p);
}

/* The same of a dense net, whose tapes and outputs are large: one step at least. */
static int dense_steps_of(const struct neap__device_batch_memory *b)
{
	uint64_t most = 1, steps;

	for (int l = 0; l < b->net.layers; l++) {
		uint64_t tape = neap__device_tape_most(&b->net, l);
		most = tape > most ? tape : most;
	}
	steps = TAPES_MOST / (most * (uint64_t)b->net.batch.samples);
	steps = steps < DEVICE_BLOCK_STEPS ? steps : DEVICE_BLOCK_STEPS;
	return steps > 0 ? (int)steps : 1;
}

/* Steps of a launch forward: few enough that what all samples write in them is not much. */
static int steps_of(const struct neap__device_batch_memory *b, const struct neap_net *net)
{
	uint64_t words = (uint64_t)b->net.readout.classes, steps = NEAP__DEVICE_STEPS_MOST;

	if (b->net.dense)
		return dense_steps_of(b);
	for (int l = 0; l < b->net.layers; l++)
		words += 1 + neap__device_words(b->net.lif[l].units);
	while (steps > DEVICE_BLOCK_STEPS &&
		(steps * words * sizeof(u32) * (uint64_t)b->net.batch.samples > STEPS_BYTES ||
			steps / 2 >= (uint64_t)net->batch->steps))
		steps /= 2;
	return (int)steps;
}

/* What copies between host and device that no one waits for read and write. */
static int make_pinned(struct neap__device_batch_memory *b)
{
	uint64_t rows = (uint64_t)b->net.layers * (uint64_t)b->net.batch.samples;
	uint64_t progress = neap__round_up(3 * rows * sizeof(u32), 64);
	uint64_t head =
		neap__round_up(neap__device_round_head(b->net.layers) + rows * sizeof(u32), 64);
	uint64_t bytes = progress + head + sizeof *b->head;

	if (bytes > b->pinned_bytes) {
		NEAP_TRY(
			neap_device_wait(b->device)); /* a run that failed may have copies queued */
		neap__pinned_free(b->device, b->pinned);
		b->pinned = NULL;
		b->pinned_bytes = 0;
		NEAP_TRY(neap__pinned_alloc(b->device, &b->pinned, bytes));
		b->pinned_bytes = bytes;
	}
	unsigned char *at = b->pinned;
	b->host.done = (int *)(void *)at;
	b->host.near = (u32 *)b->host.done + rows;
	b->host.bytes = b->host.near + rows;
	b->round = (struct neap__device_round *)(void *)(at + progress);
	b->head = (struct neap__device_tape_head *)(void *)(at + progress + head);
	return 0;
}

/* The arrays of pointers, and the host's copies. */
static int make_host(struct neap__device_batch_memory *b, const struct neap_net *net)
{
	size_t layers = (size_t)net->nlayers, tensors = (size_t)net->ntensors;
	size_t outputs = b->net.has_errors ? (size_t)b->room.steps * (size_t)b->net.batch.samples *
						     (size_t)b->net.readout.classes
					   : 0;

	free(b->pointers);
	free(b->share);
	free(b->host_outputs);
	b->pointers = calloc((12 + DEVICE_LEAKS) * layers + 4 * tensors, sizeof *b->pointers);
	b->share = calloc(layers, sizeof *b->share);
	b->host_outputs =
		malloc((2 * outputs + 3 * (size_t)b->net.readout.classes) * sizeof(float));
	if (!b->pointers || !b->share || !b->host_outputs)
		return neap__fail_errno(ENOMEM, "a batch on the device");
	b->host_errors = b->host_outputs + outputs;
	b->work = b->host_errors + outputs;
	b->room.spikes = (u32 **)b->pointers;
	b->room.currents = (float **)(b->pointers + layers);
	b->room.rows = (u32 **)(b->pointers + 2 * layers);
	b->room.count = (double **)(b->pointers + 3 * layers);
	b->penalty = (const float **)(b->pointers + 4 * layers);
	b->tape = (unsigned char **)(b->pointers + 5 * layers);
	b->room.part = (float **)(b->pointers + 6 * layers);
	b->room.total = (double **)(b->pointers + 6 * layers + tensors);
	b->room.dense_outputs = (float **)(b->pointers + 6 * layers + 2 * tensors);
	b->room.values = b->room.dense_outputs + layers;
	b->room.gated_values = b->room.values + layers;
	b->room.turned = b->room.gated_values + layers;
	b->room.spread = b->room.turned + tensors;
	b->passes = (u32 **)(void *)(b->room.spread + tensors);
	b->leaks = (float **)(void *)(b->passes + layers);
	b->delays = (u8 **)(void *)(b->leaks + layers);
	b->room.leak_terms = (float **)(void *)(b->delays + layers);
	return make_pinned(b);
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
	NEAP_TRY(neap__device_memory_map(memory, block, bytes, "a batch"));
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

/* Which units dropout lets pass in this batch. */
static int send_passes(struct neap__device_batch_memory *b, const struct neap_net *net)
{
	const struct neap_memory_ops *m = b->memory;
	size_t samples = (size_t)b->net.batch.samples, words = neap__device_words(net->widest);
	u32 *passes = net->drops ? malloc(samples * words * sizeof *passes) : NULL;
	int rc = 0;

	if (!net->drops)
		return 0;
	if (!passes)
		return neap__fail_errno(ENOMEM, "dropout of %zu samples", samples);
	for (int l = 0; l < b->net.layers && rc == 0; l++) {
		if (!neap__device_drops(&b->net, l))
			continue;
		words = neap__device_words(neap__device_units(&b->net, l));
		neap__device_passes_write(&b->net, l, passes);
		neap__device_passes_set(&b->net, l, b->passes[l]);
		rc = m->write(m->user, b->passes[l], passes, samples * words * sizeof *passes);
	}
	free(passes);
	return rc;
}

/*
 * The decays of units in this batch: the host computes them from their parameters, since exp() of a
 * device rounds differently. Parameters that were updated on the device are copied from there.
 */
static int send_leaks(struct neap__device_batch_memory *b, struct neap_net *net)
{
	const struct neap_memory_ops *m = b->memory;
	int is_stale = net->parameters.kept && !net->parameters.is_here;

	for (int l = 0; l <= b->net.layers; l++) {
		const struct neap__layer *layer = &net->layers[l];
		const float *rows[DEVICE_LEAKS] = {NULL};
		if (!b->leaks[l])
			continue;
		for (int k = 0; k < neap__learned(layer) && is_stale; k++) {
			const struct neap__param *p = &net->tensors[layer->leaks[k].tensor];
			NEAP_TRY(m->read(m->user, p->data,
				b->parameters.at.weight[layer->leaks[k].tensor],
				(uint64_t)p->count * sizeof(float)));
		}
		if (is_stale)
			net->ops->leak(net, layer);
		for (int k = 0; k < layer->nleaks && k < DEVICE_LEAKS; k++) {
			float *to = b->leaks[l] + (size_t)k * 3 * (size_t)layer->n;
			rows[k] = to;
			NEAP_TRY(m->write(m->user, to, layer->leaks[k].decay,
				3 * (uint64_t)layer->n * sizeof(float)));
		}
		neap__device_leaks_set(&b->net, l, rows);
	}
	return 0;
}

/*
 * The delays of units in this batch. Parameters that are kept on the device are moved into their
 * range there as well, as neap__delays_begin does on the host.
 */
static int send_delays(struct neap__device_batch_memory *b, struct neap_net *net)
{
	const struct neap_memory_ops *m = b->memory;
	int is_kept = net->parameters.kept, is_stale = is_kept && !net->parameters.is_here;

	for (int l = 0; l <= b->net.layers; l++) {
		const struct neap__layer *layer = &net->layers[l];
		const struct neap__delays *delays = &layer->delays;
		const struct neap__param *p =
			delays->tensor < 0 ? NULL : &net->tensors[delays->tensor];
		uint64_t units = (uint64_t)delays->units;
		if (!b->delays[l])
			continue;
		if (p && is_stale) {
			NEAP_TRY(m->read(m->user, p->data, b->parameters.at.weight[delays->tensor],
				units * sizeof(float)));
			net->ops->delays(net, layer);
		}
		if (p && is_kept)
			NEAP_TRY(m->write(m->user, b->parameters.at.weight[delays->tensor], p->data,
				units * sizeof(float)));
		NEAP_TRY(m->write(m->user, b->delays[l], delays->part, units * sizeof(float)));
		NEAP_TRY(m->write(m->user, b->delays[l] + units * sizeof(float), delays->whole,
			units * sizeof *delays->whole));
		neap__device_delays_set(&b->net, l, b->delays[l] + units * sizeof(float),
			(const float *)(const void *)b->delays[l]);
	}
	return 0;
}

static int clear(const struct neap__device_batch_memory *b)
{
	const struct neap_memory_ops *m = b->memory;

	for (int l = 0; l < b->net.layers; l++)
		NEAP_TRY(m->fill(m->user, b->room.count[l], 0,
			(uint64_t)neap__device_units(&b->net, l) *
				(uint64_t)neap__device_counts(&b->net) * sizeof(double)));
	return b->sums_bytes ? m->fill(m->user, b->sums, 0, b->sums_bytes) : 0;
}

int neap__device_batch_begin(struct neap__device_batch_memory *b, struct neap_net *net)
{
	struct parts parts = {0};

	if (net->batch->steps > INT32_MAX - NEAP__DEVICE_STEPS_MOST)
		return neap__fail(NEAP_EUSAGE,
			"devices take at most %d steps, but a sample has %lld; train on the CPU",
			INT32_MAX - NEAP__DEVICE_STEPS_MOST, (long long)net->batch->steps);
	neap__device_net_free(&b->net);
	NEAP_TRY(neap__device_net_describe(
		&b->net, net, (const float *const *)b->parameters.at.weight));
	NEAP_TRY(neap__device_clusters(&b->net, &b->clusters));
	b->room.steps = steps_of(b, net);
	b->room.replay_steps = DEVICE_BLOCK_STEPS;
	NEAP_TRY(make_host(b, net));
	take_all(b, &parts, net);
	NEAP_TRY(grow(b->memory, &b->block, &b->block_bytes, parts.used));
	parts = (struct parts){.at = b->block};
	take_all(b, &parts, net);
	b->net.batch.length = b->length;
	b->room.row_start = (const u32 **)(void *)b->parameters.at.row_start;
	b->room.column = (const u16 **)(void *)b->parameters.at.column;
	b->room.penalty = net->has_penalty ? b->penalty : NULL;
	NEAP_TRY(neap__device_events_begin(&b->events, net->ahead.is_begun));
	NEAP_TRY(send(b, net));
	NEAP_TRY(send_passes(b, net));
	NEAP_TRY(send_leaks(b, net));
	NEAP_TRY(send_delays(b, net));
	return clear(b);
}

void neap__device_batch_free(struct neap__device_batch_memory *b)
{
	const struct neap_memory_ops *m = b->memory;

	if (b->pinned)
		neap_device_wait(b->device); /* for copies from it */
	if (b->block)
		m->unmap(m->user, b->block, b->block_bytes);
	neap__device_events_free(&b->events);
	neap__device_net_free(&b->net);
	free(b->pointers);
	free(b->share);
	free(b->host_outputs);
	neap__pinned_free(b->device, b->pinned);
	*b = (struct neap__device_batch_memory){
		.device = b->device, .memory = m, .events = {.device = b->device}};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_events.c: fills the buffers of events, and selects the one that launches read
 * (device_events.h). A buffer in pinned memory is written again after its copy to the device, and a
 * buffer on the device is copied to after the launches that read it.
 */
#include "device/device_events.h"
#include "nn/batch/batch.h"
#include "nn/core/net_state.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <string.h>

/* Steps whose events are on the device at a time: at 1,000 samples their offsets take 16 MiB. */
enum { EVENT_STEPS = 4096 };
/* Bytes of the numbers of a range: as many of their steps as fit, but a gradient block. */
#define VALUE_BYTES ((size_t)16 << 20)

/* Where a batch's events are in memory: of steps [from, to). */
struct event_source {
	const struct neap_batch *batch;
	const struct neap_sequence *events; /* [samples] */
	int64_t from, to;
};

/* The events of steps [from, to) of a sample, of which it may have fewer. */
struct sample_events {
	int64_t steps;
	const u32 *start; /* [steps + 1] */
	size_t count;
};

static struct sample_events events_of(
	const struct event_source *source, size_t sample, int64_t from, int64_t to)
{
	int64_t length = source->batch->sequences[sample].length, end = length < to ? length : to;
	struct sample_events e = {.steps = end > from ? end - from : 0};

	if (e.steps > 0) {
		e.start = source->events[sample].start + (from - source->from);
		e.count = e.start[e.steps] - e.start[0];
	}
	return e;
}

/*
 * Copies them to pinned memory, of all samples: where the samples begin, the starts, and the units;
 * returns the bytes.
 */
static size_t gather(struct neap__input_range *buffer, const struct event_source *source)
{
	size_t samples = (size_t)source->batch->size, starts = 0, events = 0;
	u32 *at = buffer->pinned, *start = at + samples;

	for (size_t s = 0; s < samples; s++) {
		struct sample_events e = events_of(source, s, buffer->from, buffer->to);
		at[s] = (u32)starts;
		for (int64_t t = 0; t < e.steps; t++)
			start[starts++] = (u32)events + e.start[t] - e.start[0];
		events += e.count;
		start[starts++] = (u32)events;
	}
	buffer->units = samples + starts;
	u16 *unit = (u16 *)(void *)(at + buffer->units);
	for (size_t s = 0; s < samples; s++) {
		struct sample_events e = events_of(source, s, buffer->from, buffer->to);
		if (e.count > 0)
			memcpy(unit, source->events[s].unit + e.start[0], e.count * sizeof *unit);
		unit += e.count;
	}
	return buffer->units * sizeof(u32) + events * sizeof(u16);
}

/*
 * The same of numbers: [steps][samples][inputs], which kernels read by steps; 0 where a sample has
 * ended.
 */
static size_t gather_values(
	const struct neap__input_range *buffer, const struct event_source *source)
{
	size_t samples = (size_t)source->batch->size, inputs = (size_t)source->batch->inputs;
	size_t row = samples * inputs, steps = (size_t)(buffer->to - buffer->from);
	float *at = buffer->pinned;

	for (size_t s = 0; s < samples; s++) {
		int64_t length = source->batch->sequences[s].length;
		const float *from = source->events[s].values;
		for (size_t t = 0; t < steps; t++) {
			int64_t step = buffer->from + (int64_t)t;
			float *to = at + t * row + s * inputs;
			if (step < length)
				memcpy(to, from + (size_t)(step - source->from) * inputs,
					inputs * sizeof *to);
			else
				memset(to, 0, inputs * sizeof *to);
		}
	}
	return steps * row * sizeof *at;
}

static uint64_t bytes_of(const struct neap__input_range *buffer, const struct event_source *source)
{
	size_t samples = (size_t)source->batch->size;
	if (source->batch->values)
		return (uint64_t)(buffer->to - buffer->from) * samples *
		       (uint64_t)source->batch->inputs * sizeof(float);
	uint64_t bytes = samples * (size_t)(buffer->to - buffer->from + 2) * sizeof(u32);

	for (size_t s = 0; s < samples; s++)
		bytes += events_of(source, s, buffer->from, buffer->to).count * sizeof(u16);
	return bytes;
}

/* Makes the buffer as large as `bytes`, on both sides; a quarter more, since ranges differ. */
static int grow(struct neap__device_events *e, struct neap__input_range *buffer, uint64_t bytes)
{
	const struct neap_memory_ops *m = neap_device_memory(e->device);
	uint64_t room = neap__round_up(bytes + bytes / 4, 4096);

	if (bytes > buffer->pinned_bytes) {
		neap__pinned_free(e->device, buffer->pinned);
		buffer->pinned = NULL;
		buffer->pinned_bytes = 0;
		NEAP_TRY(neap__pinned_alloc(e->device, &buffer->pinned, room));
		buffer->pinned_bytes = room;
	}
	if (bytes <= buffer->bytes)
		return 0;
	if (buffer->at)
		m->unmap(m->user, buffer->at, buffer->bytes);
	buffer->bytes = 0;
	buffer->at = m->map(m->user, room);
	if (!buffer->at)
		return neap__fail_in(-ENOMEM, "the inputs of a batch: ");
	buffer->bytes = room;
	return 0;
}

/* Steps of a range at most. */
static int64_t steps_of(const struct neap__device_events *e, const struct neap_batch *batch)
{
	size_t step = (size_t)batch->size * (size_t)batch->inputs * sizeof(float), blocks;

	if (e->steps || !batch->values || step == 0)
		return e->steps ? e->steps : EVENT_STEPS;
	blocks = VALUE_BYTES / step / DEVICE_BLOCK_STEPS;
	blocks = blocks < EVENT_STEPS / DEVICE_BLOCK_STEPS ? blocks
							   : EVENT_STEPS / DEVICE_BLOCK_STEPS;
	return DEVICE_BLOCK_STEPS * (int64_t)(blocks > 0 ? blocks : 1);
}

/* Queues the copy of a range with step t to the buffer. */
static int fill(struct neap__device_events *e, struct neap__input_range *buffer,
	const struct event_source *source, int64_t t)
{
	const struct neap_device *device = e->device;
	int64_t steps = steps_of(e, source->batch), from = t / steps * steps;
	int64_t to = from + steps < source->to ? from + steps : source->to;

	buffer->is_ahead = 0;
	buffer->from = from > source->from ? from : source->from;
	buffer->to = to < source->batch->steps ? to : source->batch->steps;
	int rc = NEAP__CUDA(cuEventSynchronize, (buffer->copied));
	if (rc == 0)
		rc = grow(e, buffer, bytes_of(buffer, source));
	size_t bytes = rc < 0		       ? 0
		       : source->batch->values ? gather_values(buffer, source)
					       : gather(buffer, source);
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)buffer->at;
	if (rc == 0)
		rc = NEAP__CUDA(cuStreamWaitEvent, (device->ahead, buffer->read, 0));
	if (rc == 0)
		rc = NEAP__CUDA(cuMemcpyHtoDAsync, (at, buffer->pinned, bytes, device->ahead));
	if (rc == 0)
		rc = NEAP__CUDA(cuEventRecord, (buffer->copied, device->ahead));
	if (rc < 0)
		buffer->from = buffer->to = 0;
	return rc;
}

/* The same of the batch that was begun. */
static int fill_of_net(struct neap__device_events *e, struct neap__input_range *buffer,
	struct neap_net *net, int64_t t)
{
	buffer->from = buffer->to = 0;
	NEAP_TRY(neap__net_window(net, t));
	const struct event_source source = {
		net->batch, net->events, net->events_from, net->events_to};
	return fill(e, buffer, &source, t);
}

static int has(const struct neap__input_range *buffer, int64_t t)
{
	return !buffer->is_ahead && buffer->from <= t && t < buffer->to;
}

/* Launches read no buffer any more. */
static int leave(struct neap__device_events *e)
{
	int was = e->current;

	e->current = -1;
	return was < 0 ? 0 : NEAP__CUDA(cuEventRecord, (e->buffer[was].read, e->device->compute));
}

int neap__device_events_begin(struct neap__device_events *e, int keep)
{
	for (int i = 0; i < 2; i++) {
		struct neap__input_range *buffer = &e->buffer[i];
		CUevent *events[] = {&buffer->copied, &buffer->read};
		if (!keep || !buffer->is_ahead)
			buffer->from = buffer->to = 0;
		buffer->is_ahead = 0;
		for (int k = 0; k < 2; k++)
			if (!*events[k]) {
				NEAP_TRY(NEAP__CUDA(cuEventCreate,
					(events[k], NEAP__CUDA_EVENT_DISABLE_TIMING)));
				e->current = -1;
			}
	}
	return leave(e);
}

int neap__device_events_need(struct neap__device_events *e, struct neap_net *net,
	struct neap__device_batch *batch, int64_t t, int64_t *to)
{
	int next = e->current == 0 || (e->current < 0 && has(&e->buffer[1], t));
	struct neap__input_range *buffer = &e->buffer[next];

	if (net->ports.inputs) { /* the caller's array */
		batch->values = net->ports.inputs;
		batch->first_step = (int)net->ports.first;
		*to = net->batch->steps;
		return 0;
	}
	if (e->current >= 0 && has(&e->buffer[e->current], t)) {
		*to = e->buffer[e->current].to;
		return 0;
	}
	if (!has(buffer, t))
		NEAP_TRY(fill_of_net(e, buffer, net, t));
	NEAP_TRY(leave(e));
	NEAP_TRY(NEAP__CUDA(cuStreamWaitEvent, (e->device->compute, buffer->copied, 0)));
	e->current = next;
	batch->events_at = buffer->at;
	batch->start = (u32 *)buffer->at + net->batch->size;
	batch->unit = (u16 *)(void *)((u32 *)buffer->at + buffer->units);
	batch->values = net->batch->values ? buffer->at : NULL;
	batch->first_step = (int)buffer->from;
	*to = buffer->to;
	return 0;
}

int neap__device_events_expect(struct neap__device_events *e, struct neap_net *net, int64_t t)
{
	struct neap__input_range *other = &e->buffer[e->current == 0];

	if (e->current < 0 || t >= net->batch->steps || has(&e->buffer[e->current], t) ||
		has(other, t))
		return 0;
	return fill_of_net(e, other, net, t);
}

int neap__device_events_follow(struct neap__device_events *e, const struct neap_batch *batch)
{
	const struct event_source source = {batch, batch->sequences, 0, INT64_MAX};
	struct neap__input_range *other = &e->buffer[e->current == 0];

	NEAP_TRY(fill(e, other, &source, 0));
	other->is_ahead = 1;
	return 0;
}

void neap__device_events_free(struct neap__device_events *e)
{
	const struct neap_memory_ops *m = neap_device_memory(e->device);

	for (int i = 0; i < 2; i++) {
		struct neap__input_range *buffer = &e->buffer[i];
		CUevent events[] = {buffer->copied, buffer->read};
		if (buffer->copied && neap__device_enter_to_free(e->device))
			NEAP__CUDA(cuEventSynchronize, (buffer->copied));
		if (buffer->at)
			m->unmap(m->user, buffer->at, buffer->bytes);
		neap__pinned_free(e->device, buffer->pinned);
		for (int k = 0; k < 2; k++)
			if (events[k] && neap__device_enter_to_free(e->device))
				NEAP__CUDA(cuEventDestroy, (events[k]));
		*buffer = (struct neap__input_range){0};
	}
	e->current = -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_record.c: ranges of steps of a net on a device. A tape is a head and rounds, as the CPU's
 * (nn/step_functions.c), but a round has all samples of a layer next to each other, because a block
 * of threads reads one sample: its head, the offsets [layers][samples][steps + 1], the outputs of
 * the readout where its errors need them, and the tapes of each layer, without gaps.
 *
 * A round is first written to rooms of equal size for all samples. Where a room is full, the sample
 * stops; the range is then run once more from the old state, as far as all samples came.
 */
#include "device/device_backend.h"
#include "device/readout_steps.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 64 };

struct device_tape_head {
	uint64_t last; /* offset of the last round */
	uint64_t bytes;
};

struct device_round_head {
	uint64_t previous; /* offset of the round before; 0: none */
	int64_t t0, t1;
	uint64_t outputs_at;
	uint64_t layer_at[]; /* offsets of the layers' tapes from here */
};

static size_t head_bytes(const struct neap__device_backend *b)
{
	size_t layers = (size_t)b->batch.net.layers;
	return sizeof(struct device_round_head) + layers * sizeof(uint64_t);
}

/* Bytes of a round of n steps without the tapes of the layers. */
static size_t fixed_bytes(const struct neap__device_backend *b, int64_t n)
{
	const struct neap__device_net *net = &b->batch.net;
	size_t samples = (size_t)net->batch.samples, steps = (size_t)n;
	size_t offsets = (size_t)net->layers * samples * (steps + 1) * sizeof(u32);
	size_t outputs = steps * samples * (size_t)net->readout.classes * sizeof(float);

	return (size_t)neap__round_up(head_bytes(b) + offsets, ALIGNED) +
	       (net->has_errors ? (size_t)neap__round_up(outputs, ALIGNED) : 0);
}

size_t neap__device_tape_max(const struct neap__device_backend *b)
{
	const struct neap__device_net *net = &b->batch.net;
	size_t bytes = ALIGNED + fixed_bytes(b, 1);

	for (int l = 0; l < net->layers; l++)
		bytes += (size_t)neap__round_up(
			(uint64_t)net->batch.samples * neap__device_tape_most(&net->lif[l]),
			ALIGNED);
	return bytes;
}

static const struct neap_memory_ops *memory_of(const struct neap__device_backend *b)
{
	return b->batch.memory;
}

/* The tapes of a call forward, in the rooms of the batch. */
static struct neap__device_tapes rooms_of(const struct neap__device_backend *b, int64_t t0,
	int64_t t1, struct neap__device_layer_tapes *layer)
{
	const struct neap__device_batch_memory *m = &b->batch;
	size_t samples = (size_t)m->net.batch.samples;

	for (int l = 0; l < m->net.layers; l++)
		layer[l] = (struct neap__device_layer_tapes){.tape = m->tape[l],
			.share = m->share[l],
			.offset =
				m->progress.offset + (size_t)l * samples * (NEAP__DEVICE_STEPS + 1),
			.done = m->progress.done + (size_t)l * samples,
			.near = m->progress.near + (size_t)l * samples};
	return (struct neap__device_tapes){
		.t0 = (int)t0, .t1 = (int)t1, .most = NEAP__DEVICE_STEPS, .layer = layer};
}

/* What runs a range: its steps have events, and there are no more than a launch takes. */
static int range_end(struct neap__device_backend *b, int64_t t, int64_t t1, int64_t *end)
{
	NEAP_TRY(neap__device_batch_events(&b->batch, b->net, t, end));
	*end = *end < t1 ? *end : t1;
	*end = *end < t + NEAP__DEVICE_STEPS ? *end : t + NEAP__DEVICE_STEPS;
	return 0;
}

/* Where the host computes a part of the readout: fetches the outputs and moves its sums on. */
static int keep_outputs(
	struct neap__device_backend *b, void *state, int64_t t0, int64_t t1, int first)
{
	const struct neap_memory_ops *m = memory_of(b);
	const struct neap__device_net *net = &b->batch.net;
	size_t outputs = (size_t)(t1 - t0) * (size_t)net->batch.samples *
			 (size_t)net->readout.classes * sizeof(float);
	unsigned char *copy = b->net->turn_room;

	if (!net->has_errors)
		return 0;
	NEAP_TRY(m->read(m->user, b->batch.host_outputs, b->batch.room.outputs, outputs));
	NEAP_TRY(m->read(m->user, copy, state, b->net->state_bytes));
	neap__device_keep_outputs(net, b->batch.host_outputs, (int)t0, (int)t1, first, copy);
	return m->write(m->user, state, copy, b->net->state_bytes);
}

int neap__device_advance(void *self, void *state, int64_t t0, int64_t t1, int first)
{
	struct neap__device_backend *b = self;

	for (int64_t t = t0, end; t < t1; t = end) {
		NEAP_TRY(range_end(b, t, t1, &end));
		NEAP_TRY(neap__device_forward(&b->batch.net, &b->launcher, &b->batch.room, state,
			(int)t, (int)end, NULL));
		if (first)
			NEAP_TRY(neap__device_count(
				&b->batch.net, &b->launcher, &b->batch.room, (int)t, (int)end));
		NEAP_TRY(keep_outputs(b, state, t, end, first));
	}
	return 0;
}

/* The offset, in its room, of the step t0 + n of a sample. */
static u32 offset_of(const struct neap__device_backend *b, int l, int s, int64_t n)
{
	size_t row = (size_t)l * (size_t)b->batch.net.batch.samples + (size_t)s;
	return b->batch.host.offset[row * (NEAP__DEVICE_STEPS + 1) + (size_t)n];
}

/* Bytes of a round of the first n steps that were written. */
static size_t round_bytes(const struct neap__device_backend *b, int64_t n)
{
	size_t all = fixed_bytes(b, n);

	for (int l = 0; l < b->batch.net.layers; l++) {
		uint64_t bytes = 0;
		for (int s = 0; s < b->batch.net.batch.samples; s++)
			bytes += offset_of(b, l, s, n);
		all += (size_t)neap__round_up(bytes, ALIGNED);
	}
	return all;
}

/* Writes the tapes of [t0, t1) to the rooms; *done: the step that all samples reached. */
static int write_rooms(
	struct neap__device_backend *b, void *state, int64_t t0, int64_t t1, int64_t *done)
{
	const struct neap_memory_ops *m = memory_of(b);
	struct neap__device_layer_tapes layer[b->batch.net.layers];
	struct neap__device_tapes tapes = rooms_of(b, t0, t1, layer);
	size_t rows = (size_t)b->batch.net.layers * (size_t)b->batch.net.batch.samples;

	NEAP_TRY(neap__device_forward(
		&b->batch.net, &b->launcher, &b->batch.room, state, (int)t0, (int)t1, &tapes));
	NEAP_TRY(m->read(
		m->user, b->batch.host.done, b->batch.progress.done, b->batch.progress.bytes));
	*done = t1;
	for (size_t i = 0; i < rows; i++)
		*done = b->batch.host.done[i] < *done ? b->batch.host.done[i] : *done;
	return 0;
}

/* What the net reports of tapes: their bytes, and the units inside the support. */
static void add_counts(const struct neap__device_backend *b, int64_t t0, int64_t t1, size_t bytes)
{
	const struct neap__device_net *net = &b->batch.net;
	struct neap__group *group = &b->net->groups[0];
	size_t rows = (size_t)net->layers * (size_t)net->batch.samples;
	int64_t steps = 0;

	for (int s = 0; s < net->batch.samples; s++) {
		int64_t length = b->net->batch->sequences[s].length;
		int64_t end = length < t1 ? length : t1;
		steps += end > t0 ? end - t0 : 0;
	}
	for (size_t i = 0; i < rows; i++)
		group->support += b->batch.host.near[i];
	group->recorded += (double)steps * b->net->hidden;
	group->tape_bytes += (double)bytes;
	group->tape_steps += (double)steps;
}

/* Moves the tapes of the rooms together behind the head of a round at `to`, and writes the head. */
static int pack_round(struct neap__device_backend *b, unsigned char *to, uint64_t previous,
	int64_t t0, int64_t t1)
{
	const struct neap_memory_ops *m = memory_of(b);
	const struct neap__device_net *net = &b->batch.net;
	size_t samples = (size_t)net->batch.samples, n = (size_t)(t1 - t0);
	size_t words = (size_t)net->layers * samples * (n + 1), at = fixed_bytes(b, t1 - t0);
	size_t outputs = n * samples * (size_t)net->readout.classes * sizeof(float);
	struct neap__device_layer_tapes layer[net->layers];
	struct neap__device_tapes tapes = rooms_of(b, t0, t1, layer);
	struct device_round_head *head = calloc(1, head_bytes(b) + words * sizeof(u32));
	int rc = 0;

	if (!head)
		return neap__fail_errno(ENOMEM, "the head of a tape");
	u32 *offset = (u32 *)(void *)((unsigned char *)head + head_bytes(b));
	head->previous = previous;
	head->t0 = t0;
	head->t1 = t1;
	head->outputs_at = net->has_errors ? at - neap__round_up(outputs, ALIGNED) : 0;
	for (int l = 0; l < net->layers; l++) {
		u32 used = 0;
		head->layer_at[l] = at;
		for (int s = 0; s < net->batch.samples; s++) {
			for (size_t i = 0; i <= n; i++)
				*offset++ = used + offset_of(b, l, s, (int64_t)i);
			used += offset_of(b, l, s, (int64_t)n);
		}
		at += (size_t)neap__round_up(used, ALIGNED);
	}
	rc = m->write(m->user, to, head, head_bytes(b) + words * sizeof(u32));
	if (rc == 0 && net->has_errors)
		rc = m->move(m->user, to + head->outputs_at, b->batch.room.outputs, outputs);
	if (rc == 0)
		rc = neap__device_pack(net, &b->launcher, &tapes, b->batch.packed);
	for (int l = 0; l < net->layers && rc == 0; l++)
		rc = m->move(m->user, to + head->layer_at[l], b->batch.tape[l],
			(l + 1 < net->layers ? head->layer_at[l + 1] : at) - head->layer_at[l]);
	free(head);
	return rc;
}

/* Records a round of at most [t, t1) that takes at most `room` bytes. */
static int record_round(struct neap__device_backend *b, void *state, int64_t t, int64_t t1,
	int first, unsigned char *to, size_t room, uint64_t previous, int64_t *done, size_t *bytes)
{
	const struct neap_memory_ops *m = memory_of(b);
	int64_t end, again;

	NEAP_TRY(range_end(b, t, t1, &end));
	NEAP_TRY(m->move(m->user, b->batch.second, state, b->net->state_bytes));
	NEAP_TRY(write_rooms(b, state, t, end, done));
	while (*done > t && round_bytes(b, *done - t) > room)
		--*done;
	if (*done <= t)
		return neap__fail(
			NEAP_EMODEL, "the tape of step %lld is larger than tape_max", (long long)t);
	if (*done < end) {
		NEAP_TRY(m->move(m->user, state, b->batch.second, b->net->state_bytes));
		NEAP_TRY(write_rooms(b, state, t, *done, &again));
	}
	*bytes = round_bytes(b, *done - t);
	add_counts(b, t, *done, *bytes - fixed_bytes(b, *done - t));
	if (first)
		NEAP_TRY(neap__device_count(
			&b->batch.net, &b->launcher, &b->batch.room, (int)t, (int)*done));
	NEAP_TRY(pack_round(b, to, previous, t, *done));
	return keep_outputs(b, state, t, *done, first);
}

int neap__device_record(void *self, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = memory_of(b);
	struct device_tape_head head = {.bytes = ALIGNED};
	size_t most = b->net->tape_max;
	int64_t t = t0;

	*used = 0;
	*t_done = t0;
	if (room < most)
		return 0;
	/* `most` has the head of the tape in it. */
	while (t < t1 && (t == t0 || room - head.bytes >= most)) {
		size_t bytes = 0;
		int64_t done = t;
		NEAP_TRY(record_round(b, state, t, t1, first, (unsigned char *)tape + head.bytes,
			room - head.bytes, head.last, &done, &bytes));
		head.last = head.bytes;
		head.bytes += bytes;
		t = done;
	}
	NEAP_TRY(m->write(m->user, tape, &head, sizeof head));
	*used = head.bytes;
	*t_done = t;
	return 0;
}

/* The errors of a readout whose loss the host computes, by the outputs on tape. */
static int send_errors(struct neap__device_backend *b, const unsigned char *outputs,
	int64_t round_t0, int64_t t0, int64_t t1)
{
	const struct neap_memory_ops *m = memory_of(b);
	const struct neap__device_net *net = &b->batch.net;
	size_t row = (size_t)net->batch.samples * (size_t)net->readout.classes * sizeof(float);
	const unsigned char *turned =
		(const unsigned char *)b->net->turn_room + b->net->state_bytes;

	if (!net->has_errors)
		return 0;
	NEAP_TRY(m->read(m->user, b->batch.host_outputs, outputs + (size_t)(t0 - round_t0) * row,
		(size_t)(t1 - t0) * row));
	neap__device_errors(net, b->batch.host_outputs, (int)t0, (int)t1, turned,
		b->batch.host_errors, b->batch.work);
	return m->write(
		m->user, b->batch.room.errors, b->batch.host_errors, (size_t)(t1 - t0) * row);
}

/* Reverses a round, by gradient blocks. */
static int reverse_round(struct neap__device_backend *b, void *adjoint, const unsigned char *at,
	const struct device_round_head *head)
{
	const struct neap__device_net *net = &b->batch.net;
	size_t samples = (size_t)net->batch.samples, n = (size_t)(head->t1 - head->t0);
	struct neap__device_layer_tapes layer[net->layers];
	struct neap__device_tapes tapes = {
		.t0 = (int)head->t0, .t1 = (int)head->t1, .most = (int)n, .layer = layer};
	const u32 *offset = (const u32 *)(const void *)(at + head_bytes(b));

	for (int l = 0; l < net->layers; l++)
		layer[l] = (struct neap__device_layer_tapes){
			.tape = (u8 *)(uintptr_t)(at + head->layer_at[l]),
			.offset = (u32 *)(uintptr_t)(offset + (size_t)l * samples * (n + 1))};
	for (int64_t t1 = head->t1, t0, to; t1 > head->t0; t1 = t0) {
		t0 = (t1 - 1) / NEAP__DEVICE_STEPS * NEAP__DEVICE_STEPS;
		t0 = t0 > head->t0 ? t0 : head->t0;
		NEAP_TRY(neap__device_batch_events(&b->batch, b->net, t1 - 1, &to));
		if (t0 < b->batch.events_from)
			t0 = b->batch.events_from;
		NEAP_TRY(send_errors(b, at + head->outputs_at, head->t0, t0, t1));
		NEAP_TRY(neap__device_backward(&b->batch.net, &b->launcher, &b->batch.room, adjoint,
			(int)t1, (int)t0, &tapes));
		b->unfolded = t0 % NEAP__DEVICE_STEPS != 0;
	}
	return 0;
}

int neap__device_reverse(void *self, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct neap__device_backend *b = self;
	const struct neap_memory_ops *m = memory_of(b);
	struct device_round_head *round = malloc(head_bytes(b));
	struct device_tape_head head = {0};
	int rc = round ? 0 : neap__fail_errno(ENOMEM, "the head of a tape");

	if (rc == 0 && t0 < t1)
		rc = m->read(m->user, &head, tape, sizeof head);
	for (uint64_t at = head.last; at && rc == 0 && t1 > t0;) {
		const unsigned char *from = (const unsigned char *)tape + at;
		rc = m->read(m->user, round, from, head_bytes(b));
		if (rc == 0 && (round->t1 != t1 || round->t0 < t0 || round->t0 >= t1))
			rc = neap__fail(NEAP_EMODEL,
				"the tape has steps %lld to %lld, but steps %lld to %lld are to be "
				"reversed",
				(long long)round->t0, (long long)round->t1, (long long)t0,
				(long long)t1);
		if (rc == 0)
			rc = reverse_round(b, adjoint, from, round);
		t1 = round->t0;
		at = round->previous;
	}
	free(round);
	NEAP_TRY(rc);
	if (t1 != t0)
		return neap__fail(NEAP_EMODEL,
			"the tape begins at step %lld, but step %lld was expected", (long long)t1,
			(long long)t0);
	return 0;
}

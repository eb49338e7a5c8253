/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_record.c: ranges of steps of a net on a device, forward. Tapes have the form of
 * tape_rounds.h. A round is first written to rooms of equal size for all samples; the device then
 * tells the host how many bytes each sample has written, and the host where they go. Where a room
 * is full, the sample stops; the range is then run once more from the old state, as far as all
 * samples came.
 */
#include "device/device_backend.h"
#include "device/port_steps.h"
#include "device/readout_steps.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED = NEAP__DEVICE_ALIGNED };

/* Rows of what is reported of layers and samples. */
static size_t rows_of(const struct neap__device_backend *b)
{
	return (size_t)b->batch.net.layers * (size_t)b->batch.net.batch.samples;
}

/* Bytes of numbers of the readout of n steps on tape: of its outputs, or of its factors. */
static size_t readout_bytes(const struct neap__device_backend *b, int64_t n)
{
	const struct neap__device_net *net = &b->batch.net;
	size_t row = (size_t)net->batch.samples * (size_t)net->readout.classes * sizeof(float);

	return (size_t)neap__round_up((size_t)n * row, ALIGNED);
}

size_t neap__device_round_outputs(const struct neap__device_backend *b, int64_t n)
{
	return b->batch.net.has_errors ? readout_bytes(b, n) : 0;
}

static size_t factor_bytes(const struct neap__device_backend *b, int64_t n)
{
	return b->batch.net.readout.learned ? readout_bytes(b, n) : 0;
}

/* Bytes of a round of n steps before the outputs, and before the tapes of the layers. */
static size_t head_bytes(const struct neap__device_backend *b, int64_t n)
{
	size_t words = rows_of(b) * (size_t)(n + 2); /* starts and offsets */
	return (size_t)neap__round_up(
		neap__device_round_head(b->batch.net.layers) + words * sizeof(u32), ALIGNED);
}

static size_t fixed_bytes(const struct neap__device_backend *b, int64_t n)
{
	return head_bytes(b, n) + neap__device_round_outputs(b, n) + factor_bytes(b, n);
}

size_t neap__device_tape_max(const struct neap__device_backend *b)
{
	const struct neap__device_net *net = &b->batch.net;
	size_t bytes = ALIGNED + fixed_bytes(b, 1);

	for (int l = 0; l < net->layers; l++)
		bytes += (size_t)neap__round_up(
			(uint64_t)net->batch.samples * neap__device_tape_most(net, l), ALIGNED);
	return bytes;
}

/* The tapes of a call forward, in the rooms of the batch. */
static struct neap__device_tapes rooms_of(const struct neap__device_backend *b, int64_t t0,
	int64_t t1, struct neap__device_layer_tapes *layer)
{
	const struct neap__device_batch_memory *m = &b->batch;
	size_t samples = (size_t)m->net.batch.samples, steps = (size_t)m->room.steps;

	for (int l = 0; l < m->net.layers; l++)
		layer[l] = (struct neap__device_layer_tapes){.tape = m->tape[l],
			.share = m->share[l],
			.offset = m->offset + (size_t)l * samples * (steps + 1),
			.done = m->progress.done + (size_t)l * samples,
			.bytes = m->progress.bytes + (size_t)l * samples,
			.near = m->progress.near + (size_t)l * samples};
	return (struct neap__device_tapes){.t0 = (int)t0,
		.t1 = (int)t1,
		.most = m->room.steps,
		.factors = m->room.factors,
		.layer = layer};
}

/* What runs a range: its steps have events, and there are no more than a launch takes. */
static int range_end(struct neap__device_backend *b, int64_t t, int64_t t1, int64_t *end)
{
	NEAP_TRY(neap__device_events_need(&b->batch.events, b->net, &b->batch.net.batch, t, end));
	*end = *end < t1 ? *end : t1;
	*end = *end < t + b->launch_steps ? *end : t + b->launch_steps;
	return 0;
}

/* Where the host computes a part of the readout: fetches the outputs and moves its sums on. */
static int keep_outputs(
	struct neap__device_backend *b, void *state, int64_t t0, int64_t t1, int first)
{
	const struct neap_memory_ops *m = b->batch.memory;
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

/* A first pass over [t0, t1) counts spikes, and writes the outputs of a caller. */
static int finish_first(const struct neap__device_backend *b, int64_t t0, int64_t t1)
{
	const struct neap__device_net *net = &b->batch.net;

	NEAP_TRY(neap__device_count(net, &b->launcher, &b->batch.room, (int)t0, (int)t1));
	return neap__device_port_outputs(net, &b->launcher, &b->batch.room, (int)t0, (int)t1);
}

/* Advances, and writes the log of each step unless `log` is NULL. */
static int advance(
	struct neap__device_backend *b, void *state, int64_t t0, int64_t t1, int first, u8 *log)
{
	const struct neap__device_net *net = &b->batch.net;

	for (int64_t t = t0, end; t < t1; t = end) {
		NEAP_TRY(range_end(b, t, t1, &end));
		NEAP_TRY(neap__device_forward(
			net, &b->launcher, &b->batch.room, state, (int)t, (int)end, NULL));
		if (first)
			NEAP_TRY(finish_first(b, t, end));
		NEAP_TRY(keep_outputs(b, state, t, end, first));
		if (!log)
			continue;
		NEAP_TRY(neap__device_write_log(
			net, &b->launcher, &b->batch.room, (int)t, (int)end, log));
		log += (size_t)(end - t) * neap__device_log_row(net);
	}
	return 0;
}

int neap__device_advance(void *self, void *state, int64_t t0, int64_t t1, int first)
{
	return advance(self, state, t0, t1, first, NULL);
}

int neap__device_advance_log(void *self, void *state, int64_t t0, int64_t t1, int first, void *log,
	size_t room, size_t *used, int64_t *t_done)
{
	struct neap__device_backend *b = self;
	size_t row = neap__device_log_row(&b->batch.net), steps = room / row;

	*t_done = (uint64_t)(t1 - t0) > steps ? t0 + (int64_t)steps : t1;
	*used = (size_t)(*t_done - t0) * row;
	return advance(b, state, t0, *t_done, first, log);
}

/* What the net reports of tapes: their bytes, and the units inside the support. */
static void add_counts(const struct neap__device_backend *b, int64_t t0, int64_t t1, size_t bytes)
{
	const struct neap__device_net *net = &b->batch.net;
	struct neap__group *group = &b->net->groups[0];
	int64_t steps = 0;

	for (int s = 0; s < net->batch.samples; s++) {
		int64_t length = b->net->batch->sequences[s].length;
		int64_t end = length < t1 ? length : t1;
		steps += end > t0 ? end - t0 : 0;
	}
	for (size_t i = 0; i < rows_of(b); i++)
		group->support += b->batch.host.near[i];
	group->recorded += (double)steps * net->near_units;
	group->tape_bytes += (double)bytes;
	group->tape_steps += (double)steps;
}

/* Bytes of a round of n steps whose tapes have `bytes`[layers][samples]. */
static size_t round_bytes(const struct neap__device_backend *b, int64_t n, const u32 *bytes)
{
	size_t all = fixed_bytes(b, n);

	for (int l = 0; l < b->batch.net.layers; l++) {
		uint64_t layer = 0;
		for (int s = 0; s < b->batch.net.batch.samples; s++)
			layer += *bytes++;
		all += (size_t)neap__round_up(layer, ALIGNED);
	}
	return all;
}

/*
 * Writes the tapes of [t0, t1) to the rooms, from the log of these steps unless it is NULL, and
 * waits for what the device tells of them; *done: the step that all samples reached.
 */
static int write_rooms(struct neap__device_backend *b, void *state, int64_t t0, int64_t t1,
	int first, const u8 *log, int64_t *done)
{
	struct neap__device_batch_memory *m = &b->batch;
	struct neap__device_layer_tapes layer[m->net.layers];
	struct neap__device_tapes tapes = rooms_of(b, t0, t1, layer);

	if (log)
		NEAP_TRY(neap__device_replay(
			&m->net, &b->launcher, &m->room, state, (int)t0, (int)t1, &tapes, log));
	else
		NEAP_TRY(neap__device_forward(
			&m->net, &b->launcher, &m->room, state, (int)t0, (int)t1, &tapes));
	NEAP_TRY(neap__device_fetch(
		b->device, m->host.done, m->progress.done, 3 * rows_of(b) * sizeof(u32)));
	NEAP_TRY(NEAP__CUDA(cuEventRecord, (b->told, b->device->compute)));
	if (first) /* a first pass goes on with the steps that follow */
		NEAP_TRY(neap__device_events_expect(&m->events, b->net, t1));
	NEAP_TRY(NEAP__CUDA(cuEventSynchronize, (b->told)));
	*done = t1;
	for (size_t i = 0; i < rows_of(b); i++)
		*done = m->host.done[i] < *done ? m->host.done[i] : *done;
	return 0;
}

/* How many of the first n steps in the rooms take at most `room` bytes as a round. */
static int steps_that_fit(struct neap__device_backend *b, int64_t *n, size_t room)
{
	const struct neap_memory_ops *m = b->batch.memory;
	size_t rows = rows_of(b), stride = (size_t)b->batch.room.steps + 1;
	u32 *offset = malloc(rows * stride * sizeof *offset);
	int rc = offset ? 0 : neap__fail_errno(ENOMEM, "offsets of tapes");

	if (rc == 0)
		rc = m->read(m->user, offset, b->batch.offset, rows * stride * sizeof *offset);
	for (int fits = 0; rc == 0 && !fits && *n > 0; *n -= !fits) {
		for (size_t i = 0; i < rows; i++)
			b->batch.host.bytes[i] = offset[i * stride + (size_t)*n];
		fits = round_bytes(b, *n, b->batch.host.bytes) <= room;
	}
	free(offset);
	return rc;
}

/* Moves the tapes of the rooms together behind the head of a round, and notes the round. */
static int pack_round(struct neap__device_backend *b, unsigned char *tape, uint64_t at,
	uint64_t previous, int64_t t0, int64_t t1)
{
	const struct neap__device_batch_memory *m = &b->batch;
	const struct neap__device_net *net = &m->net;
	size_t samples = (size_t)net->batch.samples, n = (size_t)(t1 - t0);
	size_t head = neap__device_round_head(net->layers), end = fixed_bytes(b, t1 - t0);
	size_t outputs = neap__device_round_outputs(b, t1 - t0);
	struct neap__device_layer_tapes layer[net->layers], to[net->layers];
	struct neap__device_tapes tapes = rooms_of(b, t0, t1, layer);
	u32 *start = (u32 *)(void *)((unsigned char *)m->round + head);
	const u32 *bytes = m->host.bytes;
	unsigned char *round = tape + at;
	u32 *offset = (u32 *)(void *)(round + head) + rows_of(b);

	*m->round = (struct neap__device_round){
		.previous = previous, .t0 = t0, .t1 = t1, .outputs_at = head_bytes(b, t1 - t0)};
	for (int l = 0; l < net->layers; l++) {
		u32 used = 0;
		m->round->layer_at[l] = end;
		to[l].tape = round + end;
		to[l].offset = offset + (size_t)l * samples * (n + 1);
		for (size_t s = 0; s < samples; s++) {
			*start++ = used;
			used += *bytes++;
		}
		end += (size_t)neap__round_up(used, ALIGNED);
	}
	NEAP_TRY(neap__device_send(b->device, round, m->round, head + rows_of(b) * sizeof(u32)));
	if (net->has_errors)
		NEAP_TRY(m->memory->move(
			m->memory->user, round + m->round->outputs_at, m->room.outputs, outputs));
	if (net->readout.learned)
		NEAP_TRY(m->memory->move(m->memory->user, round + m->round->outputs_at + outputs,
			m->room.factors, factor_bytes(b, t1 - t0)));
	NEAP_TRY(neap__device_pack(
		net, &b->launcher, &tapes, (const u32 *)(const void *)(round + head), to));
	return neap__round_list_add(&b->rounds, at, m->round);
}

/*
 * The step before which a round of a dense net that begins at t is full: its tapes have one size,
 * so that it is known before they are written.
 */
static int64_t dense_end(const struct neap__device_backend *b, int64_t t, int64_t t1, size_t room)
{
	const struct neap__device_net *net = &b->batch.net;
	int samples = net->batch.samples, is_full = 1;

	for (; is_full && t1 > t + 1; t1 -= is_full) {
		for (int l = 0; l < net->layers; l++)
			for (int s = 0; s < samples; s++) {
				int64_t end = b->net->batch->sequences[s].length;
				end = end < t1 ? end : t1;
				b->batch.host.bytes[l * samples + s] =
					end > t ? (u32)((uint64_t)(end - t) *
							  neap__device_tape_most(net, l))
						: 0;
			}
		is_full = round_bytes(b, t1 - t, b->batch.host.bytes) > room;
	}
	return t1;
}

/* A round that is recorded: `done` and `bytes` are set. */
struct recording {
	unsigned char *tape;
	const u8 *log; /* of step log_t0 and those that follow; NULL: there is none */
	int64_t log_t0;
	uint64_t at, previous; /* offsets of the round and of the one before */
	size_t room;
	int64_t done;
	size_t bytes;
};

/* Records a round of at most [t, t1). */
static int record_round(struct neap__device_backend *b, void *state, int64_t t, int64_t t1,
	int first, struct recording *r)
{
	const struct neap_memory_ops *m = b->batch.memory;
	size_t row = r->log ? neap__device_log_row(&b->batch.net) : 0;
	const u8 *log = r->log ? r->log + (size_t)(t - r->log_t0) * row : NULL;
	int64_t end, n;

	NEAP_TRY(range_end(b, t, t1, &end));
	if (b->batch.net.dense)
		end = dense_end(b, t, end, r->room);
	NEAP_TRY(m->move(m->user, b->batch.second, state, b->net->state_bytes));
	NEAP_TRY(write_rooms(b, state, t, end, first, log, &r->done));
	n = r->done - t;
	if (r->done < end) /* shorter launches from now on, since steps are run twice */
		b->launch_steps =
			n * 7 / 8 < DEVICE_BLOCK_STEPS
				? DEVICE_BLOCK_STEPS
				: (int)(n * 7 / 8 / DEVICE_BLOCK_STEPS * DEVICE_BLOCK_STEPS);
	if (r->done < end || round_bytes(b, n, b->batch.host.bytes) > r->room) {
		NEAP_TRY(steps_that_fit(b, &n, r->room));
		if (n <= 0)
			return neap__fail(NEAP_EMODEL,
				"the tape of step %lld is larger than tape_max", (long long)t);
		NEAP_TRY(m->move(m->user, state, b->batch.second, b->net->state_bytes));
		NEAP_TRY(write_rooms(b, state, t, t + n, 0, log, &r->done));
	}
	r->bytes = round_bytes(b, n, b->batch.host.bytes);
	add_counts(b, t, r->done, r->bytes - fixed_bytes(b, n));
	NEAP_TRY(pack_round(b, r->tape, r->at, r->previous, t, r->done));
	if (first)
		NEAP_TRY(finish_first(b, t, r->done));
	return keep_outputs(b, state, t, r->done, first);
}

/* Records [t0, t1) with the tape and the log of `r`, as far as there is room. */
static int record(struct neap__device_backend *b, void *state, int64_t t0, int64_t t1, int first,
	struct recording *r, size_t room, size_t *used, int64_t *t_done)
{
	size_t most = b->net->tape_max, end = ALIGNED;

	*used = 0;
	*t_done = t0;
	if (room < most || t0 >= t1)
		return 0;
	/* `most` has the head of the tape in it. */
	for (int64_t t = t0; t < t1 && (t == t0 || room - end >= most); t = *t_done) {
		r->at = end;
		r->room = room - end;
		NEAP_TRY(record_round(b, state, t, t1, first, r));
		r->previous = end;
		end += r->bytes;
		*t_done = r->done;
	}
	*b->batch.head = (struct neap__device_tape_head){.last = r->previous, .bytes = end};
	*used = end;
	return neap__device_send(b->device, r->tape, b->batch.head, sizeof *b->batch.head);
}

int neap__device_record(void *self, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct recording r = {.tape = tape};
	return record(self, state, t0, t1, first, &r, room, used, t_done);
}

int neap__device_record_log(void *self, void *state, int64_t t0, int64_t t1, const void *log,
	int64_t log_t0, void *tape, size_t room, size_t *used, int64_t *t_done)
{
	struct recording r = {.tape = tape, .log = log, .log_t0 = log_t0};

	if (t0 < log_t0)
		return neap__fail(NEAP_EMODEL,
			"the log begins at step %lld, but step %lld is to be replayed",
			(long long)log_t0, (long long)t0);
	return record(self, state, t0, t1, 0, &r, room, used, t_done);
}

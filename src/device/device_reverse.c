/* SPDX-License-Identifier: Apache-2.0 */
/* device_reverse.c: ranges of steps of a net on a device, backward (tape_rounds.h). */
#include "device/device_backend.h"
#include "device/readout_steps.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>

/*
 * The errors of a readout whose loss the host computes, of the steps of a round, from its outputs
 * on tape: waits for the device.
 */
static int send_errors(struct neap__device_backend *b, const unsigned char *at,
	const struct neap__device_round *round)
{
	const struct neap_memory_ops *m = b->batch.memory;
	const struct neap__device_net *net = &b->batch.net;
	size_t row = (size_t)net->batch.samples * (size_t)net->readout.classes * sizeof(float);
	size_t bytes = (size_t)(round->t1 - round->t0) * row;
	const unsigned char *turned =
		(const unsigned char *)b->net->turn_room + b->net->state_bytes;

	if (!net->has_errors)
		return 0;
	NEAP_TRY(m->read(m->user, b->batch.host_outputs, at + round->outputs_at, bytes));
	neap__device_errors(net, b->batch.host_outputs, (int)round->t0, (int)round->t1, turned,
		b->batch.host_errors, b->batch.work);
	return m->write(m->user, b->batch.room.errors, b->batch.host_errors, bytes);
}

/* Reverses a round, by gradient blocks. */
static int reverse_round(struct neap__device_backend *b, void *adjoint, const unsigned char *at,
	const struct neap__device_round *round)
{
	const struct neap__device_net *net = &b->batch.net;
	struct neap__device_room room = b->batch.room;
	size_t samples = (size_t)net->batch.samples, n = (size_t)(round->t1 - round->t0);
	size_t row = samples * (size_t)net->readout.classes;
	struct neap__device_layer_tapes layer[net->layers];
	struct neap__device_tapes tapes = {.t0 = (int)round->t0,
		.t1 = (int)round->t1,
		.most = (int)n,
		.factors = (float *)(uintptr_t)(at + round->outputs_at +
						neap__device_round_outputs(b, (int64_t)n)),
		.layer = layer};
	const u32 *offset = (const u32 *)(const void *)(at + neap__device_round_head(net->layers)) +
			    (size_t)net->layers * samples;

	for (int l = 0; l < net->layers; l++)
		layer[l] = (struct neap__device_layer_tapes){
			.tape = (u8 *)(uintptr_t)(at + round->layer_at[l]),
			.offset = (u32 *)(uintptr_t)(offset + (size_t)l * samples * (n + 1))};
	NEAP_TRY(send_errors(b, at, round));
	for (int64_t t1 = round->t1, t0, to; t1 > round->t0; t1 = t0) {
		t0 = (t1 - 1) / DEVICE_BLOCK_STEPS * DEVICE_BLOCK_STEPS;
		t0 = t0 > round->t0 ? t0 : round->t0;
		NEAP_TRY(neap__device_events_need(
			&b->batch.events, b->net, &b->batch.net.batch, t1 - 1, &to));
		if (t0 < net->batch.first_step)
			t0 = net->batch.first_step;
		if (room.errors)
			room.errors = b->batch.room.errors + (size_t)(t0 - round->t0) * row;
		NEAP_TRY(neap__device_backward(
			net, &b->launcher, &room, adjoint, (int)t1, (int)t0, &tapes));
		b->unfolded = t0 % DEVICE_BLOCK_STEPS != 0;
	}
	return 0;
}

/* Reads the heads of a tape that the device has, and notes them: waits for the device. */
static int read_rounds(struct neap__device_backend *b, const unsigned char *tape)
{
	const struct neap_memory_ops *m = b->batch.memory;
	size_t bytes = neap__device_round_head(b->batch.net.layers);
	struct neap__device_round *round = malloc(bytes);
	struct neap__device_tape_head head = {0};
	int rc = round ? m->read(m->user, &head, tape, sizeof head)
		       : neap__fail_errno(ENOMEM, "the head of a tape");

	for (uint64_t at = head.last; at && rc == 0; at = round->previous) {
		rc = m->read(m->user, round, tape + at, bytes);
		if (rc == 0 && round->t0 < round->t1)
			rc = neap__round_list_add(&b->rounds, at, round);
		else if (rc == 0)
			rc = neap__fail(NEAP_EMODEL, "the tape has a round without steps");
	}
	free(round);
	return rc;
}

/* While the device computes the last steps of a batch: the inputs of the next one. */
static int copy_ahead(struct neap__device_backend *b)
{
	struct neap_net *net = b->net;
	const struct neap_batch *next = net->ahead.ask ? net->ahead.ask(net->ahead.user) : NULL;

	if (!next || next == net->ahead.copied || next->size == 0 || next->steps == 0)
		return 0;
	net->ahead.copied = NULL;
	NEAP_TRY(neap__device_events_follow(&b->batch.events, next));
	net->ahead.copied = next;
	return 0;
}

int neap__device_reverse(void *self, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct neap__device_backend *b = self;
	uint64_t at = 0;

	if (t0 >= t1)
		return 0;
	if (!neap__round_list_has(&b->rounds, t0, t1)) {
		NEAP_TRY(read_rounds(b, tape));
		if (!neap__round_list_has(&b->rounds, t0, t1))
			return neap__fail(NEAP_EMODEL,
				"the tape does not have the steps %lld to %lld, which are to be "
				"reversed",
				(long long)t0, (long long)t1);
	}
	for (int64_t t = t1; t > t0;) {
		const struct neap__device_round *round = neap__round_list_find(&b->rounds, t, &at);
		NEAP_TRY(reverse_round(b, adjoint, (const unsigned char *)tape + at, round));
		t = round->t0;
	}
	return t0 == 0 ? copy_ahead(b) : 0;
}

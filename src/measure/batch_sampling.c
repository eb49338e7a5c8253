/* SPDX-License-Identifier: Apache-2.0 */
/* batch_sampling.c: cuts a batch; records ranges spread over all of it and over its first steps. */
#include "measure/batch_sampling.h"
#include "nn/core/on_device.h"
#include "nn/step_memory.h"
#include "base/checked.h"
#include "base/fail.h"
#include "data/windows.h"
#include "store/tier_cost.h"
#include "sys/clock.h"

enum {
	RANGES = 64,
	LENGTH = 256, /* steps recorded of a range */
	BEFORE = 256, /* steps that the net runs before, from rest, to become as active as usual */
	BLOCK = 64    /* steps of a record call, a block of tape_sizes.h */
};

struct neap_batch neap__batch_cut(
	const struct neap_batch *batch, struct neap_sequence *sequences, int64_t steps)
{
	struct neap_batch cut = *batch;

	cut.sequences = sequences;
	cut.steps = batch->steps < steps ? batch->steps : steps;
	for (int i = 0; i < batch->size; i++) {
		sequences[i] = batch->sequences[i];
		if (sequences[i].length > cut.steps)
			sequences[i].length = cut.steps;
	}
	return cut;
}

struct sample_buffers {
	char *state, *tape;
	size_t state_bytes, tape_bytes;
};

static double waited(const struct neap_batch *batch)
{
	return batch->windows ? neap_windows_waited(batch->windows) : 0;
}

/*
 * Runs BEFORE steps from rest and records [t, t + LENGTH), as steps [at, at + LENGTH) of `tapes`
 * (may be NULL). Adds the seconds of recording, without waits for inputs, to *seconds.
 */
static int record_range(struct neap__tape_sizes *tapes, struct neap_net *net,
	const struct neap_batch *batch, const struct sample_buffers *rooms, int64_t t, int64_t at,
	double *seconds)
{
	int64_t end = t + LENGTH, done = t;
	size_t used;

	NEAP_TRY(neap__step_memory_zero(neap__net_memory(net), rooms->state, rooms->state_bytes));
	NEAP_TRY(neap_net_advance(net, rooms->state, t < BEFORE ? 0 : t - BEFORE, t, 0));
	NEAP_TRY(neap__net_wait(net));
	if (batch->windows) /* the next window, whose reader would take a processor */
		neap__windows_settle(batch->windows);
	double start = neap__seconds() - waited(batch);
	for (; t < end; at += done - t, t = done) {
		int64_t t1 = (t / BLOCK + 1) * BLOCK;
		NEAP_TRY(neap_net_record(net, rooms->state, t, t1 < end ? t1 : end, 0, rooms->tape,
			rooms->tape_bytes, &used, &done));
		if (done <= t)
			return neap__fail(NEAP_EMODEL, "a tape of %zu bytes holds no step",
				rooms->tape_bytes);
		if (tapes)
			neap__tape_sizes_add(tapes, at, at + done - t, used);
	}
	NEAP_TRY(neap__net_wait(net));
	*seconds += neap__seconds() - waited(batch) - start;
	return 0;
}

/* First step of the i-th range, where all are spread over the first `steps` steps. */
static int64_t place(int i, int64_t steps)
{
	return (int64_t)((double)((steps - LENGTH) / BLOCK) * (i + 0.5) / RANGES) * BLOCK;
}

int neap__batch_sampling_measure(struct neap__tape_sizes *tapes, double *cost_ratio,
	struct neap_net *net, const struct neap_batch *batch, int64_t first, uint64_t memory)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	struct sample_buffers rooms;
	void *pages;

	NEAP_TRY(neap__tape_sizes_make(tapes, RANGES * LENGTH));
	neap_net_get_sizes(net, &sizes);
	rooms.state_bytes = (size_t)neap__round_up(sizes.state, 64);
	uint64_t tape = neap__sat_mul(sizes.tape_max, BLOCK);
	uint64_t most =
		neap__sat_add(neap__sat_add(sizes.state, sizes.tape_max), NEAP__MEASURE_MOST);
	memory = memory < most ? memory : most;
	uint64_t left = memory > rooms.state_bytes ? memory - rooms.state_bytes : 0;
	tape = tape < left ? tape : left;
	if (tape < sizes.tape_max)
		return neap__fail(
			NEAP_EINFEASIBLE, "%llu bytes hold no step", (unsigned long long)memory);
	rooms.tape_bytes = (size_t)tape;
	size_t bytes = (size_t)neap__sat_add(rooms.state_bytes, tape);
	NEAP_TRY(neap__step_memory_map(neap__net_memory(net), &pages, bytes));
	rooms.state = pages;
	rooms.tape = rooms.state + rooms.state_bytes;
	double all = 0, begin = 0;
	int rc = 0;
	for (int i = 0; i < RANGES && rc == 0; i++) {
		rc = record_range(tapes, net, batch, &rooms, place(i, batch->steps),
			(int64_t)i * LENGTH, &all);
		if (rc == 0)
			rc = record_range(NULL, net, batch, &rooms, place(i, first), 0, &begin);
	}
	*cost_ratio = begin > 0 ? all / begin : 1;
	neap__step_memory_unmap(neap__net_memory(net), pages, bytes);
	return rc;
}

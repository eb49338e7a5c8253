/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_total.c: what a training takes as a process. With a total, arenas get what the rest of the
 * process leaves: reckoned before the first sweep, and looked at again before each batch.
 */
#include "train/trainer.h"
#include "data/loader_memory.h"
#include "measure/process_memory.h"
#include "nn/batch/batch_groups.h"
#include "nn/batch/peer_sum.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/memory.h"

#define PLANNING_GUESS ((uint64_t)2 << 20) /* before the first plan was made */

static int inputs_most(struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	uint64_t bytes;

	trainer->memory.inputs = 0;
	NEAP_TRY(neap__loader_most(d->loader, &bytes));
	trainer->memory.inputs = bytes;
	if (d->validation) {
		NEAP_TRY(neap__loader_most(d->validation, &bytes));
		trainer->memory.inputs = neap__sat_add(trainer->memory.inputs, bytes);
	}
	return 0;
}

/* Samples of batches to come, of all ranks: whole ones, and the last ones. */
static void batch_sizes(const struct neap__trainer *trainer, int size[NEAP__PROCESS_BATCHES])
{
	const int64_t count[] = {trainer->data.nfirst, trainer->data.nsecond, trainer->data.ntest};
	const int batch = trainer->options.batch;

	for (int i = 0; i < 3; i++) {
		size[2 * i] = count[i] < batch ? (int)count[i] : batch;
		size[2 * i + 1] = (int)(count[i] % batch);
	}
}

/* The tables of labels and answers, of validation and of the test, that are still to come. */
static uint64_t confusion_bytes(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	uint64_t classes = (uint64_t)trainer->options.net.classes;

	if (d->info.target == NEAP_TARGET_NUMBERS || d->info.target == NEAP_TARGET_SERIES)
		return 0;
	const struct neap_train_result *r = trainer->result;
	uint64_t tables =
		(d->validation && !r->validation.confusion) + (d->test && !r->test.confusion);
	return neap__sat_mul(tables * sizeof(int64_t), neap__sat_mul(classes, classes));
}

static struct neap__process_parts parts_of(const struct neap__trainer *trainer)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};

	neap_net_get_sizes(trainer->net, &sizes);
	struct neap__process_parts parts = {.net = trainer->net,
		.optimizer = trainer->optimizer.bytes,
		.inputs = trainer->memory.inputs,
		.planning = trainer->memory.planning,
		/* Validation runs beside the arena, unless a total asks for its release. */
		.beside = neap__sat_add(confusion_bytes(trainer),
			trainer->options.sweep.memory_total
				? 0
				: neap__sat_add(sizes.state, sizes.adjoint)),
		.arena = neap_sweep_mapped(trainer->sweep),
		.tiers = &trainer->tiers};
	batch_sizes(trainer, parts.batch);
	return parts;
}

/* Bytes that a file takes while it is read: the snapshot before the first sweep, or the model. */
static uint64_t reading(const struct neap__trainer *trainer)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};

	neap_net_get_sizes(trainer->net, &sizes);
	uint64_t moments = trainer->options.resume ? trainer->optimizer.bytes : 0;
	if (trainer->ranks.peers && neap__ranks_root(&trainer->ranks)) /* for every snapshot */
		moments = neap__sat_add(
			moments, neap__optimizer_all_bytes(&trainer->optimizer, trainer->net));
	return neap__sat_add(sizes.weights, moments);
}

/* Shares the total out anew; the arena never gets more than it had. */
static int share(struct neap__trainer *trainer)
{
	const struct neap_sweep_settings *s = &trainer->options.sweep;
	struct neap__process_parts parts = parts_of(trainer);

	NEAP_TRY(neap__process_memory_share(
		&trainer->memory, &parts, s->memory_total, trainer->planning.memory));
	if (s->memory_total)
		trainer->planning.memory = trainer->memory.arena;
	return 0;
}

/* Makes room for exchanges with other ranks, so that it counts as what the process holds. */
static int make_peer_room(struct neap__trainer *trainer)
{
	int size[NEAP__PROCESS_BATCHES], samples = 1, groups = 1;

	if (!trainer->ranks.peers)
		return 0;
	batch_sizes(trainer, size);
	for (int i = 0; i < NEAP__PROCESS_BATCHES; i++) {
		int n = size[i] > 0 ? size[i] : 1;
		int cut = (n - 1) / neap_net_group(trainer->net, n) + 1;
		samples = n > samples ? n : samples;
		groups = cut > groups ? cut : groups;
	}
	return neap__peer_room_make(trainer->net, trainer->ranks.peers, samples, groups);
}

int neap__memory_total_begin(struct neap__trainer *trainer, const struct neap_batch *batch)
{
	const struct neap_sweep_settings *s = &trainer->options.sweep;

	trainer->planning.memory = neap__memory_budget(s);
	if (!s->memory) /* half of what is free, which ranks on one machine share */
		trainer->planning.memory /= (uint64_t)trainer->ranks.crowd;
	if (s->memory_total && !s->memory)
		trainer->planning.memory = s->memory_total;
	NEAP_TRY(inputs_most(trainer));
	NEAP_TRY(make_peer_room(trainer));
	NEAP_TRY(neap_net_begin(trainer->net, batch, &trainer->objective));
	trainer->memory.planning = reading(trainer);
	if (trainer->memory.planning < PLANNING_GUESS)
		trainer->memory.planning = PLANNING_GUESS;
	int rc = share(trainer);
	int ended = neap_net_end(trainer->net);
	NEAP_TRY(rc);
	NEAP_TRY(ended);
	neap__tiers_lend(&trainer->tiers, trainer->planning.memory);
	return 0;
}

void neap__memory_total_watch(struct neap__trainer *trainer)
{
	neap__resident_reset();
	trainer->planning.resident = neap__resident_peak();
}

int neap__memory_total_planned(struct neap__trainer *trainer)
{
	uint64_t peak = neap__resident_peak(), before = trainer->planning.resident;
	uint64_t took = peak > before ? peak - before : 0, was = trainer->planning.memory;

	took += took / 4;
	if (took > trainer->memory.planning)
		trainer->memory.planning = took;
	NEAP_TRY(share(trainer));
	return trainer->planning.memory < was;
}

int neap__memory_total_say(struct neap__trainer *trainer)
{
	const struct neap_sweep_settings *s = &trainer->options.sweep;
	char line[NEAP__PROCESS_LINE];

	NEAP_TRY(neap__process_memory_peak(&trainer->memory));
	neap__process_memory_line(
		line, &trainer->memory, (s->memory && !trainer->keeps_memory) || s->memory_total);
	neap__trainer_say(trainer, "%s", line);
	return 0;
}

void neap__memory_total_release(struct neap__trainer *trainer)
{
	if (trainer->options.sweep.memory_total)
		neap_sweep_release(trainer->sweep);
}

void neap__memory_total_before(struct neap__trainer *trainer)
{
	struct neap__process_parts parts = parts_of(trainer);

	if (trainer->options.sweep.memory_total &&
		neap__process_memory_left(&trainer->memory, &parts) <
			neap__sat_add(parts.arena, neap__net_growth(trainer->net, parts.batch,
							   NEAP__PROCESS_BATCHES, 1)))
		neap_sweep_release(trainer->sweep);
}

int neap__memory_total_batch(struct neap__trainer *trainer)
{
	struct neap__process_parts parts = parts_of(trainer);

	if (!trainer->options.sweep.memory_total)
		return 0;
	uint64_t left = neap__process_memory_left(&trainer->memory, &parts);
	if (left >= trainer->planning.memory)
		return 0;
	if (left == 0)
		return neap__process_memory_refuse(&trainer->memory, trainer->planning.memory);
	trainer->planning.memory = left;
	return 1;
}

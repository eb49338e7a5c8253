/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_total.c: what a training takes as a process. With a total, arenas get what the rest of the
 * process leaves: reckoned before the first sweep, and looked at again before each batch.
 */
#include "train/trainer.h"
#include "data/loader_memory.h"
#include "measure/process_memory.h"
#include "nn/batch/batch_groups.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
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
		.arena = trainer->net->device ? 0 : neap_sweep_mapped(trainer->sweep),
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

	NEAP_TRY(neap__process_memory_share(&trainer->memory, &parts, s->memory_total,
		trainer->net->device ? 0 : trainer->planning.memory));
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

/* Half of what is free, which ranks on one machine, or on one of its devices, share. */
static int choose_budget(struct neap__trainer *trainer)
{
	struct neap_sweep_settings *s = &trainer->options.sweep;
	struct neap_device_use *use = &trainer->result->device;
	int sharing = trainer->ranks.crowd;
	uint64_t half;

	NEAP_TRY(neap__on_device_use(trainer->net, use, NULL));
	if (use->devices)
		sharing = (trainer->ranks.hosted + use->devices - 1) / use->devices;
	NEAP_TRY(neap__memory_half(&half, trainer->net));
	/* Half of the memory of one side may be more than the other one has. */
	if (trainer->keeps_memory && trainer->other_side && s->memory > half) {
		s->memory = 0;
		trainer->keeps_memory = 0;
	}
	trainer->planning.memory = s->memory ? s->memory : half;
	if (!s->memory)
		trainer->planning.memory /= (uint64_t)sharing;
	if (s->memory_total && !s->memory)
		trainer->planning.memory = s->memory_total;
	return 0;
}

int neap__memory_device_beside(struct neap__trainer *trainer)
{
	struct neap_device_use now;
	struct neap_net_sizes sizes = {.size = sizeof sizes};

	NEAP_TRY(neap__on_device_use(trainer->net, &now, &trainer->planning.beside));
	trainer->result->device.allocated = now.allocated;
	neap_net_get_sizes(trainer->net, &sizes);
	if (now.total && trainer->data.validation)
		trainer->planning.beside += neap__round_up(sizes.state, 4096);
	return 0;
}

int neap__memory_device_end(struct neap__trainer *trainer)
{
	struct neap_device_use *use = &trainer->result->device, before = *use;
	uint64_t planned = trainer->planning.beside + trainer->result->arena_bytes;

	if (!use->total)
		return 0;
	NEAP_TRY(neap__on_device_use(trainer->net, use, NULL));
	use->free = before.free;
	use->joules = before.joules;
	use->planned = planned > before.allocated ? planned : before.allocated;
	return 0;
}

int neap__memory_total_begin(struct neap__trainer *trainer, const struct neap_batch *batch)
{
	const struct neap_sweep_settings *s = &trainer->options.sweep;

	NEAP_TRY(neap__device_total_refuse(s, trainer->net));
	NEAP_TRY(choose_budget(trainer));
	NEAP_TRY(inputs_most(trainer));
	NEAP_TRY(make_peer_room(trainer));
	NEAP_TRY(neap_net_begin(trainer->net, batch, &trainer->objective));
	NEAP_TRY(neap__device_budget_check(s, trainer->net, trainer->planning.memory));
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
	neap__process_memory_line(line, &trainer->memory,
		(s->memory && !trainer->keeps_memory) || s->memory_total || trainer->net->device);
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

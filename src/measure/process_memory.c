/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_memory.c: adds up what the process takes at most: what it holds now, touched or not, and
 * what will come. The system is asked for the former, so that libraries and scratch memory count
 * as well as what is listed here by name.
 */
#include "measure/process_memory.h"
#include "data/loader_memory.h"
#include "nn/core/net_state.h"
#include "nn/batch/batch_groups.h"
#include "store/tier_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/show.h"
#include "sys/memory.h"
#include "sys/pool.h"

#include <string.h>

/*
 * Beyond the heap, maps and the parts of files that are resident: pages of libraries still to be
 * read, their data, stacks of threads. Twice what runs were seen to take.
 */
#define LIBRARIES ((uint64_t)4 << 20)
#define REFUSED ((uint64_t)1 << 20) /* by which two runs of the same settings may differ */
#define THREAD ((uint64_t)128 << 10)
/* Heap that lies free between what is used: a share of the heap, and a constant. */
enum { FREE_SHARE = 32, FREE = 1 << 20 };
enum { SUMS_SHARE = 8, INPUTS_SHARE = 16, INPUTS_LEAST = 4 << 20 };
/* Of the memory that is known to be there, for a batch that is held whole and is not read once more
   in every pass, and as much for the next one; chosen. */
enum {
	WHOLE_SHARE_TOTAL = 16,
	WHOLE_SHARE_BUDGET = 8,
	WHOLE_SHARE_FREE = 32,
	WHOLE_SHARE_ROOM = 8
};

static uint64_t memory_tiers(const struct neap__tiers *tiers)
{
	static const char pinned[] = "pinned memory of"; /* cuda/pinned_tier.c */
	uint64_t bytes = 0;

	for (int i = 0; i < tiers->count; i++)
		if (strcmp(tiers->tier[i]->spec.name, "memory") == 0 ||
			strncmp(tiers->tier[i]->spec.name, pinned, sizeof pinned - 1) == 0)
			bytes = neap__sat_add(bytes, tiers->tier[i]->spec.capacity);
	return bytes;
}

/* What the process holds beside its arenas, and the pages of its libraries still to come. */
static uint64_t holds(const struct neap__process_parts *parts, struct neap__held *held)
{
	neap__held(held);
	uint64_t mapped = held->mapped > parts->arena ? held->mapped - parts->arena : 0;
	return held->files + held->heap + mapped + LIBRARIES +
	       THREAD * (uint64_t)neap__thread_pool_threads(parts->net->pool);
}

int neap__process_memory_share(struct neap_process_memory *m,
	const struct neap__process_parts *parts, uint64_t total, uint64_t arena)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	struct neap__held held;
	uint64_t rest = holds(parts, &held) + held.heap / FREE_SHARE + FREE;
	uint64_t least = neap__net_growth(parts->net, parts->batch, NEAP__PROCESS_BATCHES, 0);
	uint64_t growth =
		neap__net_growth(parts->net, parts->batch, NEAP__PROCESS_BATCHES, 1) - least;

	neap_net_get_sizes(parts->net, &sizes);
	*m = (struct neap_process_memory){.total = total,
		.weights = sizes.weights,
		.gradients = sizes.grads,
		.optimizer = parts->optimizer,
		.scratch = sizes.workspace,
		.inputs = parts->inputs,
		.planning = parts->planning,
		.slow = memory_tiers(parts->tiers),
		.files = held.files};
	uint64_t named = m->weights + m->gradients + m->optimizer + m->scratch;
	m->program = rest > named ? rest - named : 0;
	m->gradients = neap__sat_add(m->gradients, least);
	rest = neap__sat_add(neap__sat_add(rest, least), neap__sat_add(m->inputs, m->slow));
	rest = neap__sat_add(rest, neap__sat_add(m->planning, parts->beside));
	m->program += parts->beside;
	if (total) {
		if (rest >= total) {
			m->most = rest;
			return neap__process_memory_refuse(m, rest - total + 4096);
		}
		uint64_t left = total - rest, share = left / SUMS_SHARE;
		growth = growth < share ? growth : share;
		left -= growth;
		arena = left < arena ? left : arena;
	}
	m->gradients = neap__sat_add(m->gradients, growth);
	m->arena = arena & ~(uint64_t)4095;
	m->most = neap__sat_add(neap__sat_add(rest, growth), m->arena);
	return neap__process_memory_peak(m);
}

int neap__process_memory_peak(struct neap_process_memory *m)
{
	uint64_t peak = neap__resident_most();

	if (peak <= m->most)
		return 0;
	if (m->total && peak > m->total)
		return neap__process_memory_refuse(m, peak - m->total);
	m->planning += peak - m->most;
	m->most = peak;
	return 0;
}

/*
 * What the parts were reckoned to come to, inputs, growing sums and free heap, is a part of the
 * heap once it came; libraries have their allowance. So the heap has to outgrow all that before
 * less is left than the arena was given.
 */
uint64_t neap__process_memory_left(
	const struct neap_process_memory *m, const struct neap__process_parts *parts)
{
	struct neap__held now;
	uint64_t held = holds(parts, &now) + m->planning + parts->beside;
	uint64_t pages = now.files > m->files ? now.files - m->files : 0;

	held -= pages < LIBRARIES ? pages : LIBRARIES;
	return held < m->total ? (m->total - held) & ~(uint64_t)4095 : 0;
}

static uint64_t whole_bytes(const struct neap_sweep_settings *s)
{
	uint64_t room = neap__memory_free();
	/* A budget can be larger than the memory of the machine. */
	uint64_t most = room / WHOLE_SHARE_ROOM, share = room / WHOLE_SHARE_FREE;

	if (s->memory_total)
		share = s->memory_total / WHOLE_SHARE_TOTAL;
	else if (s->memory)
		share = s->memory / WHOLE_SHARE_BUDGET;
	return share < most ? share : most;
}

int neap__process_memory_loader(struct neap_loader **loader, struct neap_dataset *set,
	struct neap_loader_options options, const struct neap_sweep_settings *s)
{
	uint64_t most;

	options.window_bytes = s ? s->inputs : 0;
	options.whole_bytes = s && !s->inputs ? whole_bytes(s) : 0;
	NEAP_TRY(neap_loader_open(loader, set, &options));
	if (!s || s->inputs || !s->memory_total)
		return 0;
	int rc = neap__loader_most(*loader, &most);
	if (rc == 0 && most <= s->memory_total / 2)
		return 0;
	neap_loader_close(*loader);
	*loader = NULL;
	NEAP_TRY(rc);
	options.whole_bytes = 0;
	options.window_bytes = s->memory_total / INPUTS_SHARE;
	if (options.window_bytes < INPUTS_LEAST)
		options.window_bytes = INPUTS_LEAST;
	return neap_loader_open(loader, set, &options);
}

static const char *megabytes(char room[24], uint64_t bytes)
{
	neap__print(room, 24, "%.1f", (double)bytes / (1 << 20));
	return room;
}

void neap__process_memory_line(
	char line[NEAP__PROCESS_LINE], const struct neap_process_memory *m, int bounded)
{
	const struct {
		const char *name;
		uint64_t bytes;
	} parts[] = {{"arena", bounded ? m->arena : 0}, {"slow memory", m->slow},
		{"weights", m->weights}, {"gradients", m->gradients}, {"optimizer", m->optimizer},
		{"scratch", m->scratch}, {"batches", m->inputs}, {"planning", m->planning},
		{"program and libraries", m->program}};
	char room[24];
	size_t n = 0;

	if (bounded)
		n = (size_t)neap__print(line, NEAP__PROCESS_LINE,
			"the process uses at most %s MiB:", megabytes(room, m->most));
	else
		n = (size_t)neap__print(line, NEAP__PROCESS_LINE,
			"in addition to the memory budget, the process uses at most %s MiB:",
			megabytes(room, m->most - m->arena));
	const char *between = "";
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (parts[i].bytes) {
			n += (size_t)neap__print(line + n, NEAP__PROCESS_LINE - n, "%s %s %s",
				between, parts[i].name, megabytes(room, parts[i].bytes));
			between = ",";
		}
}

static int fits(
	const struct neap_step_ops *ops, void *user, struct neap_sweep_options o, uint64_t memory)
{
	struct neap_sweep *sweep = NULL;

	o.memory = memory;
	int rc = neap_sweep_create(&sweep, ops, user, &o);
	neap_sweep_free(sweep);
	return rc == 0;
}

int neap__process_memory_least(const struct neap_process_memory *m, const struct neap_step_ops *ops,
	void *user, const struct neap_sweep_options *options)
{
	uint64_t low = options->memory, high = neap__sat_mul(low, 2);

	while (!fits(ops, user, *options, high)) {
		if (high > neap__memory_free())
			return NEAP_EINFEASIBLE; /* in the words of the last refusal */
		low = high;
		high = neap__sat_mul(high, 2);
	}
	while (high - low > high / 100 + 64) {
		uint64_t middle = low + (high - low) / 2;
		*(fits(ops, user, *options, middle) ? &high : &low) = middle;
	}
	return neap__process_memory_refuse(m, high - options->memory);
}

int neap__process_memory_refuse(const struct neap_process_memory *m, uint64_t missing)
{
	uint64_t beside = m->most > m->arena ? m->most - m->arena : 0;
	uint64_t least = neap__sat_add(m->total, neap__sat_add(missing, REFUSED));
	char total[24], other[24], enough[24];

	return neap__fail(NEAP_EINFEASIBLE,
		"--memory-total: %s is too small; the process takes %s in addition to the arena. "
		"Use a total of at least %llu bytes (%s)",
		neap__show_size(total, m->total), neap__show_size(other, beside),
		(unsigned long long)least, neap__show_least(enough, least));
}

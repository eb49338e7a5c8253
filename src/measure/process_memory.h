/* SPDX-License-Identifier: Apache-2.0 */
/* process_memory.h: what the whole process takes at most, part by part, and what is left for the
 * arena of its sweeps. */
#ifndef NEAP_MEASURE_PROCESS_MEMORY_H
#define NEAP_MEASURE_PROCESS_MEMORY_H

#include <neap/train.h>
#include "measure/slow_tiers.h"

enum { NEAP__PROCESS_BATCHES = 6 };

/* What a run has and will ask for. */
struct neap__process_parts {
	const struct neap_net *net;	  /* a batch has been begun */
	uint64_t optimizer;		  /* bytes that its moments take, a part of the heap */
	uint64_t inputs;		  /* bytes that its loaders take at most */
	uint64_t planning;		  /* bytes that making a plan takes beside the arena */
	uint64_t beside;		  /* bytes of other maps beside the arena */
	int batch[NEAP__PROCESS_BATCHES]; /* sizes of batches to come, of other samples; 0: none */
	uint64_t arena;			  /* bytes that are mapped for arenas now */
	const struct neap__tiers *tiers;
};

/*
 * Fills *memory but for `measured`, for a process that takes at most `total` bytes: its arena gets
 * what the parts leave, at most `arena` bytes. With total 0 the arena has `arena` bytes, and `most`
 * is what that comes to. Sums of gradients are counted as if every input spiked, or, with a total
 * that does not hold these, as they are and an eighth of the rest. 0, or NEAP_EINFEASIBLE where the
 * parts leave nothing.
 */
int neap__process_memory_share(struct neap_process_memory *memory,
	const struct neap__process_parts *parts, uint64_t total, uint64_t arena);

/*
 * Raises `most` to what the process took already, while it measured and planned. 0, or
 * NEAP_EINFEASIBLE where that was more than the total.
 */
int neap__process_memory_peak(struct neap_process_memory *memory);

/* Returns the bytes that the arena may have beside what the process holds now, its arenas aside. */
uint64_t neap__process_memory_left(
	const struct neap_process_memory *memory, const struct neap__process_parts *parts);

/*
 * Opens a loader within the settings' bound on inputs (NULL: the default); without one, batches
 * that would take more than half of a total are read in windows of a sixteenth, of 4 MiB at least.
 */
int neap__process_memory_loader(struct neap_loader **loader, struct neap_dataset *set,
	struct neap_loader_options options, const struct neap_sweep_settings *settings);

enum { NEAP__PROCESS_LINE = 400 };
/* One line with all parts, for people. bounded 0: nothing was asked of the arena, which is left
 * out.
 */
void neap__process_memory_line(
	char line[NEAP__PROCESS_LINE], const struct neap_process_memory *memory, int bounded);

/*
 * Where no plan of a sweep fits options->memory, which the total left: NEAP_EINFEASIBLE, with a
 * total that would do; its arena is searched for to the hundredth.
 */
int neap__process_memory_least(const struct neap_process_memory *memory,
	const struct neap_step_ops *ops, void *user, const struct neap_sweep_options *options);

/* NEAP_EINFEASIBLE, said in one line with the least total, where `missing` bytes are missing. */
int neap__process_memory_refuse(const struct neap_process_memory *memory, uint64_t missing);

#endif

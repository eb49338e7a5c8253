/* SPDX-License-Identifier: Apache-2.0 */
/* slow_tiers.h: the slow tiers that settings name, opened and measured. */
#ifndef NEAP_MEASURE_SLOW_TIERS_H
#define NEAP_MEASURE_SLOW_TIERS_H

#include <neap/train.h>

#define NEAP__TIER_LOST 512

struct neap__tiers {
	struct neap_tier *tier[NEAP_TIERS_MAX];
	double cpu_most[NEAP_TIERS_MAX]; /* a bound of its cpu; 0: not measured */
	int count;
	char lost[NEAP_TIERS_MAX][NEAP__TIER_LOST]; /* a line for each tier that was given up */
	int lost_count;
	uint64_t memory; /* bytes within which they are measured */
};

/*
 * Opens the tiers of settings->slow, for states and tapes of `net` (NULL: in ordinary memory); none
 * where settings->slow is NULL. 0 or a negative code.
 */
int neap__tiers_open(struct neap__tiers *tiers, const struct neap_sweep_settings *settings,
	const struct neap_net *net);
/* Sets the bytes within which tiers are measured, and the staging that they have then. */
void neap__tiers_lend(struct neap__tiers *tiers, uint64_t memory);
/*
 * Sets the rates that planners see: those of settings->costs, else rates measured with records of
 * up to `bytes`, for `seconds` or a little more. A tier whose medium fails meanwhile is measured
 * once more, and then closed and left out: `lost` says so, to be passed on. With a journal, whose
 * records lie there, that fails instead.
 */
int neap__tiers_measure(struct neap__tiers *tiers, const struct neap_sweep_settings *settings,
	uint64_t bytes, double seconds);
/*
 * Sets the transfer overhead that planners see: that of settings->costs, else an overhead measured
 * beside the first steps of a batch, which is begun and ended.
 */
int neap__tiers_beside(struct neap__tiers *tiers, const struct neap_sweep_settings *settings,
	struct neap_net *net, const struct neap_batch *batch,
	const struct neap_objective *objective);
/*
 * Returns the share of a sweep's computation that its steps would have taken without transfers
 * beside them, by the planned transfer overhead; 0.5 at least.
 */
double neap__undisturbed(const struct neap_sweep_stats *stats);
/* Returns neap_sweep_options.patience for a sweep of so many steps of so many seconds. */
double neap__patience(const struct neap_sweep_settings *settings, int64_t steps, double advance);
void neap__tiers_close(struct neap__tiers *tiers);

/* Half of the free memory: of the device of `net` (may be NULL), or of this machine. */
int neap__memory_half(uint64_t *half, const struct neap_net *net);
/* The budget in bytes: settings->memory, or half of the free memory. */
int neap__memory_budget(
	uint64_t *memory, const struct neap_sweep_settings *settings, const struct neap_net *net);
/* NEAP_EUSAGE: a budget of the whole process is given for a net on a device. */
int neap__device_total_refuse(
	const struct neap_sweep_settings *settings, const struct neap_net *net);
/*
 * NEAP_EINFEASIBLE, in one line with the least budget, where the device of `net`, in which a batch
 * is begun, has less than `memory` bytes free. Without a device 0.
 */
int neap__device_budget_check(
	const struct neap_sweep_settings *settings, const struct neap_net *net, uint64_t memory);
/* The same after the code `rc`, if that is -ENOMEM of a device; else `rc`. */
int neap__device_budget_failed(int rc, const struct neap_sweep_settings *settings,
	const struct neap_net *net, uint64_t memory);

#endif

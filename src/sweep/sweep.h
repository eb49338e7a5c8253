/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h: opens a sweep's schedule; what tests need of a sweep beyond neap/sweep.h. */
#ifndef NEAP_SWEEP_SWEEP_SWEEP_H
#define NEAP_SWEEP_SWEEP_SWEEP_H

#include "sweep/sweep_state.h"

/* As neap_sweep_replan, within neap_sweep_run: what the run was called with stays. */
int neap__sweep_plan_anew(struct neap_sweep *s, const struct neap_sweep_options *options);

/*
 * Makes the tables large enough for `sizes`, too, while a run lasts; places of tiers stay as they
 * are. *old gets a table that transfers in flight may still use: free it when none is. 0 or
 * -ENOMEM, and nothing has changed that matters.
 */
int neap__sweep_tables_grow(
	struct neap_sweep *s, const struct neap__table_sizes *sizes, void **old);

/*
 * For tests: makes a sweep over the schedule that `open` opens anew for each run; peak and arena
 * come from neap_verify.
 */
int neap__sweep_create_over(struct neap_sweep **sweep, const struct neap_step_ops *ops, void *user,
	const struct neap_sweep_options *options,
	int (*open)(void *user, struct neap_schedule **schedule), void *open_user);
/* For tests: fills the arena, and what is freed in it, with 0xAA; a run checks what is outside. */
void neap__sweep_poison(struct neap_sweep *sweep, int on);

#endif

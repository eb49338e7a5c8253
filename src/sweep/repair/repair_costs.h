/* SPDX-License-Identifier: Apache-2.0 */
/* repair_costs.h: estimates of what repairs cost, from which the sweep chooses among them. */
#ifndef NEAP_SWEEP_REPAIR_REPAIR_COSTS_H
#define NEAP_SWEEP_REPAIR_REPAIR_COSTS_H

#include "sweep/sweep_state.h"

struct recovery_leaf {
	uint64_t bytes;
	int64_t steps;
	int64_t states; /* that fit in addition to it */
};

/* Bytes of the budget beyond the plan's arena that neap__fallback may take. */
uint64_t neap__fallback_spare(const struct neap_sweep *s);
/* 1 if the plan's rest would cost more than none; the live state is the best source for t. */
int neap__fallback_pays(const struct neap_sweep *s, int64_t t);
/* Forward steps, about, that reversing n steps takes with `gap` bytes of room. */
double neap__recover_tapes_cost(const struct neap_sweep *s, int64_t n, uint64_t gap);
/* 1 while it pays to write again what this tier lost. */
int neap__rewrite_pays(const struct neap_sweep *s, int tier);
/* The part of neap__fallback_spare that is mapped. */
uint64_t neap__fallback_room(const struct neap_sweep *s);
/* Steps whose tapes fit in `bytes`, at least one. */
int64_t neap__recovery_leaf_steps(const struct neap_sweep *s, uint64_t bytes);
/*
 * Divides the gap: half for tapes, half for states; at least one tape of the largest size. Neither
 * gets more than half of the rows of the table of extents.
 */
struct recovery_leaf neap__recovery_share(const struct neap_sweep *s, uint64_t gap);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_records.h: what recover_states.c, recover_tapes.c, rewrite_records.c and
 * finish_without_tiers.c share: recomputing, and how to spare it. */
#ifndef NEAP_SWEEP_REPAIR_REWRITE_RECORDS_H
#define NEAP_SWEEP_REPAIR_REWRITE_RECORDS_H

#include "sweep/sweep_state.h"

/* recover_states.c */
/* The live buffer becomes the latest state at or before t that can be had. */
int neap__recover_state_load(struct neap_sweep *s, int64_t t);
/* A state kept for repairs at or above the adjoint serves nobody. Tapes may lie above it. */
void neap__recover_state_drop_from(struct neap_sweep *s, int64_t t);
/* Around what a repair did. */
void neap__recover_state_trace(
	struct neap_sweep *s, uint32_t kind, double start, int64_t t0, int64_t t1);

/* recover_tapes.c. Forward steps, about, to reverse n steps with `gap` bytes of room. */
double neap__recover_tapes_cost(const struct neap_sweep *s, int64_t n, uint64_t gap);

/* rewrite_records.c */
/* The live state passed on to t; records that were lost are written again on the way. */
int neap__rewrite_to(struct neap_sweep *s, int64_t t);
/* Is it worth writing again what the tier lost? */
int neap__rewrite_trusts(const struct neap_sweep *s, int tier);

/* finish_without_tiers.c */
/* Bytes of the budget beyond the plan's arena that neap__fallback may take. */
uint64_t neap__fallback_spare(const struct neap_sweep *s);
/* The live state is the best source for t: would the rest of the plan cost more than no plan? */
int neap__fallback_pays(const struct neap_sweep *s, int64_t t);
/* Reverses all that is left, and ends the run. */
int neap__fallback(struct neap_sweep *s);
/* Slots that nobody needs to reverse what is below t are free. */
void neap__fallback_shed(struct neap_sweep *s, int64_t t);

#endif

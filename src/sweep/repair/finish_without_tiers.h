/* SPDX-License-Identifier: Apache-2.0 */
/* finish_without_tiers.h: the rest of a sweep without its plan, where the tiers are gone. */
#ifndef NEAP_SWEEP_REPAIR_FINISH_WITHOUT_TIERS_H
#define NEAP_SWEEP_REPAIR_FINISH_WITHOUT_TIERS_H

#include "sweep/sweep_state.h"

/* Bytes of the budget beyond the plan's arena that neap__fallback may take. */
uint64_t neap__fallback_spare(const struct neap_sweep *s);
/* 1 if the plan's rest would cost more than none; the live state is the best source for t. */
int neap__fallback_pays(const struct neap_sweep *s, int64_t t);
/* Reverses all that is left, and ends the run. */
int neap__fallback(struct neap_sweep *s);
/* Frees slots that hold states at or after t, which nobody needs any more. */
void neap__fallback_free_slots(struct neap_sweep *s, int64_t t);

#endif

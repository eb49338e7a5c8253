/* SPDX-License-Identifier: Apache-2.0 */
/* finish_without_tiers.h: the rest of a sweep without its plan, where the tiers are gone. */
#ifndef NEAP_SWEEP_REPAIR_FINISH_WITHOUT_TIERS_H
#define NEAP_SWEEP_REPAIR_FINISH_WITHOUT_TIERS_H

#include "sweep/sweep_state.h"

/* Reverses all that is left, and ends the run. */
int neap__fallback(struct neap_sweep *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* pofo_propose.h: the fluid program's proposals, for the strategy and for `auto`. */
#ifndef NEAP_PLAN_OFFLOAD_POFO_PROPOSE_H
#define NEAP_PLAN_OFFLOAD_POFO_PROPOSE_H

#include "plan/offload/offload_search.h"

/* Tries them, relieved; the best is kept in the search. */
int neap__pofo_propose(struct neap__offload_search *x);

#endif

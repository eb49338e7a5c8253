/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pofo_propose.h: plans that a fluid dynamic program proposes for a chain of unequal stages with
 * slow tiers (after Beaumont, Eyraud-Dubois and Shilova 2021). On the way up each stage is
 * recorded, its tape kept or sent, or is part of a group that is recomputed, its input kept or
 * sent. The program treats transfers as flows of bytes.
 *
 *     L             stages
 *     i             a boundary between stages; 0 is before the first one
 *     m             bytes of earlier stages that stay in fast memory
 *     q             bytes that are queued outward
 *     b             bytes that must be back by the end of the backward of the stage
 *     w, r          bytes a second outward and inward
 *     e             bytes beyond the budget
 *     F(i;m,q,b)    seconds from boundary i to the loss and back to boundary i
 *
 *     t seconds take the queue from q to       max(0, q - w t)
 *     and what must be back from b to          max(0, b - r t)
 *     e costs e / w seconds on the way up, out of q, and e / r on the way down, out of b
 *     F(L; m, q, b) = the loss + (what is left of q) / w + (what is left of b) / r
 *
 * Sent bytes join q, and b of the boundary after them. The value bounds nothing: each proposal is
 * simulated with whole tensors and repaired (offload_choice.h). Proposals are made for several
 * shares of the budget, since whole tensors take more room than flows.
 */
#ifndef NEAP_PLAN_OFFLOAD_POFO_PROPOSE_H
#define NEAP_PLAN_OFFLOAD_POFO_PROPOSE_H

#include "plan/offload/offload_search.h"

/* Tries the proposals, repaired; the search keeps the best. 0 or a negative code. */
int neap__pofo_propose(struct neap__offload_search *x);

#endif

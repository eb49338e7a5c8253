/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_layout.h: branches that meet in one loss, as one row of stages. Branch k has the states
 * start[k] to start[k + 1] - 1. Between two branches lies a link, the stage start[k + 1] - 1: it
 * lays the end of branch k aside and takes up x_0 of the next from the caller. A plain chain is
 * one branch.
 *
 * There are two ways through the row. In sequence: as a chain, whose plan counts what is laid
 * aside as temporaries of the stages behind (`held`). Interleaved: by the strategy `join`, which
 * never calls a link, and keeps the ends as live states.
 */
#ifndef NEAP_SWEEP_STAGES_STAGE_LAYOUT_H
#define NEAP_SWEEP_STAGES_STAGE_LAYOUT_H

#include <neap/sweep.h>
#include "base/checked.h"
#include "plan/core/stage_sizes.h"

struct neap__stage_layout {
	int branches;
	int interleaved;
	int64_t start[NEAP_BRANCHES_MAX + 1];
	uint8_t order[NEAP_BRANCHES_MAX];     /* the caller's number of each */
	uint64_t held[NEAP_BRANCHES_MAX + 1]; /* bytes laid aside while branch k goes on */
	uint64_t turn_held;		      /* ends and their gradients, while the loss is made */
	uint64_t spare; /* bytes of the budget that the plan does not get: see join_sweep.c */
};

static inline int64_t neap__layout_end(const struct neap__stage_layout *x, int branch)
{
	return x->start[branch + 1] - 1;
}

/* The branch that state t belongs to. */
static inline int neap__layout_branch(const struct neap__stage_layout *x, int64_t t)
{
	int k = 0;
	while (k + 1 < x->branches && t >= x->start[k + 1])
		k++;
	return k;
}

/* Is stage i, which begins at state i, a link? */
static inline int neap__layout_link(const struct neap__stage_layout *x, int64_t i)
{
	int k = neap__layout_branch(x, i);
	return k + 1 < x->branches && i == neap__layout_end(x, k);
}

/* Fills in held and turn_held, from the sizes of ends, rounded up; interleaved ones have none. */
static inline void neap__layout_hold(struct neap__stage_layout *x, const struct neap_chain *chain)
{
	x->held[0] = x->turn_held = 0;
	for (int k = 0; k + 1 < x->branches; k++) {
		int64_t end = neap__layout_end(x, k);
		uint64_t state = neap__round_up(chain->stages->state[end], 64);
		uint64_t gradient = neap__round_up((uint64_t)neap__stage_gradient(chain, end), 64);
		x->held[k + 1] = x->held[k] + (state > gradient ? state : gradient);
		x->turn_held += state + gradient;
	}
	for (int k = 0; x->interleaved && k < x->branches; k++)
		x->held[k] = x->turn_held = 0;
}

/* Bytes of the temporary that a call of the model gets; kind: enum neap_action_kind. */
static inline uint64_t neap__layout_tmp(
	const struct neap__stage_layout *x, const struct neap_stages *stages, int kind, int64_t i)
{
	int64_t bytes = kind == NEAP_ADVANCE  ? neap__stage_advance_tmp(stages, i)
			: kind == NEAP_RECORD ? neap__stage_record_tmp(stages, i)
					      : neap__stage_backward_tmp(stages, i);
	if (kind == NEAP_TURN)
		return (uint64_t)bytes - x->turn_held;
	return neap__layout_link(x, i) ? 0 : (uint64_t)bytes - x->held[neap__layout_branch(x, i)];
}

#endif

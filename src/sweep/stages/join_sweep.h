/* SPDX-License-Identifier: Apache-2.0 */
/* join_sweep.h: a sweep over branches that meet in one loss, as its stage sweep sees it. */
#ifndef NEAP_SWEEP_STAGES_JOIN_SWEEP_H
#define NEAP_SWEEP_STAGES_JOIN_SWEEP_H

#include "sweep/stages/stage_sweep.h"

struct neap_join_sweep {
	struct neap_join_ops ops;
	void *user;
	struct neap__stage_layout layout;
	struct neap_stage_sweep *stages;
};

/* Calls the model's turn; x and dx by branch of the layout. */
int neap__join_turn(const struct neap_stage_sweep *s, const void *const *x, void *const *dx,
	void *tmp, double *loss);

/*
 * The strategy `join` for the branches of s->layout, which is interleaved: the most slots whose
 * program fits the budget, or options.params.checkpoints of them.
 */
int neap__join_plan(struct neap_stage_sweep *s);

/* Where a journal is there: the layout it was made for, 1; else 0, or a negative code. */
int neap__stage_journal_layout(const char *directory, const char *suffix, int in_memory,
	struct neap__stage_layout *layout);

/* For tests: as neap__stage_sweep_poison. */
void neap__join_poison(struct neap_join_sweep *j, int on);

#endif

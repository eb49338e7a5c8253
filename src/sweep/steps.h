/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h: calls of the model, and the counts and times of a run. All negative answers end the
 * sweep.
 */
#ifndef NEAP_SWEEP_STEPS_H
#define NEAP_SWEEP_STEPS_H

#include "sweep/sweep_state.h"

/* Before each call: takes a commit that is due. NEAP_EINTERRUPTED where the caller wants an end. */
int neap__step_begin_call(struct neap_sweep *s);
/* Before each piece of BACKWARD, while no extent is in use: the commit; of ranks, the poll. */
int neap__step_begin_piece(struct neap_sweep *s);
/* NEAP_EINTERRUPTED if the caller wants an end (neap_sweep_options.interrupted), else 0. */
int neap__step_interrupted(struct neap_sweep *s);
/* After a call of callback `name`: its answer, as the sweep's. */
int neap__step_answer(const char *name, int rc);
/* After a call: adds the time since `start` to *kind and to the trace. */
void neap__step_charge(
	struct neap_sweep *s, double *kind, double start, uint32_t event, int64_t t0, int64_t t1);
/* With check: compares the live state, which callback `name` has moved, with an earlier one. */
int neap__step_check(struct neap_sweep *s, const char *name);
/* The live state is at t now; the steps to it are added to *steps. */
void neap__step_passed(struct neap_sweep *s, int64_t t, int64_t *steps);

int neap__step_advance(struct neap_sweep *s, int64_t t1);
/*
 * Records from the live state towards t1, until there is no room for one more tape of the largest
 * size; the live state says how far that was.
 */
int neap__step_record(struct neap_sweep *s, int64_t t1);
int neap__step_turn(struct neap_sweep *s);
/* Moves the adjoint over the steps of the extent, which is freed. */
int neap__step_backward(struct neap_sweep *s, struct neap__arena_extent *extent);

/* Copies the live state to `to`. */
int neap__copy_save(struct neap_sweep *s, void *to);
/* Makes `from` the live state, which is at t then. NULL: all zero bytes, as x_0 may be. */
int neap__copy_load(struct neap_sweep *s, const void *from, int64_t t);

/* Adds the time since `start`, in which the sweep waited, to `stall` and its reason. */
void neap__count_stall(struct neap_sweep *s, enum neap_stall reason, double start,
	const struct neap__ticket *ticket);
/* Counts a tape of [t0, t1) that did not fit. */
void neap__count_overflow(struct neap_sweep *s, int64_t t0, int64_t t1);
/* Counts a record that a tier lost: of state t0, or of tapes of [t0, t1). */
void neap__count_lost(struct neap_sweep *s, int tier, int64_t t0, int64_t t1);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_checks.h: what a run checks of the answers of the model: that loss and adjoint are finite;
 * with neap_sweep_options.check also that recomputed states are the same and that `used` counts
 * every byte written. All answer 0 or a negative code with a line that names the step.
 */
#ifndef NEAP_SWEEP_STEPS_MODEL_CHECKS_H
#define NEAP_SWEEP_STEPS_MODEL_CHECKS_H

#include <stddef.h>
#include <stdint.h>
#include "sweep/arena/arena_memory.h"

/* NEAP_EUSAGE unless adjoint_real of the struct `name` is 0, 4 or 8 and divides adjoint_bytes. */
int neap__check_real(const char *name, size_t real, size_t adjoint_bytes);

/* NEAP_EDIVERGED: the loss that turn returned after so many steps is not finite. */
int neap__check_loss(double loss, int64_t steps);

/*
 * NEAP_EDIVERGED: a number of the adjoint at step t, of `real` bytes, is not finite. real 0: it is
 * not looked at. `function` wrote it.
 */
int neap__check_adjoint(struct neap__memory *memory, const void *adjoint, size_t bytes, size_t real,
	const char *function, int64_t t);

/* Fills bytes that a callback may write to; then NEAP_EMODEL where it wrote behind `used`. */
void neap__check_fill(struct neap__memory *memory, void *at, size_t bytes);
int neap__check_used(struct neap__memory *memory, const void *at, size_t used, size_t bytes,
	const char *function, int64_t t0, int64_t t1);

/* Hashes of states by step; a long chain's share rows, so that the latest are known. */
struct neap__state_hash {
	int64_t after; /* the step + 1; 0: none */
	uint64_t hash;
};
struct neap__state_hashes {
	int64_t count;
	struct neap__state_hash *rows; /* NULL: states are not compared */
};

/* Of a chain of so many steps; 0: unknown. 0 or -ENOMEM. */
int neap__state_hashes_init(struct neap__state_hashes *hashes, int64_t steps);
void neap__state_hashes_reset(struct neap__state_hashes *hashes);
void neap__state_hashes_free(struct neap__state_hashes *hashes);
/*
 * NEAP_EMODEL where the state `number` is not what it was when it was computed before; lines say
 * that it is at step t.
 */
int neap__check_state(struct neap__state_hashes *hashes, struct neap__memory *memory,
	const void *state, size_t bytes, const char *function, int64_t number, int64_t t);

#endif

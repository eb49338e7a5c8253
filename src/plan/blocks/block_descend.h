/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_descend.h: how the steps of a block or of a tail are reversed: by Revolve with leaves
 * (recompute_cost.h) or with repeated reads (multiread.h), one entry of the recursion at a time;
 * and how the operations of a block program are emitted.
 */
#ifndef NEAP_PLAN_BLOCKS_BLOCK_DESCEND_H
#define NEAP_PLAN_BLOCKS_BLOCK_DESCEND_H

#include "plan/blocks/block_program.h"

/* A program and where its operations go. */
struct neap__block_sink {
	struct neap__block_program *x;
	void (*push)(void *user, const struct neap__block_op *op);
	void *user;
};

/* Emits an operation. grow: bytes held from it on; shrink: bytes held no longer after it. */
void neap__block_push(
	struct neap__block_sink *k, struct neap__block_op op, int64_t grow, int64_t shrink);
/* An operation on steps [t0, t1). */
void neap__block_range(
	struct neap__block_sink *k, int kind, int64_t t0, int64_t t1, int64_t grow, int64_t shrink);
/* An operation on the first state of a part and its place. */
void neap__block_record(struct neap__block_sink *k, int kind, const struct neap__block_frame *f);
/* Begins a part. 0 or -ENOMEM. */
int neap__block_frame_push(struct neap__block_program *x, struct neap__block_frame frame);
/*
 * In the forward pass, keeps the live state, at step t, in a slot and advances l steps, which are
 * reversed later with these costs, in addition to `slots` other slots. 0 or -ENOMEM.
 */
int neap__block_keep(struct neap__block_sink *k, int64_t t, int64_t l, int64_t slots,
	const struct neap__recompute *costs);
/* One step down in the recursion, whose stack is not empty. 0 or a negative code. */
int neap__block_descend(struct neap__block_sink *k);
/* Allocates `room` rows of each table at least. */
int neap__block_descend_tables(struct neap__block_program *x, int64_t room);

#endif

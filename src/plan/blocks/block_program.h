/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_program.h: what a plan of blocks (neap_blocks) computes, in order, and what it
 * needs from the slow tier, but not when transfers are issued (prefetch.c). Operations
 * come in small batches; memory is that of the recursion inside a block.
 */
#ifndef NEAP_PLAN_BLOCKS_BLOCK_PROGRAM_H
#define NEAP_PLAN_BLOCKS_BLOCK_PROGRAM_H

#include "plan/blocks/multiread.h"
#include "plan/recompute/recompute_cost.h"

enum neap__block_op_kind {
	NEAP__OP_ADVANCE,
	NEAP__OP_RECORD,
	NEAP__OP_TURN,
	NEAP__OP_BACKWARD,
	NEAP__OP_SAVE, /* live state to slot `handle` */
	NEAP__OP_LOAD,
	NEAP__OP_DROP,
	NEAP__OP_PUT_STATE, /* live state to `place` */
	NEAP__OP_PUT_TAPES,
	NEAP__OP_NEED_STATE, /* live becomes the record at `place`; handle >= 0: kept there too */
	NEAP__OP_NEED_TAPES,
	NEAP__OP_FORGET, /* the state at `place` */
};

enum neap__block_op_begins { NEAP__BEGINS_NOTHING, NEAP__BEGINS_UP, NEAP__BEGINS_DOWN };

struct neap__block_op {
	uint8_t kind;
	uint8_t begins; /* a block, going up or down */
	int32_t handle; /* of a slot: the program's own number; -1: none */
	int64_t t0, t1;
	int64_t place;
	int64_t after;	  /* NEED: number of the operation that put the record */
	int64_t held;	  /* bytes of slots and tapes during it, transfers apart */
	int64_t incoming; /* prefetch.c: bytes on their way in */
};

struct neap__block_frame {
	int64_t t0, l;
	int64_t j;	/* slots taken (leaf), slots free (multi-read) */
	int64_t place;	/* of the start on the tier, or -1 */
	int64_t put;	/* number of the operation that put it there */
	int32_t handle; /* slot of the start, or -1 */
	uint8_t live, tail, multiread;
};

struct neap__block_program {
	const struct neap_chain *chain;
	struct neap_blocks plan;
	int64_t pool;
	int64_t blocks, first; /* number of blocks; steps of the first one */
	struct neap__recompute inner, tail;
	struct neap__multiread multiread;
	struct neap__block_frame *stack;
	int64_t depth, stack_room;
	int32_t *handles; /* free handles */
	int64_t handles_free, handles_room, handles_made;
	int64_t spare; /* states written inside a block now */
	int64_t at;    /* block at hand */
	int64_t chunk; /* of the block, going down */
	int phase;
	uint8_t begins; /* of the next operation */
	int64_t number; /* operations so far */
	int64_t held;
	int64_t puts[1024]; /* number of the last PUT of block i, at i % 1024 */
};

/*
 * Starts over. 0, -ENOMEM, or NEAP_EINFEASIBLE where the pool is too small for it.
 * From all zero, or used before. `chain` is borrowed.
 */
int neap__block_program_start(struct neap__block_program *x, const struct neap_chain *chain,
	int64_t pool, const struct neap_blocks *plan);
/*
 * The next batch, through `push(user, op)`; each op has its number x->number at the
 * time. 1, 0 at the end, or a negative code.
 */
int neap__block_program_next(struct neap__block_program *x,
	void (*push)(void *user, const struct neap__block_op *op), void *user);
/*
 * For predicting: how many of the blocks to come are like the ones before them, the
 * first and the last one not counted. skip: leaves so many out; shift: an operation
 * before that is then one of a block as much higher, or lower where blocks < 0.
 */
int64_t neap__block_program_alike(const struct neap__block_program *x, int begins);
void neap__block_program_skip(struct neap__block_program *x, int begins, int64_t blocks);
void neap__block_program_shift(
	const struct neap__block_program *x, struct neap__block_op *op, int64_t blocks);
/* Rows of its tables, `room` at least, or -ENOMEM. */
int64_t neap__block_program_tables(struct neap__block_program *x, int64_t room);
void neap__block_program_free(struct neap__block_program *x);

/* Blocks there are, for a chain of so many steps. */
static inline int64_t neap__block_plan_count(const struct neap_blocks *b, int64_t steps)
{
	int64_t body = steps - b->tail, unit = b->advance + b->record;
	return body <= 0 ? 0 : (body + unit - 1) / unit;
}

#endif

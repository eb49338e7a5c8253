/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_program.h: the operations of a plan of blocks (struct neap_blocks), in order: what is
 * computed, and what must have come from the slow tier by then. When transfers are issued is
 * decided in prefetch.c. Operations come in small batches, so memory is that of the recursion
 * inside a block only.
 *
 *     first block (shorter) | blocks of J + k steps | tail
 *
 *     J        steps of a block that are advanced on the first pass (`advance`)
 *     k        steps of a block that are recorded on the first pass, their tapes sent (`record`)
 *     q        steps of a chunk, whose tapes travel together (`chunk`)
 *     tail     the last steps, reversed in fast memory without the tier
 *
 * Up: per block, k steps are recorded in chunks and sent, the state is sent, J steps are
 * advanced. Then the tail is done. Down: per block, the state is needed and the J steps are
 * recomputed from it, by Revolve with leaves (recompute_cost.h) or with repeated reads
 * (multiread.h); then the chunks are needed in reverse. J = 0 is `stream`, k = 0 `async`. Ours.
 *
 * The state of the block before comes back while a block is reversed, and needs room beside it:
 * `reserve` bytes, beside the whole block, or beside its first `reserve_steps` steps alone. These
 * are reversed last. The block is then split after them, whatever Revolve would do, and the steps
 * to their right take the whole pool.
 *
 * Where a plan was replaced while it ran, several series of blocks follow each other, each with
 * numbers of its own; only the last has a tail.
 *
 * With a second, near tier (struct neap_near) the J steps of a block, and the tail, are parts
 * that are reversed by blocks of their own: the same walk up and down, inside the part. Or the
 * states and chunks of the blocks are spread over both tiers.
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
	NEAP__OP_NEED_STATE, /* `place` becomes live, and kept in slot `handle` unless -1 */
	NEAP__OP_NEED_TAPES,
	NEAP__OP_FORGET, /* the state at `place` */
};

/* Whether an operation is the first one of a block, going up or going down. */
enum neap__block_op_begins { NEAP__BEGINS_NOTHING, NEAP__BEGINS_UP, NEAP__BEGINS_DOWN };

struct neap__block_op {
	uint8_t kind;
	uint8_t begins; /* enum neap__block_op_begins */
	uint8_t near;	/* PUT, NEED, FORGET: of the near tier */
	uint8_t inside; /* of a block inside a part: its place stays when blocks are left out */
	int32_t handle; /* the program's own number of a slot; -1: none */
	int64_t t0, t1;
	int64_t place;
	int64_t after;	  /* NEED: number of the operation that wrote the record */
	int64_t held;	  /* bytes of slots and tapes during it, without transfers */
	int64_t incoming; /* set by prefetch.c: bytes that GETs bring in during it */
};

/* A part of a block or of the tail that is still to be done: an entry of the recursion. */
struct neap__block_frame {
	int64_t t0, l;
	int64_t j;	/* slots taken (leaves), slots free (multiread) */
	int64_t place;	/* of the first state on the tier, or -1 */
	int64_t put;	/* number of the operation that wrote it there */
	int32_t handle; /* slot of the first state, or -1 */
	int64_t first; /* steps of the left part of the first split, which `rest` splits; 0: none */
	const struct neap__recompute *rest;
	uint8_t live, near, inside;
	const struct neap__recompute *costs;  /* where to split, */
	const struct neap__multiread *splits; /* or with repeated reads; else NULL */
};

/*
 * Blocks whose last PUT is remembered, a power of two. A GET looks back over one window of
 * operations at most (prefetch.c), so only the blocks shortly before the turn matter.
 */
#define NEAP__BLOCK_PUTS 1024

/* Blocks with the same numbers, one after the other. */
struct neap__block_series {
	struct neap_blocks plan;	      /* the tail counts in the last series only */
	int64_t t0, from;		      /* first step; number of the first block */
	int64_t blocks, first;		      /* number of blocks; steps of the first one */
	int64_t tape_place;		      /* of the first chunk */
	struct neap__recompute inner, beside; /* beside: of steps that the reserve lies beside */
	struct neap__multiread multiread;
};

#define NEAP__BLOCK_SERIES (NEAP_REPLANS_MAX + 1)

/* Splits that were looked up, by hash: the parts of all blocks have the same lengths. */
#define NEAP__BLOCK_SPLITS 512 /* a power of two */
struct neap__block_split {
	const struct neap__recompute *costs; /* NULL: an empty row */
	int64_t l, j, y;
};

/* A way up and down over blocks: of the chain, or of a part of it. */
struct neap__block_walk {
	struct neap__block_series series[NEAP__BLOCK_SERIES];
	int count;	/* of series */
	int inside;	/* of a part */
	int64_t end;	/* of the steps */
	int64_t blocks; /* of all series */
	int64_t at;	/* the present block */
	int64_t chunk;	/* going down: chunks of the block that are left */
	int phase;
	int64_t puts[NEAP__BLOCK_PUTS]; /* number of the last PUT of block i, at i % its size */
};

struct neap__block_program {
	const struct neap_chain *chain;
	int64_t pool;
	struct neap_near near;
	struct neap__block_walk whole, part; /* part: while it runs, the whole waits */
	struct neap__recompute tail;
	struct neap__block_split splits[NEAP__BLOCK_SPLITS];
	struct neap__block_frame *stack;
	int64_t depth, stack_room;
	int32_t *handles; /* free handles */
	int64_t handles_free, handles_room, handles_made;
	int64_t spare;	/* states written by multiread inside the present block */
	uint8_t begins; /* of the next operation */
	uint8_t turned;
	int64_t number; /* operations so far */
	int64_t held;
};

/*
 * Starts a program over; *x is all zero or was used before. Borrows `chain`. `near` may be NULL. 0,
 * -ENOMEM, or NEAP_EINFEASIBLE where the pool of `pool` bytes is too small for the plan.
 */
int neap__block_program_start(struct neap__block_program *x, const struct neap_chain *chain,
	int64_t pool, const struct neap_blocks *plan, const struct neap_near *near);
/*
 * Blocks from step `step` on, the first of a block of the last series, are those of `plan`. To be
 * called before an operation of those blocks was asked for, or followed by rewind. 0, -ENOMEM or
 * NEAP_EINFEASIBLE; the program is of no use then.
 */
int neap__block_program_replan(
	struct neap__block_program *x, int64_t step, const struct neap_blocks *plan);
/* Goes back to the last series; its first operation gets this number. */
void neap__block_program_rewind(struct neap__block_program *x, int64_t number);
/*
 * Gives the next batch to `push(user, op)`; x->number is the number of the operation during
 * the call. 1, 0 at the end, or a negative code.
 */
int neap__block_program_next(struct neap__block_program *x,
	void (*push)(void *user, const struct neap__block_op *op), void *user);
/*
 * For prediction, with one series. alike: how many of the blocks to come equal those before them,
 * without the first and the last block. skip: leaves out that many blocks. shift: moves an
 * operation that was given before by as many blocks, downward where blocks < 0.
 */
int64_t neap__block_program_alike(const struct neap__block_program *x, int begins);
void neap__block_program_skip(struct neap__block_program *x, int begins, int64_t blocks);
void neap__block_program_shift(
	const struct neap__block_program *x, struct neap__block_op *op, int64_t blocks);
/* Blocks after which states and chunks are spread over tiers as before. */
int64_t neap__block_period(const struct neap_near *near);
/* Allocates `room` rows of each table at least; returns the rows, or -ENOMEM. */
int64_t neap__block_program_tables(struct neap__block_program *x, int64_t room);
void neap__block_program_free(struct neap__block_program *x);

/* The number of blocks in a chain of `steps` steps. */
static inline int64_t neap__block_plan_count(const struct neap_blocks *b, int64_t steps)
{
	int64_t body = steps - b->tail, unit = b->advance + b->record;
	return body <= 0 ? 0 : (body + unit - 1) / unit;
}

#endif

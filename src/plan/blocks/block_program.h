/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_program.h: generates the operations of a block plan (struct neap_blocks) in order: the
 * computation, and the records that must have arrived from the slow tier by then. prefetch.c
 * decides when transfers are issued. Operations are generated in small batches, so only the
 * recursion inside a block needs memory.
 *
 *     first block (shorter) | blocks of J + k steps | tail
 *
 *     J        steps of a block that only advance in the forward pass (`advance`)
 *     k        steps of a block that are recorded in the forward pass; their tapes are offloaded
 *              (`record`)
 *     q        steps of a chunk, whose tapes are transferred together (`chunk`)
 *     tail     the last steps, reversed in fast memory without the tier
 *
 * Forward, for each block: k steps are recorded in chunks and written, the state is written, J
 * steps advance. Then the tail runs and is reversed. Backward, for each block: the state is read
 * and the J steps are recomputed from it, by Revolve with leaves (recompute_cost.h) or with
 * repeated reads (multiread.h); then the chunks are read in reverse order. J = 0 is `stream`, k = 0
 * is `async`. Our own method.
 *
 * While a block is reversed, the state of the previous block is read and needs memory: `reserve`
 * bytes, either during the whole block or only during its first `reserve_steps` steps, which are
 * reversed last. In the second case the first split of the block is fixed after these steps, and
 * the steps to their right use the whole pool.
 *
 * A plan can keep states (NEAP_BLOCKS_KEPT): its last K blocks keep their state in a slot, and only
 * the blocks before them write theirs. The lengths of these K blocks grow linearly from J_1 before
 * the tail to J; the n blocks before the tail have J_1 n + (J - J_1) n^2 / (2 K) steps. Blocks may
 * be so short that states queue up to be written, also beyond the turn. So the memory that is free
 * differs from block to block, and the leaves of a block, and of the tail, are as long as the
 * memory allows that is free by then: the pool without the slots of the recursion, without kept
 * states of earlier blocks, and without states that are still to be written according to the
 * planned speeds.
 *
 * Blocks with repeated reads can have two lengths: of the blocks after the first one, numbers n,
 * 2n, 3n, ... (`every`) advance J_2 steps (`reserve_steps`), the others J. The time of a write
 * limits the mean length only, and lengths differ in what they recompute. With f = r = 1, memory
 * for 10 states, tapes of 3 states and 10 s per write, the best equal blocks have J = 11 and
 * recompute 0.82 steps per step; blocks of 15 and 5 steps in turn recompute 0.75.
 *
 * If a plan is replaced while it runs, several series of blocks follow each other, each with its
 * own parameters; only the last series has a tail.
 *
 * With a second, near tier (struct neap_near) there are two possibilities. Either the J steps of a
 * block, and the tail, are parts that are themselves reversed by blocks, with the same walk up and
 * down inside the part; or the states and chunks of the blocks are distributed over both tiers.
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
	NEAP__OP_SAVE, /* copies the live state to slot `handle` */
	NEAP__OP_LOAD,
	NEAP__OP_DROP,
	NEAP__OP_PUT_STATE, /* writes the live state to `place` */
	NEAP__OP_PUT_TAPES,
	NEAP__OP_NEED_STATE, /* reads `place` into the live state, and into slot `handle` unless it
				is -1 */
	NEAP__OP_NEED_TAPES,
	NEAP__OP_FORGET, /* frees `place` of a state */
};

/* Whether an operation is the first one of a block, in the forward or in the backward pass. */
enum neap__block_op_begins { NEAP__BEGINS_NOTHING, NEAP__BEGINS_UP, NEAP__BEGINS_DOWN };

struct neap__block_op {
	uint8_t kind;
	uint8_t begins; /* enum neap__block_op_begins */
	uint8_t near;	/* PUT, NEED, FORGET: on the near tier */
	uint8_t inside; /* in a block inside a part: its place does not shift if blocks are skipped
			 */
	int32_t handle; /* number of a slot in this program; -1: none */
	int64_t t0, t1;
	int64_t place;
	int64_t after;	  /* NEED: number of the operation that wrote the record */
	int64_t held;	  /* bytes of slots and tapes during the operation, without transfers */
	int64_t incoming; /* set by prefetch.c: bytes reserved for GETs in flight during it */
};

/* An entry of the recursion: a part of a block or of the tail that is not yet reversed. */
struct neap__block_frame {
	int64_t t0, l;
	int64_t j;	/* slots in use (leaves), slots free (multiread) */
	int64_t place;	/* place of the first state on the tier, or -1 */
	int64_t put;	/* number of the operation that wrote it */
	int32_t handle; /* slot of the first state, or -1 */
	/* 0, or steps of the left part of a fixed first split; `rest` has its further splits */
	int64_t first;
	const struct neap__recompute *rest;
	uint8_t live, near, inside;
	const struct neap__recompute *costs;  /* splits of Revolve with leaves, or NULL */
	const struct neap__multiread *splits; /* splits with repeated reads, or NULL */
};

/*
 * Number of blocks whose last PUT is remembered; a power of two, chosen. A GET is issued at most
 * one window of operations early (prefetch.c), so only the blocks directly before the turn matter.
 */
#define NEAP__BLOCK_PUTS 1024

#define NEAP__BLOCK_EVERY_MOST 1000 /* limit of neap_blocks.every; chosen */

/* Consecutive blocks with the same parameters. */
struct neap__block_series {
	struct neap_blocks plan;	      /* the tail is used in the last series only */
	int64_t t0, from;		      /* first step; index of the first block */
	int64_t blocks, first;		      /* number of blocks; steps of the first block */
	int64_t written;		      /* number of blocks that do not keep their state */
	int64_t tape_place;		      /* place of the first chunk */
	struct neap__recompute inner, beside; /* beside: for the steps that run with the reserve */
	struct neap__multiread multiread;
};

#define NEAP__BLOCK_SERIES (NEAP_REPLANS_MAX + 1) /* derived: one for each replacement */

/* Cache of splits, by hash: the parts of all blocks have the same lengths. Size chosen. */
#define NEAP__BLOCK_SPLITS 512 /* a power of two */
struct neap__block_split {
	const struct neap__recompute *costs; /* NULL: an empty row */
	int64_t l, j, y;
};

/* A walk up (forward) and down (backward) over the blocks of the chain, or of a part of it. */
struct neap__block_walk {
	struct neap__block_series series[NEAP__BLOCK_SERIES];
	int count;	/* number of series */
	int inside;	/* 1: walk over a part */
	int64_t end;	/* end of the steps */
	int64_t blocks; /* in all series */
	int64_t at;	/* current block */
	int64_t chunk;	/* backward: chunks of the block that remain */
	int phase;
	int64_t puts[NEAP__BLOCK_PUTS]; /* number of the last PUT of block i, at i % its size */
};

struct neap__block_program {
	const struct neap_chain *chain;
	int64_t pool;
	struct neap_near near;
	struct neap__block_walk whole, part; /* `whole` pauses while `part` runs */
	struct neap__recompute tail;
	struct neap__block_split splits[NEAP__BLOCK_SPLITS];
	struct neap__block_frame *stack;
	int64_t depth, stack_room;
	int32_t *handles; /* free handles */
	int64_t handles_free, handles_room, handles_made;
	int64_t spare;	/* states written by multiread inside the current block */
	uint8_t begins; /* field `begins` of the next operation */
	uint8_t turned;
	int64_t number; /* operations so far */
	int64_t held;
	/* For plans that keep states, seconds: of a write; when the operations and writes so far
	 * end. */
	double state_out, now, writes_end;
};

/*
 * Starts a program from the beginning; *x is all zero or was used before, except that x->state_out
 * has the seconds of a write of a state. Borrows `chain`. `near` may be NULL. Returns 0, -ENOMEM,
 * or NEAP_EINFEASIBLE if a pool of `pool` bytes is too small.
 */
int neap__block_program_start(struct neap__block_program *x, const struct neap_chain *chain,
	int64_t pool, const struct neap_blocks *plan, const struct neap_near *near);
/*
 * Uses the blocks of `plan` from step `step` on, which must be the first step of a block of the
 * last series that does not keep its state. Call it before any operation of these blocks was
 * generated, or call rewind afterwards. Returns 0, or -ENOMEM or NEAP_EINFEASIBLE, after which the
 * program cannot be used.
 */
int neap__block_program_replan(
	struct neap__block_program *x, int64_t step, const struct neap_blocks *plan);
/* Goes back to the start of the last series; its first operation gets this number. */
void neap__block_program_rewind(struct neap__block_program *x, int64_t number);
/*
 * Passes the next batch of operations to `push(user, op)`; x->number is the number of the operation
 * during the call. Returns 1, 0 at the end, or a negative code.
 */
int neap__block_program_next(struct neap__block_program *x,
	void (*push)(void *user, const struct neap__block_op *op), void *user);
/*
 * For predictions that skip equal blocks (one series only). alike: number of following blocks that
 * equal the ones a period before, without the first and the last block. skip: skips that number of
 * blocks, whole periods. shift: moves an operation that was already generated by that number of
 * blocks (negative: down).
 */
int64_t neap__block_program_alike(const struct neap__block_program *x, int begins);
void neap__block_program_skip(struct neap__block_program *x, int begins, int64_t blocks);
void neap__block_program_shift(
	const struct neap__block_program *x, struct neap__block_op *op, int64_t blocks);
/* Number of blocks after which the distribution of states and chunks over tiers repeats. */
int64_t neap__block_near_period(const struct neap_near *near);
/* Number of blocks after which this and the lengths of blocks repeat. */
int64_t neap__block_period(const struct neap__block_program *x);
/* Allocates at least `room` rows of each table; returns the number of rows, or -ENOMEM. */
int64_t neap__block_program_tables(struct neap__block_program *x, int64_t room);
void neap__block_program_free(struct neap__block_program *x);

/* Steps of the n blocks after the first one; n < 0: of -n blocks, whole periods, negative. */
static inline int64_t neap__block_steps(const struct neap_blocks *b, int64_t n)
{
	int64_t other = b->every > 0 ? n / b->every * (b->reserve_steps - b->advance) : 0;
	return n * (b->advance + b->record) + other;
}

/* The most steps that a block advances. */
static inline int64_t neap__block_longest(const struct neap_blocks *b)
{
	return b->every > 0 && b->reserve_steps > b->advance ? b->reserve_steps : b->advance;
}

/* The number of blocks of `steps` steps: as many as leave one step or more for the first one. */
static inline int64_t neap__block_count(const struct neap_blocks *b, int64_t steps)
{
	int64_t period = b->every > 0 ? b->every : 1;
	if (steps <= 0)
		return 0;
	int64_t n = (steps - 1) / neap__block_steps(b, period) * period;
	while (neap__block_steps(b, n + 1) < steps)
		n++;
	return n + 1;
}

/* The number of blocks in a chain of `steps` steps. */
static inline int64_t neap__block_plan_count(const struct neap_blocks *b, int64_t steps)
{
	return neap__block_count(b, steps - b->tail);
}

#endif

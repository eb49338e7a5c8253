/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.h: the chain of steps to reverse, the tiers that may hold bytes, and
 * the budget; together a problem, which a strategy solves (plan.h).
 *
 *     struct neap_problem p = NEAP_PROBLEM_INIT;
 *     p.chain.steps = 100000;
 *     p.chain.state = 64 << 10;               bytes
 *     p.chain.tape = 256 << 10;               bytes a step
 *     p.chain.advance = p.chain.record = 1e-3; seconds a step
 *     p.chain.backward = 2e-3;
 *     p.memory = 64 << 20;                    bytes of fast memory
 *
 * Words: step t maps state t to state t+1. `advance` runs it without keeping
 * anything, `record` keeps its tape, `backward` uses and frees the tape. Tier 0
 * is the fast memory; tiers[0] of a problem is the first slow tier, "tier 1".
 *
 * Structures and versions. A structure that may grow begins with `size`, which the caller
 * sets to its sizeof, also where the library fills it in: a program that was compiled with
 * an older header goes on working with a newer library, and a structure that is larger than
 * the library knows is refused (NEAP_EUSAGE: the library is older than the header). What
 * lies within others, such as struct neap_chain, keeps its size: `reserved` words are 0 and
 * become fields.
 */
#ifndef NEAP_CHAIN_H
#define NEAP_CHAIN_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NEAP_TIERS_MAX 8
#define NEAP_INFINITE UINT64_MAX /* capacity of a tier without a limit */

/* Properties of a slow tier (bits of neap_tier_spec.flags). */
enum neap_tier_flags {
	NEAP_TIER_SYNC = 1,   /* computation waits for every transfer */
	NEAP_TIER_DUPLEX = 2, /* reads and writes have a channel each */
};

/* What the planner knows of a slow tier. */
struct neap_tier_spec {
	char name[24];
	uint64_t capacity;  /* bytes, or NEAP_INFINITE */
	double write_rate;  /* bytes a second; 0 means infinitely fast */
	double read_rate;   /* bytes a second; 0 means infinitely fast */
	double write_fixed; /* seconds a transfer, besides bytes/rate */
	double read_fixed;  /* seconds a transfer, besides bytes/rate */
	uint64_t staging;   /* bytes of tier 0 the tier's engine takes while in use */
	uint32_t flags;	    /* enum neap_tier_flags */
	uint32_t reserved;
	/*
	 * Seconds of computing lost a byte moved, either way: what copies, checksums and
	 * a busy memory cost the computation that goes on beside the transfer. Charged as
	 * a transfer is issued; not on a synchronous tier, beside which nothing goes on.
	 */
	double cpu;
	double cpu_fixed;	    /* seconds of computing a transfer costs, besides cpu * bytes */
	uint64_t reserved_words[2]; /* 0 */
};

/* Properties of a chain (bits of neap_chain.flags). */
enum neap_chain_flags {
	/*
	 * A classic problem: memory counts slots, the live state and the one
	 * tape of the step being reversed are free; more tapes cannot be had.
	 */
	NEAP_CHAIN_CLASSIC = 1,
	/* Tapes stay in tier 0: only states travel to slow tiers. */
	NEAP_CHAIN_TAPES_STAY = 2,
	/* With CLASSIC: a slot holds a state or a tape; one tape is still free. */
	NEAP_CHAIN_MIXED = 4,
};

/* Properties of a chain whose stages differ (bits of neap_stages.flags). */
enum neap_stages_flags {
	/* The tape of stage i holds x_{i+1}: the chain can be resumed from it. */
	NEAP_STAGES_TAPE_HOLDS_OUTPUT = 1,
	/* Backward of stage i needs x_i, or the tape of stage i - 1 that holds it. */
	NEAP_STAGES_BACKWARD_NEEDS_INPUT = 2,
};

/*
 * Sizes and costs of a chain whose L = steps stages differ; stage i makes x_{i+1}
 * of x_i, number L is the loss. Bytes and seconds. The gradient of x_i takes the
 * bytes of x_i, or chain.adjoint bytes where that is not 0.
 *
 * What a stage takes while it runs, besides all that is kept: advance x_i, x_{i+1}
 * and advance_tmp; record x_i, the tape, record_tmp, and x_{i+1} unless the tape
 * holds it; backward the tape, the gradients of both its ends, backward_tmp and,
 * where it is needed, x_i. A state that is live, in slots or in a tape counts once.
 */
struct neap_stages {
	const double *advance;	      /* [L] */
	const double *record;	      /* [L]; NULL: as advance */
	const double *backward;	      /* [L + 1], the loss last */
	const uint64_t *state;	      /* [L + 1] */
	const uint64_t *tape;	      /* [L] */
	const uint64_t *advance_tmp;  /* [L]; NULL: 0 */
	const uint64_t *record_tmp;   /* [L]; NULL: as advance_tmp */
	const uint64_t *backward_tmp; /* [L + 1]; NULL: 0 */
	uint32_t flags;		      /* enum neap_stages_flags */
	uint32_t reserved;
};

/*
 * A uniform chain, or with `stages` one whose steps differ; then state, tape,
 * tape_max, live, advance, record and backward below are not looked at. `tape` is
 * what a plan counts a step; where tapes vary, `tape_max` is the largest possible
 * one and every plan keeps tape_max - tape bytes free besides the tapes, so that
 * one worst-case tape always fits.
 */
struct neap_chain {
	int64_t steps;	   /* T >= 0 */
	uint64_t state;	   /* S bytes */
	uint64_t tape;	   /* A bytes a step */
	uint64_t tape_max; /* largest tape of a step; 0 means `tape` */
	uint64_t adjoint;  /* bytes */
	uint64_t live;	   /* bytes of the state being stepped; 0: S (none in classic problems) */
	double advance;	   /* f seconds a step */
	double record;	   /* r seconds a step */
	double backward;   /* b seconds a step */
	double slot_write; /* seconds to copy the live state into a slot */
	double slot_read;  /* seconds to copy a slot into the live state */
	uint32_t flags;	   /* enum neap_chain_flags */
	uint32_t reserved;
	const struct neap_stages *stages; /* NULL: uniform; borrowed */
	/*
	 * Steps of a second chain that meets the first in one loss, 0: none. Classic
	 * problems only; slots then hold every state kept, the two live ones too.
	 */
	int64_t join;
	/*
	 * A log of what a step did, from which its tape can be made again once the state
	 * before it is there (the spikes of a spiking net): bytes a step, 0: there is
	 * none. Uniform chains in bytes only.
	 */
	uint64_t log;
	double replay; /* seconds a step to make a tape from state and log */
	/*
	 * Seconds that a call of advance, record or backward takes besides its steps: each
	 * such action of a schedule is one call. Plans are predicted and compared with it;
	 * strategies do not look at it as they choose their splits. Uniform chains only: where
	 * stages differ, each is a call of its own, whose seconds hold it.
	 */
	double call;
	/*
	 * Bytes a step that transfers of tapes take, where tapes vary: their mean, at most
	 * `tape`, which leaves room for the fullest. 0: `tape`. Memory and the places of a
	 * tier are counted with `tape`.
	 */
	uint64_t tape_mean;
	/*
	 * How much of a step the last one is, where steps are groups that do not divide a
	 * sequence evenly: its seconds over those of the others, above 0 and at most 1; 0: 1.
	 * Plans are predicted with it, bounds hold with it; strategies choose their splits as
	 * if the last step were whole, and its tape has the room of a whole one. One chain of
	 * uniform steps only.
	 */
	double last;
	uint64_t reserved_words[3]; /* 0 */
};

/* What a plan is made for: a chain, a budget of fast memory and the slow tiers. */
struct neap_problem {
	uint32_t size; /* sizeof(struct neap_problem) */
	int ntiers;
	struct neap_chain chain;
	uint64_t memory; /* budget of tier 0 in bytes (slots, in a classic problem) */
	struct neap_tier_spec tiers[NEAP_TIERS_MAX];
};

/* All zero but for its size. */
#define NEAP_PROBLEM_DEFAULTS(X)
#define NEAP_PROBLEM_INIT NEAP__INIT(neap_problem, NEAP_PROBLEM_DEFAULTS(NEAP__INIT_FIELD))
NEAP__INIT_FUNCTION(neap_problem, NEAP_PROBLEM_DEFAULTS)

/*
 * Checks every number of a problem: no negative, NaN or absurd values, no
 * product that overflows. 0, or NEAP_EUSAGE with the detail line naming the
 * value.
 */
NEAP_API int neap_problem_check(const struct neap_problem *problem);

/*
 * The least budget any strategy can work with: live state, one slot (for x_0),
 * adjoint and one worst-case tape; without the slot when steps <= 1, and less
 * where all tapes take less or a slow tier can hold x_0 or most of the tapes.
 * It is exact but for more than 40 stages with slow tiers, where it works and less may do.
 */
NEAP_API uint64_t neap_problem_least(const struct neap_problem *problem);

/* Seconds to move `bytes` to (write != 0) or from a tier, alone on its channel. */
NEAP_API double neap_tier_seconds(const struct neap_tier_spec *tier, int write, uint64_t bytes);
/* Seconds of computing that a transfer of `bytes` costs, besides waiting for it. */
NEAP_API double neap_tier_lost(const struct neap_tier_spec *tier, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif

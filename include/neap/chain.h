/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.h: the chain of time steps to differentiate, the memory tiers, and the memory budget.
 * Together they form a problem, which a strategy solves (plan.h).
 *
 *     struct neap_problem p = NEAP_PROBLEM_INIT;
 *     p.chain.steps = 100000;
 *     p.chain.state = 64 << 10;                bytes
 *     p.chain.tape = 256 << 10;                bytes per step
 *     p.chain.advance = p.chain.record = 1e-3; seconds per step
 *     p.chain.backward = 2e-3;
 *     p.memory = 64 << 20;                     bytes of fast memory
 *
 * Terms: step t maps state t to state t+1. `advance` runs a step forward and saves nothing;
 * `record` runs it forward and saves its tape, the saved activations that the backward step needs;
 * `backward` runs the backward step and frees the tape. The adjoint is the gradient with respect to
 * the state. Tier 0 is fast memory (RAM); tiers[0] of a problem is the first slow tier (slow memory
 * such as a disk), called "tier 1".
 *
 * Structures and versions: a structure that may grow begins with `size`, which the caller sets to
 * its sizeof, even if the library fills the structure in. A program that was compiled with an older
 * header therefore works with a newer library. A structure that is larger than the library knows is
 * rejected (NEAP_EUSAGE: the library is older than the header). A structure that is nested in
 * another, such as struct neap_chain, never changes its size: its `reserved` words must be 0 and
 * may become fields.
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
	NEAP_TIER_SYNC = 1,   /* computation stops during every transfer */
	NEAP_TIER_DUPLEX = 2, /* reads and writes have separate channels */
};

/* A slow tier as the planner sees it: capacity, rates and costs. */
struct neap_tier_spec {
	char name[24];
	uint64_t capacity;  /* bytes, or NEAP_INFINITE */
	double write_rate;  /* bytes per second; 0: infinitely fast */
	double read_rate;   /* bytes per second; 0: infinitely fast */
	double write_fixed; /* seconds per transfer, in addition to bytes/rate */
	double read_fixed;  /* seconds per transfer, in addition to bytes/rate */
	uint64_t staging;   /* bytes of tier 0 that the tier's engine needs while in use */
	uint32_t flags;	    /* enum neap_tier_flags */
	uint32_t reserved;
	/*
	 * Seconds of computation lost per byte transferred, in either direction: copies, checksums
	 * and memory bandwidth slow the computation that overlaps with the transfer. Charged when a
	 * transfer is issued. Not charged on a synchronous tier, whose transfers overlap with
	 * nothing.
	 */
	double cpu;
	double cpu_fixed; /* seconds of computation lost per transfer, in addition to cpu * bytes */
	uint64_t reserved_words[2]; /* 0 */
};

/* Properties of a chain (bits of neap_chain.flags). */
enum neap_chain_flags {
	/*
	 * A classic problem: the budget counts slots. The live state and one tape, of the step
	 * being reversed, are not counted; no more than one tape can exist.
	 */
	NEAP_CHAIN_CLASSIC = 1,
	/* Tapes stay in tier 0; only states are offloaded to slow tiers. */
	NEAP_CHAIN_TAPES_STAY = 2,
	/* With CLASSIC: a slot holds a state or a tape; one tape is still not counted. */
	NEAP_CHAIN_MIXED = 4,
};

/* Properties of a chain with non-uniform stages (bits of neap_stages.flags). */
enum neap_stages_flags {
	/* The tape of stage i contains x_{i+1}, so the chain can resume from it. */
	NEAP_STAGES_TAPE_HOLDS_OUTPUT = 1,
	/* Backward of stage i needs x_i, or the tape of stage i - 1 that contains it. */
	NEAP_STAGES_BACKWARD_NEEDS_INPUT = 2,
};

/*
 * Sizes (bytes) and costs (seconds) of a chain with L = steps stages, each with its own sizes and
 * costs, such as the layers of a network. Stage i computes x_{i+1} from x_i; stage L is the loss.
 * The gradient with respect to x_i has the size of x_i, or chain.adjoint bytes if that is not 0.
 *
 * Memory of a stage while it runs, in addition to all that is saved: advance needs x_i, x_{i+1} and
 * advance_tmp; record needs x_i, the tape, record_tmp, and x_{i+1} unless the tape contains it;
 * backward needs the tape, the gradients with respect to x_i and x_{i+1}, backward_tmp and, if it
 * is required, x_i. A state that is live, in slots and in a tape at once is counted once.
 */
struct neap_stages {
	const double *advance;	      /* [L] */
	const double *record;	      /* [L]; NULL: same as advance */
	const double *backward;	      /* [L + 1]; the last entry is the loss */
	const uint64_t *state;	      /* [L + 1] */
	const uint64_t *tape;	      /* [L] */
	const uint64_t *advance_tmp;  /* [L]; NULL: 0 */
	const uint64_t *record_tmp;   /* [L]; NULL: same as advance_tmp */
	const uint64_t *backward_tmp; /* [L + 1]; NULL: 0 */
	uint32_t flags;		      /* enum neap_stages_flags */
	uint32_t reserved;
};

/*
 * A uniform chain or, if `stages` is set, a chain with non-uniform stages; then state, tape,
 * tape_max, live, advance, record and backward below are ignored. Plans count `tape` bytes per
 * step. If tapes vary in size, `tape_max` is the size of the largest possible one, and every plan
 * keeps tape_max - tape bytes free in addition to the tapes, so that one worst-case tape always
 * fits.
 */
struct neap_chain {
	int64_t steps;	   /* T >= 0 */
	uint64_t state;	   /* S bytes */
	uint64_t tape;	   /* A bytes per step */
	uint64_t tape_max; /* size of the largest tape; 0: `tape` */
	uint64_t adjoint;  /* bytes of the adjoint */
	uint64_t live;	   /* bytes of the live state; 0: S (none in classic problems) */
	double advance;	   /* f seconds per step */
	double record;	   /* r seconds per step */
	double backward;   /* b seconds per step */
	double slot_write; /* seconds to copy the live state into a slot */
	double slot_read;  /* seconds to copy a slot into the live state */
	uint32_t flags;	   /* enum neap_chain_flags */
	uint32_t reserved;
	const struct neap_stages *stages; /* NULL: uniform; borrowed */
	/*
	 * Number of steps of a second chain that ends in the same loss; 0: none. Its steps have
	 * the sizes and times of the first chain. Only for uniform chains without tiers. In
	 * classic problems slots count every saved state and the two live states.
	 */
	int64_t join;
	/*
	 * Bytes per step of a log: a compact record of a step (such as the spikes of a spiking
	 * network) from which, with the state before the step, its tape can be rebuilt. 0: none.
	 * For uniform chains with sizes in bytes only.
	 */
	uint64_t log;
	double replay; /* seconds per step to rebuild a tape from state and log */
	/*
	 * Fixed cost in seconds of one call of advance, record or backward, in addition to its
	 * steps; each such action of a schedule is one call (but see record_steps). Predicted times
	 * include it, plans are compared with it, and strategies that record single steps record
	 * groups of steps if that is faster. For uniform chains only: with stages, each stage is
	 * one call, whose seconds include it.
	 */
	double call;
	/*
	 * Mean bytes per step of tapes in transfers, if tapes vary: at most `tape`, which has room
	 * for the fullest tape. 0: `tape`. Memory and places on a tier are counted with `tape`.
	 */
	uint64_t tape_mean;
	/*
	 * Relative length of the last step, if steps are groups of time steps that do not divide a
	 * sequence evenly: its seconds divided by those of the other steps, above 0 and at most 1;
	 * 0: 1. Predicted times and bounds include it. Strategies choose their splits as if the
	 * last step were whole, and its tape has the room of a whole one. For a single chain of
	 * uniform steps only.
	 */
	double last;
	/*
	 * Most steps of one call of record or backward, as in neap_step_ops: a longer action is
	 * several calls, of which predicted times count one more per record_steps steps. 0: no
	 * limit.
	 */
	int64_t record_steps;
	uint64_t reserved_words[2]; /* 0 */
};

/* The input of the planner: a chain, a budget of fast memory, and the slow tiers. */
struct neap_problem {
	uint32_t size; /* sizeof(struct neap_problem) */
	int ntiers;
	struct neap_chain chain;
	uint64_t memory; /* budget of tier 0 in bytes (in slots for a classic problem) */
	struct neap_tier_spec tiers[NEAP_TIERS_MAX];
};

/* All fields are zero except size. */
#define NEAP_PROBLEM_DEFAULTS(X)
#define NEAP_PROBLEM_INIT NEAP__INIT(neap_problem, NEAP_PROBLEM_DEFAULTS(NEAP__INIT_FIELD))
NEAP__INIT_FUNCTION(neap_problem, NEAP_PROBLEM_DEFAULTS)

/*
 * Checks every number of a problem: no negative, NaN or absurdly large values, and no product that
 * overflows. Returns 0, or NEAP_EUSAGE; the detail line shows the value.
 */
NEAP_API int neap_problem_check(const struct neap_problem *problem);

/*
 * Returns the least budget that any strategy can work with: live state, one slot (for x_0), adjoint
 * and one worst-case tape; without the slot if steps <= 1, and less if all tapes need less, or if a
 * slow tier can hold x_0 or most of the tapes. Exact except for more than 40 stages with slow
 * tiers: then the returned budget works, but a smaller one may also work.
 */
NEAP_API uint64_t neap_problem_least(const struct neap_problem *problem);

/*
 * Returns the seconds to write (write != 0) or read `bytes`, with no other transfer on the channel.
 */
NEAP_API double neap_tier_seconds(const struct neap_tier_spec *tier, int write, uint64_t bytes);
/*
 * Returns the seconds of computation that a transfer of `bytes` costs, apart from waiting for it.
 */
NEAP_API double neap_tier_lost(const struct neap_tier_spec *tier, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif

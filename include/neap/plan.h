/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: strategies turn a problem (chain.h) into a schedule, which is a stream of actions;
 * verify, simulate, draw and the sweep (sweep.h) process it.
 *
 *     struct neap_plan plan = {.size = sizeof plan};
 *     struct neap_schedule *s;
 *     neap_plan_make(&plan, &problem, "double", NULL);
 *     neap_schedule_open(&s, &problem, &plan);
 *     struct neap_action a;
 *     while (neap_schedule_next(s, &a) > 0)
 *             printf("%s %lld\n", neap_action_name(a.kind), (long long)a.t0);
 *     neap_schedule_close(s);
 *
 * Rules of the action language (neap_verify checks them):
 *  - Ranges are half open, [t0, t1). The live state is initially x_0.
 *  - ADVANCE and RECORD need the live state at t0 and leave it at t1; RECORD creates a tape for
 *    each step of its range.
 *  - TURN needs the live state at T, once, before any BACKWARD; it computes the loss and the
 *    adjoint at T.
 *  - BACKWARD needs the adjoint at t1 and the tapes of [t0, t1), frees the tapes and leaves the
 *    adjoint at t0. Its range consists of whole RECORDed ranges. Afterwards the live state is
 *    undefined, unless a GET into it is in flight.
 *  - SAVE copies the live state into a free slot; LOAD copies a slot into the live state and keeps
 *    the slot; DROP frees a slot. DROP with payload NEAP_TAPE frees the tapes of [t0, t1), whole
 *    RECORDed ranges. If tapes hold the output of their stage, LOAD with payload NEAP_TAPE takes
 *    x_t0 from the tape of step t0 - 1.
 *  - PUT starts to write a state (from slot `slot`, or the live state if NEAP_LIVE) or the tapes
 *    of [t0, t1) to `place` of `tier` and returns at once; the source must not change until the
 *    WAIT for its ticket. GET starts to read a record into a free slot or the live state; the
 *    destination must not be used before its WAIT. A GET may be issued while the PUT to the same
 *    place is in flight. A record may be read more than once; FORGET frees its place. States and
 *    tapes have separate places on a tier, each numbered from 0.
 *  - Tapes can be offloaded (payload NEAP_TAPE) unless the problem has NEAP_CHAIN_TAPES_STAY. PUT
 *    takes a range of whole RECORDed ranges; their tapes stay in place, unusable, until its WAIT,
 *    which frees them. GET takes exactly a range that was PUT, of which no tape may be in fast
 *    memory. Its bytes count from the GET on; after the WAIT the range can be reversed or
 *    offloaded again, as one range. `slot` is 0 in both. A place for tapes has the size of the
 *    longest range that is ever written to its tier.
 *  - Logs (payload NEAP_LOG, chain.log): ADVANCE with that payload creates a log of its range.
 *    RECORD with that payload rebuilds the tapes of [t0, t1), whole logged ranges, from logs in
 *    chain.replay seconds per step and keeps the logs. DROP frees whole logged ranges; PUT, GET
 *    and FORGET transfer logs like tapes, with which they share the places of a tier.
 *  - If steps differ (chain.stages), each step's tape is a separate record that can be offloaded
 *    with its neighbours and reversed without them. The state that a tape holds can be read while
 *    the tape is written, and is offloaded only with it: no slot may contain a part of a tape that
 *    was offloaded, and the live state is undefined if it did. A place has the size of its
 *    contents. The live state is undefined after TURN.
 *  - Two chains with one loss (chain.join): the first has steps [0, a) and states 0 to a, the
 *    second has steps [a + 1, a + 1 + b) and states a + 1 to a + 1 + b; step a does not exist.
 *    Each chain has its own live state, initially its first state, and its own adjoint; an action
 *    uses those of the chain of its steps or states. TURN, at a + 1 + b, needs both live states
 *    at their ends, computes both adjoints and leaves both live states undefined. Each chain has
 *    the tapes of at most one RECORD at a time, which one BACKWARD takes. A budget in bytes counts
 *    slots in use, defined live states, these tapes, and both adjoints from the start. A classic
 *    budget of M counts slots in use and live states, whatever they contain; only one tape of one
 *    step exists at a time.
 *  - Tickets are small numbers, 0 <= ticket < NEAP_TICKETS, that can be reused after WAIT. Every
 *    ticket must be waited for.
 */
#ifndef NEAP_PLAN_H
#define NEAP_PLAN_H

#include <neap/chain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, text) */
#define NEAP_ACTION_TABLE(X)                                                                       \
	X(NEAP_ADVANCE, "advance")                                                                 \
	X(NEAP_RECORD, "record")                                                                   \
	X(NEAP_TURN, "turn")                                                                       \
	X(NEAP_BACKWARD, "backward")                                                               \
	X(NEAP_SAVE, "save")                                                                       \
	X(NEAP_LOAD, "load")                                                                       \
	X(NEAP_DROP, "drop")                                                                       \
	X(NEAP_PUT, "put")                                                                         \
	X(NEAP_GET, "get")                                                                         \
	X(NEAP_WAIT, "wait")                                                                       \
	X(NEAP_FORGET, "forget")

/* The actions of a schedule: NEAP_ACTION_TABLE lists the values. */
enum neap_action_kind {
#define NEAP_X(name, text) name,
	NEAP_ACTION_TABLE(NEAP_X)
#undef NEAP_X
		NEAP_ACTION_KINDS
};

/* The data that an action saves, frees, computes or transfers. */
enum neap_payload { NEAP_STATE, NEAP_TAPE, NEAP_LOG };

#define NEAP_LIVE (-1)	 /* slot number of the live state */
#define NEAP_TICKETS 256 /* maximum number of transfers in flight */

/*
 * One action of a schedule. For states (SAVE, LOAD, DROP, PUT, GET, FORGET), t0 is the number of
 * the state; only ranges use t1.
 */
struct neap_action {
	uint8_t kind;	 /* enum neap_action_kind */
	uint8_t payload; /* enum neap_payload */
	uint16_t tier;	 /* 1 = the problem's tiers[0] */
	int32_t ticket;
	int64_t slot; /* SAVE LOAD DROP PUT GET of a state; NEAP_LIVE */
	int64_t t0, t1;
	int64_t place; /* PUT GET FORGET: number of the record on its tier */
};

/* Returns the name of an action kind, such as "advance"; "?" if there is none. */
NEAP_API const char *neap_action_name(int kind);

#define NEAP_ACTION_TEXT 160 /* bytes of the longest text of an action */
/*
 * Writes an action into `room` as one line of text, and returns `room`: "advance 0 40", "save state
 * at 40 slot 2", "put tape 40 50 tier 1 place 3 ticket 0" or "record log 0 40", for example,
 * without a newline.
 */
NEAP_API const char *neap_action_show(
	char room[NEAP_ACTION_TEXT], const struct neap_action *action);

/*
 * The parameters of strategies, defined only here: X(name, option, meaning). `option` is the name
 * on the command line; parameters of the second table have no option.
 */
#define NEAP_PARAM_OPTION_TABLE(X)                                                                 \
	X(chunk, "chunk", "steps between local checkpoints")                                       \
	X(checkpoints, "checkpoints", "checkpoints kept (or, hierarchical, moved) together")       \
	X(remote_chunk, "remote-chunk", "steps between remote checkpoints")
#define NEAP_PARAM_FOUND_TABLE(X)                                                                  \
	X(interval, "", "steps of a block, from one kept state to the next")                       \
	X(period, "", "steps between the states that go to a slow tier")                           \
	X(group, "", "steps recorded together by a strategy that records single steps")            \
	X(tail, "", "steps at the end that are in no block")                                       \
	X(kept_tapes, "", "steps of a block whose tapes leave for a slow tier")
#define NEAP_PARAM_TABLE(X) NEAP_PARAM_OPTION_TABLE(X) NEAP_PARAM_FOUND_TABLE(X)

/* Parameters of a strategy; 0: choose the best value. Unused ones are ignored. */
struct neap_params {
#define NEAP_X(name, option, meaning) int64_t name;
	NEAP_PARAM_TABLE(NEAP_X)
#undef NEAP_X
	int64_t effort;	     /* limit of a search, in simulations or equivalent work; 0: 2000 */
	int64_t reserved[4]; /* 0 */
};

/*
 * Plans of blocks: the chain is divided into a first, shorter block, blocks of record + advance
 * steps, and a tail. In the forward pass each block records `record` steps in chunks and offloads
 * their tapes, offloads the state after them, and advances. The tail is reversed at once. Then,
 * from the last block to the first, the state is read and `advance` steps are reversed from it;
 * then the tapes are read and reversed.
 */
enum neap_blocks_inner {
	NEAP_BLOCKS_LEAF,      /* Revolve whose leaves are as long as the tapes fit */
	NEAP_BLOCKS_REVOLVE,   /* classic Revolve with one tape */
	NEAP_BLOCKS_MULTIREAD, /* slots, and repeated reads of the block's state at a price */
	NEAP_BLOCKS_KEPT,      /* like LEAF; the last states stay in fast memory: kept_states */
};

/* The blocks of a plan; see enum neap_blocks_inner. */
struct neap_blocks {
	int64_t advance, record; /* steps per block; 0, 0: not a plan of blocks */
	int64_t chunk;		 /* steps whose tapes are transferred together */
	int64_t tail;
	int64_t reserve, tail_reserve; /* bytes kept free for transfers */
	double price;		       /* MULTIREAD: assumed seconds of a read or write */
	int32_t inner;
	/*
	 * MULTIREAD: after the first block, every `every`-th block has `reserve_steps` steps
	 * instead of `advance`. 0: all blocks have the same length.
	 */
	int32_t every;
	/*
	 * LEAF: number of steps at the start of a block, reversed last, during which `reserve`
	 * bytes are kept free for the state of the previous block; the other steps use the whole
	 * pool. 0: all steps.
	 */
	int64_t reserve_steps;
	/*
	 * KEPT: number of blocks before the tail whose states stay in fast memory and are not
	 * written. Their lengths increase from `reserve_steps` steps, of the block just before the
	 * tail, to `advance` steps. `record` is 0.
	 */
	int64_t kept_states;
};

#define NEAP_REPLANS_MAX 4

/* From step `from`, the start of a block, the chain follows `blocks`, as if it started there. */
struct neap_replan {
	int64_t from;
	struct neap_blocks blocks;
};

/*
 * Plans of blocks that use two tiers: `tier` of the plan, and the faster `near.tier`. Either blocks
 * are divided further: the `advance` steps of a block are reversed through inner blocks, whose
 * states and tapes are written to the near tier and are no longer on it when the block is done; so
 * are the `tail` steps, with their own numbers (last_...). A divided part consists of a first,
 * shorter block, blocks of record + advance steps, and a tail; a part with no more steps than that
 * tail, or with all numbers 0, is reversed in fast memory. Or (share > 0) blocks are not divided,
 * and `share` of every 96 states and of every 96 chunks are written to the near tier, evenly
 * spread.
 */
struct neap_near {
	int32_t tier;  /* 1 = tiers[0]; 0: the plan has no second tier */
	int32_t share; /* of NEAP_NEAR_SHARES */
	int64_t chunk; /* steps whose tapes are transferred together */
	int64_t advance, record, tail;
	int64_t last_advance, last_record, last_tail;
	int64_t reserved_words[2]; /* 0 */
};

#define NEAP_NEAR_SHARES 96

/* Bytes that a schedule stores on a slow tier and transfers. */
struct neap_tier_use {
	uint64_t peak_bytes;
	uint64_t written;
	uint64_t read;
	uint64_t reserved; /* 0 */
};

/* A strategy with its parameters, and its memory and predicted time. */
struct neap_plan {
	uint32_t size; /* sizeof(struct neap_plan); to be set before a call fills in the plan */
	int feasible;
	const char *strategy;	   /* a name of neap_strategy_name(); static */
	const char *chosen;	   /* auto: the strategy that it chose; else == strategy */
	struct neap_params params; /* the parameters used; unused ones are 0 */
	struct neap_blocks blocks; /* for stream, async, auto; else all zero */
	uint64_t arena_bytes;	   /* tier-0 bytes of a run: the peak with a worst-case tape */
	uint64_t peak_bytes;	   /* of tier 0 */
	uint64_t slow_bytes;	   /* sum of the tiers' peaks */
	struct neap_tier_use tiers[NEAP_TIERS_MAX];
	int64_t slots;	       /* slots numbered 0..slots-1 are used */
	int64_t stage_slots;   /* slots that stage states for offloading */
	int tier;	       /* the slow tier used, 1 = tiers[0]; 0: none; see `near` too */
	int variant;	       /* variant of the strategy */
	int64_t advance_steps; /* forward steps that save nothing */
	int64_t record_steps;  /* forward steps that save their tapes */
	double makespan;       /* predicted seconds, including all costs */
	double stall;	       /* part of makespan: waiting for transfers */
	double lost;	       /* part of makespan: computation lost to transfers */
	double overhead;       /* makespan / (T (r + b) + 2 calls) - 1 */
	double bound;	       /* seconds; no schedule is faster (neap_bound) */
	double gap;	       /* makespan / bound - 1 */
	double model_bound;    /* lower bound within the strategy's own model; 0: unknown */
	uint64_t least_bytes;  /* infeasible: a budget that works (slots, if classic); else 0 */
	char why[160];	       /* infeasible: the reason, one line */
	/*
	 * The schedule as a list of actions, borrowed; neap_schedule_open plays it. NULL, as in
	 * every plan from neap_plan_make: the strategy `chosen` generates the actions. The list of
	 * a plan from text is valid until neap_saved_free, of one from neap_plan_copy until
	 * neap_plan_free, otherwise as long as its owner specifies.
	 */
	const struct neap_action *actions;
	int64_t action_count;
	/* Plans of blocks that were replaced during a run: the blocks from a step on. */
	struct neap_replan replans[NEAP_REPLANS_MAX];
	int64_t replan_count;
	struct neap_near near; /* for auto; else all zero */
};

/* Returns the name of a strategy, in table order with "auto" last; NULL beyond the end. */
NEAP_API const char *neap_strategy_name(int index);
/* Returns one line about a strategy and its paper; NULL if there is none of that name. */
NEAP_API const char *neap_strategy_about(const char *name);

/* Properties of a strategy, for programs that list or choose strategies. */
enum neap_strategy_trait {
	NEAP_STRATEGY_CHOOSES = 1,	   /* picks the fastest of the other strategies */
	NEAP_STRATEGY_STAGES = 2,	   /* plans chains with non-uniform stages (chain.stages) */
	NEAP_STRATEGY_JOIN = 4,		   /* plans two chains with one loss (chain.join) */
	NEAP_STRATEGY_TIERS = 8,	   /* its plans may use slow tiers */
	NEAP_STRATEGY_REPLAYS = 16,	   /* needs chain.log, rebuilds tapes from logs */
	NEAP_STRATEGY_TAPE_SLOTS = 32,	   /* its classic problem is NEAP_CHAIN_MIXED */
	NEAP_STRATEGY_UNKNOWN_LENGTH = 64, /* runs a chain of unknown length */
};
/* Returns the traits of a strategy, enum neap_strategy_trait; 0 if there is none of that name. */
NEAP_API uint32_t neap_strategy_traits(const char *name);

/*
 * Plans a problem with one strategy and fills in `plan`, whose size the caller has set (see
 * chain.h). Returns 0 if the arguments are valid, even if no plan fits (plan->feasible == 0, with
 * `why`); NEAP_EUSAGE for an unknown strategy or invalid numbers. params (may be NULL) fixes
 * parameters.
 *
 * T = 0 is feasible with any strategy and budget, and all numbers are zero: the schedule is one
 * TURN, for which the caller owns x_0 and the adjoint. overhead and gap are infinite if only their
 * divisor is 0.
 */
NEAP_API int neap_plan_make(struct neap_plan *plan, const struct neap_problem *problem,
	const char *strategy, const struct neap_params *params);
/*
 * Plans as neap_plan_make, with a known bound: `bound` is the result of neap_bound, for example
 * from a plan of the same problem by another strategy. Computing it may take longer than planning.
 */
NEAP_API int neap_plan_make_bounded(struct neap_plan *plan, const struct neap_problem *problem,
	const char *strategy, const struct neap_params *params, double bound);

/*
 * Copies a plan, including its list of actions; the copy is independent of `plan` and valid until
 * neap_plan_free. Returns 0, -ENOMEM, or NEAP_EUSAGE if the size of the plan is not set.
 */
NEAP_API int neap_plan_copy(struct neap_plan **copy, const struct neap_plan *plan);
/* Frees a plan from neap_plan_copy; NULL is allowed. */
NEAP_API void neap_plan_free(struct neap_plan *copy);

/*
 * Returns the largest number of steps whose tapes the schedule of a feasible plan of `steps` steps
 * has in fast memory at a time. If tapes vary, a budget must fit the largest sum over that number
 * of consecutive tapes.
 */
NEAP_API int64_t neap_plan_tapes_held(const struct neap_plan *plan, int64_t steps);

/*
 * The stream of actions of a feasible plan. Memory is O(slots + log T), for `online` with a tier
 * O(slots + records on the tier), never O(T). The problem is copied. Close it with
 * neap_schedule_close (NULL is allowed).
 */
struct neap_schedule;
/* Opens the schedule of a plan at its first action. Returns 0 or a negative code. */
NEAP_API int neap_schedule_open(struct neap_schedule **schedule, const struct neap_problem *problem,
	const struct neap_plan *plan);
/*
 * Returns 1 and the next action, 0 at the end, or a negative code. NEAP_EUSAGE while another call
 * uses the schedule: from another thread, or from `next` of a wrapped schedule itself.
 */
NEAP_API int neap_schedule_next(struct neap_schedule *schedule, struct neap_action *action);
/* Closes a schedule; NULL is allowed. */
NEAP_API void neap_schedule_close(struct neap_schedule *schedule);

/*
 * Creates a schedule from callbacks: `next` as neap_schedule_next, `close` frees `user`. For tests
 * and for strategies outside the library.
 */
NEAP_API int neap_schedule_wrap(struct neap_schedule **schedule,
	int (*next)(void *user, struct neap_action *action), void (*close)(void *user), void *user);

/*
 * A chain of unknown length, for example with adaptive time steps or an event. The caller performs
 * the actions until its stopping rule applies:
 *
 *     neap_online_create(&online, &problem);         chain.steps is ignored
 *     while (neap_online_next(online, &a) > 0)
 *             if (a.kind == NEAP_ADVANCE || a.kind == NEAP_RECORD) {
 *                     t = as far as it goes;          a.t0 <= t <= a.t1
 *                     if (ended)
 *                             neap_online_finish(online, t, t);
 *             } else
 *                     perform(&a);
 *     neap_online_free(online);
 *
 * Until then the actions are those of an endless forward pass, afterwards those that reverse the
 * chain, then 0. x_0 is saved first.
 *
 * Without a tier the forward actions are ADVANCE, SAVE and DROP. With c slots and up to
 * (c+1)(c+2)/2 + 1 steps, the number of advance steps is minimal (Revolve's for the known length);
 * beyond, it is at most about 3% larger if c >= 6, and 14% if c = 2. In the backward pass, as many
 * tapes are kept as fit (`mixed`).
 *
 * With tiers, the fastest tier with enough room is used if fast memory fits a few states. States
 * are written as soon as the tier is idle according to the costs of the problem. Steps are recorded
 * while the chain is short, and DROP with payload NEAP_TAPE frees the oldest tapes. If the tier is
 * fast enough, tapes are also written. When a bounded tier is full, it keeps only every second
 * state from then on. The sweep takes about 4% longer than with a plan for the known length, at
 * most 16% (fast memory of 50 states); with fewer than ten states much longer.
 *
 * create: NEAP_EINFEASIBLE if x_0 and a tape do not fit; at most 65,536 slots are used. Memory is
 * O(slots), with a tier O(slots + records on the tier).
 *
 * finish: the live state is at step `at`, in the last ADVANCE or RECORD (or after it, if other
 * actions followed), and the chain has `steps` >= `at` steps. If called at steps - 1 during an
 * ADVANCE, the last step is recorded when it first runs; if called at `steps`, it is recomputed,
 * with as many advance steps as for a chain one step longer. If called earlier, the remaining steps
 * run as if the length were unknown. For an interrupted RECORD the tapes of [t0, at) count as
 * recorded. NEAP_EUSAGE for other numbers.
 */
struct neap_online;
/* Starts the schedule of a chain of unknown length. */
NEAP_API int neap_online_create(struct neap_online **online, const struct neap_problem *problem);
/* Returns 1 and the next action, 0 at the end, or a negative code. */
NEAP_API int neap_online_next(struct neap_online *online, struct neap_action *action);
/* Sets the length of the chain; the live state is at step `at`. 0 or a negative code. */
NEAP_API int neap_online_finish(struct neap_online *online, int64_t at, int64_t steps);
/* Frees the schedule; NULL is allowed. */
NEAP_API void neap_online_free(struct neap_online *online);

/* Functions that process a schedule. Each runs it to its end, so open a new one for each. */

/* Memory, steps and transfers of a schedule, as neap_verify counts them. */
struct neap_verdict {
	uint32_t size; /* sizeof(struct neap_verdict) */
	uint32_t reserved;
	/*
	 * Tier 0: adjoint, live state, slots in use, tapes, staging of used tiers. Tapes are
	 * counted up to the top of their stack, including gaps, as in a run, whose slots are packed
	 * at the top of its arena and its tapes at the bottom. If tapes are offloaded or there are
	 * logs, only existing tapes are counted, without gaps.
	 */
	uint64_t peak_bytes;
	uint64_t arena_bytes; /* as peak_bytes, with one worst-case tape kept free */
	struct neap_tier_use tiers[NEAP_TIERS_MAX]; /* peak: up to the highest place used */
	int64_t slots;				    /* highest slot number used, plus 1 */
	int64_t actions;
	int64_t advance_steps, record_steps, backward_steps;
	int64_t transfers_in_flight; /* maximum over all tiers */
};
/*
 * Checks a schedule against the rules above and counts its memory and steps. Returns 0;
 * NEAP_EILLEGAL, with the number of the action and the reason in the detail line.
 */
NEAP_API int neap_verify(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule);

/*
 * A simulated run: the makespan with one compute stream and, per tier, a write channel and a read
 * channel (one shared channel if not duplex), with transfers in the order of issue. Each ADVANCE,
 * RECORD and BACKWARD is one call, which costs chain.call in addition to its steps. Issuing a
 * transfer costs the compute stream neap_tier_lost seconds. The schedule must be legal. makespan =
 * computing + copies + lost + stall.
 */
struct neap_simulation {
	uint32_t size; /* sizeof(struct neap_simulation) */
	uint32_t reserved;
	double makespan;
	double advance, record, backward, copies; /* seconds of computation, by kind */
	double stall;				  /* waiting for all tiers */
	double lost;				  /* computation lost to overlapping transfers */
	double stall_write[NEAP_TIERS_MAX], stall_read[NEAP_TIERS_MAX];
	struct neap_tier_use tiers[NEAP_TIERS_MAX]; /* only written and read */
};
/* Simulates a schedule and fills in its times. Returns 0 or a negative code. */
NEAP_API int neap_simulate(struct neap_simulation *simulation, const struct neap_problem *problem,
	struct neap_schedule *schedule);

/*
 * Ranks: processes that share the work of a plan. neap_ranks_predict counts the messages and bytes
 * of the calls of peers.h: a call costs alpha per message that is waited for, plus bytes divided by
 * rate. `bench/ranks/exchange.py` measures both numbers and compares the prediction.
 *
 * Training (parameters above 0): every rank runs sweeps over whole groups of a batch, one group per
 * thread at a time; the plan is for one group on one thread. At the turn the ranks exchange spikes
 * and losses, then sums of gradients, 8 bytes per parameter for each node of the rank's tree of
 * groups, and new weights, 4 bytes each. A sweep whose state is distributed over ranks (parameters
 * 0; `agree` in sweep.h): the plan is for one rank. Ranks agree at every wait for a transfer, and
 * ten times per second.
 */
struct neap_ranks {
	uint32_t size; /* sizeof(struct neap_ranks) */
	int ranks;     /* 1 to 2^20 */
	double alpha;  /* seconds per message, in addition to its bytes */
	double rate;   /* bytes per second that a rank sends; 0: infinitely fast */
	int64_t parameters;
	int64_t units;		   /* hidden units */
	int batch, group, threads; /* samples per batch and per group; threads per rank */
	int tensors;		   /* number of parameter tensors, sent one by one; 0: 5 */
};
enum { NEAP_RANKS_TENSORS = 5 };
/* The prediction of neap_ranks_predict for a group of processes. */
struct neap_ranks_cost {
	uint32_t size;	   /* sizeof(struct neap_ranks_cost) */
	int idle;	   /* ranks without a group */
	double computed;   /* seconds per batch, or per sweep, on the slowest rank */
	double exchanged;  /* seconds of communication in addition */
	double efficiency; /* time of one rank / total time of all ranks, at most 1 */
	int64_t messages;  /* messages that a rank waits for, one after the other */
	uint64_t sent;	   /* upper bound on the bytes that a rank sends */
};
/* Predicts the time and the messages of ranks. Returns 0 or NEAP_EUSAGE. Thread-safe. */
NEAP_API int neap_ranks_predict(struct neap_ranks_cost *cost, const struct neap_problem *problem,
	const struct neap_plan *plan, const struct neap_ranks *ranks);

/*
 * Draws the simulated schedule as an SVG: step number against time, with a different mark for each
 * kind of action, and slow-tier transfers below. The text is passed to `write(user, text, length)`,
 * which returns 0 or a negative code. For schedules with more than `limit` marks (0: 200000), every
 * second, fourth, ... mark of a kind is drawn, and the title states it.
 */
NEAP_API int neap_draw(const struct neap_problem *problem, struct neap_schedule *schedule,
	const char *title, int64_t limit, int (*write)(void *user, const char *text, size_t length),
	void *user);

/* Flags of neap_plan_write. */
enum neap_write_flags { NEAP_WRITE_ACTIONS = 1 };

/*
 * Writes a feasible plan and its problem as text. The text (format: docs/plan-format.md) is passed
 * to `write(user, text, length)`, which returns 0 or a negative code. The list of actions is
 * included with NEAP_WRITE_ACTIONS (at most 10^6 of them, else NEAP_EUSAGE), and always if the plan
 * is a list itself or steps differ, so that reading it needs no tables. NEAP_EINFEASIBLE for a plan
 * that is not feasible.
 */
NEAP_API int neap_plan_write(const struct neap_plan *plan, const struct neap_problem *problem,
	uint32_t flags, int (*write)(void *user, const char *text, size_t length), void *user);

/* A plan from text, and everything that it points to. */
struct neap_saved {
	struct neap_problem *problem;
	struct neap_plan *plan;
};

/*
 * Reads a plan from text, written by neap or another program. Nothing is searched: the problem is
 * checked; the schedule is opened (strategies over several levels, and `chain` without its list,
 * compute their tables), verified and simulated; and all numbers in the text are compared with the
 * results: counts and bytes must be equal, times equal to nine digits. Only model_bound is not
 * checked. Numbers missing in the text are filled in. `walk` limits the number of actions of the
 * schedule; 0: no limit. Returns 0, NEAP_EFORMAT or the code of a check; the detail line has the
 * line number if there is one.
 */
NEAP_API int neap_plan_read(
	struct neap_saved **saved, const char *text, size_t length, int64_t walk);
/* Frees a plan from neap_plan_read; NULL is allowed. */
NEAP_API void neap_saved_free(struct neap_saved *saved);

/*
 * A lower bound on the makespan of any schedule of the problem, in seconds. Without a slow tier,
 * the convex hull of the least recomputation; with slow tiers, the linear program of
 * src/plan/bound/turn_program.h, in which bounded tiers also count as fast memory, and several
 * tiers otherwise as one with the sum of their rates; if steps differ, what the budget and the
 * channels force at the turn (src/plan/bound/stage_bound.h). docs/lower-bound.md has the proofs,
 * and the one case in which the bound relies on a theorem from the literature.
 */
NEAP_API double neap_bound(const struct neap_problem *problem);
/*
 * An estimate of the makespan of the fastest schedule, in seconds. `bound` is the result of
 * neap_bound and the least estimate. With slow tiers, the estimate ignores that a state that is
 * held at the turn makes room when it is written later. Schedules that make use of this can be
 * faster than the estimate, by 1.2% in the problems that are known. Otherwise the estimate equals
 * the bound.
 */
NEAP_API double neap_estimate(const struct neap_problem *problem, double bound);

#ifdef __cplusplus
}
#endif
#endif

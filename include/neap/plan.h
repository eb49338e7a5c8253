/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: strategies turn a problem (chain.h) into a schedule, a stream of
 * actions; verify, simulate, draw and the sweep (sweep.h) consume it.
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
 * The rules of the action language (neap_verify checks them):
 *  - Ranges are half open, [t0, t1). The live state starts as x_0.
 *  - ADVANCE and RECORD need the live state at t0 and leave it at t1; RECORD
 *    leaves a tape for each step of its range.
 *  - TURN needs the live state at T, once, before any BACKWARD; it makes the
 *    loss and the adjoint at T.
 *  - BACKWARD needs the adjoint at t1 and the tapes of [t0, t1), frees them and
 *    leaves the adjoint at t0. Its range is made of whole RECORDed ranges. The
 *    live state is undefined after it, unless a GET into it is in flight.
 *  - SAVE copies the live state into a free slot, LOAD copies a slot into the
 *    live state (the slot stays), DROP frees a slot; with payload NEAP_TAPE it frees
 *    the tapes of [t0, t1), whole RECORDed ranges. Where tapes hold their
 *    stage's output, LOAD of payload NEAP_TAPE takes x_t0 from the tape of t0 - 1.
 *  - PUT sends a state (of slot `slot`, or of the live state with NEAP_LIVE) or
 *    the tapes of [t0, t1) to `place` of `tier` and returns at once; the source
 *    may not change until WAIT of its ticket. GET brings a record back into a
 *    free slot or the live state; the destination may not be used before its
 *    WAIT. It may be issued while the PUT of the same place is in flight. A
 *    record may be read more than once; FORGET frees its place. States and tapes
 *    have places of their own on a tier, each numbered from 0.
 *  - Tapes travel (payload NEAP_TAPE) unless the problem says NEAP_CHAIN_TAPES_STAY.
 *    PUT takes a range made of whole RECORDed ranges; they stay where they are,
 *    untouchable, until its WAIT, and are gone after it. GET names a range that was
 *    PUT, exactly; its bytes count from the GET on, it may be reversed or sent after
 *    the WAIT, as one range. `slot` is 0 in both. No tape of the range may be there
 *    at the time. A place for tapes takes the bytes of the longest range that its
 *    tier was ever sent.
 *  - Logs (payload NEAP_LOG, chain.log): ADVANCE of that payload leaves a log of its
 *    range, from which RECORD of that payload makes the tapes of [t0, t1), whole logged
 *    ranges, in chain.replay seconds a step; the logs stay. DROP frees whole logged
 *    ranges, PUT, GET and FORGET move them as they do tapes, with which they share the
 *    places of a tier.
 *  - Where steps differ (chain.stages) each step's tape is a record of its own, that
 *    may be sent with its neighbours and reversed without them; the state it holds
 *    can be read while it leaves and travels with it alone: no slot may hold a part
 *    of a tape that has left, and the live state is undefined if it did. A place takes
 *    the bytes of what is in it. The live state is undefined after TURN.
 *  - Two chains into one loss (chain.join): the first has steps [0, a) and states 0
 *    to a, the second steps [a + 1, a + 1 + b) and states a + 1 to a + 1 + b; step a
 *    does not exist. Each chain has a live state and an adjoint of its own, which an
 *    action on its steps or states uses; both live states start as the chains' first
 *    ones. TURN, at a + 1 + b, needs both live states at their ends, makes both
 *    adjoints and leaves both live states undefined. One tape is there at a time. A
 *    budget of M counts slots in use and live states, whatever they hold.
 *  - Tickets are small numbers, 0 <= ticket < NEAP_TICKETS, reusable after WAIT.
 *    Every ticket is waited for.
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

/* What an action saves, frees, computes or transfers. */
enum neap_payload { NEAP_STATE, NEAP_TAPE, NEAP_LOG };

#define NEAP_LIVE (-1)	 /* slot number of the live state */
#define NEAP_TICKETS 256 /* transfers in flight at most */

/*
 * One action. A state's time stands in t0 (SAVE, LOAD, DROP, PUT, GET, FORGET
 * of a state); t1 is used by ranges only.
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

/* Name of an action kind, such as "advance"; "?" if there is none. */
NEAP_API const char *neap_action_name(int kind);

#define NEAP_ACTION_TEXT 160 /* bytes of the longest text of an action */
/*
 * An action as a line of text without its end, such as "advance 0 40", "save state
 * at 40 slot 2", "put tape 40 50 tier 1 place 3 ticket 0" or "record log 0 40". Returns `room`'s
 * pointer.
 */
NEAP_API const char *neap_action_show(
	char room[NEAP_ACTION_TEXT], const struct neap_action *action);

/*
 * The parameters of strategies, each listed here and nowhere else: X(name, option, meaning).
 * `option` is the name on the command line; those of the second table have no option.
 */
#define NEAP_PARAM_OPTION_TABLE(X)                                                                 \
	X(chunk, "chunk", "steps between local checkpoints")                                       \
	X(checkpoints, "checkpoints", "checkpoints kept (or, hierarchical, moved) together")       \
	X(remote_chunk, "remote-chunk", "steps between remote checkpoints")
#define NEAP_PARAM_FOUND_TABLE(X)                                                                  \
	X(interval, "", "steps of a block, from one kept state to the next")                       \
	X(period, "", "steps between the states that go to a slow tier")                           \
	X(group, "", "unused: 0 in every plan")                                                    \
	X(tail, "", "steps at the end that are in no block")                                       \
	X(kept_tapes, "", "steps of a block whose tapes leave for a slow tier")
#define NEAP_PARAM_TABLE(X) NEAP_PARAM_OPTION_TABLE(X) NEAP_PARAM_FOUND_TABLE(X)

/* Parameters of a strategy; 0 means "choose the best". Unused ones are ignored. */
struct neap_params {
#define NEAP_X(name, option, meaning) int64_t name;
	NEAP_PARAM_TABLE(NEAP_X)
#undef NEAP_X
	int64_t effort;	     /* simulations a search may take, or work worth as much; 0: 2000 */
	int64_t reserved[4]; /* 0 */
};

/*
 * Plans of blocks: the chain is a first, shorter block, blocks of record + advance
 * steps, and a tail. Going up, each block records `record` steps in chunks and
 * sends their tapes, sends the state after them and advances; the tail is reversed
 * on the spot; then, block by block downwards, the state comes back and `advance`
 * steps are reversed from it, then the tapes come back.
 */
enum neap_blocks_inner {
	NEAP_BLOCKS_LEAF,      /* Revolve with leaves as long as there is room for tapes */
	NEAP_BLOCKS_REVOLVE,   /* classic Revolve: one tape */
	NEAP_BLOCKS_MULTIREAD, /* slots, and reading the block's state again at a price */
};

/* The blocks of a plan; see enum neap_blocks_inner. */
struct neap_blocks {
	int64_t advance, record; /* steps a block; 0, 0: no blocks, not such a plan */
	int64_t chunk;		 /* steps whose tapes travel together */
	int64_t tail;
	int64_t reserve, tail_reserve; /* bytes kept free for transfers */
	double price;		       /* MULTIREAD: seconds a read or write counts */
	int32_t inner, reserved;
	/*
	 * LEAF: steps at the start of a block, the last to be reversed, beside which `reserve`
	 * bytes are free for the state of the block before; the others take the whole pool. 0: all.
	 */
	int64_t reserve_steps;
	int64_t reserved_words[1]; /* 0 */
};

#define NEAP_REPLANS_MAX 4

/* From step `from` on, where a block begins, the chain is `blocks`, as if it began there. */
struct neap_replan {
	int64_t from;
	struct neap_blocks blocks;
};

/*
 * Plans of blocks through two tiers: beside `tier` of the plan, `near.tier`, the one that is
 * faster. Either the blocks are divided again: `advance` steps of a block are reversed through
 * blocks of their own, whose states and tapes go to the near tier and have left it when the block
 * is done; so are the `tail` steps, with numbers of their own (last_...). Blocks inside a part
 * are a first, shorter one, blocks of record + advance steps, and a tail; a part of no more steps
 * than that tail, or where all are 0, is reversed in fast memory. Or (share > 0) the blocks are not
 * divided, and of 96 states, and of 96 chunks, `share` go to the near tier, evenly spread.
 */
struct neap_near {
	int32_t tier;  /* 1 = tiers[0]; 0: the plan uses no second tier */
	int32_t share; /* of NEAP_NEAR_SHARES */
	int64_t chunk; /* steps whose tapes travel together */
	int64_t advance, record, tail;
	int64_t last_advance, last_record, last_tail;
	int64_t reserved_words[2]; /* 0 */
};

#define NEAP_NEAR_SHARES 96

/* What a schedule stores on a slow tier and transfers, in bytes. */
struct neap_tier_use {
	uint64_t peak_bytes;
	uint64_t written;
	uint64_t read;
	uint64_t reserved; /* 0 */
};

/* A strategy with its parameters, and the memory and time that it needs. */
struct neap_plan {
	uint32_t size; /* sizeof(struct neap_plan); set it before a call fills the plan in */
	int feasible;
	const char *strategy;	   /* a name of neap_strategy_name(), static */
	const char *chosen;	   /* auto: the strategy it stands for; else == strategy */
	struct neap_params params; /* as chosen; those not used are 0 */
	struct neap_blocks blocks; /* stream, async, auto; else all zero */
	uint64_t arena_bytes;	   /* tier-0 bytes a run allocates: peak, worst-case tape kept */
	uint64_t peak_bytes;	   /* tier 0 */
	uint64_t slow_bytes;	   /* sum of the tiers' peaks */
	struct neap_tier_use tiers[NEAP_TIERS_MAX];
	int64_t slots;	       /* slots numbered 0..slots-1 are used */
	int64_t stage_slots;   /* of them, used to stage states on their way out */
	int tier;	       /* the slow tier used, 1 = tiers[0]; 0: none; see `near` too */
	int variant;	       /* the strategy's own: which of the arrangements it tried */
	int64_t advance_steps; /* forward steps without tape */
	int64_t record_steps;  /* forward steps with tape */
	double makespan;       /* seconds, everything charged */
	double stall;	       /* of it, waiting for transfers, */
	double lost;	       /* and computing lost to those beside it */
	double overhead;       /* makespan / (T (r + b) + 2 calls) - 1 */
	double bound;	      /* seconds that no schedule can beat; neap_bound says where it errs */
	double gap;	      /* makespan / bound - 1 */
	double model_bound;   /* no schedule of the strategy's own model is faster; 0: not known */
	uint64_t least_bytes; /* infeasible: a budget that works (slots, if classic); else 0 */
	char why[160];	      /* infeasible: one line */
	/*
	 * The schedule as a list, borrowed; neap_schedule_open plays it. NULL, as in every
	 * plan that neap_plan_make fills in: the strategy `chosen` makes the actions as they
	 * are asked for. Of a plan from text the list lives until neap_saved_free, of one
	 * from neap_plan_copy until neap_plan_free, else as long as its owner says.
	 */
	const struct neap_action *actions;
	int64_t action_count;
	/* Plans of blocks that were replaced while they ran: the blocks from a step on. */
	struct neap_replan replans[NEAP_REPLANS_MAX];
	int64_t replan_count;
	struct neap_near near; /* auto; else all zero */
};

/* The strategies, in table order, "auto" last; NULL beyond the end. */
NEAP_API const char *neap_strategy_name(int index);
/* One line about a strategy and its paper; NULL when there is none of that name. */
NEAP_API const char *neap_strategy_about(const char *name);

/* What a strategy is like, for programs that list or choose strategies. */
enum neap_strategy_trait {
	NEAP_STRATEGY_CHOOSES = 1,	   /* stands for the fastest of the others */
	NEAP_STRATEGY_STAGES = 2,	   /* plans steps that differ (chain.stages) */
	NEAP_STRATEGY_JOIN = 4,		   /* plans two chains into one loss (chain.join) */
	NEAP_STRATEGY_TIERS = 8,	   /* its plans may use slow tiers */
	NEAP_STRATEGY_REPLAYS = 16,	   /* needs chain.log, makes tapes again from logs */
	NEAP_STRATEGY_TAPE_SLOTS = 32,	   /* its classic problem is NEAP_CHAIN_MIXED */
	NEAP_STRATEGY_UNKNOWN_LENGTH = 64, /* runs a chain whose end only the model knows */
};
/* The bits of enum neap_strategy_trait that a strategy has; 0 when there is none of that name. */
NEAP_API uint32_t neap_strategy_traits(const char *name);

/*
 * Solves a problem by one strategy and fills `plan`, whose size the caller has set
 * (neap/chain.h). Returns 0 when the question is well put, also when the answer is
 * "infeasible" (plan->feasible == 0); NEAP_EUSAGE for an unknown strategy or bad
 * numbers. params (may be NULL) fixes parameters.
 *
 * T = 0 is feasible with any strategy and budget, all numbers zero: the schedule
 * is one TURN, for which x_0 and the adjoint are the caller's. overhead and gap
 * are infinite where only their divisor is 0.
 */
NEAP_API int neap_plan_make(struct neap_plan *plan, const struct neap_problem *problem,
	const char *strategy, const struct neap_params *params);
/*
 * The same where `bound`, neap_bound's answer, is known, such as from the problem's plan by
 * another strategy: that may take longer than the plan.
 */
NEAP_API int neap_plan_make_bounded(struct neap_plan *plan, const struct neap_problem *problem,
	const char *strategy, const struct neap_params *params, double bound);

/*
 * A copy of a plan with a list of actions of its own, which lives until neap_plan_free, whatever
 * becomes of `plan`. NULL is fine there. 0, -ENOMEM, or NEAP_EUSAGE for a plan whose size is
 * not set.
 */
NEAP_API int neap_plan_copy(struct neap_plan **copy, const struct neap_plan *plan);
/* Frees a copy that neap_plan_copy made; NULL is allowed. */
NEAP_API void neap_plan_free(struct neap_plan *copy);

/*
 * Steps whose tapes the schedule of a feasible plan of `steps` steps holds in fast memory at a
 * time. Where tapes vary, a budget must have room for the largest sum of so many neighbours.
 */
NEAP_API int64_t neap_plan_tapes_held(const struct neap_plan *plan, int64_t steps);

/*
 * Opens the action stream of a feasible plan. Memory is O(slots + log T), of `online` with a
 * tier O(slots + records on the tier), never O(T). The problem is copied. Close with
 * neap_schedule_close(NULL is fine).
 */
struct neap_schedule;
/* Starts the schedule of a plan at its first action. */
NEAP_API int neap_schedule_open(struct neap_schedule **schedule, const struct neap_problem *problem,
	const struct neap_plan *plan);
/*
 * 1 and an action, 0 at the end, or a negative code. NEAP_EUSAGE while another call has the
 * schedule: one of another thread, or that of a schedule of one's own which asks itself.
 */
NEAP_API int neap_schedule_next(struct neap_schedule *schedule, struct neap_action *action);
/* Closes a schedule; NULL is allowed. */
NEAP_API void neap_schedule_close(struct neap_schedule *schedule);

/*
 * A schedule of one's own: `next` as neap_schedule_next, `close` frees `user`.
 * For tests and for callers who bring their own strategy.
 */
NEAP_API int neap_schedule_wrap(struct neap_schedule **schedule,
	int (*next)(void *user, struct neap_action *action), void (*close)(void *user), void *user);

/*
 * A chain whose length nobody knows before it ends: adaptive time steps, an event.
 * The caller performs action after action until its stopping rule fires:
 *
 *     neap_online_create(&online, &problem);         chain.steps is not looked at
 *     while (neap_online_next(online, &a) > 0)
 *             if (a.kind == NEAP_ADVANCE || a.kind == NEAP_RECORD) {
 *                     t = as far as it goes;          a.t0 <= t <= a.t1
 *                     if (ended)
 *                             neap_online_finish(online, t, t);
 *             } else
 *                     perform(&a);
 *     neap_online_free(online);
 *
 * Until then these are the actions of a forward pass without an end, afterwards what
 * reverses the chain, and 0. x_0 is saved first.
 *
 * Without a tier these are ADVANCE, SAVE and DROP. With c slots the advance steps are
 * the fewest there are, Revolve's for the length, up to (c+1)(c+2)/2 + 1 steps;
 * beyond, some 3% more at most where c >= 6, 14% where c = 2. Tapes are kept in
 * reverse, as many as there is room for (`mixed`).
 *
 * With tiers the fastest that has room is used, where the fast memory holds a few
 * states. States are written as soon as the tier is idle by the costs of the problem.
 * Steps are recorded while the chain is short, and DROP with the payload NEAP_TAPE
 * lets the tapes of the oldest go. Where the tier is fast enough, tapes are written
 * too. A bounded tier that is full keeps every second state from then on. The sweep
 * takes some 4% longer than that of a planner who is told the length, 16% at worst
 * (a fast memory of 50 states); with fewer than ten states much more.
 *
 * create: NEAP_EINFEASIBLE where x_0 and a tape do not fit; at most 65,536 slots
 * are used. next: 1 and an action, or a negative code. Memory is O(slots), with a
 * tier O(slots + records on the tier).
 *
 * finish: the live state stands at `at`, within the last ADVANCE or RECORD (behind it,
 * where others followed), and the chain has `steps` >= `at` steps. Told at steps - 1
 * within an ADVANCE, the last step is still to come and is recorded in passing; told at
 * `steps`, it is done again: as many advance steps as for a chain one step longer. Told
 * earlier, the rest is done as if it were not known. Of a RECORD that was cut short the
 * tapes of [t0, at) count as recorded. NEAP_EUSAGE for other numbers.
 */
struct neap_online;
/* Starts the schedule of a chain of unknown length. */
NEAP_API int neap_online_create(struct neap_online **online, const struct neap_problem *problem);
/* 1 and the next action, 0 at the end, or a negative code. */
NEAP_API int neap_online_next(struct neap_online *online, struct neap_action *action);
/* Sets the length of the chain; the live state is the one at step `at`. */
NEAP_API int neap_online_finish(struct neap_online *online, int64_t at, int64_t steps);
/* Frees it; NULL is allowed. */
NEAP_API void neap_online_free(struct neap_online *online);

/*
 * Consumers. Each pulls the schedule to its end (open a fresh one for each).
 *
 * verify: every rule above; NEAP_EILLEGAL with the detail line naming the
 * action's number and what is wrong.
 */

/* What neap_verify counts. */
struct neap_verdict {
	uint32_t size; /* sizeof(struct neap_verdict) */
	uint32_t reserved;
	/*
	 * Tier 0: adjoint, live, slots in use, tapes, staging of used tiers. Tapes
	 * count up to the topmost of their stack, gaps included: what a run needs,
	 * whose slots lie packed at the top of its arena and its tapes at the
	 * bottom. Where tapes travel or there are logs, those that are there count,
	 * without gaps.
	 */
	uint64_t peak_bytes;
	uint64_t arena_bytes; /* the same with one worst-case tape kept free */
	struct neap_tier_use tiers[NEAP_TIERS_MAX]; /* peak: up to the highest place used */
	int64_t slots;				    /* highest slot number used, plus 1 */
	int64_t actions;
	int64_t advance_steps, record_steps, backward_steps;
	int64_t transfers_in_flight; /* at most, over all tiers */
};
/* Checks a schedule against the rules and counts what it needs. */
NEAP_API int neap_verify(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule);

/*
 * simulate: the makespan with one compute stream and, for each tier, a write and
 * a read channel (one shared channel where it is not duplex), transfers in issue
 * order. Each ADVANCE, RECORD and BACKWARD is a call, which takes chain.call besides its
 * steps. A transfer costs the stream neap_tier_lost seconds as it is issued. Assumes a
 * legal schedule. makespan = computing + copies + lost + stall.
 */
struct neap_simulation {
	uint32_t size; /* sizeof(struct neap_simulation) */
	uint32_t reserved;
	double makespan;
	double advance, record, backward, copies; /* seconds of computing, by kind */
	double stall;				  /* waiting, all tiers */
	double lost;				  /* computing lost to transfers beside it */
	double stall_write[NEAP_TIERS_MAX], stall_read[NEAP_TIERS_MAX];
	struct neap_tier_use tiers[NEAP_TIERS_MAX]; /* written and read only */
};
/* Simulates a schedule and fills in its times. */
NEAP_API int neap_simulate(struct neap_simulation *simulation, const struct neap_problem *problem,
	struct neap_schedule *schedule);

/*
 * ranks: what a plan takes where several processes, ranks, share the work. A model, by counting
 * messages and bytes of the calls of neap/peers.h, of which one takes alpha for each message that
 * is waited for, and bytes over the rate. `bench/ranks/exchange.py` measures both numbers and
 * compares.
 *
 * Training (parameters above 0): every rank makes sweeps over whole groups of a batch, one group a
 * thread at a time; the plan is that of one group on one thread. At the turn ranks exchange spikes
 * and losses, then sums of gradients, 8 bytes a parameter for each node of the tree of groups that
 * a rank has, and new weights, 4 bytes each. A sweep whose state is spread over ranks (parameters
 * 0; `agree`, sweep.h): the plan is that of a rank. Ranks agree at every wait for a transfer, and
 * ten times a second.
 */
struct neap_ranks {
	uint32_t size; /* sizeof(struct neap_ranks) */
	int ranks;     /* 1 to 2^20 */
	double alpha;  /* seconds that a message takes besides its bytes */
	double rate;   /* bytes a second that a rank sends; 0: they take no time */
	int64_t parameters;
	int64_t units;		   /* hidden units */
	int batch, group, threads; /* samples of a batch, of a group; threads of a rank */
	int tensors; /* of the parameters: weights of each go round by themselves; 0: 5 */
};
enum { NEAP_RANKS_TENSORS = 5 };
/* What neap_ranks_predict predicts for a group of processes. */
struct neap_ranks_cost {
	uint32_t size;	   /* sizeof(struct neap_ranks_cost) */
	int idle;	   /* ranks without a group */
	double computed;   /* seconds of a batch, or of a sweep, on the slowest rank */
	double exchanged;  /* seconds beside them */
	double efficiency; /* time of one rank over the ranks' time together, at most 1 */
	int64_t messages;  /* that a rank waits for, one after the other */
	uint64_t sent;	   /* bytes that a rank sends, at most */
};
/* Predicts the time and the messages of ranks. 0, or NEAP_EUSAGE. Thread-safe. */
NEAP_API int neap_ranks_predict(struct neap_ranks_cost *cost, const struct neap_problem *problem,
	const struct neap_plan *plan, const struct neap_ranks *ranks);

/*
 * draw: an SVG of the simulated schedule, step number against time, one mark a
 * kind of action, slow-tier traffic below. Text leaves through `write(user,
 * text, length)`, which returns 0 or a negative code. Of schedules with more than `limit` marks
 * (0: 200000) every second, fourth, ... of a kind is drawn, and the title says so.
 */
NEAP_API int neap_draw(const struct neap_problem *problem, struct neap_schedule *schedule,
	const char *title, int64_t limit, int (*write)(void *user, const char *text, size_t length),
	void *user);

/* Flags of neap_plan_write. */
enum neap_write_flags { NEAP_WRITE_ACTIONS = 1 };

/*
 * A feasible plan and its problem as text (docs/plan-format.md), which leaves
 * through `write(user, text, length)`; that returns 0 or a negative code. The list of
 * actions is part of it with NEAP_WRITE_ACTIONS (10^6 of them at most, else
 * NEAP_EUSAGE), and always where the plan is a list itself or steps differ: then
 * reading it takes no tables. NEAP_EINFEASIBLE for a plan that is not feasible.
 */
NEAP_API int neap_plan_write(const struct neap_plan *plan, const struct neap_problem *problem,
	uint32_t flags, int (*write)(void *user, const char *text, size_t length), void *user);

/* A plan from text, and all that it points to. */
struct neap_saved {
	struct neap_problem *problem;
	struct neap_plan *plan;
};

/*
 * Reads such text, of neap or of another program. Nothing is searched: the problem
 * is checked, the schedule opened (strategies over several levels, and `chain`
 * without its list, fill their tables again), verified and simulated, and whatever
 * the text claims of it is compared: counts and bytes must be the same, times to
 * nine digits. Only model_bound is taken on its word. Numbers that the text leaves
 * out are those found. `walk` bounds the actions of the schedule, 0: any number.
 * NEAP_EFORMAT or the code of a check, the detail line with the line's number where
 * there is one.
 */
NEAP_API int neap_plan_read(
	struct neap_saved **saved, const char *text, size_t length, int64_t walk);
/* Frees a plan that neap_plan_read made; NULL is allowed. */
NEAP_API void neap_saved_free(struct neap_saved *saved);

/*
 * A lower bound on the makespan of any schedule of the problem, in seconds. With
 * no slow tier, the convex hull of the best recomputation; with slow tiers, the linear
 * program of src/plan/bound/turn_program.h, where bounded tiers count as fast memory, too, and
 * several tiers otherwise as one with the sum of their rates. Where steps differ, what the budget
 * and the channels force at the turn (src/plan/bound/stage_bound.c).
 * The linear program does not count well what is gained by states that are held at the turn and
 * written after it. Of some thousand problems with a slow tier it was above a plan's time in one,
 * by 0.3% (docs/measurements.md, "Where auto beats every named strategy").
 */
NEAP_API double neap_bound(const struct neap_problem *problem);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy.h: a row of the table of strategies. The row holds everything that other code asks
 * of a strategy, so that no other code compares names. To add a strategy: a new file in
 * strategies/ with its row, and a line in NEAP__STRATEGY_TABLE.
 */
#ifndef NEAP_PLAN_CORE_STRATEGY_H
#define NEAP_PLAN_CORE_STRATEGY_H

#include <neap/plan.h>
#include "plan/core/sizing.h"

/* Processor seconds that a plan of 10^6 steps may take (targets of `neap bench planner`). */
#define NEAP__PLANS_IN_CLOSED_FORM 20e-3
#define NEAP__PLANS_BY_SEARCH 1.0 /* dynamic programming or a search */

struct neap__strategy {
	const char *name;
	const char *about; /* one line, with the paper */
	/*
	 * Chooses parameters and fills the plan: feasible, params, tier, slots,
	 * stage_slots, peak and arena, tiers, steps, makespan, stall; or calls
	 * neap__refuse. T >= 1 and the problem is checked. 0 or a negative code.
	 */
	int (*solve)(struct neap_plan *plan, const struct neap_problem *problem,
		const struct neap_params *fixed);
	/*
	 * The same where a plan of `below` seconds or more is of no use and may be refused
	 * without naming a budget; NULL: takes no shorter than solve.
	 */
	int (*solve_below)(struct neap_plan *plan, const struct neap_problem *problem,
		const struct neap_params *fixed, double below);
	/* Sets s->refill and s->self from s->problem and s->plan. */
	int (*open)(struct neap_schedule *s);
	/* neap_plan_tapes_held of a feasible plan of this row; NULL: tapes come in chunks. */
	int64_t (*tapes_held)(const struct neap_plan *plan, int64_t steps);
	uint32_t traits; /* enum neap_strategy_trait */
	/* 1: its leaves are single steps, which may be groups of steps instead (leaf_groups.h). */
	int leaf_steps;
	/* The rest serves apps/ alone. */
	double plan_seconds; /* NEAP__PLANS_...; 0: `neap bench planner` leaves it out */
	const char *color;   /* of its series in figures, "#rrggbb"; NULL: none of its own */
	int mark;	     /* of its points there, row of the table in apps/study/marks.c */
};

/*
 * X(row), in the order in which `auto` and `neap plan` ask them; "auto" last. The row
 * neap__strategy_NAME stands in strategies/NAME.c.
 */
#define NEAP__STRATEGY_TABLE(X)                                                                    \
	X(neap__strategy_bptt)                                                                     \
	X(neap__strategy_standard)                                                                 \
	X(neap__strategy_remote)                                                                   \
	X(neap__strategy_hierarchical)                                                             \
	X(neap__strategy_double)                                                                   \
	X(neap__strategy_revolve)                                                                  \
	X(neap__strategy_mixed)                                                                    \
	X(neap__strategy_online)                                                                   \
	X(neap__strategy_stream)                                                                   \
	X(neap__strategy_async)                                                                    \
	X(neap__strategy_replay)                                                                   \
	X(neap__strategy_chain)                                                                    \
	X(neap__strategy_pofo)                                                                     \
	X(neap__strategy_join)                                                                     \
	X(neap__strategy_multistage)                                                               \
	X(neap__strategy_periodic)                                                                 \
	X(neap__strategy_disk_revolve)                                                             \
	X(neap__strategy_h_revolve)                                                                \
	X(neap__strategy_auto)

#define NEAP__X(row) extern const struct neap__strategy row;
NEAP__STRATEGY_TABLE(NEAP__X)
#undef NEAP__X

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_solver.h: the fewest seconds to reverse a uniform chain with several levels of places
 * for states, where each transfer is waited for (H-Revolve, Herrmann and Pallez 2020). A level
 * is fast memory or a tier. The solver answers chains of 10^5 steps in milliseconds, by the
 * convex hulls of the costs, and proves the answer by dynamic programming where asked to.
 *
 *     T, l         steps of the chain; l = T - 1, since the last step is recorded at once
 *     K, k         levels; k = 0..K-1, the fastest first
 *     c_k, m       places of level k; places of the level that may still be used
 *     w_k, r_k     seconds to write and to read a state at level k
 *     f            seconds of an advance
 *     x            steps advanced before the next state is saved (the left part)
 *     P_k,m(l)     least seconds when the first state is at level k, in one of the m places
 *     O_k,m(l)     least seconds when the first state is live only; the m places of level k and
 *                  all places of lower levels are free
 *     f_k(l)       O_{k-1,c_{k-1}}(l), the cost with lower levels alone; f_0(l >= 1) = infinite
 *
 *     P(0) = O(0) = 0,   O_k,0 = f_k
 *     P_k,m(l) = min( f_k(l), min_{1<=x<=l} x f + O_k,m-1(l-x) + r_k + P_k,m(x-1) )
 *     O_k,m(l) = min( f_k(l), w_k + P_k,m(l) )
 *
 * The published recurrence forbids x = l, which is wrong where a read costs less than a fast
 * write; here x = l is allowed. The answer is optimal where the levels stand in an order in
 * which neither w nor r falls (level_search.h chooses the order). The recurrence does not
 * count the recording and reversal of each step; the caller adds them.
 */
#ifndef NEAP_PLAN_LEVELS_LEVEL_SOLVER_H
#define NEAP_PLAN_LEVELS_LEVEL_SOLVER_H

#include <neap/plan.h>

#define NEAP__LEVELS_MOST (NEAP_TIERS_MAX + 1)

struct neap__level {
	int64_t slots;	    /* c_k; `length` or more: no limit */
	double write, read; /* w_k, r_k */
	int tier;	    /* 0: slots of tier 0 */
};

struct neap__levels_problem {
	int64_t length; /* l = T - 1 */
	double advance; /* f */
	int count;
	int revolve;	    /* level 0 follows Revolve's order, whatever its copies cost */
	int64_t parts_most; /* different parts that may be evaluated; 0: 200,000 */
	struct neap__level level[NEAP__LEVELS_MOST];
};

/* What a schedule does. */
struct neap__level_counts {
	double cost; /* of advances and transfers, in units of one advance */
	int64_t advanced;
	int64_t written[NEAP__LEVELS_MOST], read[NEAP__LEVELS_MOST];
	int64_t peak[NEAP__LEVELS_MOST]; /* places in use at most */
};

/* A solved problem: a decision for every part of the chain that its schedule meets. */
struct neap__levels;

/*
 * Solves the problem. Where the hulls do not prove their schedule optimal, the exact dynamic
 * program runs, for `work` table look-ups at most; where that is too little, the schedule of
 * the hulls stands. The same problem and work give the same answer. 0, -ENOMEM, or
 * NEAP_EINFEASIBLE: no place where one is needed, or tables too large.
 */
int neap__levels_solve(
	struct neap__levels **solved, const struct neap__levels_problem *levels, int64_t work);
/*
 * The largest period m that minimises (fixed + m f + O(m - 1)) / m for a problem of one level,
 * whatever its length; `fixed` are the seconds that each period takes besides.
 */
int64_t neap__levels_period(const struct neap__levels_problem *levels, double fixed);
void neap__levels_free(struct neap__levels *solved);
/* The problem with the levels in use only, the lowest first. */
const struct neap__levels_problem *neap__levels_in_use(const struct neap__levels *solved);
const struct neap__level_counts *neap__levels_counts(const struct neap__levels *solved);
/* Seconds that no schedule of the recurrence beats; the cost itself where it is optimal. */
double neap__levels_lower(const struct neap__levels *solved);

/*
 * Decisions. closed: returns 1 where level 0 follows Revolve's closed form (binomial.h); the
 * other two are then not asked for level 0. writes: returns 1 where a part of l + 1 steps, with
 * m >= 1 places of level k free, saves its first state there. split: x for a part whose first
 * state is saved; 0: the part frees the place and uses the levels below.
 */
int neap__levels_closed(const struct neap__levels *solved);
int neap__levels_writes(const struct neap__levels *solved, int k, int64_t m, int64_t l);
int64_t neap__levels_split(const struct neap__levels *solved, int k, int64_t m, int64_t l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_solver.h: the minimum time to reverse a uniform chain with several levels of storage for
 * states and synchronous transfers (H-Revolve, Herrmann and Pallez 2020). A level is fast memory or
 * a tier. The solver handles chains of 10^5 steps in milliseconds, by convex hulls of the costs,
 * and can prove the result optimal by dynamic programming.
 *
 *     T, l         steps of the chain; l = T - 1, since the last step is recorded immediately
 *     K, k         levels; k = 0..K-1, the fastest first
 *     c_k, m       places of level k; places of the level that are still free
 *     w_k, r_k     seconds to write and to read a state at level k
 *     f            seconds of an advance
 *     x            steps advanced before the next state is saved (the left part)
 *     P_k,m(l)     minimum time if the first state is stored at level k, in one of the m places
 *     O_k,m(l)     minimum time if the first state is only live; the m places of level k and all
 *                  places of lower levels are free
 *     f_k(l)       O_{k-1,c_{k-1}}(l), the cost with lower levels only; f_0(l >= 1) = infinite
 *
 *     P(0) = O(0) = 0,   O_k,0 = f_k
 *     P_k,m(l) = min( f_k(l), min_{1<=x<=l} x f + O_k,m-1(l-x) + r_k + P_k,m(x-1) )
 *     O_k,m(l) = min( f_k(l), w_k + P_k,m(l) )
 *
 * The published recurrence excludes x = l, which is wrong if a read costs less than a fast write;
 * here x = l is allowed. The result is optimal if w and r do not decrease from level to level
 * (level_search.h chooses the order). The recurrence does not include the time to record and
 * reverse each step; the caller adds it.
 */
#ifndef NEAP_PLAN_LEVELS_LEVEL_SOLVER_H
#define NEAP_PLAN_LEVELS_LEVEL_SOLVER_H

#include <neap/plan.h>

#define NEAP__LEVELS_MOST (NEAP_TIERS_MAX + 1)

struct neap__level {
	int64_t slots;	    /* c_k; `length` or more: unlimited */
	double write, read; /* w_k, r_k */
	int tier;	    /* 0: slots of tier 0 */
};

struct neap__levels_problem {
	int64_t length; /* l = T - 1 */
	double advance; /* f */
	int count;
	int revolve;	    /* 1: level 0 uses Revolve's order, whatever its copies cost */
	int64_t parts_most; /* limit of evaluated parts; 0: 200,000 */
	struct neap__level level[NEAP__LEVELS_MOST];
};

/* Numbers of a schedule. */
struct neap__level_counts {
	double cost; /* of advances and transfers, in units of one advance */
	int64_t advanced;
	int64_t written[NEAP__LEVELS_MOST], read[NEAP__LEVELS_MOST];
	int64_t peak[NEAP__LEVELS_MOST]; /* largest number of places in use */
};

/* A solved problem: a decision for every part of the chain that its schedule contains. */
struct neap__levels;

/*
 * Solves the problem. If the hulls do not prove that their schedule is optimal, the exact dynamic
 * programme runs with at most `work` table look-ups; if that is not enough, the schedule of the
 * hulls is used. The same problem and work give the same result. Returns 0, -ENOMEM, or
 * NEAP_EINFEASIBLE if there are too few places or the tables would be too large.
 */
int neap__levels_solve(
	struct neap__levels **solved, const struct neap__levels_problem *levels, int64_t work);
/*
 * The largest period m that minimises (fixed + m f + O(m - 1)) / m for a problem of one level,
 * independent of its length; `fixed` is an additional time per period, seconds.
 */
int64_t neap__levels_period(const struct neap__levels_problem *levels, double fixed);
void neap__levels_free(struct neap__levels *solved);
/* The problem with only the levels in use, the lowest first. */
const struct neap__levels_problem *neap__levels_in_use(const struct neap__levels *solved);
const struct neap__level_counts *neap__levels_counts(const struct neap__levels *solved);
/* Lower bound for all schedules of the recurrence, seconds; equals the cost if it is optimal. */
double neap__levels_lower(const struct neap__levels *solved);

/*
 * Decisions. closed: returns 1 if level 0 uses Revolve's closed form (binomial.h); the other two
 * must then not be called for level 0. writes: returns 1 if a part of l + 1 steps, with m >= 1 free
 * places at level k, saves its first state there. split: returns x for a part whose first state is
 * saved; 0: the part frees the place and uses the levels below.
 */
int neap__levels_closed(const struct neap__levels *solved);
int neap__levels_writes(const struct neap__levels *solved, int k, int64_t m, int64_t l);
int64_t neap__levels_split(const struct neap__levels *solved, int k, int64_t m, int64_t l);

#endif

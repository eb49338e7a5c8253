/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_solver.h: the fewest seconds to reverse a uniform chain with several levels of
 * places for states, each transfer waited for (H-Revolve, Herrmann and Pallez
 * 2020, with their recurrence mended). Level k = 0..K-1 has c_k places, w_k and
 * r_k seconds a write and a read. With l = steps - 1:
 *
 *     P(0) = O(0) = 0,  O_k,0 = f_k,  f_k = O_{k-1,c_{k-1}},  f_0(l >= 1) = inf
 *     P_k,m(l) = min( f_k(l), min_{1<=x<=l} x f + O_k,m-1(l-x) + r_k + P_k,m(x-1) )
 *     O_k,m(l) = min( f_k(l), w_k + P_k,m(l) )
 *
 * O: the state at the start is live only, m places of level k and all lower ones
 * are free. P: it stands in one of those m as well. x = l is allowed: published
 * versions forbid it, and are wrong where a read is cheaper than a fast write.
 * The levels must stand in an order in which w and r both do not fall for the
 * answer to be optimal.
 */
#ifndef NEAP_PLAN_LEVELS_LEVEL_SOLVER_H
#define NEAP_PLAN_LEVELS_LEVEL_SOLVER_H

#include <neap/plan.h>

#define NEAP__LEVELS_MOST (NEAP_TIERS_MAX + 1)

struct neap__level {
	int64_t slots; /* c_k; at least `length`: as good as without limit */
	double write, read;
	int tier; /* 0: slots of tier 0 */
};

struct neap__levels_problem {
	int64_t length; /* l = T - 1 */
	double advance; /* f */
	int count;
	int revolve;	    /* level 0 alone, in Revolve's order whatever its copies cost */
	int64_t parts_most; /* different ones that may be looked at; 0: some 10^5 */
	struct neap__level level[NEAP__LEVELS_MOST];
};

struct neap__level_counts {
	double cost; /* advances and transfers */
	int64_t advanced;
	int64_t written[NEAP__LEVELS_MOST], read[NEAP__LEVELS_MOST];
	int64_t peak[NEAP__LEVELS_MOST]; /* places in use at most */
};

/* A solved levels: decisions for every stretch that its schedule meets. */
struct neap__levels;

/*
 * Solves a levels. `work` bounds the exact dynamic programme, in table look-ups or
 * so: it runs where the convex hulls do not prove the schedule optimal; where it
 * ends too early, the schedule of the hulls stands. Same levels and work, same answer.
 * NEAP_EINFEASIBLE without a place where one is needed, or with tables too large.
 */
int neap__levels_solve(
	struct neap__levels **solved, const struct neap__levels_problem *levels, int64_t work);
/*
 * The largest m that minimises (fixed + m f + O(m - 1)) / m for the one level of a
 * levels (Opt_0 with m steps), whatever its length.
 */
int64_t neap__levels_period(const struct neap__levels_problem *levels, double fixed);
void neap__levels_free(struct neap__levels *solved);
/* The levels in use, lowest first (those without places are left out). */
const struct neap__levels_problem *neap__levels_in_use(const struct neap__levels *solved);
const struct neap__level_counts *neap__levels_counts(const struct neap__levels *solved);
/* No schedule of the recurrence costs less; cost itself where that is proved. */
double neap__levels_lower(const struct neap__levels *solved);

/*
 * Decisions. closed: level 0 follows Revolve's closed form (binomial.h), ask no
 * more there. writes: a stretch with m >= 1 places of level k free saves its start
 * there. split: steps to advance from a saved start; 0: give the place back and
 * use the levels below.
 */
int neap__levels_closed(const struct neap__levels *solved);
int neap__levels_writes(const struct neap__levels *solved, int k, int64_t m, int64_t l);
int64_t neap__levels_split(const struct neap__levels *solved, int k, int64_t m, int64_t l);

#endif

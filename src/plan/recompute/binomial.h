/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binomial.h: the arithmetic of Revolve (Griewank and Walther 2000, Algorithm 799),
 * a handful of operations a decision at any length. With beta(s,t) = C(s+t, s):
 */
#ifndef NEAP_PLAN_RECOMPUTE_BINOMIAL_H
#define NEAP_PLAN_RECOMPUTE_BINOMIAL_H

#include <stdint.h>

/*
 * A segment of l >= 2 steps, s >= 1 slots (its own included), t the least with
 * beta(s,t) >= l, so t >= 1; below = beta(s, t-1) < l. All parts of interest
 * follow from `below` by one exact multiplication and division.
 */
struct neap__binomial {
	int64_t l, s, t, below;
};

/* l >= 2 steps in s >= 1 slots, of which l - 1 at most are used. */
struct neap__binomial neap__binomial(int64_t l, int64_t s);
/* Length of the left part. */
int64_t neap__binomial_split(const struct neap__binomial *x);
/* The left part, y >= 2 steps: beta(s,t-2) <= y <= beta(s,t-1). */
struct neap__binomial neap__binomial_left(const struct neap__binomial *x, int64_t y);
/* The right part, l - y >= 2 steps in s - 1 >= 1 slots. */
struct neap__binomial neap__binomial_right(const struct neap__binomial *x, int64_t y);
/* Advance steps; -1 where they exceed 63 bits. */
int64_t neap__binomial_extra(const struct neap__binomial *x);
/* Is l = beta(s,t)? */
int neap__binomial_full(const struct neap__binomial *x);
/* Saves besides the first: walks the one path of parts that are not full. */
int64_t neap__binomial_saves(struct neap__binomial x);
/* The least number of slots whose advance steps can be counted. */
int64_t neap__binomial_slots_least(int64_t steps);

#endif

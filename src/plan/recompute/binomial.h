/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binomial.h: the arithmetic of binomial checkpointing, Revolve (Griewank and Walther 2000,
 * Algorithm 799): where a part of a chain is split, how often its steps are advanced and how
 * many states it saves. Each answer takes a few operations at any length, since all binomial
 * coefficients that a part needs follow from one of them by a multiplication and a division.
 *
 *     l           steps of a part of the chain
 *     s           slots that the part may use, the slot of its first state included
 *     beta(s,t)   C(s+t, s), the longest part that s slots reverse when no step is executed
 *                 more than t times before the execution that records its tape
 *     t           the least number with beta(s,t) >= l
 *     y           steps of the left part; the right part has l - y steps
 *
 *     advances    t l - C(s+t, t-1)
 *     y           min( beta(s,t-1), l - beta(s-1,t-1) )
 *
 * Griewank and Walther prove both. Among the optimal splits this one has the longest left
 * part. One of the two parts is then always full (its length is a beta number), which makes
 * the number of saves computable: the parts that are not full form a single path.
 */
#ifndef NEAP_PLAN_RECOMPUTE_BINOMIAL_H
#define NEAP_PLAN_RECOMPUTE_BINOMIAL_H

#include <stdint.h>

/* A part of l >= 2 steps in s >= 1 slots. t >= 1; below = beta(s, t-1), which is less than l. */
struct neap__binomial {
	int64_t l, s, t, below;
};

/* The part of l >= 2 steps in s >= 1 slots; it uses l - 1 slots at most. */
struct neap__binomial neap__binomial(int64_t l, int64_t s);
/* y, the steps of the left part: from 1 to l - 1. */
int64_t neap__binomial_split(const struct neap__binomial *x);
/* The left part for y = neap__binomial_split(x); y must be 2 or more. */
struct neap__binomial neap__binomial_left(const struct neap__binomial *x, int64_t y);
/* The right part, in s - 1 slots; l - y must be 2 or more, s too. */
struct neap__binomial neap__binomial_right(const struct neap__binomial *x, int64_t y);
/* The advance steps of the part, -1 where they exceed 63 bits. */
int64_t neap__binomial_extra(const struct neap__binomial *x);
/* Returns 1 where the part is full, l = beta(s,t), else 0. */
int neap__binomial_full(const struct neap__binomial *x);
/*
 * The states that the part saves, its first one not counted. Takes as many operations as the
 * path of parts that are not full is long: s + t at most.
 */
int64_t neap__binomial_saves(struct neap__binomial x);
/* The least number of slots with which the advance steps of `steps` steps fit into 63 bits. */
int64_t neap__binomial_slots_least(int64_t steps);

#endif

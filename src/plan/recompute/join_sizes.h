/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_sizes.h: how two chains that meet in one loss share a budget. The last steps of each chain,
 * its tail, are recorded in the first pass and reversed right after the loss; their tapes are there
 * together with the first states of all parts that the other steps are cut into. When the tapes are
 * gone, the parts are reversed one by one in slots (join_parts.h), with one tape at a time. So with
 * the symbols of neap/chain.h, two adjoints of J bytes, and a live state of L bytes:
 *
 *     p           steps of both tails
 *     n           parts
 *     M           slots for all states, the live one included (join_parts.h)
 *     at the loss           2 J + n S + 2 L + p A       bytes
 *     while parts are reversed   2 J + (M - 1) S + L + A   bytes
 *
 * A classic problem counts states: S = L = 1, A = J = 0; it has no tails.
 */
#ifndef NEAP_PLAN_RECOMPUTE_JOIN_SIZES_H
#define NEAP_PLAN_RECOMPUTE_JOIN_SIZES_H

#include <neap/plan.h>

struct neap__join_sizes {
	int64_t tail[2]; /* steps of each chain's tail */
	int64_t left[2]; /* its other steps */
	int64_t parts;	 /* n, at most */
	int64_t slots;	 /* M */
};

/*
 * Divides the budget with tails of `tail` steps in all, from 0 to the steps of both chains. The
 * longer chain gives steps to its tail until what is left of both is equally long. 1; 0: the budget
 * is too small for that.
 */
int neap__join_sizes(struct neap__join_sizes *x, const struct neap_problem *problem, int64_t tail);
/*
 * Returns the steps of both tails with the fewest advance steps, by an estimate that pools the
 * parts of both chains; -1: the budget is too small for any.
 */
int64_t neap__join_tail(const struct neap_problem *problem);
/* Returns the bytes that tails of `tail` steps need at least, and the least for any number. */
uint64_t neap__join_needs(const struct neap_problem *problem, int64_t tail);
uint64_t neap__join_least(const struct neap_problem *problem);

/* Bytes of S, L, A, and of what is always there: the adjoints and the reserve for tapes. */
struct neap__join_units {
	uint64_t state, live, tape, fixed;
};
struct neap__join_units neap__join_units(const struct neap_problem *problem);

#endif

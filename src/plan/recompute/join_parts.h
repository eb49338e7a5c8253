/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_parts.h: cuts two chains that meet in one loss into parts, so that the advance steps
 * are the fewest, or close to that where the chains are too long to be searched. Each part is
 * reversed by Revolve (binomial.h) while the first states of the other parts that are still to
 * come take a slot each. The recurrence is in strategies/join.c.
 *
 *     a, b     steps of the two chains
 *     M        slots for all states, live ones included (`slots`)
 *     u        parts, at most M - 2 in a problem that counts states
 *     R(y,c)   Revolve's advance steps of y steps in c slots
 */
#ifndef NEAP_PLAN_RECOMPUTE_JOIN_PARTS_H
#define NEAP_PLAN_RECOMPUTE_JOIN_PARTS_H

#include <stdint.h>

struct neap__join_part {
	int64_t l;  /* steps */
	int second; /* 1: of the second chain */
};

/*
 * Returns at most `most` parts in *part, which the caller frees, and their number in *count. The
 * last part is reversed first; part[i] has slots - 1 - i slots, since i first states are kept
 * beside it. The parts of each chain stand in the order of its steps. *advances gets the
 * advance steps after the first sweep. Needs a, b >= 0, and as many parts as chains with steps, at
 * least 1; most < slots and most <= a + b. 0, -ENOMEM, or NEAP_EINFEASIBLE where no parts are found
 * and the chains are too long to be searched.
 */
int neap__join_parts(struct neap__join_part **part, int64_t *count, int64_t *advances, int64_t a,
	int64_t b, int64_t slots, int64_t most);

#endif

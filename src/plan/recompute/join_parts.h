/* SPDX-License-Identifier: Apache-2.0 */
/* join_parts.h: how two chains that meet in one loss are cut into parts. */
#ifndef NEAP_PLAN_RECOMPUTE_JOIN_PARTS_H
#define NEAP_PLAN_RECOMPUTE_JOIN_PARTS_H

#include <stdint.h>

struct neap__join_part {
	int64_t l;  /* steps */
	int second; /* of the second chain */
};

/*
 * Parts in an order that part[i] is done with i others kept below it, the last one
 * first, slots - 1 - i slots its own; each chain's come from its start on. *part is
 * the caller's to free, *advances those after the first sweep. 0, -ENOMEM, or
 * NEAP_EINFEASIBLE: too long to be searched. a, b at least 1, slots at least 4.
 */
int neap__join_parts(struct neap__join_part **part, int64_t *count, int64_t *advances, int64_t a,
	int64_t b, int64_t slots);

#endif

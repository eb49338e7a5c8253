/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tried_plans.h: the plans that a search has simulated, and their makespans: a table by hash of a
 * fixed number of rows, of which half are used at most. What comes later is forgotten.
 */
#ifndef NEAP_PLAN_BLOCKS_TRIED_PLANS_H
#define NEAP_PLAN_BLOCKS_TRIED_PLANS_H

#include <stddef.h>
#include <stdint.h>

struct neap__tried_plans {
	size_t words; /* of 8 bytes, of a plan */
	int64_t count;
	double *makespans; /* of each row, seconds; 0: an empty row */
	uint64_t *plans;   /* of each row */
};

/* For plans of `size` bytes, a multiple of 8, without padding. 0 or -ENOMEM; free in any case. */
int neap__tried_plans_init(struct neap__tried_plans *t, size_t size);
void neap__tried_plans_free(struct neap__tried_plans *t);
/* The makespan of a plan, 0 where it is not remembered. */
double neap__tried_plans_makespan(const struct neap__tried_plans *t, const void *plan);
void neap__tried_plans_add(struct neap__tried_plans *t, const void *plan, double makespan);

#endif

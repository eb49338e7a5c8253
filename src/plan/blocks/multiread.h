/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NEAP_PLAN_BLOCKS_MULTIREAD_H
#define NEAP_PLAN_BLOCKS_MULTIREAD_H

#include <neap/plan.h>

/* Splits of a block of up to `steps` steps whose state can be read again. */
struct neap__multiread {
	int64_t steps, slots;
	struct neap__multiread_row {
		int32_t split; /* 0: a leaf; else steps of the left part */
		int32_t how;   /* enum neap__multiread_how */
	} * stored, *fresh;    /* [slots + 1][steps + 1]: start on the tier, start only live */
	double *cost;
	int64_t room;
};
enum neap__multiread_how { NEAP__MULTIREAD_KEEP, NEAP__MULTIREAD_AGAIN, NEAP__MULTIREAD_WRITE };

/* 0, -ENOMEM, or NEAP_EINFEASIBLE. m: leaf of c free slots is (pool - (slots-c) S)/A. */
int neap__multiread_make(struct neap__multiread *m, const struct neap_chain *chain, int64_t steps,
	int64_t pool, double price);
void neap__multiread_free(struct neap__multiread *m);
int64_t neap__multiread_leaf(const struct neap__multiread *m, const struct neap_chain *chain,
	int64_t pool, int64_t free_slots);
static inline const struct neap__multiread_row *neap__multiread_at(const struct neap__multiread *m,
	const struct neap__multiread_row *rows, int64_t l, int64_t c)
{
	return &rows[c * (m->steps + 1) + l];
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_groups.h: a long chain of stages as a shorter one of groups of them, for planners whose
 * time grows with the square or the cube of the stages. An action on groups is one on their
 * stages, and takes no more time or memory there.
 */
#ifndef NEAP_PLAN_STAGES_STAGE_GROUPS_H
#define NEAP_PLAN_STAGES_STAGE_GROUPS_H

#include <neap/plan.h>

/* Stages [first, end) of a chain; from `taped` on they are one group (end: none is set apart). */
struct neap__stage_range {
	int64_t first, end, taped;
};

struct neap__stage_groups {
	struct neap_stages stages; /* of the groups */
	int64_t *at;		   /* [n + 1] first stage of a group; then the end of the range */
	int64_t n;
	int64_t largest; /* tape, as which each counts; 0: as they are */
	double *advance, *record, *backward;
	uint64_t *state, *tape, *advance_tmp, *record_tmp, *backward_tmp;
	void *block;
};

/*
 * At most `count` groups, and one more where a range sets its end apart, with even shares of the
 * steps and tapes, which begin where states are small. A range that ends with the chain has its
 * loss. largest: see there. NEAP_EINFEASIBLE where a backward needs an input that no tape holds
 * and a group has several stages, as groups keep none; -ENOMEM. Free it in every case.
 */
int neap__stage_groups_make(struct neap__stage_groups *groups, const struct neap_chain *chain,
	struct neap__stage_range range, int64_t count, int64_t largest);
void neap__stage_groups_free(struct neap__stage_groups *groups);

static inline struct neap__stage_range neap__all_stages(const struct neap_chain *chain)
{
	return (struct neap__stage_range){0, chain->steps, chain->steps};
}

#endif

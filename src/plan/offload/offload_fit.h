/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_fit.h: adds transfers of whole states and tapes to a schedule of stages, by simulation.
 * The input is a schedule without transfers, which may exceed the budget, and a selection of items
 * to offload while they are not needed. The output is the schedule with transfers, under the
 * budget, or the action at which it does not fit.
 *
 * The write of a selected item starts as soon as the item exists. The item is freed when its write
 * has ended and it is not used for some time. Items are read in the order of their use, as early as
 * memory permits. A computation waits for an item that it needs, and for a write only if it needs
 * the memory.
 */
#ifndef NEAP_PLAN_OFFLOAD_OFFLOAD_FIT_H
#define NEAP_PLAN_OFFLOAD_OFFLOAD_FIT_H

#include "plan/stages/stage_memory.h"
#include "plan/core/action_list.h"
#include "plan/core/simulate.h"

/* A state in a slot or a tape of one step, from SAVE or RECORD on. */
struct neap__offload_item {
	int payload, tier; /* tier to offload to while it is not needed; 0: it stays in memory */
	int first;	   /* 1: no earlier item has the same state or tape */
	int64_t t, slot, bytes;
	int64_t born;	    /* the action that creates it */
	int64_t gap0, gap1; /* the longest interval between two uses, as actions; -1: none */
	int64_t part;	    /* of a state: the tape that contains it, or -1 */
	int32_t held;	    /* of a tape: slots whose state is in it; it cannot leave meanwhile */
	/* During a fit. */
	int stage, ticket;
	int64_t place, last, next_out, next_in;
};

enum { NEAP__FLIGHTS = 64 }; /* transfers in flight; chosen, below NEAP_TICKETS */

struct neap__offload {
	const struct neap_problem *problem;
	const struct neap__action_list *plain;
	struct neap__offload_item *items;
	int64_t n, room;

	/* Results of the last fit. */
	double makespan;
	int64_t fails_at, short_by; /* the action that does not fit; missing bytes */
	int full;		    /* 1: the capacity of a tier is too small */

	struct neap__stage_memory memory;
	struct neap__clock clock;
	int64_t *profile, *out_at, *in_at; /* [positions] */
	int64_t positions, budget;
	int64_t *slots, *tapes; /* [steps + 2] current item, -1: none */
	int64_t flight[NEAP__FLIGHTS];
	int flights;
	int64_t at; /* the next action */
	int64_t away, places;
	int64_t fits; /* number of fits so far */
	uint64_t stored[NEAP_TIERS_MAX];
	struct neap__action_list *out;
};

/* Returns 0 or -ENOMEM; call neap__offload_fini in every case. */
int neap__offload_init(struct neap__offload *x, const struct neap_problem *problem);
void neap__offload_fini(struct neap__offload *x);

/* Lists the items of a schedule without transfers; none is selected. Borrows `plain`. */
int neap__offload_survey(struct neap__offload *x, const struct neap__action_list *plain);

/* Returns 1 if the schedule fits, 0 if it does not, or a negative code. `out` may be NULL. */
int neap__offload_fit(struct neap__offload *x, struct neap__action_list *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_fit.h: adds transfers of whole states and tapes to a schedule of stages, by
 * simulation. The input is a schedule without transfers, which may take more than the
 * budget, and a choice of the items that are away while they are not needed. The output is the
 * schedule with transfers, within the budget, or the action at which it does not fit.
 *
 * A chosen item is sent as soon as it is there, leaves fast memory once its transfer has ended
 * and its last use for now is over, and comes back in the order of use, as early as memory
 * allows. A computation waits for an item that it needs, and for an item that is leaving only
 * where bytes demand it.
 */
#ifndef NEAP_PLAN_OFFLOAD_OFFLOAD_FIT_H
#define NEAP_PLAN_OFFLOAD_OFFLOAD_FIT_H

#include "plan/stages/stage_memory.h"
#include "plan/core/action_list.h"
#include "plan/core/simulate.h"

/* A state in a slot or a tape of one step, from SAVE or RECORD on. */
struct neap__offload_item {
	int payload, tier; /* 0: it stays; else where it is while it is not needed */
	int first;	   /* no item of the same state or tape came before */
	int64_t t, slot, bytes;
	int64_t born;	    /* the action that makes it */
	int64_t gap0, gap1; /* the longest time without use, between two actions; -1: none */
	int64_t part;	    /* a state: the tape that it is a part of, or -1 */
	int32_t held;	    /* a tape: slots that hold a part of it: it stays meanwhile */
	/* While fitting. */
	int stage, ticket;
	int64_t place, last, next_out, next_in;
};

enum { NEAP__FLIGHTS = 64 }; /* transfers at once, below NEAP_TICKETS */

struct neap__offload {
	const struct neap_problem *problem;
	const struct neap__action_list *plain;
	struct neap__offload_item *items;
	int64_t n, room;

	/* Of the last fit. */
	double makespan;
	int64_t fails_at, short_by; /* the action that does not fit, by so many bytes */
	int full;		    /* a tier's capacity is too small */

	struct neap__stage_memory memory;
	struct neap__clock clock;
	int64_t *profile, *out_at, *in_at; /* [positions] */
	int64_t positions, budget;
	int64_t *slots, *tapes; /* [steps + 2] item there now, -1: none */
	int64_t flight[NEAP__FLIGHTS];
	int flights;
	int64_t at; /* the next action */
	int64_t away, places;
	int64_t fits; /* so far */
	uint64_t stored[NEAP_TIERS_MAX];
	struct neap__action_list *out;
};

/* 0 or -ENOMEM; free with neap__offload_fini in every case. */
int neap__offload_init(struct neap__offload *x, const struct neap_problem *problem);
void neap__offload_fini(struct neap__offload *x);

/* Lists the items of a schedule without transfers; none is chosen. `plain` is borrowed. */
int neap__offload_survey(struct neap__offload *x, const struct neap__action_list *plain);

/* Returns 1 where the schedule fits, 0 where it does not, or a negative code. `out` may be NULL. */
int neap__offload_fit(struct neap__offload *x, struct neap__action_list *out);

#endif

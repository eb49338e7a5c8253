/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_schedule.h: the actions of a sweep whose length becomes known on the way: forward,
 * states are kept as online_placement.h says; then the chain is reversed from them, part
 * by part, each with the slots (and room for tapes) that are free by then.
 */
#ifndef NEAP_PLAN_ONLINE_ONLINE_SCHEDULE_H
#define NEAP_PLAN_ONLINE_ONLINE_SCHEDULE_H

#include "plan/online/online_placement.h"
#include "plan/core/schedule.h"

#define NEAP__ONLINE_SLOTS 65536 /* at most */

struct neap__online {
	struct neap__leaf_revolve costs;
	struct neap__placement placement;
	int64_t steps;	  /* T, or INT64_MAX as long as it is not known */
	int64_t from, at; /* the last ADVANCE, behind which the live state stands; -1: undefined */
	int64_t position; /* of the adjoint; -1: going forward */
	int64_t level;	  /* of the part that starts with the live state */
	int begun;	  /* x_0 was kept */
	int turned;	  /* TURN is done */
};

/* Slots of a problem that a sweep of unknown length may use; 0: not even x_0 fits. */
int64_t neap__online_slots(const struct neap_problem *p);
/* Sets x up with `slots` of them. 0 or -ENOMEM. */
int neap__online_init(struct neap__online *x, const struct neap_problem *p, int64_t slots);
void neap__online_fini(struct neap__online *x);
/* Emits the next few actions; with x->steps known at the end none. */
int neap__online_refill(struct neap__online *x, struct neap_schedule *s);

/* online_api.c. Steps recorded at a time, at most. */
int64_t neap__online_leaf(const struct neap_online *online);
/* Tables as large as they get, so that next() allocates nothing; they are not touched. */
int neap__online_reserve(struct neap_online *online);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_schedule.h: emits the actions of a sweep whose length becomes known on the way.
 * Forward, states are kept as online_placement.h says. Then the chain is reversed from them,
 * part by part, each with the slots and the room for tapes that are free by then.
 */
#ifndef NEAP_PLAN_ONLINE_ONLINE_SCHEDULE_H
#define NEAP_PLAN_ONLINE_ONLINE_SCHEDULE_H

#include "plan/online/online_placement.h"
#include "plan/core/schedule.h"

#define NEAP__ONLINE_SLOTS                                                                         \
	65536 /* at most; chosen: a dropped state has the sums of all later ones counted again */

struct neap__online {
	struct neap__leaf_revolve costs;
	struct neap__placement placement;
	int64_t steps;	  /* T; INT64_MAX while the length is not known */
	int64_t from, at; /* the last ADVANCE; the live state is at `at`, -1: undefined */
	int64_t position; /* of the adjoint; -1: going forward */
	int64_t level;	  /* of the part that starts with the live state */
	int begun;	  /* x_0 was kept */
	int turned;	  /* TURN is done */
};

/* Slots that a sweep of unknown length may use; 0: not even x_0 fits. */
int64_t neap__online_slots(const struct neap_problem *p);
/* Sets *x up with `slots` slots. 0 or -ENOMEM. */
int neap__online_init(struct neap__online *x, const struct neap_problem *p, int64_t slots);
void neap__online_fini(struct neap__online *x);
/* Emits the next few actions; none at the end, once x->steps is known. 0 or -ENOMEM. */
int neap__online_refill(struct neap__online *x, struct neap_schedule *s);

/* In online_api.c: the steps that are recorded at once, at most. */
int64_t neap__online_leaf(const struct neap_online *online);
/*
 * Allocates all tables at their largest, so that neap_online_next allocates nothing. Untouched
 * pages take no memory. 0 or -ENOMEM.
 */
int neap__online_reserve(struct neap_online *online);

#endif

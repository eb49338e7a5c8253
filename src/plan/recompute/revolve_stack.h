/* SPDX-License-Identifier: Apache-2.0 */
/*
 * revolve_stack.h: Revolve's stack of parts still to do, the topmost next; the start of
 * number i is in slot i. A schedule's `self` begins with it.
 */
#ifndef NEAP_PLAN_RECOMPUTE_REVOLVE_STACK_H
#define NEAP_PLAN_RECOMPUTE_REVOLVE_STACK_H

#include "plan/core/schedule.h"
#include "plan/recompute/binomial.h"

struct neap__revolve_stack {
	struct {
		int64_t t0;
		struct neap__binomial part; /* l = 1: a single step */
	} * stack;
	int64_t depth, room;
	int down;   /* the topmost start is live */
	int turned; /* TURN is done */
};

/* A part on top of the others: l steps from t0 on in `slots` slots. 0 or -ENOMEM. */
int neap__revolve_stack_push(struct neap__revolve_stack *x, int64_t t0, int64_t l, int64_t slots);
/* The next few actions of the parts on the stack, none if it is empty. */
int neap__revolve_stack_next(struct neap__revolve_stack *x, struct neap_schedule *s);
/* A schedule's `tables`. */
int64_t neap__revolve_stack_tables(struct neap_schedule *s, int64_t room);

#endif

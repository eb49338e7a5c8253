/* SPDX-License-Identifier: Apache-2.0 */
/*
 * revolve_stack.h: Revolve's recursion (binomial.h) as a stack, so that a schedule emits its
 * actions a few at a time and the depth of the recursion takes no stack of the machine. Each
 * entry is a part of the chain that is still to be reversed; the topmost part is reversed
 * next. The first state of entry i is in slot i. A schedule's `self` begins with this struct.
 */
#ifndef NEAP_PLAN_RECOMPUTE_REVOLVE_STACK_H
#define NEAP_PLAN_RECOMPUTE_REVOLVE_STACK_H

#include "plan/core/schedule.h"
#include "plan/recompute/binomial.h"

struct neap__revolve_stack {
	struct {
		int64_t t0;		    /* the first step */
		struct neap__binomial part; /* l = 1: a single step */
	} * stack;
	int64_t depth, room;
	int down;   /* the first state of the topmost part is live */
	int turned; /* TURN was emitted */
};

/* Puts a part of l steps from step t0 on, in `slots` slots, on the stack. 0 or -ENOMEM. */
int neap__revolve_stack_push(struct neap__revolve_stack *x, int64_t t0, int64_t l, int64_t slots);
/* Emits the next few actions; none where the stack is empty. 0 or -ENOMEM. */
int neap__revolve_stack_next(struct neap__revolve_stack *x, struct neap_schedule *s);
/* A schedule's `tables` (core/schedule.h): makes room for `room` parts; returns the room. */
int64_t neap__revolve_stack_tables(struct neap_schedule *s, int64_t room);

#endif

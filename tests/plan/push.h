/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push.h: an `online` plan asked for one action after the other, as who steps a chain of unknown
 * length does. The length is told when the live state comes to step `stop` or, if `others` is not
 * 0, after so many of the actions that follow and leave the live state where it is: the chain then
 * has `live` steps at least. A callback for neap_schedule_wrap.
 */
#ifndef NEAP_PUSH_H
#define NEAP_PUSH_H

#include "plan_test.h"

struct push {
	struct neap_online *online;
	int64_t stop, steps, live;
	int told, others;
};

/* Tells the length after the last action that is neither ADVANCE nor RECORD. */
static void tell_between(struct push *x)
{
	x->told = 1;
	x->steps = x->steps > x->live ? x->steps : x->live;
	assert_int_equal(neap_online_finish(x->online, x->live, x->steps), 0);
}

static int push_next(void *user, struct neap_action *a)
{
	struct push *x = user;
	int rc;
	while ((rc = neap_online_next(x->online, a)) > 0) {
		int forward = a->kind == NEAP_ADVANCE || a->kind == NEAP_RECORD;
		if (x->others) {
			x->live = forward ? a->t1 : x->live;
			if (!x->told && !forward && x->live >= x->stop && --x->others == 0)
				tell_between(x);
			return rc;
		}
		if (x->told || !forward || a->t1 < x->stop)
			return rc;
		x->told = 1;
		assert_int_equal(neap_online_finish(x->online, x->stop, x->steps), 0);
		a->t1 = x->stop;
		if (a->t0 < a->t1)
			return 1;
	}
	return rc;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_list.h: a schedule that is stored action by action, for strategies whose plans are
 * found by trying: such a schedule is verified and simulated before it is offered.
 */
#ifndef NEAP_PLAN_CORE_ACTION_LIST_H
#define NEAP_PLAN_CORE_ACTION_LIST_H

#include "plan/core/schedule.h"

/* All zero to begin with; free with neap__action_list_free. */
struct neap__action_list {
	struct neap_action *a;
	int64_t n, room;
	int error; /* sticky: out of memory */
};

void neap__action_list_add(struct neap__action_list *list, const struct neap_action *a);
/* ADVANCE or RECORD of [t0, t1), a step at a time. */
void neap__action_list_forward(struct neap__action_list *list, int kind, int64_t t0, int64_t t1);
/* SAVE, LOAD or DROP. */
void neap__action_list_slot(struct neap__action_list *list, int kind, int64_t slot, int64_t t);
/* x_t from the tape of t - 1. */
void neap__action_list_load_tape(struct neap__action_list *list, int64_t t);
void neap__action_list_free(struct neap__action_list *list);

/* Makes the list, which is taken, the schedule's. Frees it where it fails. */
int neap__action_list_open(struct neap_schedule *s, struct neap__action_list *list);

#endif

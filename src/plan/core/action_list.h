/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_list.h: a schedule written down, action by action, for strategies whose plans
 * are found by trying: it is verified and simulated before it is offered.
 */
#ifndef NEAP_PLAN_SCRIPT_H
#define NEAP_PLAN_SCRIPT_H

#include "plan/core/schedule.h"

/* All zero to begin with; free with neap__script_free. */
struct neap__script {
	struct neap_action *a;
	int64_t n, room;
	int error; /* sticky: out of memory */
};

void neap__script_add(struct neap__script *script, const struct neap_action *a);
/* ADVANCE or RECORD of [t0, t1), a step at a time. */
void neap__script_forward(struct neap__script *script, int kind, int64_t t0, int64_t t1);
/* SAVE, LOAD or DROP. */
void neap__script_slot(struct neap__script *script, int kind, int64_t slot, int64_t t);
/* x_t from the tape of t - 1. */
void neap__script_load_tape(struct neap__script *script, int64_t t);
void neap__script_free(struct neap__script *script);

/*
 * Verifies and simulates: fills the plan's bytes, slots, tiers, steps, makespan and
 * stall. NEAP_EILLEGAL where it is not legal or does not fit the budget.
 */
int neap__script_measure(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap__script *script);

/* Makes the script, which is taken, the schedule's. Frees it where it fails. */
int neap__script_open(struct neap_schedule *s, struct neap__script *script);

#endif

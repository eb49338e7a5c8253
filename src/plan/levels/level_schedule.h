/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_schedule.h: emits the actions of a recursion over saved states. A part advances from
 * its saved first state to where the next state is saved; the right part is reversed first,
 * the left part after its first state was read back. Steps are recorded one by one. Every
 * PUT is waited for at once. A GET is issued before the BACKWARD of the step above it and
 * waited for behind that BACKWARD, which hides a part of it where the tier is asynchronous.
 * So the makespan is a closed form of counts, and no simulation is needed.
 */
#ifndef NEAP_PLAN_LEVELS_LEVEL_SCHEDULE_H
#define NEAP_PLAN_LEVELS_LEVEL_SCHEDULE_H

#include "plan/levels/level_solver.h"
#include "plan/core/schedule.h"
#include "plan/recompute/binomial.h"

/* Where the places of Revolve's stack lie, by depth: those below row[i].upto are on its tier. */
struct neap__level_depths {
	int count;
	struct {
		int64_t upto;
		int tier;
	} row[NEAP__LEVELS_MOST];
};

struct neap__level_schedule {
	int levels;
	int closed; /* level 0 follows Revolve; its places are those of `depths` */
	struct {
		int tier;
		int64_t slots;
	} level[NEAP__LEVELS_MOST];
	struct neap__level_depths depths;
	/* As in level_solver.h, not called for a closed level 0; t: first step of the part. */
	int (*writes)(void *user, int k, int64_t m, int64_t l, int64_t t);
	int64_t (*split)(void *user, int k, int64_t m, int64_t l, int64_t t);
	void (*free)(void *user);
	void *user;
};

/* Opens the schedule; owns how->user from then on, also where it fails. 0 or -ENOMEM. */
int neap__level_schedule_open(struct neap_schedule *s, const struct neap__level_schedule *how);
/* The same with the decisions of a solved problem, which it owns from then on. */
int neap__level_schedule_solved(struct neap_schedule *s, struct neap__levels *solved);

/* Seconds that a state of a tier costs such a schedule; tier 0: a copy to or from a slot. */
double neap__level_schedule_write(const struct neap_problem *p, int tier);
double neap__level_schedule_read(const struct neap_problem *p, int tier);

/* Seconds of its calls: each step is recorded and reversed alone, each split advances once. */
static inline double neap__level_schedule_calls(const struct neap_chain *c)
{
	return (3 * (double)c->steps - 1) * c->call;
}

/* Transfers of one level or of one row of depths: counts of states. */
struct neap__level_traffic {
	int tier;
	int64_t written, read, peak;
};

/*
 * Fills a plan from counts: one tape, the slots of the traffic of tier 0, the staging of the
 * tiers in use. Refuses where bytes that travel exceed 63 bits.
 */
void neap__level_schedule_plan(struct neap_plan *plan, const struct neap_problem *problem,
	int64_t advanced, const struct neap__level_traffic *traffic, int count);
/* Refuses and names the least budget with which Revolve works, or 0 where that is no help. */
void neap__level_schedule_refuse(struct neap_plan *plan, const struct neap_problem *problem);

#endif

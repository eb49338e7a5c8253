/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_schedule.h: emits the schedule of a recursion over saved states: a stretch is
 * split by advancing from its saved start; the right part comes first, the left
 * one after its start was read back. Steps are recorded one by one. Every PUT is
 * waited for at once; a GET goes out before the BACKWARD of the step above it and
 * is waited for behind that, which hides as much of it where the tier is
 * asynchronous: the makespan is a closed form of counts.
 */
#ifndef NEAP_PLAN_LEVELS_LEVEL_SCHEDULE_H
#define NEAP_PLAN_LEVELS_LEVEL_SCHEDULE_H

#include "plan/levels/level_solver.h"
#include "plan/core/schedule.h"
#include "plan/recompute/binomial.h"

/* Places by depth of Revolve's stack: the first `upto` ones are on `tier`, and so on. */
struct neap__level_depths {
	int count;
	struct {
		int64_t upto;
		int tier;
	} row[NEAP__LEVELS_MOST];
};

struct neap__level_schedule {
	int levels;
	int closed; /* level 0 is Revolve's, its places are those of `depths` */
	struct {
		int tier;
		int64_t slots;
	} level[NEAP__LEVELS_MOST];
	struct neap__level_depths depths;
	/* As in level_solver.h; t is where the stretch begins. Not asked with closed, level 0. */
	int (*writes)(void *user, int k, int64_t m, int64_t l, int64_t t);
	int64_t (*split)(void *user, int k, int64_t m, int64_t l, int64_t t);
	void (*free)(void *user);
	void *user;
};

/* Sets s up to emit; takes `user`, also where it fails. */
int neap__level_schedule_open(struct neap_schedule *s, const struct neap__level_schedule *how);
/* The same by a solved levels, which it takes. */
int neap__level_schedule_solved(struct neap_schedule *s, struct neap__levels *solved);

/* Seconds a state of a tier as such a schedule sees them; tier 0: a slot. */
double neap__level_schedule_write(const struct neap_problem *p, int tier);
double neap__level_schedule_read(const struct neap_problem *p, int tier);

/* Seconds of its calls: each step is recorded and reversed alone, each split is an advance. */
static inline double neap__level_schedule_calls(const struct neap_chain *c)
{
	return (3 * (double)c->steps - 1) * c->call;
}

/* Transfers of a place: counts of one level or group of depths. */
struct neap__level_traffic {
	int tier;
	int64_t written, read, peak;
};

/*
 * Fills a plan from counts: one tape, slots of tier 0 as the traffic of tier 0 says,
 * staging of the tiers used. Peak: peak S + A. Refuses where bytes exceed 63 bits or
 * the budget does not hold them.
 */
void neap__level_schedule_plan(struct neap_plan *plan, const struct neap_problem *problem,
	int64_t advanced, const struct neap__level_traffic *traffic, int count);
/* Refuses by the least budget of Revolve; 0 bytes where that would not help. */
void neap__level_schedule_refuse(struct neap_plan *plan, const struct neap_problem *problem);

#endif

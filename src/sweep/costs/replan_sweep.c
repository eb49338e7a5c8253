/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replan_sweep.c: what was measured in the first pass so far, the search for a better rest, and
 * the tables that it needs. The new rest is taken once everything that it needs is there: its
 * places are on the tier, and the tables are large enough for exactly the actions that will come.
 * Those are found by asking for the same actions again, from the first one on.
 */
#include "sweep/costs/replan_sweep.h"
#include "sweep/costs/cost_watch.h"
#include "sweep/log_plan.h"
#include "sweep/sweep.h"
#include "sweep/table_sizes.h"
#include "base/fail.h"
#include "plan/blocks/block_plan.h"
#include "plan/blocks/block_replan.h"
#include "plan/core/schedule.h"
#include "sys/clock.h"

#include <stdlib.h>

/* All values are chosen. */
#define GAIN 0.005		  /* of the time, that a new rest must save */
#define TRIES 8			  /* of a run */
#define EFFORT 100		  /* simulations of a search */
#define SIMULATIONS (EFFORT + 24) /* and those of neighbours (block_replan.c) */
#define RECORDS_LEAST 3		  /* writes that tell the tier's pace */

/* The actions of this run once more, from the first one on, with all that was replaced. */
struct again {
	const struct neap__replan_history *history;
	struct neap_schedule *schedule;
	int count, done; /* replans: that there are, that were applied */
};

/*
 * What was measured: by the least of samples, from which a plan is made, and by all steps so far,
 * by which it must not take longer than the plan that it replaces. If a processor was lent to other
 * programs for a while, or the first steps found cold caches, steps seem slow by the second alone;
 * transfers then seem to hide behind them, and a plan with many would wait for these once the steps
 * are as fast as planned.
 */
struct measured_costs {
	struct neap_problem least, all;
};

/* 1 where enough was measured, and it is not what is known. */
static int has_news(struct neap_sweep *s, struct measured_costs *m)
{
	const int i = s->plan.tier - 1;
	const struct neap_problem *now = &m->least;
	double least;
	/* Before the fence, which keeps a device waiting for its next calls. */
	if (s->watch.records[i] < RECORDS_LEAST)
		return 0;
	neap__fence_wait(&s->arena.memory.fence);
	if (!neap__watch_sample(s, &least))
		return 0;
	double all = neap__watch_found_forward(s) / neap__watch_planned_forward(s);
	neap__watch_scale(s, least, least, &m->least);
	neap__watch_scale(s, all, all, &m->all);
	return neap__watch_is_off(now->chain.advance, s->watch.known_advance) ||
	       neap__watch_is_off(neap__watch_write_seconds(s, now), s->watch.known_write);
}

static int next_again(void *user, struct neap_action *a)
{
	struct again *x = user;
	const struct neap__replan_history *w = x->history;
	int64_t step;
	if (x->done < x->count && neap__block_plan_at_block(x->schedule, &step)) {
		const struct neap_plan *plan = &w->plan[x->done + 1];
		if (plan->replans[plan->replan_count - 1].from == step)
			NEAP_TRY(
				neap__block_plan_switch(x->schedule, &w->problem[++x->done], plan));
	}
	return neap_schedule_next(x->schedule, a);
}

static int sizes_again(struct neap_sweep *s, struct neap__table_sizes *sizes)
{
	const struct neap__replan_history *w = s->watch.history;
	struct again x = {.history = w, .count = w->count};
	struct neap_schedule *all = NULL;
	NEAP_TRY(neap_schedule_open(&x.schedule, &w->problem[0], &w->plan[0]));
	int rc = neap_schedule_wrap(&all, next_again, NULL, &x);
	if (rc == 0)
		rc = neap__table_sizes(sizes, s->problem.ntiers, all);
	if (rc == 0) {
		sizes->queue = x.schedule->room;
		sizes->tables = x.schedule->tables(x.schedule, 0);
	}
	neap_schedule_close(all);
	neap_schedule_close(x.schedule);
	return rc;
}

/* The tables for this run, and for the next, which has the whole plan from its first step on. */
static int find_sizes(struct neap_sweep *s, struct neap__table_sizes *sizes)
{
	const struct neap__replan_history *w = s->watch.history;
	struct neap__table_sizes next;
	struct neap_schedule *schedule;
	NEAP_TRY(sizes_again(s, sizes));
	NEAP_TRY(neap_schedule_open(&schedule, &w->problem[w->count], &w->plan[w->count]));
	int rc = neap__table_sizes(&next, s->problem.ntiers, schedule);
	neap_schedule_close(schedule);
	neap__table_sizes_join(sizes, &next);
	return rc;
}

/* 1 where what the new plan writes fits the places that the tier was formatted with. */
static int fits_tiers(const struct neap_sweep *s, const struct neap__table_sizes *sizes)
{
	int fits = sizes->scattered == s->sizes.scattered;
	for (int i = 0; i < s->problem.ntiers; i++)
		fits = fits && sizes->places[i] <= s->sizes.places[i] &&
		       sizes->tape_places[i] <= s->sizes.tape_places[i] &&
		       sizes->longest[i] <= s->sizes.longest[i];
	return fits;
}

/* Takes the plan that is the last of the history. 1, 0: it does not fit, or a negative code. */
static int take(struct neap_sweep *s, struct neap_schedule *schedule)
{
	struct neap__replan_history *w = s->watch.history;
	struct neap__table_sizes sizes;
	if (find_sizes(s, &sizes) < 0 || !fits_tiers(s, &sizes) ||
		neap__sweep_tables_grow(s, &sizes, &w->old_spans[w->count - 1]) < 0)
		return 0;
	NEAP_TRY(neap__block_plan_switch(schedule, &w->problem[w->count], &w->plan[w->count]));
	NEAP_TRY(neap__table_sizes_reserve(&s->sizes, schedule));
	s->problem = w->problem[w->count];
	s->plan = w->plan[w->count];
	return 1;
}

/* The history, with what was planned; NULL: no memory. */
static struct neap__replan_history *history_of(struct neap_sweep *s)
{
	struct neap__replan_history *h = s->watch.history;
	if (h)
		return h;
	h = s->watch.history = calloc(1, sizeof *h);
	if (h) {
		h->problem[0] = s->problem;
		h->plan[0] = s->plan;
	}
	return h;
}

/* Seconds of a search, before the first one: those of a simulation, times their number. */
static double search_seconds(const struct neap_sweep *s)
{
	struct neap_plan plan = s->plan;
	struct neap__prefetch *prefetch;
	double start = neap__seconds();
	if (neap__prefetch_new(&prefetch) < 0)
		return 0;
	(void)neap__block_plan_run(&plan, &s->problem, prefetch);
	neap__prefetch_free(prefetch);
	return SIMULATIONS * (neap__seconds() - start);
}

/* 1 where the rest of the sweep is long compared with the searches so far and another one. */
static int is_worth(struct neap_sweep *s, double rest)
{
	struct neap__cost_watch *w = &s->watch;
	if (s->options.no_replan != 0)
		return 1;
	if (!(w->search > 0))
		w->search = search_seconds(s);
	return rest >= NEAP__REPLAN_WORTH * (w->searched + w->search);
}

/* A search, whose seconds count. */
static int search(
	struct neap_sweep *s, struct neap_plan *plan, const struct neap_problem *now, int64_t step)
{
	struct neap__cost_watch *w = &s->watch;
	double start = neap__seconds();
	int rc = neap__block_replan(
		plan, now, step, s->sizes.longest[s->plan.tier - 1], EFFORT, GAIN);
	double seconds = neap__seconds() - start;
	w->searched += seconds;
	w->search = seconds > w->search ? seconds : w->search;
	return rc;
}

/* The problem that is searched: places on the tier are looked at by fits_tiers. */
static struct neap_problem searched(const struct neap_sweep *s, const struct neap_problem *found)
{
	struct neap_problem p = *found;
	p.memory = s->plan.arena_bytes;
	p.tiers[s->plan.tier - 1].capacity = NEAP_INFINITE;
	return p;
}

static int replan(struct neap_sweep *s, struct neap_schedule *schedule, int64_t step,
	const struct measured_costs *found)
{
	struct neap__cost_watch *w = &s->watch;
	struct neap__replan_history *h = history_of(s);
	int tier = s->plan.tier - 1;
	double start = neap__seconds();
	w->tries++;
	if (!h || h->count == NEAP_REPLANS_MAX)
		return 0;
	struct neap_problem *now = &h->problem[h->count + 1];
	struct neap_plan *plan = &h->plan[h->count + 1];
	const struct neap_problem all = searched(s, &found->all);
	*now = searched(s, &found->least);
	*plan = s->plan;
	int rc = search(s, plan, now, step);
	if (rc > 0)
		rc = neap__block_replan_holds(plan, &s->plan, &all);
	now->tiers[tier].capacity = s->problem.tiers[tier].capacity;
	neap__log_replan(&s->problem, &found->least, step, rc > 0 ? plan : NULL);
	if (rc <= 0)
		return 0; /* the old plan goes on */
	h->count++;
	rc = take(s, schedule);
	h->count -= rc <= 0;
	NEAP_TRY(rc);
	if (rc == 0)
		return 0;
	s->stats.replans++;
	neap__trace_add(s->options.trace,
		&(struct neap__event){
			.start = start, .end = neap__seconds(), .kind = NEAP__EVENT_REPLAN});
	/* The next decision is about what was measured since. */
	w->busy[tier] = w->planned[tier] = 0;
	w->records[tier] = 0;
	neap__watch_restart(s);
	return 0;
}

int neap__replan_consider(struct neap_sweep *s, struct neap_schedule *schedule)
{
	struct neap__cost_watch *w = &s->watch;
	int64_t step;
	if (s->position >= 0 || w->tries >= TRIES || !neap__replan_possible(s) ||
		!neap__block_plan_at_block(schedule, &step) || step <= w->step)
		return 0;
	w->step = step;
	double rest = s->plan.makespan * (1 - (double)step / (double)s->problem.chain.steps);
	if (s->options.no_replan == 0 && rest < NEAP__REPLAN_WORTH * s->planning)
		return 0;
	struct measured_costs found;
	if (!has_news(s, &found))
		return 0;
	neap__watch_set_known(s, &found.least); /* the same news does not come again */
	return is_worth(s, rest) ? replan(s, schedule, step, &found) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replan_sweep.c: what was measured in the first pass so far, the search for a better rest, and
 * the tables that it needs. The new rest is taken once everything that it needs is there: its
 * places are on the tier, and the tables are large enough for exactly the actions that will come.
 * Those are found by asking for the same actions again, from the first one on.
 */
#include "sweep/costs/replan_sweep.h"
#include "sweep/sweep.h"
#include "sweep/table_sizes.h"
#include "base/fail.h"
#include "plan/blocks/block_plan.h"
#include "plan/blocks/block_replan.h"
#include "plan/core/schedule.h"
#include "store/tier_state.h"
#include "sys/clock.h"

#include <math.h>
#include <stdlib.h>

#define OFF 0.05       /* a cost that differs by this share is another one */
#define GAIN 0.005     /* of the time, that a new rest must save */
#define WORTH 100      /* times as long as planning, that the rest must take */
#define TRIES 8	       /* of a run */
#define EFFORT 100     /* simulations of a search */
#define STEPS_LEAST 64 /* forward steps that tell their cost */
#define SECONDS_LEAST 1e-3
#define RECORDS_LEAST 3	  /* writes that tell the tier's pace */
#define CHEAP 10	  /* times as long as planning, that a sweep must take to be simulated */
#define LATEST 6	  /* the part of these steps that tells most, */
#define LATEST_LEAST 1e-2 /* if it takes so long */
#define FORESEE 10	  /* after this part of the first pass */
#define MADE_UP 2.0	  /* times as much as planned: that was not measured */
#define SIMULATED_MOST 100000 /* steps: a longer plan without blocks is not simulated again */

void neap__replan_forget(struct neap_sweep *s)
{
	struct neap__replan_history *history = s->watch.history;
	for (int i = 0; history && i < NEAP_REPLANS_MAX; i++)
		free(history->old_spans[i]);
	free(history);
	s->watch.history = NULL;
}

static double write_seconds(const struct neap_sweep *s, const struct neap_problem *p)
{
	int tier = s->plan.tier - 1;
	return tier < 0 ? 0 : neap_tier_seconds(&p->tiers[tier], 1, p->chain.state);
}

static void set_known(struct neap_sweep *s, const struct neap_problem *p)
{
	s->watch.known_advance = p->chain.advance;
	s->watch.known_write = write_seconds(s, p);
}

void neap__replan_reset(struct neap_sweep *s)
{
	struct neap__cost_watch *w = &s->watch;
	neap__replan_forget(s);
	*w = (struct neap__cost_watch){.step = -1};
	set_known(s, &s->problem);
	int64_t steps = s->problem.chain.steps;
	w->foresee_at = s->ops.ended ? INT64_MAX : (steps + FORESEE - 1) / FORESEE;
	w->mark_at = s->ops.ended ? INT64_MAX : w->foresee_at - w->foresee_at / LATEST;
}

int neap__replan_possible(const struct neap_sweep *s)
{
	const struct neap_blocks *b = &s->plan.blocks;
	int how = s->options.no_replan;
	return !neap__agrees(&s->agreement) && how <= 0 &&
	       (how < 0 || s->plan.makespan > WORTH * s->planning) && !s->options.saved &&
	       !s->open && !s->ops.ended && !s->journal.base.directory && s->plan.tier > 0 &&
	       s->plan.near.tier == 0 && b->advance + b->record > 0 &&
	       s->plan.replan_count < NEAP_REPLANS_MAX;
}

void neap__replan_learn(struct neap_sweep *s, const struct neap__ticket *ticket)
{
	struct neap__cost_watch *w = &s->watch;
	const int i = ticket->tier - 1;
	const struct neap_tier *tier = s->tiers[i];
	double start = 0, end = 0;
	if (!ticket->put || ticket->answer < 0 || s->position >= 0)
		return;
	if (tier->ops.times)
		tier->ops.times(tier->self, &start, &end);
	if (!(start >= ticket->issued && end >= start))
		return;
	/* Requests overlap where a tier does several at a time. */
	double from = start > w->last_end[i] ? start : w->last_end[i];
	w->busy[i] += end > from ? end - from : 0;
	w->last_end[i] = end > w->last_end[i] ? end : w->last_end[i];
	w->planned[i] += neap_tier_seconds(&s->problem.tiers[i], 1, ticket->bytes);
	w->records[i]++;
}

static int is_off(double found, double planned)
{
	return fabs(found - planned) > OFF * planned;
}

/* Seconds of forward steps so far, and what is known says of them. */
static double found_forward(const struct neap_sweep *s)
{
	return s->stats.advance + s->stats.record;
}

static double planned_forward(const struct neap_sweep *s)
{
	const struct neap_sweep_stats *t = &s->stats;
	const struct neap_chain *c = &s->problem.chain;
	return (double)t->advance_steps * c->advance + (double)t->record_steps * c->record +
	       (double)(t->advance_calls + t->record_calls) * c->call;
}

/*
 * The problem where forward steps take `forward` times as long, backward steps `backward` times,
 * and transfers what writes tell.
 */
static void scale(
	const struct neap_sweep *s, double forward, double backward, struct neap_problem *now)
{
	const struct neap__cost_watch *w = &s->watch;
	struct neap_chain *c = &now->chain;
	int i = s->plan.tier - 1;
	*now = s->problem;
	c->advance *= forward;
	c->record *= forward;
	c->backward *= backward;
	c->call *= forward;
	c->slot_write *= forward;
	c->slot_read *= forward;
	if (i < 0 || !(w->planned[i] > 0) || !(w->busy[i] > 0))
		return;
	double slower = w->busy[i] / w->planned[i];
	struct neap_tier_spec *tier = &now->tiers[i];
	tier->write_rate /= slower;
	tier->read_rate /= slower;
	tier->write_fixed *= slower;
	tier->read_fixed *= slower;
}

/* 1 where enough was measured, and it is not what is known. */
static int has_news(const struct neap_sweep *s, struct neap_problem *now)
{
	const int i = s->plan.tier - 1;
	double found = found_forward(s), planned = planned_forward(s);
	if (s->watch.records[i] < RECORDS_LEAST || found < SECONDS_LEAST || !(planned > 0))
		return 0;
	scale(s, found / planned, found / planned, now);
	return is_off(now->chain.advance, s->watch.known_advance) ||
	       is_off(write_seconds(s, now), s->watch.known_write);
}

/* Seconds of the plan with these costs, by its actions; below 0: there are too many. */
static double simulated(const struct neap_sweep *s, const struct neap_problem *now)
{
	struct neap_plan plan = s->plan;
	struct neap_simulation m = {.size = sizeof m};
	struct neap_schedule *schedule;
	if (plan.blocks.advance + plan.blocks.record > 0) {
		struct neap__prefetch *prefetch;
		double seconds = -1;
		if (neap__prefetch_new(&prefetch) < 0)
			return -1;
		if (neap__block_plan_run(&plan, now, prefetch) == 0)
			seconds = plan.makespan;
		neap__prefetch_free(prefetch);
		return seconds;
	}
	if (s->open || now->chain.steps > SIMULATED_MOST ||
		neap_schedule_open(&schedule, now, &plan) < 0)
		return -1;
	int rc = neap_simulate(&m, now, schedule);
	neap_schedule_close(schedule);
	return rc < 0 ? -1 : m.makespan;
}

void neap__replan_foresee(struct neap_sweep *s)
{
	struct neap__cost_watch *w = &s->watch;
	struct neap_problem now;
	double seconds = -1, found = found_forward(s), planned = planned_forward(s);
	if (s->passed < w->foresee_at) {
		w->mark_at = w->foresee_at;
		w->mark_found = found;
		w->mark_planned = planned;
		return;
	}
	w->mark_at = INT64_MAX;
	/* The latest steps tell more: the first ones often find their inputs at hand. */
	if (found - w->mark_found > LATEST_LEAST && planned > w->mark_planned)
		found -= w->mark_found, planned -= w->mark_planned;
	if (!(planned > 0) || !(found > 0))
		return;
	/*
	 * Either the machine has another pace, and backward steps share it, or forward steps were
	 * measured wrong, and they do not. Halfway between errs least, unless costs were made up.
	 */
	double forward = found / planned, backward = (1 + forward) / 2;
	if (forward > MADE_UP || forward < 1 / MADE_UP)
		backward = forward;
	scale(s, forward, backward, &now);
	if (s->plan.tier > 0 && s->options.no_replan <= 0 && s->plan.makespan > CHEAP * s->planning)
		seconds = simulated(s, &now);
	if (!(seconds > 0)) {
		double reversal = (double)s->problem.chain.steps * s->problem.chain.backward;
		seconds = (s->plan.makespan - reversal) * forward + reversal * backward;
	}
	s->stats.foreseen = seconds;
	neap__sweep_publish(s);
}

double neap_sweep_foreseen(const struct neap_sweep *s)
{
	return s ? atomic_load_explicit(&s->shared.foreseen, memory_order_relaxed) : 0;
}

/* The actions of this run once more, from the first one on, with all that was replaced. */
struct again {
	const struct neap__replan_history *history;
	struct neap_schedule *schedule;
	int count, done; /* replans: that there are, that were applied */
};

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

static int replan(struct neap_sweep *s, struct neap_schedule *schedule, int64_t step,
	const struct neap_problem *found)
{
	struct neap__cost_watch *w = &s->watch;
	struct neap__replan_history *h = history_of(s);
	int tier = s->plan.tier - 1;
	double start = neap__seconds();
	set_known(s, found);
	w->tries++;
	if (!h || h->count == NEAP_REPLANS_MAX)
		return 0;
	struct neap_problem *now = &h->problem[h->count + 1];
	struct neap_plan *plan = &h->plan[h->count + 1];
	*now = *found;
	*plan = s->plan;
	now->memory = s->plan.arena_bytes;
	now->tiers[tier].capacity = NEAP_INFINITE; /* fits_tiers looks at the places */
	int rc = neap__block_replan(plan, now, step, s->sizes.longest[tier], EFFORT, GAIN);
	now->tiers[tier].capacity = s->problem.tiers[tier].capacity;
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
	if (s->options.no_replan == 0 && rest < WORTH * s->planning)
		return 0;
	struct neap_problem found;
	return has_news(s, &found) ? replan(s, schedule, step, &found) : 0;
}

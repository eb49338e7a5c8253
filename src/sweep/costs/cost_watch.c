/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_watch.c: what a run has measured of steps and transfers, compared with the costs that its
 * plan assumed, and the time that the sweep will take with the measured costs.
 */
#include "sweep/costs/cost_watch.h"
#include "plan/blocks/block_plan.h"
#include "plan/core/schedule.h"
#include "plan/core/sizing.h"
#include "store/tier_state.h"

#include <math.h>
#include <stdlib.h>

/* All values are chosen; OFF is above the noise of a quiet machine. */
#define OFF 0.05	  /* a cost that differs by this share is another one */
#define CHEAP 10	  /* times as long as planning, that a sweep must take to be simulated */
#define LATEST 6	  /* the part of these steps that tells most, */
#define LATEST_LEAST 1e-2 /* if it takes so long */
#define FORESEE 10	  /* after this part of the first pass */
#define MADE_UP 2.0	  /* times as much as planned: that was not measured */
/*
 * Of samples of the pace: seconds at least, and part of the planned first pass at least, since the
 * least of many short ones is a matter of luck; how many there must be, one that is cold and two
 * that are hardly disturbed both.
 */
#define SAMPLE_SECONDS 1e-3
#define SAMPLE_SHARE 0.05
#define SAMPLES_LEAST 3
#define SIMULATED_MOST 100000 /* steps: a longer plan without blocks is not simulated again */

void neap__replan_forget(struct neap_sweep *s)
{
	struct neap__replan_history *history = s->watch.history;
	for (int i = 0; history && i < NEAP_REPLANS_MAX; i++)
		free(history->old_spans[i]);
	free(history);
	s->watch.history = NULL;
}

double neap__watch_write_seconds(const struct neap_sweep *s, const struct neap_problem *p)
{
	int tier = s->plan.tier - 1;
	return tier < 0 ? 0 : neap_tier_seconds(&p->tiers[tier], 1, p->chain.state);
}

void neap__watch_set_known(struct neap_sweep *s, const struct neap_problem *p)
{
	s->watch.known_advance = p->chain.advance;
	s->watch.known_write = neap__watch_write_seconds(s, p);
}

void neap__replan_reset(struct neap_sweep *s)
{
	struct neap__cost_watch *w = &s->watch;
	neap__replan_forget(s);
	*w = (struct neap__cost_watch){.step = -1, .search = w->search};
	neap__watch_set_known(s, &s->problem);
	int64_t steps = s->problem.chain.steps;
	w->foresee_at = s->ops.ended ? INT64_MAX : (steps + FORESEE - 1) / FORESEE;
	w->mark_at = s->ops.ended ? INT64_MAX : w->foresee_at - w->foresee_at / LATEST;
}

int neap__replan_possible(const struct neap_sweep *s)
{
	const struct neap_blocks *b = &s->plan.blocks;
	int how = s->options.no_replan;
	return !neap__agrees(&s->agreement) && how <= 0 &&
	       (how < 0 || s->plan.makespan > NEAP__REPLAN_WORTH * s->planning) &&
	       !s->options.saved && !s->open && !s->ops.ended && !s->journal.base.directory &&
	       s->plan.tier > 0 && s->plan.near.tier == 0 && b->advance + b->record > 0 &&
	       s->plan.replan_count < NEAP_REPLANS_MAX;
}

void neap__replan_learn(struct neap_sweep *s, const struct neap__ticket *ticket)
{
	struct neap__cost_watch *w = &s->watch;
	const int i = ticket->request.tier - 1;
	const struct neap_tier *tier = s->tiers[i];
	double start = 0, end = 0;
	if (!ticket->request.put || ticket->request.answer < 0 || s->position >= 0)
		return;
	if (tier->ops.times)
		tier->ops.times(tier->self, &start, &end);
	if (!(start >= ticket->request.issued && end >= start))
		return;
	/* Requests overlap where a tier does several at a time. */
	double from = start > w->last_end[i] ? start : w->last_end[i];
	w->busy[i] += end > from ? end - from : 0;
	w->last_end[i] = end > w->last_end[i] ? end : w->last_end[i];
	w->planned[i] += neap_tier_seconds(&s->problem.tiers[i], 1, ticket->request.bytes);
	w->records[i]++;
}

int neap__watch_is_off(double found, double planned)
{
	return fabs(found - planned) > OFF * planned;
}

/* Seconds of forward steps so far, as measured. */
double neap__watch_found_forward(const struct neap_sweep *s)
{
	return s->stats.advance + s->stats.record;
}

double neap__watch_planned_forward(const struct neap_sweep *s)
{
	const struct neap_sweep_stats *t = &s->stats;
	const struct neap_chain *c = &s->problem.chain;
	return (double)t->advance_steps * c->advance + (double)t->record_steps * c->record +
	       (double)(t->advance_calls + t->record_calls) * c->call;
}

/*
 * The least of samples: whatever disturbs a step for a while, such as cold caches, page faults, or
 * other programs on the processor, makes it slower and never faster.
 */
int neap__watch_sample(struct neap_sweep *s, double *least)
{
	struct neap__cost_watch *w = &s->watch;
	double found = neap__watch_found_forward(s), planned = neap__watch_planned_forward(s);
	double pass = (double)s->problem.chain.steps * s->problem.chain.advance;
	if (found - w->seen_found >= SAMPLE_SECONDS &&
		planned - w->seen_planned >= SAMPLE_SHARE * pass) {
		double pace = (found - w->seen_found) / (planned - w->seen_planned);
		if (w->samples > 0)
			w->least = w->samples == 1 ? pace : fmin(w->least, pace);
		w->samples++;
		w->seen_found = found;
		w->seen_planned = planned;
	}
	*least = w->least;
	return w->samples >= SAMPLES_LEAST;
}

void neap__watch_restart(struct neap_sweep *s)
{
	struct neap__cost_watch *w = &s->watch;
	w->seen_found = neap__watch_found_forward(s);
	w->seen_planned = neap__watch_planned_forward(s);
	w->samples = 1;
}

/*
 * The problem where forward steps take `forward` times as long, backward steps `backward` times,
 * and transfers what writes tell.
 */
void neap__watch_scale(
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
		const struct neap_problem counted = neap__calls_counted(now);
		if (neap__block_plan_run(&plan, &counted, prefetch) == 0)
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
	neap__fence_wait(&s->arena.memory.fence);
	double seconds = -1, found = neap__watch_found_forward(s),
	       planned = neap__watch_planned_forward(s);
	if (s->passed < w->foresee_at) {
		w->mark_at = w->foresee_at;
		w->mark_found = found;
		w->mark_planned = planned;
		return;
	}
	w->mark_at = INT64_MAX;
	/* The latest steps tell more: the inputs of the first ones are often in the cache. */
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
	neap__watch_scale(s, forward, backward, &now);
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

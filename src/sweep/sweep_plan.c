/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_plan.c: describes the problem to the planner, and plans until the records have room on
 * their tiers, trailers and padding included. Of ranks, one plans, and all plan for the least room
 * that there is on any of them.
 */
#include "sweep/sweep_plan.h"
#include "sweep/costs/cost_watch.h"
#include "sweep/infeasible.h"
#include "sweep/online_plan.h"
#include "sweep/saved_plan.h"
#include "sweep/table_sizes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "plan/verify/measure_list.h"
#include "store/tier_state.h"
#include "sys/clock.h"

#include <errno.h>
#include <math.h>

#define EFFORT 100 /* simulations of `auto`: fewer than its default, for plans of each batch */

/*
 * Describes a tier to the planner. Trailers and padding are off its capacity, as they are for
 * states or, where tapes may go there, for tapes: their records are long and waste less. Where
 * this promises too much, shrink() below plans again with less.
 */
static void describe_tier(struct neap_problem *p, int i, struct neap_tier *tier, int tapes)
{
	struct neap_tier_spec *spec = &p->tiers[i], large;
	uint64_t block = neap__sat_mul(p->chain.tape, NEAP__RECORD_BLOCK), staging;
	neap_tier_describe(tier, p->chain.state, spec);
	neap_tier_describe(tier, block, &large);
	if (tapes && large.capacity > spec->capacity)
		spec->capacity = large.capacity;
	staging = neap__tier_staging(tier, p->chain.state, p->memory);
	if (tapes && block > p->chain.state)
		staging = neap__tier_staging(tier, block, p->memory);
	if (staging > spec->staging && staging <= p->memory / NEAP__STAGING_SHARE)
		spec->staging = staging;
	spec->staging = neap__round_up(spec->staging, 4096);
}

/*
 * Describes the problem to the planner. Every size is rounded up to 64 bytes, a tape's too: then a
 * step's tape takes the same wherever a record call begins, and the plan's peak is the run's.
 */
void neap__sweep_describe(struct neap_problem *p, const struct neap_step_ops *ops,
	const struct neap_sweep_options *o, int journalled)
{
	int fixed = !ops->tape_max_bytes || ops->tape_max_bytes == ops->tape_bytes;
	*p = (struct neap_problem)NEAP_PROBLEM_INIT;
	p->chain.steps = o->steps;
	p->chain.state = p->chain.live = neap__round_up(ops->state_bytes, 64);
	if (ops->live_bytes)
		p->chain.live = neap__sat_add(neap__round_up(ops->live_bytes, 64),
			o->ntiers > 0 || journalled ? p->chain.state : 0);
	p->chain.adjoint = neap__round_up(ops->adjoint_bytes, 64);
	p->chain.tape = neap__round_up(ops->tape_bytes, 64);
	p->chain.tape_max = fixed ? 0 : neap__round_up(ops->tape_max_bytes, 64);
	uint64_t mean = fixed ? 0 : neap__round_up(ops->tape_mean_bytes, 64);
	p->chain.tape_mean = mean < p->chain.tape ? mean : 0;
	p->chain.advance = o->advance > 0 ? o->advance : 1;
	p->chain.record = o->record > 0 ? o->record : 1;
	p->chain.backward = o->backward > 0 ? o->backward : 2;
	p->chain.log = ops->replay ? neap__round_up(ops->log_bytes, 64) : 0;
	p->chain.replay = o->replay > 0 ? o->replay : p->chain.record;
	p->chain.slot_write = o->slot_write;
	p->chain.slot_read = o->slot_read;
	p->chain.call = o->call;
	if (o->call > 0)
		p->chain.record_steps = ops->record_steps ? ops->record_steps : NEAP__RECORD_BLOCK;
	p->memory = o->memory ? o->memory : NEAP_INFINITE;
	p->ntiers = o->ntiers;
	for (int i = 0; i < o->ntiers; i++)
		if (!neap_tier_takes_tapes(o->tiers[i]))
			p->chain.flags = NEAP_CHAIN_TAPES_STAY;
	for (int i = 0; i < o->ntiers; i++)
		describe_tier(p, i, o->tiers[i], p->chain.flags == 0);
	/* Transfers pass through buffers of the tier's own: the processor cannot use the arena. */
	for (int i = 0; ops->memory && i < o->ntiers; i++)
		p->tiers[i].staging = 0;
}

static int plan_own(struct neap_sweep *s, struct neap_schedule *schedule)
{
	struct neap_verdict verdict = {.size = sizeof verdict};
	NEAP_TRY(neap_verify(&verdict, &s->problem, schedule));
	s->plan = (struct neap_plan){
		.size = sizeof(struct neap_plan),
		.strategy = "own",
		.chosen = "own",
		.feasible = verdict.arena_bytes <= s->problem.memory,
		.least_bytes = verdict.arena_bytes,
		.why = "the schedule needs more",
	};
	neap__plan_measured(&s->plan, &verdict, &(struct neap_simulation){0});
	return 0;
}

static int make_plan_of(struct neap_sweep *s, struct neap_plan *plan)
{
	struct neap_params params = s->options.params;
	if (params.effort == 0)
		params.effort = EFFORT;
	const char *strategy = s->options.strategy ? s->options.strategy : "auto";
	plan->size = sizeof *plan;
	return neap_plan_make(plan, &s->problem, strategy, &params);
}

/* Of ranks, on one of them. */
static int make_feasible(void *user, struct neap_plan *plan)
{
	struct neap_sweep *s = user;
	NEAP_TRY(make_plan_of(s, plan));
	return neap__refuse_plan(plan, s->problem.memory);
}

static int solve_together(struct neap_sweep *s)
{
	neap_saved_free(s->agreed_plan);
	NEAP_TRY(neap__agree_plan(&s->agreement, &s->problem, make_feasible, s, &s->agreed_plan));
	s->plan = *s->agreed_plan->plan;
	return 0;
}

/* Of ranks: each has a saved plan, or a schedule, and all are the same. */
static int take_saved(struct neap_sweep *s)
{
	int rc = neap__saved_plan_take(s);
	if (!neap__agrees(&s->agreement))
		return rc;
	const struct neap__agree_row row = {
		"the saved plan", rc < 0 ? 0 : neap__agree_plan_hash(&s->plan, &s->problem)};
	return neap__agree_same(&s->agreement, NEAP__AGREE_PLAN, rc, &row, 1);
}

static int solve(struct neap_sweep *s)
{
	struct neap_schedule *schedule;
	if (s->open) {
		NEAP_TRY(neap__sweep_open_schedule(s, &schedule));
		int rc = plan_own(s, schedule);
		neap_schedule_close(schedule);
		return rc;
	}
	if (s->options.saved)
		return take_saved(s);
	return neap__agrees(&s->agreement) ? solve_together(s) : make_plan_of(s, &s->plan);
}

/*
 * A plan that is replaced on its way may send more away than was planned: twice as many places
 * where they take no more than half of the tier, a quarter more where they fit.
 */
static void spare_places(struct neap_sweep *s, int i)
{
	const struct neap_chain *c = &s->problem.chain;
	int64_t *states = &s->sizes.places[i], *tapes = &s->sizes.tape_places[i];
	uint64_t tape = neap__sat_mul((uint64_t)s->sizes.longest[i], c->tape);
	for (int64_t quarters = 4; quarters > 0; quarters -= 3) {
		int64_t more_states = *states + *states * quarters / 4;
		int64_t more_tapes = *tapes + *tapes * quarters / 4;
		uint64_t needs =
			neap__tier_needs(s->tiers[i], (struct neap__records){c->state, more_states},
				(struct neap__records){tape ? tape : 64, more_tapes});
		if (needs > s->tiers[i]->spec.capacity / (quarters == 4 ? 2 : 1))
			continue;
		*states = more_states;
		*tapes = more_tapes;
		return;
	}
}

/*
 * Sets the bytes of a place for tapes. Where tapes vary, a range may take more than planned: a
 * place has up to twice as much, if the tier has room for it. Beyond that there are places for
 * states, to recover tapes from that do not fit: a quarter of the tapes' bytes at most.
 */
static void size_records(struct neap_sweep *s, int i)
{
	const struct neap_chain *c = &s->problem.chain;
	const struct neap_tier *tier = s->tiers[i];
	uint64_t steps = (uint64_t)s->sizes.longest[i], planned = neap__sat_mul(steps, c->tape);
	uint64_t most = neap__sat_mul(steps, neap__worst(s));
	uint64_t logged = (uint64_t)s->sizes.longest_log[i], worst = neap__worst(s);
	if (neap__sat_mul(logged, c->log) > planned) {
		planned = neap__sat_mul(logged, c->log);
		worst = neap__worst_log(s);
		most = neap__sat_mul(logged, worst);
	}
	if (i == s->plan.tier - 1 && neap__replan_possible(s))
		spare_places(s, i);
	struct neap__records states = {c->state, s->sizes.places[i]};
	struct neap__records tapes = {neap__sat_mul(2, planned), s->sizes.tape_places[i]};
	s->tape_place_bytes[i] = 0;
	s->places[i] = states.places;
	if (tapes.places == 0)
		return;
	if (tapes.bytes < worst)
		tapes.bytes = worst;
	if (tapes.bytes > most)
		tapes.bytes = most;
	if (neap__tier_needs(tier, states, tapes) > tier->spec.capacity && tapes.bytes > planned)
		tapes.bytes = planned;
	s->tape_place_bytes[i] = tapes.bytes > 64 ? tapes.bytes : 64;
	uint64_t room = neap__sat_mul(planned, (uint64_t)tapes.places) / 4 / c->state + 1;
	states.places += room < (uint64_t)tapes.places ? (int64_t)room : tapes.places;
	if (!s->fixed && neap__tier_needs(tier, states, tapes) <= tier->spec.capacity)
		s->places[i] = states.places;
}

/* Of ranks: whether any of them changed its problem; all have the same afterwards. */
static int agree_on_change(struct neap_sweep *s, int changed)
{
	int64_t value = -changed;
	if (!neap__agrees(&s->agreement))
		return changed;
	NEAP_TRY(neap__agree_problem(&s->agreement, 0, &s->problem));
	NEAP_TRY(neap__agree(&s->agreement, NEAP__AGREE_PROBLEM, &value, 1));
	return (int)-value;
}

/*
 * Trailers and padding of records are not in the plan. Where a tier cannot hold them, too, its
 * capacity in the problem becomes smaller in proportion, and 2% more. 1 if any changed, on any
 * rank; or a negative code.
 */
static int shrink(struct neap_sweep *s)
{
	int changed = 0;
	for (int i = 0; i < s->problem.ntiers; i++) {
		const struct neap_tier *tier = s->tiers[i];
		struct neap__records states = {s->problem.chain.state, s->places[i]};
		struct neap__records tapes = {s->tape_place_bytes[i], s->sizes.tape_places[i]};
		uint64_t needs = neap__tier_needs(tier, states, tapes);
		if (needs <= tier->spec.capacity)
			continue;
		s->problem.tiers[i].capacity =
			(uint64_t)((double)s->problem.tiers[i].capacity * 0.98 *
				   (double)tier->spec.capacity / (double)needs);
		changed = 1;
	}
	return agree_on_change(s, changed);
}

/* A plan whose schedule is read to its end. */
static int plan_known(struct neap_sweep *s)
{
	struct neap_schedule *schedule;
	double start = neap__seconds();
	NEAP_TRY(solve(s));
	s->planning = neap__seconds() - start;
	NEAP_TRY(neap__refuse_plan(&s->plan, s->problem.memory));
	NEAP_TRY(neap__sweep_open_schedule(s, &schedule));
	int rc = neap__table_sizes(&s->sizes, s->problem.ntiers, schedule);
	neap_schedule_close(schedule);
	return rc;
}

/* Of ranks: places and their bytes are those for which all tiers have room. */
static int agree_on_places(struct neap_sweep *s, int rc)
{
	int64_t values[2 * NEAP_TIERS_MAX];
	int n = s->problem.ntiers;
	NEAP_TRY(neap__agree_code(&s->agreement, NEAP__AGREE_PLACES, rc));
	for (int i = 0; i < n; i++) {
		values[2 * i] = s->places[i];
		values[2 * i + 1] = (int64_t)s->tape_place_bytes[i];
	}
	NEAP_TRY(neap__agree(&s->agreement, NEAP__AGREE_PLACES, values, 2 * n));
	for (int i = 0; i < n; i++) {
		s->places[i] = values[2 * i];
		s->tape_place_bytes[i] = (uint64_t)values[2 * i + 1];
	}
	return rc;
}

static int plan_once(struct neap_sweep *s)
{
	int rc = s->ops.ended ? neap__online_plan(s) : plan_known(s);
	for (int i = 0; rc >= 0 && i < s->problem.ntiers; i++)
		size_records(s, i);
	return neap__agrees(&s->agreement) ? agree_on_places(s, rc) : rc;
}

/* Gives every tier the least staging; 1 if any had more. */
static int lessen_staging(struct neap_sweep *s)
{
	int had = 0;
	for (int i = 0; i < s->problem.ntiers; i++) {
		struct neap_tier_spec least;
		neap_tier_describe(s->tiers[i], s->problem.chain.state, &least);
		least.staging = s->ops.memory ? 0 : neap__round_up(least.staging, 4096);
		had |= s->problem.tiers[i].staging > least.staging;
		s->problem.tiers[i].staging = least.staging;
	}
	return agree_on_change(s, had);
}

int neap__sweep_make_plan(struct neap_sweep *s)
{
	int rc = plan_once(s);
	if (rc == NEAP_EINFEASIBLE && !s->options.saved) {
		int had = lessen_staging(s);
		rc = had > 0 ? plan_once(s) : had < 0 ? had : rc;
	}
	/* Where a sweep resumes, its own records take the room; a full tier refuses later ones. */
	if (rc == 0 && s->options.saved && s->options.saved != s->journal.base.plan)
		rc = neap__agree_code(&s->agreement, NEAP__AGREE_PLACES, neap__saved_plan_fits(s));
	if (s->open || s->options.saved)
		return rc;
	for (int i = 0; rc == 0 && i < 4; i++) {
		int changed = shrink(s);
		if (changed <= 0)
			return changed;
		rc = plan_once(s);
	}
	if (rc < 0)
		return rc;
	int changed = shrink(s);
	if (changed <= 0)
		return changed;
	/* After four times: only states are sure to fit. */
	s->problem.chain.flags = NEAP_CHAIN_TAPES_STAY;
	for (int i = 0; i < s->problem.ntiers; i++)
		describe_tier(&s->problem, i, s->tiers[i], 0);
	NEAP_TRY(neap__agree_problem(&s->agreement, 0, &s->problem));
	return plan_once(s);
}

int neap__sweep_open_schedule(struct neap_sweep *s, struct neap_schedule **schedule)
{
	return s->open ? s->open(s->open_user, schedule)
		       : neap_schedule_open(schedule, &s->problem, &s->plan);
}

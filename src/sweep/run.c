/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: one run: maps the arena, formats the tiers, performs every action. */
#include "sweep/actions.h"
#include "sweep/steps/copies.h"
#include "sweep/costs/cost_watch.h"
#include "sweep/costs/first_steps.h"
#include "sweep/costs/replan_sweep.h"
#include "sweep/journal/journal_resume.h"
#include "sweep/online_sweep.h"
#include "sweep/steps/pieces.h"
#include "sweep/repair/finish_without_tiers.h"
#include "sweep/repair/repair_costs.h"
#include "sweep/sweep_plan.h"
#include "sweep/table_sizes.h"
#include "sweep/transfers/tape_transfer.h"
#include "sweep/transfers/transfer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "store/tier_state.h"
#include "sys/clock.h"
#include "sys/memory.h"

#include <stdatomic.h>
#include <string.h>

/* The next number of a count over all sweeps of the process. Relaxed: only the value counts. */
static uint64_t next_number(atomic_uint_least64_t *count)
{
	return atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

static int map_arena(struct neap_sweep *s, struct neap__populate **populate)
{
	static atomic_uint_least64_t mappings;
	struct neap__arena *arena = &s->arena;
	void *pages;
	if (arena->base && arena->mapped >= arena->bytes)
		return 0;
	neap__arena_unmap(arena);
	/* Ordinary pages of the spare bytes are not touched unless they are needed. */
	uint64_t least = neap__round_up(arena->bytes, 4096), whole = least;
	if (!neap__memory_is_foreign(&arena->memory))
		whole = neap__round_up(arena->bytes + neap__fallback_spare(s), 4096);
	int rc = neap__memory_map(&arena->memory, &pages, whole, arena->bytes);
	if (rc < 0 && !neap__memory_is_foreign(&arena->memory))
		rc = neap__memory_map(&arena->memory, &pages, whole = least, least);
	NEAP_TRY(rc);
	arena->base = pages;
	arena->mapped = whole;
	arena->mapping = next_number(&mappings);
	neap__sweep_publish(s);
	if (populate && !neap__memory_is_foreign(&arena->memory))
		*populate = neap__populate_start(pages, arena->bytes);
	return 0;
}

int neap_sweep_touch(struct neap_sweep *s)
{
	NEAP_NEED(s);
	NEAP_TRY(neap__gate_enter(&s->shared.gate, __func__, "sweep"));
	int rc = map_arena(s, NULL);
	if (rc == 0)
		neap__memory_touch(&s->arena.memory, s->arena.base, s->arena.bytes);
	neap__gate_leave(&s->shared.gate);
	return rc;
}

static int format_tier(struct neap_sweep *s, int i)
{
	const struct neap_tier_spec *spec = &s->problem.tiers[i];
	struct neap__records states = {s->problem.chain.state, s->places[i]};
	struct neap__records tapes = {s->tape_place_bytes[i], s->sizes.tape_places[i]};
	struct neap__staging staging = {0};
	if (spec->staging && !neap__memory_is_foreign(&s->arena.memory))
		staging = (struct neap__staging){
			s->arena.base + s->staging[i], spec->staging, s->arena.mapping};
	if ((states.places == 0 && tapes.places == 0) ||
		neap__tier_fits(s->tiers[i], states, tapes, &staging))
		return 0;
	NEAP_TRY(neap__tier_format(s->tiers[i], states.bytes, states.places, &staging));
	if (tapes.places == 0)
		return 0;
	return neap__tier_format_tapes(s->tiers[i], tapes.bytes, tapes.places, spec->staging);
}

/* A tier that cannot be formatted, as on a full disk, refuses every record: all are recomputed. */
static int format_tiers(struct neap_sweep *s)
{
	for (int i = 0; i < s->problem.ntiers; i++) {
		int rc = format_tier(s, i);
		if (rc < 0 && rc > NEAP_EUSAGE)
			rc = 0; /* -errno: the tier refuses every record then */
		NEAP_TRY(rc);
	}
	return 0;
}

/* Notes whether transfers that were given up may still touch staging of this arena. */
static void check_staging_held(struct neap_sweep *s)
{
	struct neap__arena *arena = &s->arena;
	arena->staging_held = 0;
	for (int i = 0; arena->base && i < s->problem.ntiers; i++) {
		const unsigned char *staging = s->tiers[i]->staging.at;
		arena->staging_held |= staging >= arena->base &&
				       staging < arena->base + arena->mapped &&
				       neap__tier_holds_staging(s->tiers[i]);
	}
}

static void reset(struct neap_sweep *s)
{
	static atomic_uint_least64_t
		generations; /* over all sweeps: tags tell their records apart */
	memset(s->tickets, 0, sizeof s->tickets);
	memset(s->recovery_records, 0, sizeof s->recovery_records);
	memset(s->rewritten, 0, sizeof s->rewritten);
	memset(s->rewrite_failures, 0, sizeof s->rewrite_failures);
	for (int i = 0; i < s->problem.ntiers; i++)
		for (int64_t j = 0; j < s->places[i]; j++)
			s->state_records[i][j] = NEAP__RECORD_NONE;
	s->nranges = 0;
	s->live_puts = 0;
	s->live_t = s->position = -1;
	s->passed = s->measured_steps;
	s->recovering = s->fallback = 0;
	s->leaf_bytes = s->recent_tape = 0;
	s->journal.done = s->journal.phase = s->journal.in_hole = 0;
	s->journal.actions_hash = s->journal.period = 0;
	s->journal.base.seconds_before = 0;
	s->generation = next_number(&generations);
	s->stats = (struct neap_sweep_stats){
		.size = sizeof(struct neap_sweep_stats),
		.arena_bytes = s->arena.bytes,
		.peak_planned = s->plan.peak_bytes,
		.predicted = s->plan.makespan,
		.predicted_stall = s->plan.stall,
		.predicted_lost = s->plan.lost,
		.measured_steps = s->measured_steps,
	};
	s->measured_steps = 0;
	neap__sweep_publish(s);
	neap__replan_reset(s);
	neap__arena_reset(&s->arena, s->arena.tapes);
	neap__tape_transfer_reset(s);
	neap__state_hashes_reset(&s->hashes);
}

static void announce(struct neap_sweep *s, const struct neap_action *a)
{
	if (s->ops.will_touch &&
		(a->kind == NEAP_ADVANCE || a->kind == NEAP_RECORD || a->kind == NEAP_BACKWARD))
		s->ops.will_touch(s->user, a->t0, a->t1);
}

/* One action ahead of the one performed, so that the model learns what comes. */
static int perform_all(struct neap_sweep *s, struct neap_schedule *schedule)
{
	struct neap_action now, next;
	if (s->fallback) /* given up before the run was interrupted */
		return neap__fallback(s);
	int more = neap_schedule_next(schedule, &now);
	if (more > 0)
		announce(s, &now);
	while (more > 0) {
		NEAP_TRY(neap__replan_consider(s, schedule));
		more = neap_schedule_next(schedule, &next);
		NEAP_TRY(more);
		if (more > 0)
			announce(s, &next);
		NEAP_TRY(neap__step_interrupted(s));
		NEAP_TRY(neap__action_perform(s, &now));
		if (s->fallback)
			return neap__fallback(s);
		now = next;
	}
	return more;
}

static int check_end(struct neap_sweep *s)
{
	for (int i = 0; i < NEAP_TICKETS; i++)
		if (s->tickets[i].state != NEAP__TICKET_FREE)
			return neap__fail(NEAP_EILLEGAL, "ticket %d was not waited for", i);
	if (s->position != 0)
		return neap__fail(NEAP_EILLEGAL, "the schedule ended with the adjoint at step %lld",
			(long long)s->position);
	return neap__check_adjoint(&s->arena.memory, neap__adjoint(s), s->ops.adjoint_bytes,
		s->ops.adjoint_real, "backward", 0);
}

/* What lies behind the arena in its mapping was poisoned and must still be. */
static int check_poison(struct neap_sweep *s)
{
	struct neap__arena *arena = &s->arena;
	const uint64_t behind = arena->mapped - arena->bytes;
	if (!arena->poison || neap__memory_unpoisoned(
				      &arena->memory, arena->base + arena->bytes, behind) == behind)
		return 0;
	return neap__fail(NEAP_EMODEL, "the model wrote behind the arena");
}

static void begin_trace(struct neap_sweep *s, double start)
{
	neap__trace_begin(s->options.trace, &s->problem, &s->plan, start);
	if (s->replanned)
		neap__trace_add(s->options.trace,
			&(struct neap__event){
				.start = start, .end = start, .kind = NEAP__EVENT_REPLAN});
	s->replanned = 0;
}

/* What the plan's costs say of the steps that were done. */
static double planned_seconds(const struct neap_sweep *s)
{
	const struct neap_chain *c = &s->problem.chain;
	return (double)s->stats.advance_steps * c->advance +
	       (double)(s->stats.record_steps - s->stats.replay_steps) * c->record +
	       (double)s->stats.replay_steps * c->replay +
	       (double)s->stats.backward_steps * c->backward +
	       (double)(s->stats.advance_calls + s->stats.record_calls + s->stats.backward_calls) *
		       c->call;
}

/* Of ranks: whether all can begin; and what all have mapped beyond the arena. */
static int agree_to_begin(struct neap_sweep *s, int rc)
{
	NEAP_TRY(neap__agree_code(&s->agreement, NEAP__AGREE_START, rc));
	int64_t spare = (int64_t)(s->arena.mapped - s->arena.bytes);
	NEAP_TRY(neap__agree(&s->agreement, NEAP__AGREE_START, &spare, 1));
	s->spare_bytes = (uint64_t)spare;
	return 0;
}

static int run(struct neap_sweep *s, struct neap_schedule *schedule, void *dx0)
{
	uint64_t resident = 0;
	if (s->shared.watched && neap__resident_reset() == 0)
		resident = neap__resident_peak();
	double start = neap__seconds();
	reset(s);
	begin_trace(s, start);
	int rc = neap__copy_load(s, s->x0, 0);
	if (rc == 0)
		rc = neap__journal_start(s, schedule);
	if (rc == 0)
		rc = s->online ? neap__online_perform(s) : perform_all(s, schedule);
	if (rc == 0)
		rc = check_end(s);
	rc = neap__memory_end_run(&s->arena.memory, rc);
	rc = neap__agree_end(&s->agreement, rc);
	neap__transfer_drain(s);
	if (rc == 0)
		rc = check_poison(s);
	s->arena.bytes -= s->extra_bytes;
	s->extra_bytes = 0;
	if (rc == 0 && dx0)
		neap__memory_read(&s->arena.memory, dx0, neap__adjoint(s), s->ops.adjoint_bytes);
	if (rc == 0)
		rc = neap__memory_answer(&s->arena.memory);
	s->stats.seconds = neap__seconds() - start;
	neap__journal_end(s, rc);
	s->stats.peak_measured = s->arena.peak;
	s->stats.moved = s->arena.moved;
	s->stats.slowdown = s->stats.compute - planned_seconds(s);
	if (resident) {
		uint64_t peak = neap__resident_peak();
		s->stats.resident_growth = peak > resident ? peak - resident : 0;
	}
	neap__trace_end(s->options.trace, &s->stats);
	return rc;
}

/* Times first steps, if their costs are not known. */
static int find_costs(struct neap_sweep *s, struct neap__populate **populate)
{
	if (!neap__first_steps_due(s))
		return 0;
	NEAP_TRY(neap__agree_code(&s->agreement, NEAP__AGREE_START, map_arena(s, populate)));
	int rc = neap__first_steps_measure(s);
	neap__populate_end(*populate);
	*populate = NULL;
	return rc;
}

static int check_run(struct neap_sweep *s, const void *x0, const struct neap_sweep_stats *stats)
{
	if (stats)
		NEAP_TRY(neap__struct_size(
			stats->size, sizeof stats->size, sizeof *stats, "neap_sweep_stats"));
	if (s->ops.live_bytes && !x0)
		return neap__fail(
			NEAP_EUSAGE, "neap_sweep_run: a state that is elsewhere needs x0");
	return 0;
}

/* Opens the schedule, maps the arena, formats the tiers. */
static int get_ready(
	struct neap_sweep *s, struct neap_schedule **schedule, struct neap__populate **populate)
{
	if (s->ops.ended) {
		NEAP_TRY(neap__online_begin(s));
	} else {
		NEAP_TRY(neap__sweep_open_schedule(s, schedule));
		NEAP_TRY(neap__table_sizes_reserve(&s->sizes, *schedule));
	}
	NEAP_TRY(map_arena(s, populate));
	for (int i = 0; i < s->problem.ntiers; i++)
		neap__tier_set_patience(s->tiers[i], s->options.patience);
	return format_tiers(s);
}

/* The sweep and its tiers are this run's alone. */
static int run_alone(struct neap_sweep *s, void *dx0, struct neap_sweep_stats *stats)
{
	struct neap_schedule *schedule = NULL;
	struct neap__populate *populate = NULL;
	neap__memory_begin_run(&s->arena.memory);
	int rc = find_costs(s, &populate);
	rc = neap__memory_end_run(&s->arena.memory, rc);
	if (rc < 0)
		return neap__agree_end(&s->agreement, rc);
	rc = agree_to_begin(s, get_ready(s, &schedule, &populate));
	if (rc == 0) {
		rc = run(s, schedule, dx0);
		if (stats)
			neap__struct_give(stats, &s->stats, sizeof s->stats);
	}
	neap__populate_end(populate);
	check_staging_held(s);
	neap_schedule_close(schedule);
	neap_online_free(s->online);
	s->online = NULL;
	return rc;
}

int neap_sweep_run(struct neap_sweep *s, const void *x0, void *dx0, double *loss,
	struct neap_sweep_stats *stats)
{
	NEAP_NEED(s);
	NEAP_TRY(neap__gate_enter(&s->shared.gate, __func__, "sweep"));
	neap__agree_begin_run(&s->agreement);
	int rc = check_run(s, x0, stats), claimed = 0;
	if (rc == 0)
		rc = neap__tiers_claim(s->tiers, s->problem.ntiers, "neap_sweep_run");
	claimed = rc == 0;
	rc = neap__agree_code(&s->agreement, NEAP__AGREE_START, rc);
	if (rc == 0) {
		s->x0 = x0;
		s->loss = loss;
		s->ahead = 0;
		rc = run_alone(s, dx0, stats);
	}
	if (claimed)
		neap__tiers_leave(s->tiers, s->problem.ntiers);
	neap__gate_leave(&s->shared.gate);
	return rc;
}

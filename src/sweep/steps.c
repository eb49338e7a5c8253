/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c: calls the model's callbacks, cut into pieces, and times and counts them. */
#include "sweep/steps.h"
#include "sweep/costs/replan_sweep.h"
#include "sweep/arena_space.h"
#include "sweep/journal/journal_commit.h"
#include "sweep/step_logs.h"
#include "sweep/table_sizes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/clock.h"

#include <string.h>

int neap__step_answer(const char *name, int rc)
{
	if (rc > 0)
		return neap__fail(NEAP_EMODEL, "the model's %s answered %d", name, rc);
	if (rc < 0 && !neap_detail()[0])
		return neap__fail(
			rc, "the model's %s answered %d: %s", name, rc, neap_strerror(rc));
	return rc;
}

static int is_interrupted(const struct neap_sweep *s)
{
	return s->options.interrupted && s->options.interrupted(s->options.interrupted_user);
}

static int interrupt(struct neap_sweep *s)
{
	neap__commit_now(s);
	return neap__fail(NEAP_EINTERRUPTED, "the sweep was interrupted");
}

int neap__step_interrupted(struct neap_sweep *s)
{
	struct neap__agree_state *a = &s->agreement;
	if (!neap__agrees(a))
		return is_interrupted(s) ? interrupt(s) : 0;
	a->asked |= is_interrupted(s);
	return a->broken ? neap__fail(a->broken, "%s", a->line) : 0;
}

/* Of ranks: all come here after the same work. */
static int poll(struct neap_sweep *s)
{
	const struct neap_sweep_stats *t = &s->stats;
	int64_t work = t->advance_steps + t->record_steps + t->backward_steps + t->advance_calls +
		       t->record_calls + t->backward_calls;
	s->agreement.asked |= is_interrupted(s);
	return neap__agree_poll(
		&s->agreement, work, neap__commit_is_due(s), s->options.journal_seconds < 0);
}

static int begin_together(struct neap_sweep *s)
{
	NEAP_TRY(poll(s));
	neap__commit_if_due(s);
	if (!s->agreement.interrupted)
		return 0;
	s->agreement.known = NEAP_EINTERRUPTED;
	return interrupt(s);
}

int neap__step_begin_call(struct neap_sweep *s)
{
	if (neap__agrees(&s->agreement))
		return begin_together(s);
	neap__commit_if_due(s);
	return neap__step_interrupted(s);
}

int neap__step_begin_piece(struct neap_sweep *s)
{
	if (neap__agrees(&s->agreement))
		return begin_together(s);
	neap__commit_if_due(s);
	return 0;
}

void neap__step_charge(
	struct neap_sweep *s, double *kind, double start, uint32_t event, int64_t t0, int64_t t1)
{
	double end = neap__seconds();
	*kind += end - start;
	s->stats.compute += end - start;
	s->stats.advance_calls += event == NEAP__EVENT_ADVANCE;
	s->stats.record_calls += event == NEAP__EVENT_RECORD || event == NEAP__EVENT_REPLAY;
	s->stats.backward_calls += event == NEAP__EVENT_BACKWARD;
	neap__trace_add(s->options.trace,
		&(struct neap__event){
			.start = start, .end = end, .t0 = t0, .t1 = t1, .kind = event});
}

void neap__count_stall(struct neap_sweep *s, enum neap_stall reason, double start,
	const struct neap__ticket *ticket)
{
	double end = neap__seconds();
	s->stats.stalls[reason] += end - start;
	s->stats.stall += end - start;
	neap__trace_add(s->options.trace, &(struct neap__event){.start = start,
						  .end = end,
						  .t0 = ticket->t,
						  .t1 = ticket->tapes ? ticket->t1 : ticket->t,
						  .kind = NEAP__EVENT_WAIT + (uint32_t)reason,
						  .flags = ticket->tapes ? NEAP__EVENT_TAPES : 0,
						  .tier = ticket->tier});
}

/* Adds a moment without duration to the trace. */
static void mark(struct neap_sweep *s, uint32_t kind, int tier, int64_t t0, int64_t t1)
{
	if (!s->options.trace)
		return;
	double now = neap__seconds();
	neap__trace_add(s->options.trace,
		&(struct neap__event){
			.start = now, .end = now, .t0 = t0, .t1 = t1, .kind = kind, .tier = tier});
}

void neap__count_overflow(struct neap_sweep *s, int64_t t0, int64_t t1)
{
	s->stats.overflows++;
	mark(s, NEAP__EVENT_OVERFLOW, 0, t0, t1);
}

void neap__count_lost(struct neap_sweep *s, int tier, int64_t t0, int64_t t1)
{
	s->stats.recoveries++;
	mark(s, NEAP__EVENT_LOST, tier, t0, t1);
}

void neap__step_passed(struct neap_sweep *s, int64_t t, int64_t *steps)
{
	*steps += t - s->live_t;
	if (s->recovering)
		s->stats.recomputed += t - s->live_t;
	s->live_t = t;
	if (t > s->passed) {
		s->passed = t;
		if (t >= s->watch.mark_at)
			neap__replan_foresee(s);
	}
}

int neap__step_check(struct neap_sweep *s, const char *name)
{
	return neap__check_state(
		&s->hashes, neap__live(s), s->ops.state_bytes, name, s->live_t, s->live_t);
}

int neap__step_advance(struct neap_sweep *s, int64_t t1)
{
	while (s->live_t < t1) {
		int64_t t = s->live_t;
		int64_t end =
			neap__commit_stop_before(s, t, neap__tape_piece_end(t, t1, s->passed, 0));
		if (s->hashes.rows)
			end = t + 1; /* every state is compared */
		NEAP_TRY(neap__step_begin_call(s));
		double start = neap__seconds();
		neap_detail_set(NULL);
		int rc = s->ops.advance(s->user, neap__live(s), t, end, t >= s->passed);
		neap__step_charge(s, &s->stats.advance, start, NEAP__EVENT_ADVANCE, t, end);
		NEAP_TRY(neap__step_answer("advance", rc));
		neap__step_passed(s, end, &s->stats.advance_steps);
		NEAP_TRY(neap__step_check(s, "advance"));
	}
	return 0;
}

/* Finds room for tapes of the piece [begin, end), from the live state on. 1 or 0. */
static int find_place(struct neap_sweep *s, int64_t begin, int64_t end, struct neap__place *place)
{
	struct neap__arena *arena = &s->arena;
	if (s->sizes.scattered && !s->recovering)
		return neap__arena_space_tapes(s, end - s->live_t,
			(end - begin + NEAP__HOLE_CUTS - 1) / NEAP__HOLE_CUTS, place);
	*place = (struct neap__place){arena->nextents, arena->top, neap__arena_gap(arena)};
	return place->bytes >= neap__worst(s) && arena->nextents < arena->extents_max;
}

/* Makes tapes up to `end`, from the steps' log where there is one. */
static int make_tapes(struct neap_sweep *s, int64_t end, void *tape, uint64_t room, size_t *used,
	int64_t *done, const struct neap__arena_extent *log)
{
	const char *name = log ? "replay" : "record";
	int64_t t = s->live_t;
	uint64_t most = neap__sat_mul((uint64_t)(end - t), neap__worst(s));
	int rc;
	most = most < room ? most : room;
	if (s->options.check)
		neap__check_fill(tape, most);
	double start = neap__seconds();
	neap_detail_set(NULL);
	if (log)
		rc = s->ops.replay(s->user, neap__live(s), t, end, s->arena.base + log->offset,
			log->t0, tape, room, used, done);
	else
		rc = s->ops.record(
			s->user, neap__live(s), t, end, t >= s->passed, tape, room, used, done);
	neap__step_charge(s, log ? &s->stats.replay : &s->stats.record, start,
		log ? NEAP__EVENT_REPLAY : NEAP__EVENT_RECORD, t, *done);
	if (rc == 0 && log)
		s->stats.replay_steps += *done - t;
	NEAP_TRY(neap__step_answer(name, rc));
	return s->options.check ? neap__check_used(tape, *used, most, name, t, *done) : 0;
}

/* One call of record, within [begin, end); *stuck: the model wants more room. */
static int record_piece(struct neap_sweep *s, int64_t begin, int64_t end, int *stuck)
{
	struct neap__arena *arena = &s->arena;
	struct neap__place place;
	int64_t t = s->live_t, done = t;
	uint64_t tape = s->problem.chain.tape;
	size_t used = 0;

	*stuck = !find_place(s, begin, end, &place);
	if (*stuck)
		return 0;
	const struct neap__arena_extent *log = t < s->passed ? neap__log_find(s, t) : NULL;
	if (log && log->t1 < end)
		end = log->t1;
	if (s->fixed && (uint64_t)(end - t) * tape > place.bytes)
		end = t + (int64_t)(place.bytes / tape);
	uint64_t room = s->fixed ? (uint64_t)(end - t) * tape : place.bytes;
	NEAP_TRY(make_tapes(s, end, arena->base + place.offset, room, &used, &done, log));
	const size_t own = used;
	if (!s->fixed)
		NEAP_TRY(neap__agree_used(&s->agreement, log ? "replay" : "record", &used, done));
	if (used > room || done < t || done > end)
		return neap__fail(NEAP_EMODEL,
			"the model's record of steps %lld to %lld used %zu of %llu bytes and "
			"stopped at %lld",
			(long long)t, (long long)end, used, (unsigned long long)room,
			(long long)done);
	if (done < end && (room - used >= neap__worst(s) || s->fixed))
		return neap__fail(NEAP_EMODEL,
			"the model's record stopped at step %lld with %llu bytes of room left",
			(long long)done, (unsigned long long)(room - used));
	*stuck = done < end && (s->recovering || !s->sizes.scattered);
	if (done == t)
		return 0;
	uint64_t bytes = s->fixed ? (uint64_t)(done - t) * tape : neap__round_up(used, 64);
	bytes = bytes < place.bytes ? bytes : place.bytes;
	if (!neap__arena_insert(arena, &place, t, done, bytes))
		return neap__fail(NEAP_EILLEGAL, "more tapes than the schedule announced");
	uint64_t mean = (own + (uint64_t)(done - t) - 1) / (uint64_t)(done - t);
	s->recent_tape = bytes / (uint64_t)(done - t) + 1;
	s->stats.tape_bytes += own;
	if (mean > s->stats.tape_largest)
		s->stats.tape_largest = mean;
	neap__step_passed(s, done, &s->stats.record_steps);
	return neap__step_check(s, log ? "replay" : "record");
}

int neap__step_record(struct neap_sweep *s, int64_t t1)
{
	int64_t begin = s->live_t, end = begin;
	int stuck = 0;
	while (s->live_t < t1 && !stuck) {
		if (s->live_t >= end) {
			begin = s->live_t;
			end = neap__tape_piece_end(begin, t1, s->passed, 1);
		}
		NEAP_TRY(neap__step_begin_call(s));
		NEAP_TRY(record_piece(s, begin, end, &stuck));
	}
	return 0;
}

int neap__step_turn(struct neap_sweep *s)
{
	double start = neap__seconds(), loss = 0;
	neap_detail_set(NULL);
	int rc = s->ops.turn(s->user, neap__live(s), neap__adjoint(s), &loss);
	neap__step_charge(s, &s->stats.backward, start, NEAP__EVENT_TURN, s->live_t, s->live_t);
	NEAP_TRY(neap__step_answer("turn", rc));
	s->journal.loss = loss;
	if (s->loss)
		*s->loss = loss;
	s->position = s->problem.chain.steps;
	NEAP_TRY(neap__check_loss(loss, s->position));
	return neap__check_adjoint(
		neap__adjoint(s), s->ops.adjoint_bytes, s->ops.adjoint_real, "turn", s->position);
}

int neap__step_backward(struct neap_sweep *s, struct neap__arena_extent *extent)
{
	NEAP_TRY(neap__step_interrupted(s));
	double start = neap__seconds();
	neap_detail_set(NULL);
	int rc = s->ops.backward(
		s->user, neap__adjoint(s), extent->t1, extent->t0, s->arena.base + extent->offset);
	neap__step_charge(
		s, &s->stats.backward, start, NEAP__EVENT_BACKWARD, extent->t0, extent->t1);
	NEAP_TRY(neap__step_answer("backward", rc));
	s->stats.backward_steps += extent->t1 - extent->t0;
	s->position = extent->t0;
	neap__arena_pop(&s->arena, extent);
	if (!s->options.check)
		return 0;
	return neap__check_adjoint(neap__adjoint(s), s->ops.adjoint_bytes, s->ops.adjoint_real,
		"backward", s->position);
}

static void count_copy(struct neap_sweep *s, double start, int64_t t)
{
	double end = neap__seconds();
	s->stats.copies += end - start;
	neap__trace_add(s->options.trace,
		&(struct neap__event){
			.start = start, .end = end, .t0 = t, .t1 = t, .kind = NEAP__EVENT_COPY});
}

int neap__copy_save(struct neap_sweep *s, void *to)
{
	double start = neap__seconds();
	int rc = 0;
	neap_detail_set(NULL);
	if (s->ops.save)
		rc = neap__step_answer("save", s->ops.save(s->user, to, neap__live(s)));
	else if (to != neap__live(s))
		memcpy(to, neap__live(s), s->ops.state_bytes);
	count_copy(s, start, s->live_t);
	return rc;
}

int neap__copy_load(struct neap_sweep *s, const void *from, int64_t t)
{
	double start = neap__seconds();
	s->live_t = -1;
	if (!from) {
		memset(neap__live(s), 0, s->ops.state_bytes);
		from = neap__live(s);
	}
	neap_detail_set(NULL);
	if (s->ops.load)
		NEAP_TRY(neap__step_answer("load", s->ops.load(s->user, neap__live(s), from)));
	else if (from != neap__live(s))
		memcpy(neap__live(s), from, s->ops.state_bytes);
	count_copy(s, start, t);
	s->live_t = t;
	return 0;
}

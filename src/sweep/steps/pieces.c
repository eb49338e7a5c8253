/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.c: moves over steps in pieces. Before each piece a commit that is due is taken, ranks
 * agree, and an interrupt is noticed: this is the only place where a range of steps is interrupted.
 */
#include "sweep/steps/pieces.h"
#include "sweep/steps/counts.h"
#include "sweep/journal/journal_commit.h"
#include "sweep/steps/piece_ends.h"
#include "sweep/steps/step_logs.h"
#include "sweep/steps/steps.h"
#include "base/fail.h"

int neap__log_steps(struct neap_sweep *s, int64_t t1)
{
	int stuck = 0;
	while (s->live_t < t1 && !stuck) {
		int64_t most = s->live_t + NEAP__LOG_BLOCK;
		NEAP_TRY(neap__step_begin_call(s));
		NEAP_TRY(neap__log_piece(s,
			neap__tape_piece_end(s->live_t, t1 < most ? t1 : most, s->passed, 0),
			&stuck));
	}
	s->stats.overflows += stuck;
	return neap__step_advance(s, t1);
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

int neap__step_advance(struct neap_sweep *s, int64_t t1)
{
	while (s->live_t < t1) {
		int64_t t = s->live_t;
		int64_t end =
			neap__commit_stop_before(s, t, neap__tape_piece_end(t, t1, s->passed, 0));
		if (s->hashes.rows)
			end = t + 1; /* every state is compared */
		NEAP_TRY(neap__step_begin_call(s));
		double start = neap__step_start(s, &s->stats.advance);
		int rc = s->ops.advance(s->user, neap__live(s), t, end, t >= s->passed);
		neap__step_charge(s, &s->stats.advance, start, NEAP__EVENT_ADVANCE, t, end);
		NEAP_TRY(neap__step_answer("advance", rc));
		neap__step_passed(s, end, &s->stats.advance_steps);
		NEAP_TRY(neap__step_check(s, "advance"));
	}
	return 0;
}

int neap__step_record(struct neap_sweep *s, int64_t t1)
{
	int64_t begin = s->live_t, end = begin;
	int stuck = 0;
	while (s->live_t < t1 && !stuck) {
		if (s->live_t >= end) {
			begin = s->live_t;
			end = neap__tape_piece_end(begin, t1, s->passed, s->record_block);
		}
		NEAP_TRY(neap__step_begin_call(s));
		NEAP_TRY(neap__step_record_piece(s, begin, end, &stuck));
	}
	return 0;
}

int neap__step_backward(struct neap_sweep *s, struct neap__arena_extent *extent)
{
	NEAP_TRY(neap__step_interrupted(s));
	double start = neap__step_start(s, &s->stats.backward);
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
	return neap__check_adjoint(&s->arena.memory, neap__adjoint(s), s->ops.adjoint_bytes,
		s->ops.adjoint_real, "backward", s->position);
}

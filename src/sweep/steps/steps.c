/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c: one call of the model's record, replay or turn, with checks of what it returned. */
#include "sweep/steps/steps.h"
#include "sweep/arena/arena_logs.h"
#include "sweep/arena/arena_space.h"
#include "sweep/steps/counts.h"
#include "base/checked.h"
#include "base/fail.h"

int neap__step_check(struct neap_sweep *s, const char *name)
{
	return neap__check_state(&s->hashes, &s->arena.memory, neap__live(s), s->ops.state_bytes,
		name, s->live_t, s->live_t);
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
		neap__check_fill(&s->arena.memory, tape, most);
	double *seconds = log ? &s->stats.replay : &s->stats.record;
	double start = neap__step_start(s, seconds);
	if (log)
		rc = s->ops.replay(s->user, neap__live(s), t, end, s->arena.base + log->offset,
			log->t0, tape, room, used, done);
	else
		rc = s->ops.record(
			s->user, neap__live(s), t, end, t >= s->passed, tape, room, used, done);
	neap__step_charge(
		s, seconds, start, log ? NEAP__EVENT_REPLAY : NEAP__EVENT_RECORD, t, *done);
	if (rc == 0 && log)
		s->stats.replay_steps += *done - t;
	NEAP_TRY(neap__step_answer(name, rc));
	return s->options.check
		       ? neap__check_used(&s->arena.memory, tape, *used, most, name, t, *done)
		       : 0;
}

/* One call of record, within [begin, end); *stuck: the model wants more room. */
int neap__step_record_piece(struct neap_sweep *s, int64_t begin, int64_t end, int *stuck)
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

int neap__step_turn(struct neap_sweep *s)
{
	double loss = 0;
	neap__fence_wait(&s->arena.memory.fence);
	NEAP_TRY(neap__memory_answer(&s->arena.memory));
	double start = neap__step_start(s, &s->stats.backward);
	int rc = s->ops.turn(s->user, neap__live(s), neap__adjoint(s), &loss);
	neap__step_charge(s, &s->stats.backward, start, NEAP__EVENT_TURN, s->live_t, s->live_t);
	NEAP_TRY(neap__step_answer("turn", rc));
	s->journal.loss = loss;
	if (s->loss)
		*s->loss = loss;
	s->position = s->problem.chain.steps;
	NEAP_TRY(neap__check_loss(loss, s->position));
	return neap__check_adjoint(&s->arena.memory, neap__adjoint(s), s->ops.adjoint_bytes,
		s->ops.adjoint_real, "turn", s->position);
}

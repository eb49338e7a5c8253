/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_logs.c: steps that are logged as they are passed. A log lies in the arena among the tapes,
 * in pieces that one call of the model wrote. Where there is no room, a step is not logged, or
 * its log is given up; the step is recorded later instead of replayed, which takes longer and
 * gives the same.
 */
#include "sweep/step_logs.h"
#include "sweep/arena_space.h"
#include "sweep/steps.h"
#include "sweep/table_sizes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/clock.h"

/* Twice as many as blocks, since calls stop early where room is short; 4 more for the ends. */
int64_t neap__log_pieces(int64_t t0, int64_t t1)
{
	int64_t n = t1 - t0, most = 2 * ((n + NEAP__LOG_BLOCK - 1) / NEAP__LOG_BLOCK) + 4;
	return n < 1 ? 0 : n < most ? n : most;
}

static int is_log(const struct neap__arena_extent *extent)
{
	return extent->slot == NEAP__LOG_EXTENT;
}

const struct neap__arena_extent *neap__log_find(const struct neap_sweep *s, int64_t t)
{
	const struct neap__arena *arena = &s->arena;
	for (int64_t i = 0; s->ops.replay && i < arena->nextents; i++) {
		const struct neap__arena_extent *extent = &arena->extents[i];
		if (is_log(extent) && extent->flight < 0 && extent->t0 <= t && t < extent->t1)
			return extent;
	}
	return NULL;
}

void neap__log_drop(struct neap_sweep *s, int64_t t0, int64_t t1)
{
	struct neap__arena *arena = &s->arena;
	for (int64_t i = arena->nextents - 1; i >= 0; i--) {
		struct neap__arena_extent *extent = &arena->extents[i];
		if (is_log(extent) && extent->flight < 0 && extent->t0 >= t0 && extent->t1 <= t1)
			neap__arena_pop(arena, extent);
	}
}

/* Gives up the log of the earliest steps, which is needed last. */
int neap__log_evict(struct neap_sweep *s)
{
	struct neap__arena_extent *first = NULL;
	for (int64_t i = 0; i < s->arena.nextents; i++) {
		struct neap__arena_extent *extent = &s->arena.extents[i];
		if (is_log(extent) && !extent->pinned && (!first || extent->t0 < first->t0))
			first = extent;
	}
	if (!first)
		return 0;
	neap__count_overflow(s, first->t0, first->t1);
	neap__arena_pop(&s->arena, first);
	return 1;
}

static int check(const struct neap_sweep *s, int64_t end, size_t room, size_t used, int64_t done)
{
	if (used > room || done < s->live_t || done > end)
		return neap__fail(NEAP_EMODEL,
			"the model's advance_log of steps %lld to %lld used %zu of %zu bytes and "
			"stopped at %lld",
			(long long)s->live_t, (long long)end, used, room, (long long)done);
	if (done < end && (room - used >= neap__worst_log(s) || s->fixed_log))
		return neap__fail(NEAP_EMODEL,
			"the model's advance_log stopped at step %lld with %zu bytes of room left",
			(long long)done, room - used);
	return 0;
}

/* One call of advance_log; *stuck: there is no room for a log. */
static int log_piece(struct neap_sweep *s, int64_t end, int *stuck)
{
	struct neap__place place;
	int64_t t = s->live_t, done = t;
	uint64_t log = s->problem.chain.log, spare = neap__worst_log(s) - log;
	size_t used = 0;
	uint64_t wanted = neap__sat_add(neap__sat_mul((uint64_t)(end - t), log), spare);
	*stuck = !neap__arena_space_log(s, wanted, &place);
	if (*stuck)
		return 0;
	if (s->fixed_log && (uint64_t)(end - t) * log > place.bytes)
		end = t + (int64_t)(place.bytes / log);
	uint64_t room = s->fixed_log ? (uint64_t)(end - t) * log : place.bytes;
	unsigned char *at = s->arena.base + place.offset;
	uint64_t most = neap__sat_mul((uint64_t)(end - t), neap__worst_log(s));
	most = most < room ? most : room;
	if (s->options.check)
		neap__check_fill(at, most);
	double start = neap__seconds();
	neap_detail_set(NULL);
	int rc = s->ops.advance_log(
		s->user, neap__live(s), t, end, t >= s->passed, at, room, &used, &done);
	neap__step_charge(s, &s->stats.advance, start, NEAP__EVENT_ADVANCE, t, done);
	NEAP_TRY(neap__step_answer("advance_log", rc));
	const size_t own = used;
	if (!s->fixed_log)
		NEAP_TRY(neap__agree_used(&s->agreement, "advance_log", &used, done));
	NEAP_TRY(check(s, end, room, used, done));
	if (s->options.check)
		NEAP_TRY(neap__check_used(at, own, most, "advance_log", t, done));
	*stuck = done == t;
	if (*stuck)
		return 0;
	uint64_t bytes = s->fixed_log ? (uint64_t)(done - t) * log : neap__round_up(used, 64);
	bytes = bytes < place.bytes ? bytes : place.bytes;
	struct neap__arena_extent *extent = neap__arena_insert(&s->arena, &place, t, done, bytes);
	if (extent)
		extent->slot = NEAP__LOG_EXTENT;
	s->stats.log_bytes += own;
	s->stats.logged_steps += done - t;
	neap__step_passed(s, done, &s->stats.advance_steps);
	return neap__step_check(s, "advance_log");
}

int neap__log_steps(struct neap_sweep *s, int64_t t1)
{
	int stuck = 0;
	while (s->live_t < t1 && !stuck) {
		int64_t most = s->live_t + NEAP__LOG_BLOCK;
		NEAP_TRY(neap__step_begin_call(s));
		NEAP_TRY(log_piece(s,
			neap__tape_piece_end(s->live_t, t1 < most ? t1 : most, s->passed, 0),
			&stuck));
	}
	s->stats.overflows += stuck;
	return neap__step_advance(s, t1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* step_logs.c: one call of the model's advance_log, with checks of what it returned. */
#include "sweep/steps/step_logs.h"
#include "sweep/arena/arena_space.h"
#include "sweep/steps/counts.h"
#include "sweep/steps/steps.h"
#include "base/checked.h"
#include "base/fail.h"

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
int neap__log_piece(struct neap_sweep *s, int64_t end, int *stuck)
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
		neap__check_fill(&s->arena.memory, at, most);
	double start = neap__step_start(s, &s->stats.advance);
	int rc = s->ops.advance_log(
		s->user, neap__live(s), t, end, t >= s->passed, at, room, &used, &done);
	neap__step_charge(s, &s->stats.advance, start, NEAP__EVENT_ADVANCE, t, done);
	NEAP_TRY(neap__step_answer("advance_log", rc));
	const size_t own = used;
	if (!s->fixed_log)
		NEAP_TRY(neap__agree_used(&s->agreement, "advance_log", &used, done));
	NEAP_TRY(check(s, end, room, used, done));
	if (s->options.check)
		NEAP_TRY(neap__check_used(&s->arena.memory, at, own, most, "advance_log", t, done));
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

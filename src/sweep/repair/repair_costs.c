/* SPDX-License-Identifier: Apache-2.0 */
/* repair_costs.c: estimates of what repairs cost, from which the sweep chooses among them. */
#include "sweep/repair/repair_costs.h"
#include "base/checked.h"
#include "plan/recompute/binomial.h"

#define STATES 128 /* beyond the arena, at most: half of the rows that its table has to spare */
#define TAPES                                                                                      \
	(64 * NEAP__RECORD_BLOCK) /* steps of tapes beyond the arena, at most: they take as many   \
				     rows as 64 states */

#define FAILURES_MOST 8 /* rewrites refused or lost, without a read that succeeded in between */

/*
 * 1 where tapes or logs of a plan may be on a tier: what is there still serves. Where the length
 * was not known, states are the most of what is written, and such tapes are given up.
 */
static int tapes_serve(const struct neap_sweep *s)
{
	return s->sizes.scattered && !s->ops.ended;
}

uint64_t neap__fallback_spare(const struct neap_sweep *s)
{
	const struct neap_chain *chain = &s->problem.chain;
	uint64_t room = s->problem.memory - s->arena.bytes, places = 0;
	for (int i = 0; i < s->problem.ntiers; i++)
		places += (uint64_t)s->sizes.places[i];
	/* With a journal: the size of a commit is fixed when the sweep is planned. */
	if (tapes_serve(s) || !places || s->journal.base.directory ||
		s->problem.memory < s->arena.bytes)
		return 0;
	uint64_t most = neap__sat_add(
		neap__sat_mul(chain->state, STATES), neap__sat_mul(neap__worst(s), TAPES));
	return (room < most ? room : most) & ~(uint64_t)63;
}

uint64_t neap__fallback_room(const struct neap_sweep *s)
{
	uint64_t mapped = s->spare_bytes & ~(uint64_t)63, bytes = neap__fallback_spare(s);
	return bytes < mapped ? bytes : mapped;
}

/* Steps from `from` on to the tapes that the tier lost, up to t. */
static double to_lost_tapes(const struct neap_sweep *s, int tier, int64_t from, int64_t t)
{
	double steps = 0;
	for (int64_t i = 0; i < s->sizes.tape_places[tier - 1]; i++) {
		const struct neap__tape_record *record = &s->tape_records[tier - 1][i];
		if (record->bad && record->t0 > from && record->t1 <= t)
			steps += (double)(record->t0 - from);
	}
	return steps;
}

int neap__fallback_pays(const struct neap_sweep *s, int64_t t)
{
	const struct neap__arena *arena = &s->arena;
	int64_t from = s->live_t;
	double planned = 0;
	if (tapes_serve(s) || s->position < 0)
		return 0;
	for (int tier = 1; tier <= s->problem.ntiers; tier++) {
		int64_t n = neap__rewrite_pays(s, tier) ? 0 : s->places[tier - 1];
		for (int64_t i = 0; i < n; i++) {
			int64_t held = s->state_records[tier - 1][i], lost = neap__record_bad(held);
			if (neap__record_is_bad(held) && lost > from && lost <= t)
				planned += (double)(lost - from);
		}
		planned += to_lost_tapes(s, tier, from, t);
	}
	/* The plan may serve below `from`: two passes over those steps are counted for it. */
	uint64_t room = arena->bytes - arena->tapes + neap__fallback_room(s);
	double here = neap__recover_tapes_cost(s, s->position - from, room) + 2.0 * (double)from;
	return planned > 2 * here;
}

int64_t neap__recovery_leaf_steps(const struct neap_sweep *s, uint64_t bytes)
{
	uint64_t density = s->recent_tape ? s->recent_tape : s->problem.chain.tape + 1;
	return bytes < density ? 1 : (int64_t)(bytes / density);
}

/*
 * Divides the gap: half for tapes, half for states; at least one tape of the largest size. Neither
 * gets more than half of the rows of the table of extents.
 */
struct recovery_leaf neap__recovery_share(const struct neap_sweep *s, uint64_t gap)
{
	uint64_t worst = neap__worst(s), half = gap / 2 - gap / 2 % 64;
	int64_t rows = s->arena.extents_max / 2, most = rows * NEAP__RECORD_BLOCK;
	if (neap__recovery_leaf_steps(s, half) > most)
		half = (half / (uint64_t)neap__recovery_leaf_steps(s, half) + 1) * (uint64_t)most /
		       64 * 64;
	uint64_t bytes = half > worst ? half : worst;
	uint64_t rest = gap > bytes ? gap - bytes : 0;
	int64_t states = (int64_t)(rest / s->arena.state);
	return (struct recovery_leaf){
		bytes, neap__recovery_leaf_steps(s, bytes), states < rows ? states : rows};
}

double neap__recover_tapes_cost(const struct neap_sweep *s, int64_t n, uint64_t gap)
{
	struct recovery_leaf leaf = neap__recovery_share(s, gap);
	if (gap < neap__worst(s))
		return 1e300;
	int64_t units = (n + leaf.steps - 1) / leaf.steps;
	int64_t repeats = units > 1 ? neap__binomial(units, leaf.states + 1).t : 0;
	return (double)n * (double)(1 + repeats);
}

int neap__rewrite_pays(const struct neap_sweep *s, int tier)
{
	return s->rewrite_failures[tier - 1] < FAILURES_MOST;
}

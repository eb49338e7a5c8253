/* SPDX-License-Identifier: Apache-2.0 */
/* level_bound.c: the problem of levels with lowered costs. */
#include "plan/bound/level_bound.h"

#include <math.h>
#include "plan/core/sizing.h"
#include "plan/levels/level_schedule.h"
#include "plan/levels/level_search.h"

/* Lowers costs to where writes and reads both rise with the levels. */
static void relax(struct neap__levels_problem *levels)
{
	struct neap__level *first = &levels->level[0];
	first->write = fmin(first->write,
		first->read); /* a state that is read may stay in a slot without a write */
	for (int k = levels->count - 2; k >= 0; k--) {
		levels->level[k].write = fmin(levels->level[k].write, levels->level[k + 1].write);
		levels->level[k].read = fmin(levels->level[k].read, levels->level[k + 1].read);
	}
}

/*
 * Seconds of a step forward that leaves nothing. It may be recorded and its tape dropped; but a
 * record of no time is one that is not charged, as in the literature.
 */
static double forward(const struct neap_chain *c)
{
	return c->record > 0 ? fmin(c->advance, c->record) : c->advance;
}

double neap__level_bound(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	struct neap__levels_problem levels = {
		.length = c->steps - 1, .advance = forward(c), .count = 1};
	struct neap__levels *solved;
	if (c->flags != NEAP_CHAIN_CLASSIC || c->steps < 2)
		return 0;
	int64_t slots = neap__pool_bytes(p, 0);
	levels.level[0] = (struct neap__level){.slots = slots,
		.write = neap__level_schedule_write(p, 0),
		.read = neap__level_schedule_read(p, 0)};
	for (int tier = 1; tier <= p->ntiers; tier++) {
		if (!(p->tiers[tier - 1].flags & NEAP_TIER_SYNC))
			return 0;
		struct neap__level level = {.slots = neap__places(p, tier),
			.write = neap__level_schedule_write(p, tier),
			.read = neap__level_schedule_read(p, tier),
			.tier = tier};
		int i = levels.count++;
		for (; i > 1 && neap__level_search_lower(&level, &levels.level[i - 1]); i--)
			levels.level[i] = levels.level[i - 1];
		levels.level[i] = level;
	}
	relax(&levels);
	if (neap__levels_solve(&solved, &levels,
		    levels.length <= NEAP__LEVELS_SHORT ? NEAP__LEVELS_SHORT_WORK : 0) < 0)
		return 0;
	double bound = neap__levels_lower(solved);
	neap__levels_free(solved);
	return bound + (double)c->steps * (c->record + c->backward);
}

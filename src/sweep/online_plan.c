/* SPDX-License-Identifier: Apache-2.0 */
/* online_plan.c: plan and table sizes of a sweep over a chain of unknown length. */
#include "sweep/online_plan.h"
#include "sweep/table_sizes.h"
#include "base/fail.h"
#include "plan/core/sizing.h"
#include "plan/online/online_schedule.h"
#include "plan/online/online_tier.h"

#define COMING 4       /* slots and records of tapes on their way, beyond those that are kept */
#define LEAF_PIECES 16 /* separate records that a leaf, or what comes back, is recorded in */

static int check(const struct neap_sweep *s)
{
	const struct neap_sweep_options *o = &s->options;
	if (o->memory == 0)
		return neap__fail(
			NEAP_EUSAGE, "a chain of unknown length requires a budget (memory)");
	if (o->saved || s->open)
		return neap__fail(NEAP_EUSAGE, "a chain of unknown length cannot use a saved plan");
	if (o->strategy && !(neap_strategy_traits(o->strategy) & NEAP_STRATEGY_UNKNOWN_LENGTH))
		return neap__fail(NEAP_EUSAGE,
			"strategy %s requires the length of the chain; use online", o->strategy);
	return 0;
}

/* Steps are recorded one by one going forward: each tape of the tier is a piece of its own. */
static void size_tier(struct neap__table_sizes *sizes, const struct neap__online_sizes *x)
{
	int i = x->tier - 1;
	int64_t tapes = x->pool / x->tape, most = x->recent + 2 * COMING * x->chunk;
	sizes->scattered = 1;
	sizes->slots = x->slots + COMING;
	sizes->places[i] = x->states;
	sizes->tape_places[i] = x->chunks;
	sizes->longest[i] = x->chunk;
	sizes->pieces = x->chunks * x->chunk;
	sizes->spans = x->chunk;
	sizes->span_rows = x->chunks ? NEAP__ONLINE_RECORDS : 0;
	sizes->extents = (tapes / NEAP__RECORD_BLOCK + LEAF_PIECES) * (NEAP__HOLE_CUTS + 1) +
			 (most < tapes ? most : tapes);
	sizes->ranges = neap__online_ring_room(x) + NEAP__ONLINE_RECORDS + LEAF_PIECES;
}

int neap__online_plan(struct neap_sweep *s)
{
	struct neap_chain *c = &s->problem.chain;
	struct neap__online_sizes tier;
	struct neap_online *trial;
	NEAP_TRY(check(s));
	s->problem.memory &= ~(uint64_t)63;
	c->steps = NEAP__STEPS_UNKNOWN;
	NEAP_TRY(neap_online_create(&trial, &s->problem));
	int64_t leaf = neap__online_leaf(trial), slots = neap__online_slots(&s->problem);
	neap_online_free(trial);
	neap__online_sizes(&tier, &s->problem);
	s->plan = (struct neap_plan){
		.size = sizeof(struct neap_plan),
		.strategy = neap__strategy_online.name,
		.chosen = neap__strategy_online.name,
		.feasible = 1,
		.tier = tier.tier,
		.params.checkpoints = tier.tier ? tier.slots : slots,
		.slots = tier.tier ? tier.slots : slots,
		.arena_bytes = s->problem.memory,
		.peak_bytes = s->problem.memory - neap__tape_reserve(&s->problem),
	};
	s->sizes = (struct neap__table_sizes){
		.slots = slots,
		.extents = leaf / NEAP__RECORD_BLOCK + 3,
		.ranges = 2,
	};
	if (tier.tier)
		size_tier(&s->sizes, &tier);
	return 0;
}

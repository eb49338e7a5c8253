/* SPDX-License-Identifier: Apache-2.0 */
/*
 * least_memory.c: neap_problem_least: the least budget with which some strategy has a plan. That
 * takes all strategies into account, so the file stands beside the table.
 */
#include <neap/chain.h>

#include "plan/core/sizing.h"
#include "plan/core/stage_sizes.h"
#include "plan/offload/offload_search.h"
#include "plan/recompute/join_sizes.h"
#include "plan/stages/chain_table.h"
#include "plan/stages/long_chain.h"

/* Bytes of `bptt` (tier 0), or of `stream` with a tier that holds as many tapes as it can. */
static uint64_t all_tapes(const struct neap_problem *p, int tier)
{
	uint64_t steps = (uint64_t)p->chain.steps, tape = p->chain.tape, there = 0;
	if (p->chain.flags & NEAP_CHAIN_CLASSIC || (tier && p->chain.flags & NEAP_CHAIN_TAPES_STAY))
		return UINT64_MAX;
	if (tier && tape)
		there = p->tiers[tier - 1].capacity / tape;
	if (there > steps - 1)
		there = steps - 1;
	return neap__fixed_bytes(p, tier) + (steps - there) * tape;
}

/* The least budget known to do, by `chain` or, with tiers, with what does not fit away. */
static uint64_t stages_least(const struct neap_problem *p)
{
	uint64_t least = 0;
	return neap__offload_auto_least(&least, p, 0) < 0 ? neap__chain_table_least(&p->chain)
							  : least;
}

uint64_t neap_problem_least(const struct neap_problem *problem)
{
	if (!problem)
		return 0;
	uint64_t state = problem->chain.state, tape = problem->chain.tape;
	uint64_t least = neap__fixed_bytes(problem, 0) + tape;
	if (problem->chain.steps == 0)
		return 0;
	if (problem->chain.stages)
		return problem->chain.steps > NEAP__CHAIN_TABLE_STAGES
			       ? neap__long_chain_least(&problem->chain)
			       : stages_least(problem);
	if (problem->chain.join)
		return neap__join_least(problem);
	if (problem->chain.steps == 1)
		return least;
	least += state;
	if (all_tapes(problem, 0) < least)
		least = all_tapes(problem, 0);
	for (int tier = 1; tier <= problem->ntiers; tier++) {
		/* `h-revolve`: x_0 in a place of the tier, and one tape. */
		uint64_t bytes = neap__fixed_bytes(problem, tier) + tape;
		if (bytes < least && neap__places(problem, tier) > 0)
			least = bytes;
		if (all_tapes(problem, tier) < least)
			least = all_tapes(problem, tier);
	}
	return least;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* long_chain.h: schedules of `chain` for more stages than the tables of chain_table.h hold. */
#ifndef NEAP_PLAN_STAGES_LONG_CHAIN_H
#define NEAP_PLAN_STAGES_LONG_CHAIN_H

#include "plan/core/schedule.h"
#include "plan/core/strategy.h"

/* The arrangements, plan.variant. */
enum neap__long_chain_variant {
	NEAP__LONG_CHAIN_TRUE,	 /* places chosen by the tapes as they are */
	NEAP__LONG_CHAIN_WORST,	 /* as if every tape were the largest one */
	NEAP__LONG_CHAIN_BLOCKS, /* groups of stages: chain_tree.h */
	NEAP__LONG_CHAIN_BLOCKS_WORST,
	NEAP__LONG_CHAIN_AGAIN, /* groups that are grouped anew */
	NEAP__LONG_CHAIN_VARIANTS
};

/* A budget that works; UINT64_MAX: out of memory. */
uint64_t neap__long_chain_least(const struct neap_chain *chain);
/* As neap__strategy.open. NEAP_EINFEASIBLE below the least budget. */
int neap__long_chain_open(struct neap_schedule *s);

#endif

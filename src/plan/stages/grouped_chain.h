/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grouped_chain.h: plans of a long chain as one of about a hundred blocks of stages, by the
 * tables of chain_table.h. A block is recorded as a whole, ahead of its turn where its tapes
 * are small for the steps that they save.
 */
#ifndef NEAP_PLAN_STAGES_GROUPED_CHAIN_H
#define NEAP_PLAN_STAGES_GROUPED_CHAIN_H

#include "plan/core/schedule.h"
#include "plan/core/strategy.h"

/*
 * As neap__strategy.open. NEAP_EINFEASIBLE where the blocks do not fit the budget, or
 * where a backward needs an input that no tape holds.
 */
int neap__grouped_chain_open(struct neap_schedule *s);

#endif

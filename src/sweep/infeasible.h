/* SPDX-License-Identifier: Apache-2.0 */
/* infeasible.h: the refusal of a plan that does not fit the budget. */
#ifndef NEAP_SWEEP_INFEASIBLE_H
#define NEAP_SWEEP_INFEASIBLE_H

#include <neap/plan.h>

/* 0 for a feasible plan, else NEAP_EINFEASIBLE; the line names a budget that would do. */
int neap__refuse_plan(const struct neap_plan *plan, uint64_t memory);

/*
 * 0, or NEAP_EINFEASIBLE for an arena larger than the memory of the machine; the line has both
 * sizes. Linux maps such an arena and kills the process when the sweep has filled the memory.
 */
int neap__refuse_arena(uint64_t bytes, const char *strategy);

#endif

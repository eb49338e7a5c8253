/* SPDX-License-Identifier: Apache-2.0 */
/* verify_join.h: neap_verify for two chains into one loss (chain.join). */
#ifndef NEAP_PLAN_VERIFY_VERIFY_JOIN_H
#define NEAP_PLAN_VERIFY_VERIFY_JOIN_H

#include <neap/plan.h>

int neap__verify_join(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule);

#endif

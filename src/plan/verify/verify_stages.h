/* SPDX-License-Identifier: Apache-2.0 */
/* verify_stages.h: neap_verify for a chain of stages (chain.stages). */
#ifndef NEAP_PLAN_VERIFY_VERIFY_STAGES_H
#define NEAP_PLAN_VERIFY_VERIFY_STAGES_H

#include <neap/plan.h>

/* The peak is that of what is kept, without gaps. `problem` is checked. */
int neap__stages_verify(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule);

#endif

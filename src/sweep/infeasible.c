/* SPDX-License-Identifier: Apache-2.0 */
/* infeasible.c: why a plan cannot run, and which budget would do, if one does. */
#include "sweep/infeasible.h"
#include "base/fail.h"

int neap__refuse_plan(const struct neap_plan *plan, uint64_t memory)
{
	if (plan->feasible)
		return 0;
	if (plan->least_bytes == 0)
		return neap__fail(NEAP_EINFEASIBLE, "%s: %s", plan->strategy, plan->why);
	return neap__fail(NEAP_EINFEASIBLE, "%s does not fit %llu bytes: %s; %llu bytes would do",
		plan->strategy, (unsigned long long)memory, plan->why,
		(unsigned long long)plan->least_bytes);
}

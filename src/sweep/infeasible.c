/* SPDX-License-Identifier: Apache-2.0 */
/* infeasible.c: why a plan cannot run, and which budget would do, if one does. */
#include "sweep/infeasible.h"
#include "base/fail.h"
#include "base/show.h"
#include "sys/memory.h"

int neap__refuse_plan(const struct neap_plan *plan, uint64_t memory)
{
	char room[24];

	if (plan->feasible)
		return 0;
	if (plan->least_bytes == 0)
		return neap__fail(NEAP_EINFEASIBLE, "%s: %s", plan->strategy, plan->why);
	return neap__fail(NEAP_EINFEASIBLE,
		"a budget of %llu bytes is too small for %s: %s. Use at least %llu bytes (%s)%s",
		(unsigned long long)memory, plan->strategy, plan->why,
		(unsigned long long)plan->least_bytes, neap__show_least(room, plan->least_bytes),
		/* A number without a unit was meant as one with a unit. */
		memory < 4096 ? "; sizes may have a unit, such as 64M" : "");
}

int neap__refuse_arena(uint64_t bytes, const char *strategy)
{
	uint64_t total = neap__memory_total();
	char needed[24], there[24];

	if (!total || bytes <= total)
		return 0;
	return neap__fail(NEAP_EINFEASIBLE,
		"the plan of strategy %s uses an arena of %llu bytes (%s), but this machine has "
		"%llu bytes (%s) of memory. Set a memory budget below that",
		strategy, (unsigned long long)bytes, neap__show_size(needed, bytes),
		(unsigned long long)total, neap__show_size(there, total));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_table.c: the table, and the public questions that its rows answer. */
#include "plan/strategy_table.h"
#include "plan/core/strategy.h"

#include <string.h>

const struct neap__strategy *const neap__strategies[] = {
#define NEAP__X(row) &row,
	NEAP__STRATEGY_TABLE(NEAP__X)
#undef NEAP__X
		NULL,
};

const struct neap__strategy *neap__strategy_find(const char *name)
{
	for (int i = 0; name && neap__strategies[i]; i++)
		if (strcmp(neap__strategies[i]->name, name) == 0)
			return neap__strategies[i];
	return NULL;
}

const char *neap_strategy_name(int index)
{
	for (int i = 0; neap__strategies[i]; i++)
		if (i == index)
			return neap__strategies[i]->name;
	return NULL;
}

const char *neap_strategy_about(const char *name)
{
	const struct neap__strategy *row = neap__strategy_find(name);
	return row ? row->about : NULL;
}

uint32_t neap_strategy_traits(const char *name)
{
	const struct neap__strategy *row = neap__strategy_find(name);
	return row ? row->traits : 0;
}

int64_t neap_plan_tapes_held(const struct neap_plan *plan, int64_t steps)
{
	if (!plan)
		return 0;
	const struct neap__strategy *row = neap__strategy_find(plan->chosen);
	int64_t chunk = plan->params.chunk;
	if (row && row->tapes_held)
		return row->tapes_held(plan, steps);
	if (plan->params.group > 0)
		return plan->params.group;
	/* Chunks that leave and wait for each other hold about as much as the tail. */
	if (plan->blocks.record > 0 && plan->blocks.tail > chunk)
		return plan->blocks.tail;
	return chunk > 0 ? chunk : 1;
}

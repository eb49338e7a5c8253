/* SPDX-License-Identifier: Apache-2.0 */
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

/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_table.h: the table of strategies: the rows of NEAP__STRATEGY_TABLE (core/strategy.h). */
#ifndef NEAP_PLAN_STRATEGY_TABLE_H
#define NEAP_PLAN_STRATEGY_TABLE_H

#include "plan/core/strategy.h"

/* All rows in the order of the table, then NULL. */
extern const struct neap__strategy *const neap__strategies[];
/* The row of a name, NULL where there is none. */
const struct neap__strategy *neap__strategy_find(const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_table.h: the rows of NEAP__STRATEGY_TABLE (core/strategy.h), and how one is found. */
#ifndef NEAP_PLAN_STRATEGY_TABLE_H
#define NEAP_PLAN_STRATEGY_TABLE_H

#include "plan/core/strategy.h"

/* NULL-terminated. */
extern const struct neap__strategy *const neap__strategies[];
/* NULL where there is none of that name. */
const struct neap__strategy *neap__strategy_find(const char *name);

#endif

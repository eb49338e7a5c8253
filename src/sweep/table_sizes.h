/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_sizes.h: reads a schedule once before it runs, so that every table has its size before
 * the first step and a run allocates nothing.
 */
#ifndef NEAP_SWEEP_TABLE_SIZES_H
#define NEAP_SWEEP_TABLE_SIZES_H

#include "sweep/sweep_state.h"

/* Reads the schedule to its end and fills `sizes`. NEAP_EILLEGAL where an action names no tier. */
int neap__table_sizes(struct neap__table_sizes *sizes, int ntiers, struct neap_schedule *schedule);
/* Makes the sizes large enough for those of another schedule, too. */
void neap__table_sizes_join(struct neap__table_sizes *sizes, const struct neap__table_sizes *other);
/* Gives a fresh schedule the queue and tables that it will need. 0 or -ENOMEM. */
int neap__table_sizes_reserve(
	const struct neap__table_sizes *sizes, struct neap_schedule *schedule);

#endif

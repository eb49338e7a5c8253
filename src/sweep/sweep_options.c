/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_options.c: checks the options of a sweep and makes them independent of the caller's
 * strings. */
#include "sweep/sweep_options.h"
#include "base/fail.h"
#include "plan/core/strategy.h"
#include "plan/strategy_table.h"

#include <math.h>

int neap__sweep_options_check(const struct neap_sweep_options *o)
{
	const struct {
		const char *name;
		double seconds;
		int infinite; /* 1: may be */
	} rows[] = {{"advance", o->advance, 0}, {"record", o->record, 0},
		{"backward", o->backward, 0}, {"replay", o->replay, 0}, {"call", o->call, 0},
		{"slot_write", o->slot_write, 0}, {"slot_read", o->slot_read, 0},
		{"patience", o->patience, 1}, {"journal_seconds", fabs(o->journal_seconds), 1}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (!(rows[i].seconds >= 0) || (isinf(rows[i].seconds) && !rows[i].infinite))
			return neap__fail(NEAP_EUSAGE, "neap_sweep_options: %s is %g seconds",
				rows[i].name, rows[i].seconds);
	return 0;
}

void neap__sweep_options_own(struct neap_sweep_options *o)
{
	const struct neap__strategy *row = o->strategy ? neap__strategy_find(o->strategy) : NULL;
	if (row)
		o->strategy = row->name;
}

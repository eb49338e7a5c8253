/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_times.h: columns of dates that are ignored, but show that the rows of a sample are not in the
 * order of time, in which they become its steps.
 */
#ifndef NEAP_DATA_TABLES_ROW_TIMES_H
#define NEAP_DATA_TABLES_ROW_TIMES_H

#include "data/tables/table.h"

enum { NEAP__TIMED_MOST = 4 /* columns that are looked at */, NEAP__DATE_MOST = 40 /* letters */ };

/* All zero to begin with. */
struct neap__row_times {
	struct {
		char above[NEAP__DATE_MOST]; /* the field of the row before; "": no date */
		int64_t falls, line;	     /* rows with an earlier date; the first of them */
		char path[200];		     /* of its file */
	} column[NEAP__TIMED_MOST];	     /* the first ignored ones */
};

/* Takes note of the row read last. */
void neap__row_times_see(struct neap__row_times *times, const struct neap__table *table);
/* Warns of a column whose dates go back in a sample. */
void neap__row_times_doubt(const struct neap__row_times *times, const struct neap__table *table);

#endif

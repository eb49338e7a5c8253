/* SPDX-License-Identifier: Apache-2.0 */
/* row_times.c: compares dates of rows as texts, whose order is that of time (row_times.h). */
#include "data/tables/row_times.h"
#include "data/data_doubts.h"
#include "data/tables/sample_ids.h"
#include "base/print.h"

#include <string.h>

/* 1: begins with a date as ISO 8601 has it, 2026-03-07: as texts, such dates have their order. */
static int is_date(const char *text)
{
	static const char form[] = "0000-00-00";
	for (size_t i = 0; form[i]; i++)
		if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return 0;
	return strlen(text) < NEAP__DATE_MOST;
}

void neap__row_times_see(struct neap__row_times *times, const struct neap__table *t)
{
	char *const *field = t->from ? t->field : t->csv.field;
	for (int64_t i = 0, k = 0; i < t->columns && k < NEAP__TIMED_MOST; i++) {
		if (t->role[i] != NEAP__COLUMN_DROPPED)
			continue;
		char *above = times->column[k].above;
		const char *now = is_date(field[i]) ? field[i] : "";
		/* Of other lengths, they have other forms. */
		if (!t->begins && strlen(above) == strlen(now) && strcmp(now, above) < 0 &&
			times->column[k].falls++ == 0) {
			times->column[k].line = t->csv.line;
			neap__print(times->column[k].path, sizeof times->column[k].path, "%s",
				t->csv.path);
		}
		neap__print(above, NEAP__DATE_MOST, "%s", now);
		k++;
	}
}

void neap__row_times_doubt(const struct neap__row_times *times, const struct neap__table *t)
{
	char number[24], command[NEAP__ROWS_COMMAND];
	for (int64_t i = 0, k = 0; i < t->columns && k < NEAP__TIMED_MOST; i++) {
		if (t->role[i] != NEAP__COLUMN_DROPPED || times->column[k++].falls == 0)
			continue;
		neap__doubt(t->options->warn, t->options->user,
			"the ignored column '%.60s' has an earlier date than the row above in %lld "
			"rows, first in line %lld of '%.100s', and rows are steps in the order of "
			"the table. Sort them by time: %s",
			neap__table_column(t, i, number), (long long)times->column[k - 1].falls,
			(long long)times->column[k - 1].line, times->column[k - 1].path,
			neap__table_sort(command, t, times->column[k - 1].path, i));
		return;
	}
}

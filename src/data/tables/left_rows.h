/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left_rows.h: targets in rows that --missing leaves out. A sample whose only target is in such a
 * row would lose it, and so would a data set the class that occurs there alone.
 */
#ifndef NEAP_DATA_TABLES_LEFT_ROWS_H
#define NEAP_DATA_TABLES_LEFT_ROWS_H

#include "data/tables/table.h"
#include "data/tables/table_targets.h"

/* A target in a row that was left out, and where it is. */
struct neap__left_target {
	char *text;
	const char *path; /* borrowed from the table */
	int64_t line;
};

struct neap__left_rows {
	void *classes;			 /* tree of struct neap__left_target, one per text */
	char *sample;			 /* the last one with a left-out target; NULL: none */
	struct neap__left_target target; /* its first left-out target */
	int kept, answered;		 /* 1: it has a row that is kept, and one with a target */
	int here; /* 1: the sample of the row kept last has one with a target */
};

/* A row of `sample` was left out, whose first target is `text`. 0, NEAP_EFORMAT or -ENOMEM. */
int neap__left_rows_leave(struct neap__left_rows *left, const struct neap__table *table,
	const char *sample, const char *text);
/* A row of table->sample is kept; `text`: its first target. 0, or NEAP_EFORMAT. */
int neap__left_rows_keep(
	struct neap__left_rows *left, const struct neap__table *table, const char *text);
/* Behind the last row. 0, or NEAP_EFORMAT: a sample has its target in left-out rows alone. */
int neap__left_rows_end(const struct neap__left_rows *left, const struct neap__table *table);
/* Warns of a class that occurs in left-out rows alone. */
void neap__left_rows_doubt(const struct neap__left_rows *left, const struct neap__table *table,
	const struct neap__table_targets *targets);
void neap__left_rows_free(struct neap__left_rows *left);

#endif

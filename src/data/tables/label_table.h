/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_table.h: targets of samples in a table of text of its own (csv.h): the first column names
 * the sample, the others are its targets. Names of columns may stand in front: they name no sample.
 */
#ifndef NEAP_DATA_TABLES_LABEL_TABLE_H
#define NEAP_DATA_TABLES_LABEL_TABLE_H

#include <stdint.h>
#include <neap/status.h>

struct neap__label_row {
	char *sample;	     /* its name; the row's allocation, which holds the texts as well */
	const char **target; /* [targets] */
	int64_t line;
};

struct neap__label_table {
	struct neap__label_row *row; /* [count], by name */
	int64_t count, room;
	int targets;
};

/* Reads a table; `table` is all zero before and is freed in any case. 0, NEAP_EFORMAT or -errno. */
int neap__label_table_read(struct neap__label_table *table, const char *path);
/* A name in its first column, as an example: not that of a heading. */
const char *neap__label_table_example(const struct neap__label_table *table);
/*
 * Keeps the targets in the columns of these names, separated by commas, in their order. The first
 * line has the names. 0, -ENOMEM, or NEAP_EUSAGE if there are no such columns: `path` is the table,
 * `data` what has the samples.
 */
int neap__label_table_select(
	struct neap__label_table *table, const char *path, const char *names, const char *data);
void neap__label_table_free(struct neap__label_table *table);
/*
 * The row of a sample, NULL where there is none. A sample that is a file may be named by its path
 * below the folder or by its last part, with its ending or without.
 */
const struct neap__label_row *neap__label_table_find(
	const struct neap__label_table *table, const char *sample);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_ids.h: names of samples that occur again where they should not: in rows apart, or where
 * they start again in each class, so that samples of several classes become one.
 */
#ifndef NEAP_DATA_TABLES_SAMPLE_IDS_H
#define NEAP_DATA_TABLES_SAMPLE_IDS_H

#include "data/tables/table.h"

enum { NEAP__RUNS_MOST = 16 /* classes of a sample that are told apart; chosen */ };

/* How classes follow each other in the samples; all zero to begin with. */
struct neap__class_runs {
	char *run[NEAP__RUNS_MOST]; /* classes of the sample that is read, in their order */
	int runs;
	int unlike;	 /* 1: a class comes again, or a row has none: classes are per step */
	int64_t changed; /* samples with several classes */
	int is_counted;	 /* 1: the sample that is read is among them */
	int64_t line;	 /* where the class of the first of them changes */
	const char *path;
	char sample[60], from[60], to[60];
};

/* Takes note of a row and its one target, `text`. 0 or -ENOMEM. */
int neap__class_runs_see(
	struct neap__class_runs *runs, const struct neap__table *table, const char *text);
/* Warns if samples have one run of rows for each of several classes. `samples`: of the table. */
void neap__class_runs_doubt(
	struct neap__class_runs *runs, const struct neap__table *table, int64_t samples);
void neap__class_runs_free(struct neap__class_runs *runs);

/*
 * Refuses a row that begins a sample whose name is in `seen` (search.h), and puts its name there
 * with its class. 0, NEAP_EFORMAT or -ENOMEM.
 */
int neap__sample_ids_see(const struct neap__table *table, void **seen);

/*
 * Prints the command that sorts the rows of `path` by sample and then by `column` (-1: they keep
 * their order), into another file; returns `room`.
 */
enum { NEAP__ROWS_COMMAND = 700 /* bytes */ };
const char *neap__table_sort(char room[NEAP__ROWS_COMMAND], const struct neap__table *table,
	const char *path, int64_t column);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* table_gaps.c: fields that mark missing values, in a table and in a folder of them (table.h). */
#include "data/tables/table.h"

#include <ctype.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int neap__table_is_gap(const char *text)
{
	static const char *const gaps[] = {"", "nan", "na", "n/a", "n.a.", "n.a", "<na>", "#n/a",
		"#na", "nd", "n/d", "n.d.", "null", "#null!", "none", "nil", "missing", "inf",
		"-inf", "#div/0!", "#num!", "#value!", "?", "-", "--", "---", ".", "..", "..."};
	if (isdigit((unsigned char)text[*text == '-'])) /* as most fields are */
		return 0;
	for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++)
		if (strcasecmp(text, gaps[i]) == 0)
			return 1;
	return 0;
}

/*
 * Fields of a table, and of a folder, that are searched for gaps: chosen, so that a line of advice
 * takes at most a second. If there are gaps behind these, encode names the first.
 */
enum { TABLE_FIELDS = 1 << 16, FOLDER_FIELDS = 1 << 22 };

/* 1: a field below the first row marks a missing value. Adds what was searched to *fields. */
static int has_gaps(const char *path, int64_t *fields)
{
	struct neap__csv csv;
	int found = 0, rc = neap__csv_open(&csv, path);
	int64_t looked = 0;

	for (int row = 0; rc == 0 && !found && looked < TABLE_FIELDS && neap__csv_next(&csv) > 0;
		row++) {
		looked += csv.fields;
		for (int64_t k = 0; k < csv.fields && row > 0; k++)
			found |= neap__table_is_gap(csv.field[k]);
	}
	*fields += looked;
	neap__csv_close(&csv);
	return found;
}

int neap__tables_have_gaps(const char *path)
{
	char *copy = strdup(path), *roots[] = {copy, NULL};
	FTS *walk = copy ? fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL) : NULL;
	FTSENT *entry = NULL;
	int64_t fields = 0;
	int found = 0;

	while (walk && !found && fields < FOLDER_FIELDS && (entry = fts_read(walk))) {
		const char *dot = strrchr(entry->fts_name, '.');
		if (entry->fts_info == FTS_F && dot &&
			(strcasecmp(dot, ".csv") == 0 || strcasecmp(dot, ".tsv") == 0))
			found = has_gaps(entry->fts_path, &fields);
	}
	if (walk)
		fts_close(walk);
	free(copy);
	return found;
}

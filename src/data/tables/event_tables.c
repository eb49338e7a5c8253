/* SPDX-License-Identifier: Apache-2.0 */
/* event_tables.c: the command that converts tables of events (event_tables.h). */
#include "data/tables/event_tables.h"
#include "base/print.h"
#include "data/event_names.h"
#include "data/recordings.h"
#include "data/tables/csv.h"

#include <string.h>
#include <sys/stat.h>

/* Finds the names of the columns of events in a header. 1: all four are there. */
static int find_columns(
	const char *name[NEAP__EVENT_COLUMNS], const char *const *header, int64_t columns)
{
	int found = 0;
	for (int c = 0; c < NEAP__EVENT_COLUMNS; c++) {
		name[c] = NULL;
		for (int64_t i = 0; i < columns && !name[c]; i++)
			for (const char *const *k = neap__event_names[c]; *k && !name[c]; k++)
				name[c] = strcmp(*k, header[i]) == 0 ? *k : NULL;
		found += name[c] != NULL;
	}
	return found == NEAP__EVENT_COLUMNS;
}

/* The command for the table `first`, of those in `path`. numpy reads a column of integers as such.
 */
static int print_command(char *room, size_t size, const char *path, const char *first)
{
	struct neap__csv csv;
	const char *name[NEAP__EVENT_COLUMNS], *dot = strrchr(first, '.');
	char files[700];
	int found = dot && strlen(dot) == 4 && neap__csv_open(&csv, first) == 0;
	if (!found)
		return 0;
	found = neap__csv_next(&csv) > 0 &&
		find_columns(name, (const char *const *)csv.field, csv.fields);
	if (strcmp(path, first) == 0)
		neap__print(files, sizeof files, "['%.300s']", path);
	else
		neap__print(files, sizeof files, "glob.glob('%.300s/**/*%s', recursive=True)", path,
			dot);
	if (found)
		neap__print(room, size,
			"python3 -c \"import glob, numpy, os; [(numpy.savez(f[:-4] + '.npz', "
			"t=e['%s'], x=e['%s'], y=e['%s'], p=e['%s']), os.rename(f, f + '.old')) "
			"for f in %s for e in [numpy.genfromtxt(f, delimiter='%s', names=True, "
			"dtype=None)]]\"",
			name[NEAP__EVENT_T], name[NEAP__EVENT_X], name[NEAP__EVENT_Y],
			name[NEAP__EVENT_P], files,
			csv.separator == '\t'  ? "\\t"
			: csv.separator == ';' ? ";"
					       : ",");
	neap__csv_close(&csv);
	return found;
}

int neap__event_tables_advise(char *room, size_t size, const char *path)
{
	struct neap__recordings all = {0};
	const char *first = NULL;
	struct stat st;
	room[0] = '\0';
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		return print_command(room, size, path, path);
	if (neap__recordings_all(&all, path) == 0)
		for (int64_t i = 0; i < all.count && !first; i++)
			if (!all.file[i].stray &&
				neap__recordings_ends(all.file[i].path, neap__table_endings))
				first = all.file[i].path;
	int found = first && print_command(room, size, path, first);
	neap__recordings_free(&all);
	return found;
}

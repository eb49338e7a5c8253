/* SPDX-License-Identifier: Apache-2.0 */
/* label_files.c: finds the table that lists labels for the files of a folder (recordings.h). */
#include "data/recordings.h"
#include "data/tables/csv.h"
#include "data/tables/label_table.h"
#include "base/print.h"
#include "base/quote.h"
#include "base/units.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

/* Chosen: tables of labels are small, and a few files show whether a table lists them. */
enum { MOST_BYTES = 1 << 22, LOOKS = 50 /* at files */, PARENT = 64 /* tables that are read */ };

/* 1: its name is that of a table of labels. */
static int is_called_so(const char *path)
{
	static const char *const words[] = {
		"label", "meta", "target", "class", "annot", "truth", "split", NULL};
	const char *slash = strrchr(path, '/');
	for (int i = 0; words[i]; i++)
		if (strcasestr(slash ? slash + 1 : path, words[i]))
			return 1;
	return 0;
}

/* 1: the first column has numbers only, as a column of a table of measurements may. */
static int is_numbered(const struct neap__label_table *table)
{
	double number;
	for (int64_t i = 0; i < table->count; i++)
		if (neap__units_number(&number, table->row[i].sample) < 0 && table->row[i].line > 1)
			return 0;
	return 1;
}

/* 1: the first column begins with numbers, as that of a table of measurements may. Reads no more
 * than these rows. */
static int begins_numbered(const char *path)
{
	struct neap__csv csv;
	double number;
	int is = 1, rows = 0;

	if (neap__csv_open(&csv, path) == 0 && neap__csv_next(&csv) > 0)
		for (; is && rows < LOOKS && neap__csv_next(&csv) > 0; rows++)
			is = neap__units_number(&number, csv.field[0]) == 0;
	neap__csv_close(&csv);
	return is && rows == LOOKS;
}

/* 1: most of the first files have a row in the table. */
static int lists(const char *path, const struct neap__recordings *all, const char *dir)
{
	struct neap__label_table table = {0};
	struct stat st;
	int64_t looked = 0, found = 0;
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MOST_BYTES)
		return 0;
	if (!is_called_so(path) && begins_numbered(path))
		return 0;
	if (neap__label_table_read(&table, path) < 0) {
		neap__label_table_free(&table);
		return 0;
	}
	for (int64_t i = 0; i < all->count && looked < LOOKS; i++) {
		const char *file = all->file[i].path;
		if (all->file[i].stray || strcmp(file, path) == 0)
			continue;
		looked++;
		found += neap__label_table_find(&table, neap__recordings_below(file, dir)) != NULL;
	}
	int is = found > 0 && 2 * found >= looked && (is_called_so(path) || !is_numbered(&table));
	neap__label_table_free(&table);
	return is;
}

int neap__labels_name(const char *path, const char *dir)
{
	struct neap__recordings all = {0};
	int is = neap__recordings_all(&all, dir) == 0 && lists(path, &all, dir);
	neap__recordings_free(&all);
	return is;
}

/* The folder that `dir` is in, as people write it. */
static void folder_above(char *room, size_t size, const char *dir)
{
	size_t n = strlen(dir);
	while (n > 1 && dir[n - 1] == '/')
		n--;
	const char *slash = memrchr(dir, '/', n), *last = slash ? slash + 1 : dir;
	size_t bytes = n - (size_t)(last - dir);
	int is_up = (bytes == 1 && *last == '.') || (bytes == 2 && strncmp(last, "..", 2) == 0);
	if (is_up)
		neap__print(room, size, "%.*s/../", (int)n, dir);
	else
		neap__print(room, size, "%.*s", (int)(last - dir), dir);
}

/* The first table next to the folder that lists its files, by name; "labels" comes first. */
static int find_above(char *room, size_t size, const struct neap__recordings *all, const char *dir)
{
	char above[300], path[600];
	struct dirent *entry;
	int looks = 0, found = 0;
	folder_above(above, sizeof above, dir);
	DIR *folder = opendir(above[0] ? above : ".");
	while (folder && looks < PARENT && (entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.' ||
			!neap__recordings_ends(entry->d_name, neap__table_endings))
			continue;
		looks++;
		neap__print(path, sizeof path, "%s%s", above, entry->d_name);
		int better = !found || is_called_so(path) > is_called_so(room) ||
			     (is_called_so(path) == is_called_so(room) && strcmp(path, room) < 0);
		if (!better || !lists(path, all, dir))
			continue;
		neap__print(room, size, "%s", path);
		found = 1;
	}
	if (folder)
		closedir(folder);
	return found;
}

int neap__labels_of(char *room, size_t size, const char *dir, int inside)
{
	struct neap__recordings all = {0};
	int found = 0;
	room[0] = '\0';
	if (!neap__recordings_folder(dir) || neap__recordings_all(&all, dir) < 0) {
		neap__recordings_free(&all);
		return 0;
	}
	/* First those that are called so: the folder may have many tables. */
	for (int called = 1; called >= 0 && !found; called--) {
		int looks = 0;
		for (int64_t i = 0; i < all.count && !found && looks < PARENT; i++) {
			const char *path = all.file[i].path;
			if (all.file[i].stray ||
				!neap__recordings_ends(path, neap__table_endings) ||
				is_called_so(path) != called)
				continue;
			looks++;
			found = lists(path, &all, dir);
			if (found)
				neap__print(room, size, "%s", path);
		}
	}
	if (!found && !inside)
		found = find_above(room, size, &all, dir);
	if (!found)
		room[0] = '\0';
	neap__recordings_free(&all);
	return found;
}

const char *neap__labels_option(char room[NEAP__LABELS_TEXT], const char *dir)
{
	char table[600];
	int64_t flat = 0;
	room[0] = '\0';
	if (neap__recordings_count(dir, neap__table_endings, &flat) && flat &&
		!neap__recordings_having(dir, neap__sound_endings) &&
		neap__labels_of(table, sizeof table, dir, 0))
		neap__print(room, NEAP__LABELS_TEXT, " --labels %s", neap__quoted(table));
	return room;
}

int neap__labels_of_file(char *room, size_t size, const char *path)
{
	struct neap__recordings one = {0};
	char dir[600] = ".";
	const char *slash = strrchr(path, '/');
	if (slash)
		neap__print(dir, sizeof dir, "%.*s", (int)(slash > path ? slash - path : 1), path);
	if (!neap__labels_of(room, size, dir, 0))
		return 0;
	int is = neap__recordings_add(&one, path) == 0 && lists(room, &one, dir);
	neap__recordings_free(&one);
	if (!is)
		room[0] = '\0';
	return is;
}

int neap__table_has_column(const char *path, const char *text, size_t bytes)
{
	struct neap__csv csv;
	int found = 0;
	if (neap__csv_open(&csv, path) == 0 && neap__csv_next(&csv) > 0)
		for (int64_t i = 0; i < csv.fields; i++)
			found |= strncmp(csv.field[i], text, bytes) == 0 && !csv.field[i][bytes];
	neap__csv_close(&csv);
	return found;
}

/* The column of the second line whose field, a text, is the first one that the table lists. */
static int listed_field(struct neap__csv *csv, const struct neap__label_table *table)
{
	double number;
	if (neap__csv_next(csv) <= 0)
		return -1;
	for (int i = 0; i < csv->fields; i++)
		if (csv->field[i][0] && neap__units_number(&number, csv->field[i]) < 0 &&
			neap__label_table_find(table, csv->field[i]))
			return i;
	return -1;
}

int neap__labels_column(char *room, size_t size, const char *path, const char *labels)
{
	struct neap__label_table table = {0};
	struct neap__csv csv;
	int at = -1;
	if (neap__label_table_read(&table, labels) == 0 && neap__csv_open(&csv, path) == 0) {
		if (neap__csv_next(&csv) > 0)
			at = listed_field(&csv, &table);
		neap__csv_close(&csv);
	}
	neap__label_table_free(&table);
	/* The line with the names of the columns was replaced by a later one. */
	if (at < 0 || neap__csv_open(&csv, path) < 0)
		return 0;
	int found = neap__csv_next(&csv) > 0 && at < csv.fields && csv.field[at][0];
	if (found)
		neap__print(room, size, "%s", csv.field[at]);
	neap__csv_close(&csv);
	return found;
}

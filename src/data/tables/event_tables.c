/* SPDX-License-Identifier: Apache-2.0 */
/* event_tables.c: the command that converts tables of events (event_tables.h). */
#include "data/tables/event_tables.h"
#include "base/print.h"
#include "base/quote.h"
#include "data/event_names.h"
#include "data/names/sort_command.h"
#include "data/recordings.h"
#include "data/tables/csv.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const char *const spike_times[] = {
	"spike_time", "spike_times", "time_s", "t_s", "time_sec", "seconds", NULL};
static const char *const spike_units[] = {"unit", "units", "unit_id", "neuron", "neurons",
	"neuron_id", "neuron_ids", "cell", "cells", "cell_id", "channel", "channels", "channel_id",
	"cluster", "clusters", "cluster_id", "spike_clusters", "electrode", "node_id", "node_ids",
	"sender", "senders", NULL};

/* The first column that goes by one of the names, whatever their case; -1: none. */
static int64_t find_column(const char *const *names, const struct neap__csv *csv)
{
	for (int64_t i = 0; i < csv->fields; i++)
		for (const char *const *k = names; *k; k++)
			if (strcasecmp(*k, csv->field[i]) == 0)
				return i;
	return -1;
}

/*
 * Finds the columns of events in the header that was read, their names as text into `name`: t, x, y
 * and p of a camera, or t and x of spikes, whose channels are whole numbers. The number of columns.
 */
static int find_columns(char name[NEAP__EVENT_COLUMNS][40], struct neap__csv *csv)
{
	int64_t at[NEAP__EVENT_COLUMNS];
	int found = 0;
	for (int c = 0; c < NEAP__EVENT_COLUMNS; c++)
		found += (at[c] = find_column(neap__event_names[c], csv)) >= 0;
	int is_camera = found == NEAP__EVENT_COLUMNS;
	if (!is_camera) {
		if (at[NEAP__EVENT_T] < 0)
			at[NEAP__EVENT_T] = find_column(spike_times, csv);
		at[NEAP__EVENT_X] = find_column(spike_units, csv);
		if (at[NEAP__EVENT_T] < 0 || at[NEAP__EVENT_X] < 0)
			return 0;
	}
	int columns = is_camera ? NEAP__EVENT_COLUMNS : NEAP__SPIKE_COLUMNS;
	for (int c = 0; c < columns; c++)
		neap__print(name[c], sizeof name[c], "%s", csv->field[at[c]]);
	if (is_camera)
		return columns;
	const char *unit = neap__csv_next(csv) > 0 && csv->fields > at[NEAP__EVENT_X]
				   ? csv->field[at[NEAP__EVENT_X]]
				   : "";
	return *unit && !unit[strspn(unit, "0123456789")] ? columns : 0;
}

/*
 * The command for the table `first`, of those in `path`. numpy reads a column of integers as such,
 * and a table of one row without its dimension.
 */
static int print_command(char *room, size_t size, const char *path, const char *first)
{
	static const char *const camera[] = {"t", "x", "y", "p"}, *const spikes[] = {
									  "times", "units"};
	struct neap__csv csv;
	const char *dot = strrchr(first, '.');
	char name[NEAP__EVENT_COLUMNS][40], files[NEAP__QUOTED_BYTES + 60], arrays[400] = "";
	size_t n = 0;
	if (!dot || strlen(dot) != 4 || neap__csv_open(&csv, first) < 0)
		return 0;
	const char *separator = csv.separator == '\t' ? "\\t" : csv.separator == ';' ? ";" : ",";
	int columns = neap__csv_next(&csv) > 0 ? find_columns(name, &csv) : 0;
	neap__csv_close(&csv);
	for (int c = 0; c < columns; c++)
		n += (size_t)neap__print(arrays + n, sizeof arrays - n, ", %s=e[%s]",
			columns == NEAP__SPIKE_COLUMNS ? spikes[c] : camera[c],
			neap__python_quoted(name[c]));
	neap__print(files, sizeof files,
		strcmp(path, first) == 0 ? "[%s]" : "glob.glob(%s '/**/*%s', recursive=True)",
		neap__python_quoted(path), dot);
	if (columns)
		neap__print(room, size,
			"python3 -c \"import glob, numpy, os; [(numpy.savez(f[:-4] + '.npz'%s), "
			"os.rename(f, f + '.old')) for f in %s for e in "
			"[numpy.atleast_1d(numpy.genfromtxt(f, delimiter='%s', names=True, "
			"dtype=None))]]\"",
			arrays, files, separator);
	return columns;
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
	int columns = first ? print_command(room, size, path, first) : 0;
	neap__recordings_free(&all);
	return columns;
}

/* "ev_events.txt" of "ev.txt", quoted. */
static const char *events_named(char room[NEAP__QUOTED_BYTES], const char *path)
{
	neap__print(room, NEAP__QUOTED_BYTES, "%.*s_events.txt", (int)strlen(path) - 4, path);
	return neap__quoted(room);
}

int neap__event_texts_advise(char *room, size_t size, const char *dir)
{
	static const char *const texts[] = {".txt", NULL};
	char name[NEAP__QUOTED_BYTES];
	if (!neap__recordings_folder(dir) && neap__recordings_ends(dir, texts)) {
		neap__print(room, size, "mv %s %s", neap__quoted(dir), events_named(name, dir));
		return 1;
	}
	if (!neap__recordings_folder(dir) || neap__recordings_having(dir, texts) == 0 ||
		neap__recordings_having(dir, neap__sound_endings) +
				neap__recordings_having(dir, neap__event_endings) +
				neap__recordings_having(dir, neap__table_endings) >
			0)
		return 0;
	neap__rename_events(room, size, dir);
	return 1;
}

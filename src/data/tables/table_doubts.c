/* SPDX-License-Identifier: Apache-2.0 */
/* table_doubts.c: warnings about columns that are probably meant otherwise (table.h). */
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"
#include "data/data_doubts.h"
#include "data/event_names.h"
#include "data/tables/event_tables.h"
#include "data/tables/table.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define WARN(t, ...) neap__doubt((t)->options->warn, (t)->options->user, __VA_ARGS__)

/* What --header auto decided, if the first row may be the other kind. */
static void doubt_header(const struct neap__table *t)
{
	double number;
	if (t->options->header)
		return;
	if (t->counts)
		WARN(t,
			"the first line of '%.100s' has consecutive whole numbers and is read as "
			"data. If these are the names of the columns, pass --header yes",
			t->files.file[0].path);
	for (int64_t i = 0; t->header && i < t->columns; i++)
		if (neap__table_number(&number, t->names[i]) == 0) {
			WARN(t,
				"the first line of '%.100s' is read as the names of the columns, "
				"but "
				"its field '%.40s' is a number. If it is data, pass --header no",
				t->files.file[0].path, t->names[i]);
			return;
		}
}

/* A feature by a name of times or counts that rises in each row of every sample. */
static void doubt_time(const struct neap__table *t)
{
	static const char *const names[] = {"time", "timestamp", "timestamps", "t", "ts", "date",
		"index", "idx", "step", "frame", "seconds", "sec", "ms", "us", "epoch", "row",
		"id"};
	for (int64_t i = 0; t->traits && i < t->columns; i++)
		for (size_t k = 0; k < sizeof names / sizeof *names; k++)
			if (t->role[i] == NEAP__COLUMN_FEATURE &&
				!(t->traits[t->place[i]] & NEAP__FALLS) &&
				strncasecmp(t->names[i], names[k], strlen(names[k])) == 0 &&
				!isalpha((unsigned char)t->names[i][strlen(names[k])])) {
				WARN(t,
					"column '%.60s' increases in every row and is read as a "
					"feature. If "
					"it is a time or an index, pass --drop %s to ignore it",
					t->names[i], neap__table_drop(t, t->names[i]));
				break;
			}
}

/* The first column rises in each row of every sample, where columns have no names. */
static void doubt_first(const struct neap__table *t)
{
	enum { LEAST = 6 /* rows of a sample: other numbers rarely ascend as long; chosen */ };
	if (!t->names && t->traits && t->longest >= LEAST && t->columns > 1 &&
		t->role[0] == NEAP__COLUMN_FEATURE && !(t->traits[t->place[0]] & NEAP__FALLS))
		WARN(t,
			"column 1 increases in every row and is read as a feature. If it is a time "
			"or an index, pass --drop %s to ignore it",
			neap__table_drop(t, "1"));
}

/* 1: a name of classes, whatever its case, with what is not a letter behind it. */
static int names_classes(const char *name)
{
	static const char *const names[] = {"label", "labels", "class", "classes", "category",
		"target", "targets", "class_id", "label_id", "classid", "labelid", "cls"};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (strcasecmp(name, names[k]) == 0)
			return 1;
	return 0;
}

/* A feature of whole numbers that is named as classes are, or that is the same in all rows of a
 * sample, where no target is given. */
static void doubt_classes(const struct neap__table *t)
{
	const struct neap_table_options *o = t->options;
	char number[24];
	for (int64_t i = 0; !o->targets && !o->labels && t->traits && i < t->columns; i++) {
		int traits =
			t->role[i] == NEAP__COLUMN_FEATURE ? t->traits[t->place[i]] : NEAP__IS_REAL;
		int is_named = t->names && names_classes(t->names[i]);
		int is_of_samples = o->sample_column && !t->has_single && !(traits & NEAP__VARIES);
		if ((traits & NEAP__IS_REAL) || !(traits & NEAP__DIFFERS) ||
			!(is_named || is_of_samples))
			continue;
		const char *name = neap__table_column(t, i, number);
		WARN(t,
			"column '%.60s' has whole numbers%s and is read as a feature. If it is the "
			"class%s %s",
			name, is_of_samples ? " that are constant in each sample" : "",
			t->named ? ", which the folder or --label gives already, pass --drop"
				 : ", pass --target",
			t->named ? neap__table_drop(t, name) : neap__word(name));
		return;
	}
}

/* What the names of the features show that is probably a mistake. 1: they are events. */
static int doubt_features(const struct neap__table *t)
{
	const char *path = t->files.file[0].path;
	char command[NEAP__DETAIL_BYTES];
	if (!t->names)
		return 0;
	if (!t->names[0][0] && t->role[0] == NEAP__COLUMN_FEATURE)
		WARN(t,
			"the first column of '%.100s' has no name, like the index that pandas "
			"writes, "
			"and is read as a feature. Pass --drop %s to ignore it",
			path, neap__table_drop(t, "1"));
	if (t->features != NEAP__EVENT_COLUMNS && t->features != NEAP__SPIKE_COLUMNS)
		return 0;
	int columns = neap__event_tables_advise(command, sizeof command, t->dir);
	if (columns == 0 || columns != t->features)
		return 0;
	WARN(t,
		"the columns of '%.100s' look like %s, but each row is read as a time step. To "
		"encode events, convert the tables and repeat the command with --force%s: %s",
		path,
		columns == NEAP__SPIKE_COLUMNS ? "times and channels of spikes"
					       : "events of a camera",
		columns == NEAP__SPIKE_COLUMNS ? " --inputs N (the number of channels)" : "",
		command);
	return 1;
}

/* --sample-column with another value in each row, as measurements have. */
static void doubt_samples(const struct neap__table *t)
{
	enum { LEAST = 10 /* samples; chosen */ };
	if (t->options->sample_column && t->longest == 1 && t->samples >= LEAST)
		WARN(t,
			"column '%.60s' of --sample-column differs from row to row, so each sample "
			"has one step. If samples have several rows, pass the column that is the "
			"same in all of them",
			t->options->sample_column);
}

int neap__table_codes(char *line, size_t size, const struct neap__table *t)
{
	int64_t first = 0;
	char number[24], empty[600];
	const struct neap__missing_code *found = NULL;
	int like[8] = {0}, likes = 0;
	for (int64_t i = 0; t->codes && i < t->columns; i++) {
		const struct neap__missing_code *c = &t->codes[t->place[i]];
		if (t->role[i] != NEAP__COLUMN_FEATURE || !neap__missing_codes_is(c) ||
			(found && c->code != found->code))
			continue;
		if (!found)
			first = i;
		found = found ? found : c;
		if (likes < 8)
			like[likes++] = (int)i;
	}
	if (!found)
		return 0;
	neap__table_empty(empty, sizeof empty, t, found->code, like, likes);
	neap__print(line, size,
		"column '%.60s' is %g in %lld of %lld rows, far from its other numbers (%g to %g), "
		"and it is read as a number. If it marks missing values, empty these cells%s: %s",
		neap__table_column(t, first, number), found->code, (long long)found->count,
		(long long)(found->count + found->others), found->least, found->most,
		t->predicts ? ", and encode the table with --missing as the training data"
			    : ", and repeat the command with --missing previous and --force",
		empty);
	return 1;
}

void neap__table_doubt(const struct neap__table *t)
{
	char line[NEAP__DETAIL_BYTES];
	if (!t->options->warn)
		return;
	doubt_header(t);
	if (doubt_features(t))
		return;
	if (t->names && t->longest > 2)
		doubt_time(t);
	doubt_first(t);
	if (neap__table_codes(line, sizeof line, t))
		WARN(t, "%s", line);
	doubt_classes(t);
	doubt_samples(t);
}

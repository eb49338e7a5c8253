/* SPDX-License-Identifier: Apache-2.0 */
/* sample_ids.c: samples of one name, and the commands that tell them apart (sample_ids.h). */
#include "data/tables/sample_ids.h"
#include "data/data_doubts.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SCATTERED                                                                                  \
	"If its rows are scattered, sort them by sample, which keeps their order of time: %s"

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The place of the column of a role in the file that is read, from 0 on; -1: there is none. */
static int64_t place_of(const struct neap__table *t, enum neap__table_column role)
{
	for (int64_t i = 0; i < t->columns; i++)
		if (t->role[i] == role)
			return t->from ? t->from[i] : i;
	return -1;
}

static const char *separator(const struct neap__table *t)
{
	return t->csv.separator == '\t' ? "\\t" : t->csv.separator == ';' ? ";" : ",";
}

/* Perl that changes the names of samples in each line but that of the columns. */
static const char *change_names(char room[NEAP__ROWS_COMMAND], const struct neap__table *t,
	const char *path, const char *change)
{
	const char *sep = separator(t);
	neap__print(room, NEAP__ROWS_COMMAND,
		"perl -i.old -pe 's/\\r?\\n$//; @f = split /%s/, $_, -1; %s%s; $_ = join(\"%s\", "
		"@f) . \"\\n\"' %s",
		sep, change, t->header ? " if $. > 1" : "", sep, neap__quoted(path));
	return room;
}

static const char *add_class(
	char room[NEAP__ROWS_COMMAND], const struct neap__table *t, const char *path)
{
	char change[60];
	neap__print(change, sizeof change, "$f[%lld] .= \"-$f[%lld]\"",
		(long long)place_of(t, NEAP__COLUMN_SAMPLE),
		(long long)place_of(t, NEAP__COLUMN_TARGET));
	return change_names(room, t, path, change);
}

static const char *number_blocks(char room[NEAP__ROWS_COMMAND], const struct neap__table *t)
{
	char change[100];
	long long k = (long long)place_of(t, NEAP__COLUMN_SAMPLE);
	neap__print(change, sizeof change,
		"$n++ if $f[%lld] ne $p; $p = $f[%lld]; $f[%lld] .= \"-$n\"", k, k, k);
	return change_names(room, t, t->csv.path, change);
}

const char *neap__table_sort(char room[NEAP__ROWS_COMMAND], const struct neap__table *t,
	const char *table, int64_t column)
{
	const char *slash = strrchr(table, '/'), *base = slash ? slash + 1 : table;
	const char *out = strcmp(base, "sorted.csv") == 0 ? "by-sample.csv" : "sorted.csv";
	long long k = (long long)place_of(t, NEAP__COLUMN_SAMPLE) + 1;
	long long by = column < 0 ? 0 : (long long)(t->from ? t->from[column] : column) + 1;
	char sort[120];
	const char *path = neap__quoted(table);
	size_t n = (size_t)neap__print(sort, sizeof sort, "LC_ALL=C sort -s -t%s",
		t->csv.separator == '\t'  ? "\"$(printf '\\t')\""
		: t->csv.separator == ';' ? "';'"
					  : ",");
	if (k > 0)
		n += (size_t)neap__print(sort + n, sizeof sort - n, " -k%lld,%lld", k, k);
	if (by > 0)
		neap__print(sort + n, sizeof sort - n, " -k%lld,%lld", by, by);
	if (t->header)
		neap__print(room, NEAP__ROWS_COMMAND, "(head -n 1 %s; tail -n +2 %s | %s) > %s",
			path, path, sort, out);
	else
		neap__print(room, NEAP__ROWS_COMMAND, "%s %s > %s", sort, path, out);
	return room;
}

/* A stable sort by sample: its rows keep their order. */
static const char *sort_rows(char room[NEAP__ROWS_COMMAND], const struct neap__table *t)
{
	return neap__table_sort(room, t, t->csv.path, -1);
}

/* 1: a text in the column of targets is in no other sample than before. Keeps the text, and behind
 * it the sample. */
static int each_target_in_one(
	void **targets, const char *target, const char *sample, int64_t *different)
{
	size_t bytes = strlen(target) + 1;
	char **found = tfind(target, targets, by_text);
	if (found)
		return strcmp(*found + bytes, sample) == 0;
	char *copy = malloc(bytes + strlen(sample) + 1);
	if (!copy)
		return 0;
	memcpy(copy, target, bytes);
	memcpy(copy + bytes, sample, strlen(sample) + 1);
	++*different;
	if (tsearch(copy, targets, by_text))
		return 1;
	free(copy);
	return 0;
}

/*
 * 1: each text in the column of targets is in one block of rows, of two or more on average, and in
 * one of several samples: the columns of samples and of targets are probably swapped. Reads the
 * file.
 */
static int are_swapped(const struct neap__table *t)
{
	int64_t sample = place_of(t, NEAP__COLUMN_SAMPLE),
		target = place_of(t, NEAP__COLUMN_TARGET);
	int64_t different = 0, blocks = 0, rows = 0;
	struct neap__csv csv;
	void *targets = NULL;
	char *above = NULL;
	int several = 0, fits = target >= 0 && t->options->sample_column && t->options->targets;
	int rc = fits ? neap__csv_open(&csv, t->csv.path) : -1, is_open = rc == 0;
	if (rc == 0 && t->header)
		rc = neap__csv_next(&csv);
	while (rc >= 0 && fits && (rc = neap__csv_next(&csv)) > 0 && csv.fields == t->columns) {
		const char *here = csv.field[target];
		blocks += !above || strcmp(above, here) != 0;
		free(above);
		above = strdup(here);
		rows++;
		several |= strcmp(csv.field[sample], t->sample) != 0;
		fits = above && each_target_in_one(&targets, here, csv.field[sample], &different);
	}
	fits &= several && blocks == different && 2 * blocks <= rows;
	free(above);
	tdestroy(targets, free);
	if (is_open)
		neap__csv_close(&csv);
	return fits;
}

/* The line about a sample that is in rows above already, with other samples between; `class` there
 * and `label` here. */
static int refuse_again(const struct neap__table *t, const char *class, const char *label)
{
	char command[NEAP__ROWS_COMMAND], other[NEAP__ROWS_COMMAND];
	double number;

	if (strchr(t->sample, '.') && neap__table_number(&number, t->sample) == 0)
		return neap__table_wrong(t,
			"sample '%.60s' is in rows above already, and is a number with a fraction, "
			"so column '%.60s' of --sample-column probably does not name the samples. "
			"Pass the column that does",
			t->sample, t->options->sample_column);
	if (strcmp(class, label) != 0 && are_swapped(t))
		return neap__table_wrong(t,
			"sample '%.60s' has the class '%.60s' here, but '%.60s' in rows above, "
			"and each class is in one sample and one block of rows, so the two "
			"columns are probably swapped. Pass --sample-column %.60s --target %.60s",
			t->sample, label, class, neap__word(t->options->targets),
			neap__word(t->options->sample_column));
	if (strcmp(class, label) != 0)
		return neap__table_wrong(t,
			"sample '%.60s' has the class '%.60s' here, but '%.60s' in rows above, "
			"with "
			"other samples between. If the names of the samples restart in each "
			"class, add the class to them: %s. " SCATTERED,
			t->sample, label, class, add_class(other, t, t->csv.path),
			sort_rows(command, t));
	return neap__table_wrong(t,
		"sample '%.60s' is in rows above already, with other samples "
		"between. " SCATTERED ". If each block of rows is a different sample, number the "
		"blocks: %s",
		t->sample, sort_rows(command, t), number_blocks(other, t));
}

int neap__sample_ids_see(const struct neap__table *t, void **seen)
{
	const char *label = t->targets == 1 ? t->target[0] : "";
	size_t bytes = strlen(t->sample) + 1;
	char **found = tfind(t->sample, seen, by_text), *copy;

	if (found)
		return refuse_again(t, *found + bytes, label);
	copy = malloc(bytes + strlen(label) + 1);
	if (copy) {
		memcpy(copy, t->sample, bytes);
		memcpy(copy + bytes, label, strlen(label) + 1);
		if (tsearch(copy, seen, by_text))
			return 0;
		free(copy);
	}
	return neap__fail_errno(ENOMEM, "'%s'", t->csv.path);
}

static void forget_runs(struct neap__class_runs *c)
{
	while (c->runs > 0)
		free(c->run[--c->runs]);
}

int neap__class_runs_see(struct neap__class_runs *c, const struct neap__table *t, const char *text)
{
	if (c->unlike)
		return 0;
	if (t->begins) {
		forget_runs(c);
		c->is_counted = 0;
	}
	if (c->runs > 0 && strcmp(c->run[c->runs - 1], text) == 0)
		return 0;
	for (int k = 0; k < c->runs; k++)
		c->unlike |= strcmp(c->run[k], text) == 0;
	c->unlike |= !*text || c->runs == NEAP__RUNS_MOST;
	if (c->unlike)
		return 0;
	if (c->runs > 0 && c->changed == 0) {
		c->path = t->csv.path;
		c->line = t->csv.line;
		neap__print(c->sample, sizeof c->sample, "%s", t->sample);
		neap__print(c->from, sizeof c->from, "%s", c->run[c->runs - 1]);
		neap__print(c->to, sizeof c->to, "%s", text);
	}
	c->changed += c->runs > 0 && !c->is_counted;
	c->is_counted |= c->runs > 0;
	c->run[c->runs] = strdup(text);
	return c->run[c->runs++] ? 0 : -ENOMEM;
}

void neap__class_runs_doubt(
	struct neap__class_runs *c, const struct neap__table *t, int64_t samples)
{
	char command[NEAP__ROWS_COMMAND];
	/* Classes that differ in case alone have a warning of their own. */
	if (c->unlike || c->changed == 0 || strcasecmp(c->from, c->to) == 0)
		return;
	neap__doubt(t->options->warn, t->options->user,
		"in %lld of %lld samples the class changes (the first is '%s', from '%s' "
		"to '%s' "
		"in "
		"'%.120s', line %lld), so the data set has one class per step. If these "
		"rows are "
		"different samples whose names restart in each class, add the class to the "
		"names: %s",
		(long long)c->changed, (long long)samples, c->sample, c->from, c->to, c->path,
		(long long)c->line, add_class(command, t, c->path));
}

void neap__class_runs_free(struct neap__class_runs *c)
{
	forget_runs(c);
}

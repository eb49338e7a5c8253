/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_set.c: a table of text as a data set without targets, for answers of a model. Its numbers
 * are in memory: 8 bytes each, of which the text has two or more.
 */
#include "data/dataset.h"
#include "data/bins.h"
#include "data/tables/sample_ids.h"
#include "data/tables/table.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/print.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct table_set {
	struct neap_dataset set;
	double *value; /* [rows][inputs] */
	int64_t rows;
	int64_t *start; /* [samples] first row of each */
};

static int64_t set_length(const struct neap_dataset *set, int64_t index)
{
	const struct table_set *s = (const struct table_set *)set;
	int64_t end = index + 1 < set->info.samples ? s->start[index + 1] : s->rows;
	return end - s->start[index];
}

static int set_values(
	struct neap_dataset *set, int64_t index, int64_t from, int64_t to, double *values)
{
	const struct table_set *s = (const struct table_set *)set;
	size_t width = (size_t)neap__features(set);
	memcpy(values, s->value + (size_t)(s->start[index] + from) * width,
		(size_t)(to - from) * width * sizeof *values);
	return 0;
}

static int set_read(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer)
{
	(void)index, (void)buffer;
	return neap__fail(NEAP_EUSAGE,
		"'%s' contains numbers, not spikes. Pass --encode to convert them", set->name);
}

static void set_close(struct neap_dataset *set)
{
	free(((struct table_set *)set)->value);
	free(((struct table_set *)set)->start);
}

static const struct neap__dataset_ops ops = {
	.read = set_read, .close = set_close, .length = set_length, .values = set_values};

/* What reading the rows needs in addition to the set. */
struct row_reading {
	int64_t room, starts, names; /* of the lists that grow */
	void *seen;		     /* names of samples */
};

/* The row read last begins a sample. */
static int begin_sample(
	struct table_set *s, const struct neap__table *table, struct row_reading *reading)
{
	int64_t n = s->set.info.samples;

	NEAP_TRY(neap__sample_ids_see(table, &reading->seen));
	if (neap__grow(&s->start, &reading->starts, n + 1, sizeof *s->start) < 0 ||
		neap__grow(&s->set.sample_names, &reading->names, n + 1,
			sizeof *s->set.sample_names) < 0 ||
		!(s->set.sample_names[n] = strdup(table->sample)))
		return neap__fail_errno(ENOMEM, "'%s'", table->dir);
	s->start[n] = s->rows;
	s->set.info.samples++;
	return 0;
}

static int read_rows(struct table_set *s, struct neap__table *table, struct row_reading *reading)
{
	size_t width = (size_t)table->features;
	int rc;

	while ((rc = neap__table_next(table)) > 0) {
		if (table->begins)
			NEAP_TRY(begin_sample(s, table, reading));
		if (s->rows == NEAP__MOST_STEPS)
			return neap__table_wrong(
				table, "the sample has more than 400000000 steps. Split it");
		if (neap__grow(&s->value, &reading->room, s->rows + 1, width * sizeof *s->value) <
			0)
			return neap__fail_errno(ENOMEM, "'%s'", table->dir);
		memcpy(s->value + (size_t)s->rows++ * width, table->value,
			width * sizeof *s->value);
	}
	s->set.info.inputs = table->features;
	for (int64_t i = 0; i < s->set.info.samples; i++) {
		int64_t length = set_length(&s->set, i);
		s->set.info.steps = length > s->set.info.steps ? length : s->set.info.steps;
	}
	return rc;
}

int neap__table_named(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot && (strcasecmp(dot, ".csv") == 0 || strcasecmp(dot, ".tsv") == 0);
}

/* 1: a column that names samples is probably called so. */
static int names_samples(const char *name)
{
	static const char *const names[] = {"sample", "series", "sequence", "seq", "recording",
		"trial", "file", "filename", "subject", "session", "run", "group", "case"};
	size_t n = strlen(name);
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (strcasecmp(name, names[k]) == 0)
			return 1;
	return n >= 2 && strcasecmp(name + n - 2, "id") == 0;
}

/* The first column that is not read and has the same text in most pairs of neighbouring rows, but
 * not in all: names of samples, whose rows are together. -1: none has. */
static int64_t in_blocks(const struct neap__table *t)
{
	enum { ROWS = 2000 /* that are looked at; chosen */ };
	struct neap__csv csv;
	int64_t found = -1, rows = 0, *same = calloc((size_t)t->columns + 1, sizeof *same);
	char **above = calloc((size_t)t->columns + 1, sizeof *above);
	int rc = same && above ? neap__csv_open(&csv, t->files.file[0].path) : -ENOMEM;
	if (rc == 0)
		rc = neap__csv_next(&csv); /* the names */
	while (rc > 0 && rows < ROWS && (rc = neap__csv_next(&csv)) > 0 &&
		csv.fields == t->columns) {
		for (int64_t i = 0; i < t->columns; i++) {
			same[i] += above[i] && strcmp(above[i], csv.field[i]) == 0;
			free(above[i]);
			above[i] = strdup(csv.field[i]);
		}
		rows++;
	}
	for (int64_t i = t->columns - 1; same && i >= 0; i--)
		if (t->role[i] == NEAP__COLUMN_DROPPED && same[i] < rows - 1 && 2 * same[i] >= rows)
			found = i;
	for (int64_t i = 0; above && i < t->columns; i++)
		free(above[i]);
	if (same && above)
		neap__csv_close(&csv);
	free(above);
	free(same);
	return found;
}

/* The column that is not read and probably names the samples, by its name or its rows, and is not
 * `target`; or NULL. */
static const char *find_samples(const struct neap__table *t, const char *target)
{
	for (int64_t i = 0; t->names && i < t->columns; i++)
		if (t->role[i] == NEAP__COLUMN_DROPPED && names_samples(t->names[i]))
			return t->names[i];
	int64_t column = t->names ? in_blocks(t) : -1;
	return column < 0 || (target && strcmp(t->names[column], target) == 0) ? NULL
									       : t->names[column];
}

/* All rows are one sample, although a column that is not read may name several. */
static void advise_samples(
	char ignored[NEAP__TAKEN_TEXT], const struct neap__table *t, const char *column)
{
	size_t n = strlen(ignored);
	char command[NEAP__DETAIL_BYTES];
	neap__table_encoding(command, sizeof command, t, column, NULL);
	if (n < NEAP__TAKEN_TEXT)
		neap__print(ignored + n, NEAP__TAKEN_TEXT - n,
			"; all rows are one sample. If '%.60s' names several samples, encode the "
			"table and %s FILE.h5: %s",
			column, t->meant ? "evaluate" : "predict", command);
}

/* --missing by its name, of those that tables of answers have. */
static enum neap_missing missing_of(const char *name)
{
	return !name			       ? NEAP_MISSING_ERROR
	       : strcmp(name, "previous") == 0 ? NEAP_MISSING_PREVIOUS
	       : strcmp(name, "zero") == 0     ? NEAP_MISSING_ZERO
	       : strcmp(name, "drop") == 0     ? NEAP_MISSING_DROP
					       : NEAP_MISSING_ERROR;
}

/* What a table leaves open, for warnings; `column`: names its samples, or NULL. */
static void take_doubts(struct table_set *s, const struct neap__table *table, const char *column)
{
	char line[NEAP__TAKEN_TEXT];

	if (column)
		s->set.sample_column = strdup(column); /* only for advice */
	if (neap__table_codes(line, sizeof line, table))
		s->set.doubt = strdup(line);
	s->set.filled = table->filled;
	s->set.left_out = table->left_out;
}

int neap__table_set_open(struct neap_dataset **out, const char *path,
	const struct neap__table_choice *choice, char ignored[NEAP__TAKEN_TEXT])
{
	const struct neap_table_options options = {
		.size = sizeof options, .missing = missing_of(choice->missing)};
	struct neap_table_report report = {.size = sizeof report};
	struct row_reading reading = {0};
	struct neap__table table;
	struct table_set *s = calloc(1, sizeof *s);

	ignored[0] = '\0';
	if (!s)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	s->set.ops = &ops;
	s->set.info.values = 1;
	int rc = neap__table_open(&table, path, &options, &report);
	table.predicts = 1;
	table.meant = choice->judges ? choice->target : NULL;
	if (rc == 0 && choice->count > 0)
		rc = neap__table_match(
			&table, choice->names, choice->count, choice->sample, ignored);
	int split = 0; /* 1: a column names the samples */
	for (int64_t i = 0; rc == 0 && i < table.columns; i++)
		split |= table.role[i] == NEAP__COLUMN_SAMPLE;
	if (rc == 0)
		rc = read_rows(s, &table, &reading);
	const char *column = NULL;
	if (rc == 0 && !split && ignored[0] && table.files.count == 1)
		column = find_samples(&table, choice->target);
	if (column)
		advise_samples(ignored, &table, column);
	if (rc == 0)
		take_doubts(s, &table, column);
	tdestroy(reading.seen, free);
	neap__table_close(&table);
	if (rc < 0 || !split) { /* a file is no name that a table gives */
		neap__names_free(s->set.sample_names, (int)s->set.info.samples);
		s->set.sample_names = NULL;
	}
	if (rc < 0) {
		set_close(&s->set);
		free(s);
		return rc;
	}
	*out = &s->set;
	return 0;
}

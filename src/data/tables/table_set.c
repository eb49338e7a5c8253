/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_set.c: a table of text as a data set of one sample without targets, for answers of a model.
 * Its numbers are in memory: 8 bytes each, of which the text has two or more.
 */
#include "data/dataset.h"
#include "data/bins.h"
#include "data/tables/table.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct table_set {
	struct neap_dataset set;
	double *value; /* [rows][inputs] */
	int64_t rows;
};

static int64_t set_length(const struct neap_dataset *set, int64_t index)
{
	(void)index;
	return ((const struct table_set *)set)->rows;
}

static int set_values(
	struct neap_dataset *set, int64_t index, int64_t from, int64_t to, double *values)
{
	size_t width = (size_t)neap__features(set);
	(void)index;
	memcpy(values, ((struct table_set *)set)->value + (size_t)from * width,
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
}

static const struct neap__dataset_ops ops = {
	.read = set_read, .close = set_close, .length = set_length, .values = set_values};

static int read_rows(struct table_set *s, struct neap__table *table)
{
	size_t width = (size_t)table->features;
	int64_t room = 0;
	int rc;

	while ((rc = neap__table_next(table)) > 0) {
		if (s->rows == NEAP__MOST_STEPS)
			return neap__table_wrong(
				table, "the sample has more than 400000000 steps. Split it");
		if (neap__grow(&s->value, &room, s->rows + 1, width * sizeof *s->value) < 0)
			return neap__fail_errno(ENOMEM, "'%s'", table->dir);
		memcpy(s->value + (size_t)s->rows++ * width, table->value,
			width * sizeof *s->value);
	}
	s->set.info.inputs = table->features;
	s->set.info.steps = s->rows;
	return rc;
}

int neap__table_named(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot && (strcasecmp(dot, ".csv") == 0 || strcasecmp(dot, ".tsv") == 0);
}

int neap__table_set_open(struct neap_dataset **out, const char *path, const char *const *names,
	int count, char ignored[NEAP__TAKEN_TEXT])
{
	const struct neap_table_options options = {.size = sizeof options};
	struct neap_table_report report = {.size = sizeof report};
	struct neap__table table;
	struct table_set *s = calloc(1, sizeof *s);

	ignored[0] = '\0';
	if (!s)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	s->set.ops = &ops;
	s->set.info.samples = s->set.info.values = 1;
	int rc = neap__table_open(&table, path, &options, &report);
	table.predicts = 1;
	if (rc == 0 && count > 0)
		rc = neap__table_match(&table, names, count, ignored);
	if (rc == 0)
		rc = read_rows(s, &table);
	neap__table_close(&table);
	if (rc < 0) {
		set_close(&s->set);
		free(s);
		return rc;
	}
	*out = &s->set;
	return 0;
}

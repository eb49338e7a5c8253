/* SPDX-License-Identifier: Apache-2.0 */
/* label_table.c: reads and finds targets of samples (label_table.h). */
#include "data/tables/label_table.h"
#include "data/tables/csv.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/print.h"

enum { MOST_TARGETS = 65535 };

static int by_sample(const void *a, const void *b)
{
	const struct neap__label_row *x = a, *y = b;
	return strcmp(x->sample, y->sample);
}

static int add_row(struct neap__label_table *table, const struct neap__csv *csv)
{
	if (neap__grow(&table->row, &table->room, table->count + 1, sizeof *table->row) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", csv->path);
	struct neap__label_row *row = &table->row[table->count];
	row->line = csv->line;
	row->sample = malloc((size_t)csv->length);
	row->target = calloc((size_t)csv->fields, sizeof *row->target);
	if (!row->sample || !row->target) {
		free(row->sample);
		free(row->target);
		return neap__fail_errno(ENOMEM, "'%s'", csv->path);
	}
	table->count++;
	memcpy(row->sample, csv->text, (size_t)csv->length);
	for (int64_t i = 1; i < csv->fields; i++)
		row->target[i - 1] = row->sample + csv->start[i];
	return 0;
}

static int read_rows(struct neap__label_table *table, struct neap__csv *csv)
{
	int rc;
	while ((rc = neap__csv_next(csv)) > 0) {
		if (csv->fields < 2 || csv->fields - 1 > MOST_TARGETS ||
			(table->count && csv->fields - 1 != table->targets))
			return neap__fail(NEAP_EFORMAT,
				"'%s', line %lld has %lld fields; each line must have the name of "
				"a sample and the same number of targets",
				csv->path, (long long)csv->line, (long long)csv->fields);
		table->targets = (int)csv->fields - 1;
		NEAP_TRY(add_row(table, csv));
	}
	return rc;
}

int neap__label_table_read(struct neap__label_table *table, const char *path)
{
	struct neap__csv csv;
	int rc = neap__csv_open(&csv, path);
	if (rc == 0)
		rc = read_rows(table, &csv);
	neap__csv_close(&csv);
	NEAP_TRY(rc);
	if (table->count == 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has no rows. Write the name of a sample and its target per line",
			path);
	qsort(table->row, (size_t)table->count, sizeof *table->row, by_sample);
	for (int64_t i = 1; i < table->count; i++)
		if (strcmp(table->row[i].sample, table->row[i - 1].sample) == 0)
			return neap__fail(NEAP_EFORMAT,
				"'%s': sample '%.100s' is in lines %lld and %lld. Remove one of "
				"them; if '%.100s' is a class, swap the columns: the name of the "
				"sample comes first",
				path, table->row[i].sample, (long long)table->row[i - 1].line,
				(long long)table->row[i].line, table->row[i].sample);
	return 0;
}

/* The number of the column whose name is the first `bytes` of `name`; -1: there is none. */
static int find_column(const struct neap__label_table *table, const struct neap__label_row *names,
	const char *name, size_t bytes)
{
	for (int k = 0; names && k < table->targets; k++)
		if (strncmp(names->target[k], name, bytes) == 0 && !names->target[k][bytes])
			return k;
	return -1;
}

static int no_column(const struct neap__label_table *table, const struct neap__label_row *names,
	const char *path, const char *name, size_t bytes, const char *data)
{
	char list[200] = "";
	size_t n = 0;
	for (int k = 0; names && k < table->targets && n < sizeof list; k++)
		n += (size_t)neap__print(
			list + n, sizeof list - n, "%s'%s'", k ? ", " : "", names->target[k]);
	return neap__fail(NEAP_EUSAGE,
		"--target: the table '%s' of --labels has no column '%.*s'; its first line has %s. "
		"Write the name of a column%s, remove --target to use all its columns, or remove "
		"--labels if '%.*s' is a column of '%s'",
		path, (int)bytes, name, n ? list : "no names", n ? "" : " there", (int)bytes, name,
		data);
}

int neap__label_table_select(
	struct neap__label_table *table, const char *path, const char *names, const char *data)
{
	const struct neap__label_row *first = NULL;
	int *column = calloc(strlen(names) + 1, sizeof *column), count = 0, rc = 0;
	const char **kept = calloc(strlen(names) + 1, sizeof *kept);
	for (int64_t i = 0; i < table->count && !first; i++)
		first = table->row[i].line == 1 ? &table->row[i] : NULL;
	if (!column || !kept)
		rc = neap__fail_errno(ENOMEM, "'%s'", path);
	for (const char *name = names; rc == 0 && name; count++) {
		size_t bytes = strcspn(name, ",");
		column[count] = find_column(table, first, name, bytes);
		if (column[count] < 0)
			rc = no_column(table, first, path, name, bytes, data);
		name = name[bytes] ? name + bytes + 1 : NULL;
	}
	/* A column that is named twice needs more room than a row may have. */
	if (rc == 0 && count > table->targets)
		rc = neap__fail(NEAP_EUSAGE,
			"--target '%s' has %d names, more than the %d columns of targets in '%s'. "
			"Name each of them once",
			names, count, table->targets, path);
	for (int64_t i = 0; rc == 0 && i < table->count; i++) {
		for (int k = 0; k < count; k++)
			kept[k] = table->row[i].target[column[k]];
		memcpy(table->row[i].target, kept, (size_t)count * sizeof *kept);
	}
	if (rc == 0)
		table->targets = count;
	free(column);
	free(kept);
	return rc;
}

const char *neap__label_table_example(const struct neap__label_table *table)
{
	static const char of_names[] = "0123456789.";
	const struct neap__label_row *row = table->row; /* sorted by name */
	/* Most names of samples have digits or an extension, and headings have none. */
	int headed = table->count > 1 && row->line == 1 && !strpbrk(row->sample, of_names) &&
		     strpbrk(row[1].sample, of_names);
	return row[headed].sample;
}

void neap__label_table_free(struct neap__label_table *table)
{
	for (int64_t i = 0; i < table->count; i++) {
		free(table->row[i].sample);
		free(table->row[i].target);
	}
	free(table->row);
	*table = (struct neap__label_table){0};
}

static const struct neap__label_row *find(const struct neap__label_table *table, char *name)
{
	const struct neap__label_row key = {.sample = name};
	return bsearch(&key, table->row, (size_t)table->count, sizeof key, by_sample);
}

const struct neap__label_row *neap__label_table_find(
	const struct neap__label_table *table, const char *sample)
{
	char *name = strdup(sample), *slash = name ? strrchr(name, '/') : NULL;
	char *last = slash ? slash + 1 : name, *dot = name ? strrchr(last, '.') : NULL;
	const struct neap__label_row *row = NULL;
	if (!name)
		return NULL;
	if (!(row = find(table, name)))
		row = find(table, last);
	if (!row && dot) {
		*dot = '\0';
		if (!(row = find(table, name)))
			row = find(table, last);
	}
	free(name);
	return row;
}

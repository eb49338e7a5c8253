/* SPDX-License-Identifier: Apache-2.0 */
/* table.c: columns by their names, rows of several files in one sequence (table.h). */
#include "data/tables/table.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/units.h"
#include "data/names/name_list.h"

#include <errno.h>
#include <math.h>
#include <search.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FEATURES = 65536, MOST_ORDERED = 4096 /* columns: their search is quadratic */ };

int neap__table_number(double *number, const char *text)
{
	return neap__units_number(number, text);
}

static int no_memory(const struct neap__table *t)
{
	return neap__fail_errno(ENOMEM, "'%s'", t->dir);
}

int neap__table_wrong(const struct neap__table *t, const char *format, ...)
{
	char room[NEAP__DETAIL_BYTES];
	va_list args;
	va_start(args, format);
	neap__vprint(room, sizeof room, format, args);
	va_end(args);
	return neap__fail(
		NEAP_EFORMAT, "'%s', line %lld: %s", t->csv.path, (long long)t->csv.line, room);
}

static int find_files(struct neap__table *t, struct neap_table_report *report)
{
	const struct neap_table_options *o = t->options;
	struct neap__name_list split = {0}, without = {0};
	struct neap__recordings_choice choice = {.label = o->label,
		.endings = neap__table_endings,
		.only = o->nsplit ? &split : NULL,
		.without = o->nwithout ? &without : NULL,
		.apart = o->labels,
		.classes = o->classes,
		.nclasses = o->nclasses,
		.nameless = !t->named,
		.strict = o->strict,
		.lines = &neap__recordings_lines};
	int rc = o->nsplit ? neap__name_list_read(&split, o->split, o->nsplit) : 0;
	if (rc == 0 && o->nwithout)
		rc = neap__name_list_read(&without, o->without, o->nwithout);
	if (rc == 0)
		rc = neap__recordings_find(&t->files, t->dir, &choice);
	neap__name_list_free(&split);
	neap__name_list_free(&without);
	report->files = t->files.count;
	report->others = choice.others;
	memcpy(report->other, choice.other, sizeof report->other);
	report->strangers = choice.strangers;
	report->unlisted = choice.unlisted;
	return rc;
}

/* The number of a column that `text` of `bytes` names, -1: of none. One without a name has its
 * number. */
static int64_t column_of(const struct neap__table *t, const char *text, size_t bytes)
{
	char room[24] = "";
	int64_t number;
	for (int64_t i = 0; t->names && i < t->columns; i++)
		if (strlen(t->names[i]) == bytes && memcmp(t->names[i], text, bytes) == 0)
			return i;
	if (bytes >= sizeof room)
		return -1;
	memcpy(room, text, bytes);
	if (room[strspn(room, "0123456789")] != '\0' || neap__units_count(&number, room) < 0 ||
		number < 1 || number > t->columns || (t->names && t->names[number - 1][0]))
		return -1;
	return number - 1;
}

const char *neap__table_list(char *room, size_t size, const char *const *names, int64_t count)
{
	enum { SHOWN = 8 };
	size_t n = 0;
	for (int64_t i = 0; i < count && i < SHOWN && n < size; i++)
		n += (size_t)neap__print(room + n, size - n, "%s%.30s", i ? ", " : "", names[i]);
	if (count > SHOWN && n < size)
		neap__print(room + n, size - n, ", ...");
	return room;
}

/* Gives columns a role: a list of names with commas between, or one name. */
static int assign(
	struct neap__table *t, const char *list, enum neap__table_column role, const char *option)
{
	for (const char *at = list; at;) {
		const char *end = strchr(at, ',');
		size_t bytes = end ? (size_t)(end - at) : strlen(at);
		if (at == list && column_of(t, list, strlen(list)) >= 0) {
			bytes = strlen(list);
			end = NULL;
		}
		int64_t column = column_of(t, at, bytes);
		if (column < 0)
			return neap__table_no_column(
				t, option, (int)(bytes < 100 ? bytes : 100), at);
		if (t->role[column] != NEAP__COLUMN_FEATURE)
			return neap__fail(NEAP_EUSAGE,
				"%s: column '%.*s' is given twice. Remove one of them", option,
				(int)(bytes < 100 ? bytes : 100), at);
		t->role[column] = role;
		t->place[column] = role == NEAP__COLUMN_TARGET ? t->targets++ : 0;
		at = end ? end + 1 : NULL;
	}
	return 0;
}

/* Whether the row read last names the columns. */
static int is_header(const struct neap__table *t)
{
	double number;
	if (t->options->header)
		return t->options->header > 0;
	for (int64_t i = 0; i < t->csv.fields; i++)
		if (neap__table_number(&number, t->csv.field[i]) < 0)
			return 1;
	return 0;
}

/* Whether the fields of the first row count from `first`, as names that pandas gives columns do. */
static int counts_from(const struct neap__table *t, double first)
{
	double number;
	for (int64_t i = 0; i < t->csv.fields; i++)
		if (neap__table_number(&number, t->csv.field[i]) < 0 || number != first + (double)i)
			return 0;
	return t->csv.fields > 1;
}

static int keep_names(struct neap__table *t)
{
	t->names = calloc((size_t)t->columns + 1, sizeof *t->names);
	if (!t->names)
		return no_memory(t);
	for (int64_t i = 0; i < t->columns; i++)
		if (!(t->names[i] = strdup(t->csv.field[i])))
			return no_memory(t);
	return 0;
}

/* The file of `path` has no row; `is_left_out`: for none is complete. */
static int no_rows(const char *path, int is_left_out)
{
	if (is_left_out)
		return neap__fail(NEAP_EFORMAT,
			"'%s': every row has a missing value, so --missing leaves none. Leave the "
			"file out, pass --missing zero, or ignore an empty column with --drop",
			path);
	return neap__fail(NEAP_EFORMAT,
		"'%s' has no rows. Write one row per time step into it, or leave the file out",
		path);
}

/* Checks that at most one column names the samples. */
static int check_ids(const struct neap__table *t)
{
	int ids = 0;

	for (int64_t i = 0; i < t->columns; i++)
		ids += t->role[i] == NEAP__COLUMN_SAMPLE;
	if (ids < 2)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"--sample-column: '%s' are %d columns, but one names the samples. Add a column "
		"to the table that joins them, such as P1-2, and pass its name; --drop ignores "
		"the others",
		t->options->sample_column, ids);
}

/* Checks the number of features. */
static int check_features(const struct neap__table *t)
{
	char advice[NEAP__DETAIL_BYTES];

	if (t->features < 1 && t->files.count > 1 && neap__table_of_texts(advice, sizeof advice, t))
		return neap__fail(
			NEAP_EFORMAT, "'%s' has no columns of features. %s", t->csv.path, advice);
	if (t->features < 1 || t->features > MOST_FEATURES)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has %d columns of features; there must be between 1 and 65536. Check "
			"--target, --sample-column and --drop",
			t->csv.path, t->features);
	return 0;
}

/* Finds what the columns are from the first row of the first file. */
static int find_columns(struct neap__table *t)
{
	const struct neap_table_options *o = t->options;
	int rc = neap__csv_open(&t->csv, t->files.file[0].path);
	if (rc == 0)
		rc = neap__csv_next(&t->csv);
	if (rc <= 0)
		return rc < 0 ? rc : no_rows(t->files.file[0].path, 0);
	t->columns = t->csv.fields;
	t->separator = t->csv.separator;
	t->header = is_header(t);
	t->role = calloc((size_t)t->columns + 1, sizeof *t->role);
	t->place = calloc((size_t)t->columns + 1, sizeof *t->place);
	if (!t->role || !t->place)
		return no_memory(t);
	if (t->header)
		NEAP_TRY(keep_names(t));
	NEAP_TRY(assign(t, o->sample_column, NEAP__COLUMN_SAMPLE, "--sample-column"));
	NEAP_TRY(check_ids(t));
	NEAP_TRY(assign(t, o->targets, NEAP__COLUMN_TARGET, "--target"));
	NEAP_TRY(assign(t, o->dropped, NEAP__COLUMN_DROPPED, "--drop"));
	for (int64_t i = 0; i < t->columns; i++)
		if (t->role[i] == NEAP__COLUMN_FEATURE)
			t->place[i] = t->features++;
	NEAP_TRY(check_features(t));
	t->counts = !t->header && (counts_from(t, 0) || counts_from(t, 1));
	t->value = calloc((size_t)t->features, sizeof *t->value);
	t->target = calloc((size_t)t->targets + 1, sizeof *t->target);
	t->traits = calloc((size_t)t->features, 1);
	t->above = calloc((size_t)t->features, sizeof *t->above);
	t->codes = calloc((size_t)t->features, sizeof *t->codes);
	return t->value && t->target && t->traits && t->above && t->codes ? 0 : no_memory(t);
}

int neap__table_open(struct neap__table *t, const char *path,
	const struct neap_table_options *options, struct neap_table_report *report)
{
	*t = (struct neap__table){.options = options, .dir = path, .file = -1};
	t->named = options->label ||
		   (neap__recordings_folder(path) && !options->targets && !options->labels);
	NEAP_TRY(find_files(t, report));
	NEAP_TRY(find_columns(t));
	neap__table_rewind(t);
	return 0;
}

/* A name of a feature and its number; `used`: columns that took a name equal to this first one. */
struct feature_name {
	const char *name;
	int number, used;
};

static int by_feature(const void *a, const void *b)
{
	const struct feature_name *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* The first feature of that name that no column took yet; -1: none. Names are sorted. */
static int name_of(const char *column, struct feature_name *names, int count)
{
	int low = 0, high = count;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (strcmp(names[middle].name, column) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == count)
		return -1;
	int at = low + names[low].used;
	if (at >= count || strcmp(names[at].name, column) != 0)
		return -1;
	names[low].used++;
	return names[at].number;
}

static int match_names(struct neap__table *t, const char *const *names, int count,
	const char *sample, unsigned char *taken, char ignored[NEAP__TAKEN_TEXT])
{
	size_t n = 0;
	char advice[NEAP__DETAIL_BYTES];
	const char *samples = sample;
	struct feature_name *sorted = calloc((size_t)count + 1, sizeof *sorted);
	if (!sorted)
		return no_memory(t);
	for (int k = 0; k < count; k++)
		sorted[k] = (struct feature_name){names[k], k, 0};
	qsort(sorted, (size_t)count, sizeof *sorted, by_feature);
	for (int64_t i = 0; i < t->columns; i++) {
		int k = name_of(t->names[i], sorted, count);
		int names_samples = k < 0 && sample && strcmp(sample, t->names[i]) == 0;
		t->role[i] = names_samples ? NEAP__COLUMN_SAMPLE
			     : k < 0	   ? NEAP__COLUMN_DROPPED
					   : NEAP__COLUMN_FEATURE;
		t->place[i] = k < 0 ? 0 : k;
		if (names_samples)
			sample = NULL; /* the first of this name */
		else if (k >= 0)
			taken[k] = 1;
		else if (n < NEAP__TAKEN_TEXT)
			n += (size_t)neap__print(ignored + n, NEAP__TAKEN_TEXT - n, "%s'%.60s'",
				n ? ", " : "", t->names[i]);
	}
	free(sorted);
	for (int k = 0; k < count; k++)
		if (!taken[k] && neap__table_data_name(t))
			return neap__table_unnamed(t, names, count, samples);
		else if (!taken[k])
			return neap__fail(NEAP_EUSAGE,
				"'%s' has no column '%.60s', which is one of the %d features that "
				"the model was trained on. %s",
				t->dir, names[k], count,
				neap__table_separation(advice, sizeof advice, t)
					? advice
					: "Add the column, or correct its name in the first line");
	return 0;
}

int neap__table_match(struct neap__table *t, const char *const *names, int count,
	const char *sample, char ignored[NEAP__TAKEN_TEXT])
{
	unsigned char *taken = calloc((size_t)count + 1, 1);
	double *value = calloc((size_t)count + 1, sizeof *value);
	int rc = taken && value ? 0 : no_memory(t);

	if (rc == 0 && t->names)
		rc = match_names(t, names, count, sample, taken, ignored);
	else if (rc == 0 && t->columns != count)
		rc = neap__table_unnamed(t, names, count, sample);
	free(taken);
	free(t->codes); /* of other features */
	t->codes = rc < 0 ? NULL : calloc((size_t)count + 1, sizeof *t->codes);
	if (rc == 0 && !t->codes)
		rc = no_memory(t);
	if (rc < 0) {
		free(value);
		return rc;
	}
	free(t->value);
	free(t->traits);
	t->traits = NULL;
	t->value = value;
	t->features = count;
	return 0;
}

static void forget_order(struct neap__table *t)
{
	free(t->from);
	free(t->field);
	t->from = NULL;
	t->field = NULL;
}

void neap__table_rewind(struct neap__table *t)
{
	neap__csv_close(&t->csv);
	forget_order(t);
	t->file = -1;
	free(t->last);
	t->last = NULL;
	if (t->codes)
		memset(t->codes, 0, (size_t)t->features * sizeof *t->codes);
}

/* Finds columns that are in another order than in the first file by their names: 1 or a code. */
static int order_columns(struct neap__table *t)
{
	int64_t i = 0, k = 0, n = t->columns;
	int fits = t->csv.fields == n && n <= MOST_ORDERED;
	char **field = t->csv.field;
	t->from = calloc((size_t)n, sizeof *t->from);
	t->field = calloc((size_t)n, sizeof *t->field);
	if (!t->from || !t->field)
		return no_memory(t);
	for (; fits && i < n; i++) {
		for (k = 0; k < n && (!field[k] || strcmp(field[k], t->names[i]) != 0);)
			k++;
		if (!(fits = k < n))
			break;
		t->from[i] = k;
		field[k] = NULL; /* taken: a later column may have the same name */
	}
	char advice[NEAP__DETAIL_BYTES];
	if (!fits && !t->predicts && t->options->header == 0 &&
		neap__table_of_texts(advice, sizeof advice, t))
		return neap__table_wrong(t, "'%.100s' has other names of columns. %s",
			t->files.file[0].path, advice);
	return fits ? 1
		    : neap__table_wrong(t,
			      "%s%.60s%s differ from those of '%.100s'. Use the same columns in "
			      "all files, or move the file to another folder%s",
			      i < n && k == n ? "there is no column '" : "",
			      i < n && k == n ? t->names[i] : "",
			      i < n && k == n ? "', so the names of the columns"
					      : "the names of the columns",
			      t->files.file[0].path,
			      t->options->header
				      ? ""
				      : "; if the first lines are data, pass --header no");
}

/* Opens the next file and passes its header: 1, or 0 behind the last. */
static int next_file(struct neap__table *t)
{
	if (t->file + 1 == t->files.count)
		return 0;
	neap__csv_close(&t->csv);
	free(t->last);
	t->last = NULL;
	forget_order(t);
	t->file++;
	NEAP_TRY(neap__csv_open(&t->csv, t->files.file[t->file].path));
	if (!t->header)
		return 1;
	int rc = neap__csv_next(&t->csv);
	if (rc <= 0)
		return rc < 0 ? rc : no_rows(t->csv.path, 0);
	int same = t->csv.fields == t->columns;
	for (int64_t i = 0; same && t->options->header == 0 && i < t->columns; i++)
		same = strcmp(t->csv.field[i], t->names[i]) == 0;
	return same ? 1 : order_columns(t);
}

const char *neap__table_column(const struct neap__table *t, int64_t column, char room[24])
{
	if (t->names && t->names[column][0])
		return t->names[column];
	neap__print(room, 24, "%lld", (long long)column + 1);
	return room;
}

/* 1: the value is there or filled in; 0: the row is to be left out; or a negative code. */
static int take_value(struct neap__table *t, int64_t column, const char *text)
{
	const char *name;
	char number[24], advice[NEAP__DETAIL_BYTES], shown[100];
	double *value = &t->value[t->place[column]];
	enum neap_missing missing = t->options->missing;
	if (neap__table_number(value, text) == 0)
		return 1;
	if (missing && neap__table_is_gap(text)) {
		if (missing == NEAP_MISSING_DROP || (missing == NEAP_MISSING_PREVIOUS && t->begins))
			return 0;
		*value = missing == NEAP_MISSING_ZERO ? 0 : t->above[t->place[column]];
		t->filled++;
		return 1;
	}
	name = neap__table_column(t, column, number);
	neap__print(shown, sizeof shown, "%s", text); /* counting gaps reads on */
	text = shown;
	neap__table_advise(advice, sizeof advice, t, name, text);
	if (!*text)
		return neap__table_wrong(t, "column '%.60s' is empty. %s", name, advice);
	return neap__table_wrong(t, "column '%.60s' is '%.60s', which is not a finite number. %s",
		name, text, advice);
}

/* What the values of the features are like, as far as they were read. */
static void see_values(struct neap__table *t)
{
	int is_first = t->longest == 0;
	t->has_single |= t->begins && t->run == 1;
	t->run = t->begins ? 1 : t->run + 1;
	t->samples += t->begins;
	t->longest = t->run > t->longest ? t->run : t->longest;
	neap__missing_codes_see(t->codes, t->value, t->features);
	for (int i = 0; t->traits && i < t->features; i++) {
		double x = t->value[i], above = t->above[i];
		if (!t->begins && !(x > above))
			t->traits[i] |= NEAP__FALLS;
		if (!t->begins && x != above)
			t->traits[i] |= NEAP__VARIES;
		if (!is_first && x != above)
			t->traits[i] |= NEAP__DIFFERS;
		if (!(x == floor(x) && fabs(x) <= NEAP__CLASS_MOST))
			t->traits[i] |= NEAP__IS_REAL;
		t->above[i] = x;
	}
}

/* 1, 0 for a row that is left out, or a negative code. */
static int take_row(struct neap__table *t)
{
	const char *sample = NULL;
	if (t->csv.fields != t->columns)
		return neap__table_wrong(t,
			"has %lld fields, but the first row has %lld. Correct the line",
			(long long)t->csv.fields, (long long)t->columns);
	for (int64_t i = 0; t->from && i < t->columns; i++)
		t->field[i] = t->csv.field[t->from[i]];
	char *const *field = t->from ? t->field : t->csv.field;
	int64_t filled = t->filled;
	for (int64_t i = 0; i < t->columns; i++)
		if (t->role[i] == NEAP__COLUMN_TARGET)
			t->target[t->place[i]] = field[i];
		else if (t->role[i] == NEAP__COLUMN_SAMPLE)
			sample = field[i];
	if (!sample)
		sample = neap__recordings_below(t->csv.path, t->dir);
	t->begins = !t->last || strcmp(t->last, sample) != 0;
	int rc = 1;
	for (int64_t i = 0; i < t->columns; i++) {
		if (t->role[i] == NEAP__COLUMN_FEATURE)
			NEAP_TRY(rc = take_value(t, i, field[i]));
		if (rc == 0) {
			t->filled = filled;
			t->left_out++;
			return t->leave ? t->leave(t->user, sample) : 0;
		}
	}
	if (!*sample)
		return neap__table_wrong(t, "the column of --sample-column is empty. Fill it in");
	if (t->begins) {
		free(t->last);
		t->last = strdup(sample);
	}
	t->sample = t->last;
	see_values(t);
	return t->last ? 1 : no_memory(t);
}

int neap__table_next(struct neap__table *t)
{
	int rc;
	do {
		rc = t->file < 0 ? 0 : neap__csv_next(&t->csv);
		while (rc == 0) {
			if (t->file >= 0 && !t->last)
				return no_rows(t->csv.path, t->left_out > 0);
			rc = next_file(t);
			if (rc <= 0)
				return rc;
			rc = neap__csv_next(&t->csv);
		}
		NEAP_TRY(rc);
		rc = take_row(t);
	} while (rc == 0);
	return rc;
}

void neap__table_close(struct neap__table *t)
{
	neap__table_rewind(t);
	for (int64_t i = 0; t->names && i < t->columns; i++)
		free(t->names[i]);
	free(t->names);
	free(t->role);
	free(t->place);
	free(t->value);
	free(t->traits);
	free(t->above);
	free(t->codes);
	free(t->target);
	neap__recordings_free(&t->files);
}

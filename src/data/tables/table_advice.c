/* SPDX-License-Identifier: Apache-2.0 */
/* table_advice.c: what to do about a field that is not a number, or a first line (table.h). */
#include "data/tables/table.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* Numbers above a cell that is none: the line is wrong, not the column. */
static int has_numbers_above(const struct neap__table *t)
{
	return t->file > 0 || t->csv.line > 1 + t->header;
}

/* 1: a number that is written with a decimal comma. */
static int has_comma(const char *text)
{
	char room[40];
	double number;
	neap__print(room, sizeof room, "%.39s", text);
	char *comma = strchr(room, ',');
	if (!comma)
		return 0;
	*comma = '.';
	return neap__table_number(&number, room) == 0;
}

/* 1: a number with a percent sign. */
static int is_percent(const char *text)
{
	char room[40];
	double number;
	size_t n = strlen(text);
	if (n < 2 || n >= sizeof room || text[n - 1] != '%')
		return 0;
	neap__print(room, sizeof room, "%.*s", (int)(n - 1), text);
	return neap__table_number(&number, room) == 0;
}

/* 1: a number whose thousands have commas or blanks between them. */
static int has_thousands(const char *text)
{
	char room[40];
	double number;
	size_t n = 0;
	for (const char *at = text; *at && n < sizeof room - 1; at++)
		if (*at == ' ' && (strspn(at + 1, "0123456789") != 3 || at == text))
			return 0;
		else if (!strchr(", ", *at))
			room[n++] = *at;
	room[n] = '\0';
	return text[strcspn(text, ", ")] && neap__table_number(&number, room) == 0;
}

static int is_truth(const char *text)
{
	return strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0;
}

/* Gaps of features in the file that is read. */
static int64_t count_gaps(const struct neap__table *t)
{
	struct neap__csv csv;
	int64_t gaps = 0;
	int rc = neap__csv_open(&csv, t->csv.path);
	if (rc == 0 && t->header)
		rc = neap__csv_next(&csv);
	while (rc >= 0 && neap__csv_next(&csv) > 0 && csv.fields == t->columns)
		for (int64_t i = 0; i < t->columns; i++)
			gaps += t->role[i] == NEAP__COLUMN_FEATURE &&
				neap__table_is_gap(csv.field[t->from ? t->from[i] : i]);
	neap__csv_close(&csv);
	return gaps;
}

/* The command that runs `program` on the tables, which stay as NAME.old. */
static size_t on_all(char *room, size_t size, const struct neap__table *t, const char *program)
{
	const char *dot = strrchr(t->files.file[0].path, '.'), *path = neap__quoted(t->dir);
	if (!neap__recordings_folder(t->dir))
		return (size_t)neap__print(room, size, "%s %s", program, path);
	return (size_t)neap__print(
		room, size, "find %s -name '*%s' -exec %s {} +", path, dot ? dot : "", program);
}

const char *neap__table_drop(const struct neap__table *t, const char *name)
{
	const char *dropped = t->options->dropped;
	char list[700];
	neap__print(list, sizeof list, "%s%s%s", dropped ? dropped : "", dropped ? "," : "", name);
	return neap__word(list);
}

void neap__table_encoding(char *room, size_t size, const struct neap__table *t, const char *sample,
	const char *missing)
{
	struct neap__text to = {0}, drop = {0};
	neap__text_add(&to, "neap encode %s", neap__quoted(t->dir));
	for (int64_t i = 0; t->names && i < t->columns; i++)
		if (t->role[i] == NEAP__COLUMN_SAMPLE)
			sample = t->names[i];
	for (int64_t i = 0; t->names && i < t->columns; i++)
		if (t->role[i] == NEAP__COLUMN_DROPPED &&
			(!sample || strcmp(sample, t->names[i])) &&
			(!t->meant || strcmp(t->meant, t->names[i])))
			neap__text_add(&drop, "%s%s", drop.length ? "," : "", t->names[i]);
	if (missing)
		neap__text_add(&to, " --missing %s", missing);
	if (sample)
		neap__text_add(&to, " --sample-column %s", neap__word(sample));
	if (t->meant)
		neap__text_add(&to, " --target %s", neap__word(t->meant));
	if (drop.length)
		neap__text_add(&to, " --drop %s", neap__word(drop.data));
	neap__print(room, size, "%s --out FILE.h5", to.data ? to.data : "neap encode");
	neap__text_free(&to);
	neap__text_free(&drop);
}

/* What to do about a missing value; predict has no option for it. */
static void advise_gaps(char *room, size_t size, const struct neap__table *t, const char *name)
{
	long long gaps = count_gaps(t);
	char has[60], command[NEAP__DETAIL_BYTES];
	neap__print(has, sizeof has, "The file has %lld such cell%s", gaps, gaps == 1 ? "" : "s");
	neap__table_encoding(command, sizeof command, t, NULL, "previous");
	if (t->predicts)
		neap__print(room, size,
			"%s. Fill it in, or encode the table with --missing, as the training data "
			"if that had missing values, and %s FILE.h5: %s",
			has, t->meant ? "evaluate" : "predict", command);
	else
		neap__print(room, size,
			"%s. Fill it in, remove the row, pass --missing previous to repeat the "
			"value of the row "
			"above, zero or drop to leave such rows out, or pass --drop %s to ignore "
			"the column",
			has, neap__table_drop(t, name));
}

/*
 * Whether the row read last names the columns: one of its fields is not a number, but the field
 * below it is. Reads on, but keeps the line.
 */
static int has_names(struct neap__table *t)
{
	double number;
	int64_t fields = t->csv.fields, line = t->csv.line;
	unsigned char *is_text = calloc((size_t)fields + 1, 1);
	int found = 0;
	for (int64_t i = 0; is_text && i < fields; i++)
		is_text[i] = neap__table_number(&number, t->csv.field[i]) < 0 &&
			     !neap__table_is_gap(t->csv.field[i]);
	if (is_text && neap__csv_next(&t->csv) > 0)
		for (int64_t i = 0; i < fields && i < t->csv.fields; i++)
			found |= is_text[i] && neap__table_number(&number, t->csv.field[i]) == 0;
	t->csv.line = line;
	free(is_text);
	return found;
}

/* Names of columns that are numbers count from one to the next, as pandas has them, or are data. */
const char *neap__table_data_name(const struct neap__table *t)
{
	double number, before = NAN;
	if (t->options->header)
		return NULL;
	for (int64_t i = 0; t->names && i < t->columns; i++) {
		if (neap__table_number(&number, t->names[i]) < 0)
			continue;
		if (number != floor(number) || (!isnan(before) && number != before + 1))
			return t->names[i];
		before = number;
	}
	return NULL;
}

const char *neap__table_separation(char *room, size_t size, const struct neap__table *t)
{
	static const struct {
		const char *mark, *what, *program;
	} kinds[] = {
		{"#", "Lines that begin with # are comments. Delete them: ", "sed -i.old '/^#/d'"},
		{",", "The quotes make each line one field. Remove them: ",
			"sed -i.old 's/^\"//; s/\"\\r*$//'"},
		{"|", "Separate the fields by commas: ", "sed -i.old 's/|/,/g'"},
		{" ", "Separate the fields by commas, semicolons or tabs: ",
			"sed -i.old -E 's/ +/,/g'"}};
	const char *name = t->columns == 1 && t->names ? t->names[0] : "";
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const char *found = strstr(name, kinds[i].mark);
		if (!found || (i == 0 && found != name))
			continue;
		size_t n = (size_t)neap__print(room, size, "%s", kinds[i].what);
		on_all(room + n, size - n, t, kinds[i].program);
		return room;
	}
	return NULL;
}

/* 1: a column that is taken as a feature has a number in one of the first rows of the file; in a
 * later file, whose columns may be others, any column. */
static int has_numbers(const struct neap__table *t)
{
	enum { ROWS = 1000 };
	struct neap__csv csv;
	double number;
	int found = 0, rc = neap__csv_open(&csv, t->csv.path);
	if (rc == 0 && t->header)
		rc = neap__csv_next(&csv);
	for (int row = 0; rc >= 0 && row < ROWS && !found && neap__csv_next(&csv) > 0; row++)
		for (int64_t i = 0; i < csv.fields; i++)
			found |= (t->file > 0 ||
					 (i < t->columns && t->role[i] == NEAP__COLUMN_FEATURE)) &&
				 neap__table_number(&number, csv.field[i]) == 0;
	neap__csv_close(&csv);
	return found;
}

/* The first table of the folder that is neither the file that is read nor `labels`. */
static const char *first_data(const struct neap__table *t, const char *labels)
{
	for (int64_t i = 0; i < t->files.count; i++) {
		const char *path = t->files.file[i].path;
		if (strcmp(path, labels) != 0 &&
			(!t->csv.path || strcmp(path, t->csv.path) != 0 || !labels[0]))
			return path;
	}
	return t->files.file[0].path;
}

/* " --drop a,b": the names of the list that the table `data` has; all of them if it is NULL. */
static void add_columns(
	struct neap__text *to, const char *option, const char *list, const char *data)
{
	struct neap__text kept = {0};
	if (list && (!data || neap__table_has_column(data, list, strlen(list))))
		neap__text_add(&kept, "%s", list);
	else
		for (const char *at = list, *end; at; at = *end ? end + 1 : NULL) {
			end = at + strcspn(at, ",");
			if (neap__table_has_column(data, at, (size_t)(end - at)))
				neap__text_add(&kept, "%s%.*s", kept.length ? "," : "",
					(int)(end - at), at);
		}
	if (kept.length)
		neap__text_add(to, " --%s %s", option, neap__word(kept.data));
	neap__text_free(&kept);
}

/*
 * The command that encodes the folder with the options given, and with `labels`, the table of
 * labels: the options then name columns of the other tables alone. labels NULL: there is none.
 * `without` 1: the file that is read is left out.
 */
static void encode_again(
	struct neap__text *to, const struct neap__table *t, const char *labels, int without)
{
	static const char *const missing[] = {NULL, "previous", "zero", "drop"};
	const struct neap_table_options *o = t->options;
	const char *data = labels ? first_data(t, labels) : NULL;
	if (without)
		neap__text_add(to, "echo %s > without.txt; ",
			neap__quoted(neap__recordings_below(t->csv.path, t->dir)));
	neap__text_add(to, "neap encode %s", neap__quoted(t->dir));
	for (int i = 0; i < o->nsplit; i++)
		neap__text_add(to, " --split %s", neap__quoted(o->split[i]));
	for (int i = 0; i < o->nwithout; i++)
		neap__text_add(to, " --without %s", neap__quoted(o->without[i]));
	if (without)
		neap__text_add(to, " --without without.txt");
	if (o->label && !labels)
		neap__text_add(to, " --label %s", neap__word(o->label));
	if (labels)
		neap__text_add(to, " --labels %s", neap__word(labels));
	if (o->targets && !labels)
		add_columns(to, "target", o->targets, NULL);
	add_columns(to, "sample-column", o->sample_column, data);
	add_columns(to, "drop", o->dropped, data);
	if (o->missing)
		neap__text_add(to, " --missing %s", missing[o->missing]);
	neap__text_add(to, "%s --out FILE.h5", o->numbers ? " --numbers" : "");
}

/* The table of labels of the files: the given one, or one that is found; "": there is none. */
static const char *find_labels(char *room, size_t size, const struct neap__table *t)
{
	room[0] = '\0';
	if (t->options->labels)
		neap__print(room, size, "%s", t->options->labels);
	else
		neap__labels_of(room, size, t->dir, 0);
	return room;
}

/* --drop would leave nothing to learn from. */
int neap__table_of_texts(char *room, size_t size, const struct neap__table *t)
{
	struct neap__text to = {0};
	char labels[600];
	if (has_numbers(t))
		return 0;
	find_labels(labels, sizeof labels, t);
	/* A target that the other tables have is that of their rows. */
	const char *targets = t->options->targets;
	if (labels[0] && targets &&
		neap__table_has_column(first_data(t, labels), targets, strlen(targets)))
		labels[0] = '\0';
	if (t->files.count > 1 && strcmp(labels, t->csv.path) == 0) {
		encode_again(&to, t, labels, 0);
		neap__print(room, size,
			"No column has numbers: it is the table of the labels. Pass it as such: %s",
			to.data ? to.data : "--labels FILE");
	} else if (t->files.count > 1) {
		encode_again(&to, t, labels[0] ? labels : NULL, 1);
		neap__print(room, size,
			"No column has numbers: it looks like a table of labels. Move it out of "
			"the folder, or leave it out: %s",
			to.data ? to.data : "--without FILE");
	} else
		neap__print(room, size,
			"No column that is left has numbers to learn from. Pass the table or "
			"folder "
			"of the measurements; if this is a table of labels, it is passed "
			"together with them, as --labels %s",
			neap__quoted(t->csv.path));
	neap__text_free(&to);
	return 1;
}

/* 1: the first line begins with #, and the first one that does not has a column of this name. */
static int is_below_comments(const struct neap__table *t, int bytes, const char *text)
{
	enum { LINES = 100 };
	struct neap__csv csv;
	int found = 0, lines = 0;
	if (!t->names || t->names[0][0] != '#' || neap__csv_open(&csv, t->csv.path) < 0)
		return 0;
	while (lines++ < LINES && neap__csv_next(&csv) > 0 && csv.field[0][0] == '#')
		;
	for (int64_t i = 0; i < csv.fields && lines <= LINES; i++)
		found |= strncmp(csv.field[i], text, (size_t)bytes) == 0 && !csv.field[i][bytes];
	neap__csv_close(&csv);
	return found;
}

/* 1, and what to do: only the table of labels has the column, whose columns need no option. */
static int column_of_labels(
	char *room, size_t size, const struct neap__table *t, int bytes, const char *text)
{
	struct neap__text to = {0};
	char labels[600];
	if (!find_labels(labels, sizeof labels, t)[0] || strcmp(labels, t->csv.path) == 0 ||
		!neap__table_has_column(labels, text, (size_t)bytes))
		return 0;
	encode_again(&to, t, labels, 0);
	neap__print(room, size,
		"but the table of labels, '%s', has, whose columns need no option: %s", labels,
		to.data ? to.data : "remove it");
	neap__text_free(&to);
	return 1;
}

/* neap__table_no_column of a table whose columns have names. */
static int no_such_name(
	const struct neap__table *t, const char *option, int bytes, const char *text)
{
	struct neap__suggestion meant = {.text = text, .length = (size_t)bytes};
	char mean[80], names[300], room[NEAP__DETAIL_BYTES];

	for (int64_t i = 0; i < t->columns; i++)
		neap__suggest(&meant, t->names[i]);
	if (column_of_labels(room, sizeof room, t, bytes, text))
		return neap__fail(NEAP_EUSAGE, "%s: '%s' has no column '%.*s', %s", option,
			t->csv.path, bytes, text, room);
	if (t->files.count > 1 && neap__table_of_texts(room, sizeof room, t))
		return neap__fail(NEAP_EUSAGE, "%s: '%s' has no column '%.*s'. %s", option,
			t->csv.path, bytes, text, room);
	if (!meant.name && strcmp(option, "--target") == 0 &&
		find_labels(names, sizeof names, t)[0] && strcmp(names, t->csv.path) != 0) {
		struct neap__text to = {0};
		encode_again(&to, t, names, 0);
		int rc = neap__fail(NEAP_EUSAGE,
			"%s: '%s' has no column '%.*s'. Its columns are %s. If '%s', which lists "
			"these files, has the classes: %s",
			option, t->csv.path, bytes, text,
			neap__table_list(
				room, sizeof room, (const char *const *)t->names, t->columns),
			names, to.data ? to.data : "pass it with --labels");
		neap__text_free(&to);
		return rc;
	}
	return neap__fail(NEAP_EUSAGE, "%s: '%s' has no column '%.*s'%s%s Its columns are %s%s",
		option, t->csv.path, bytes, text, neap__did_you_mean(mean, &meant, ""),
		meant.name ? "" : ".",
		neap__table_list(names, sizeof names, (const char *const *)t->names, t->columns),
		meant.name || strcmp(option, "--target") != 0
			? ""
			: ". If another table has the classes, pass --labels FILE; if the "
			  "names of the "
			  "files have them, pass --label REGEX");
}

/* The line about a column of a table whose columns have no names; `name`: what was given. */
static int no_names(const struct neap__table *t, const char *option, const char *name)
{
	for (int64_t i = 0; i < t->csv.fields; i++)
		if (strcmp(t->csv.field[i], name) == 0)
			return neap__fail(NEAP_EUSAGE,
				"%s: '%s' has the column '%s', but with --header no its columns "
				"have only numbers. Remove --header no",
				option, t->csv.path, name);
	return neap__fail(NEAP_EUSAGE,
		"%s: '%s' has no column '%s'. Its columns have no names: pass their "
		"numbers, from 1 to %lld, such as %s %lld",
		option, t->csv.path, name, (long long)t->columns, option, (long long)t->columns);
}

/* The same of one whose first line was taken for names; `data`: a number in it. */
static int no_header(
	const struct neap__table *t, const char *option, const char *name, const char *data)
{
	int is_sample = strcmp(option, "--sample-column") == 0; /* usually the first text */
	int64_t column, texts = 0, first = 0;
	double number;

	for (int64_t i = 0; i < t->columns; i++)
		if (neap__table_number(&number, t->names[i]) < 0 && texts++ == 0)
			first = i + 1;
	if (neap__table_number(&number, name) == 0 && number == floor(number) && number >= 1 &&
		number <= (double)t->columns)
		column = (int64_t)number;
	else
		column = texts == 1 || (texts && is_sample) ? first : t->columns;
	return neap__fail(NEAP_EUSAGE,
		"%s: '%s' has no column '%s'. Its first line looks like data ('%.30s' is a "
		"number), not names. Pass --header no and the number of the column, from 1 to "
		"%lld, such as --header no %s %lld",
		option, t->csv.path, name, data, (long long)t->columns, option, (long long)column);
}

int neap__table_no_column(
	const struct neap__table *t, const char *option, int bytes, const char *text)
{
	const char *data = neap__table_data_name(t);
	char names[300];
	char advice[NEAP__DETAIL_BYTES];
	if (t->columns > 1 && is_below_comments(t, bytes, text)) {
		on_all(advice, sizeof advice, t, "sed -i.old '/^#/d'");
		return neap__fail(NEAP_EUSAGE,
			"%s: '%s' begins with comments, '%.40s', and the names of the columns are "
			"below. Delete the comments: %s",
			option, t->csv.path, t->names[0], advice);
	}
	if (neap__table_separation(advice, sizeof advice, t))
		return neap__fail(NEAP_EUSAGE,
			"%s: '%s' has no column '%.*s', but one column, '%.80s'. %s", option,
			t->csv.path, bytes, text, t->names[0], advice);
	if (t->names && strcmp(option, "--sample-column") == 0 && t->options->labels &&
		neap__labels_column(names, sizeof names, t->csv.path, t->options->labels))
		return neap__fail(NEAP_EUSAGE,
			"%s: '%s' has no column '%.*s', but the column '%.80s' names samples that "
			"'%s' lists. Pass --sample-column %s",
			option, t->csv.path, bytes, text, names, t->options->labels,
			neap__word(names));
	if (t->names && !data)
		return no_such_name(t, option, bytes, text);
	neap__print(names, sizeof names, "%.*s", bytes, text);
	return t->names ? no_header(t, option, names, data) : no_names(t, option, names);
}

/* Whether a name can be inserted by sed's command 'i' as a field. */
static int is_plain(const char *name, char separator)
{
	const char specials[] = {'\'', '"', '\\', separator, '\0'};
	for (const char *at = name; *at; at++)
		if ((unsigned char)*at < ' ' || strchr(specials, *at))
			return 0;
	return 1;
}

/*
 * ": sed ...", which inserts the names of the features for the columns of numbers, `sample` (may be
 * NULL) for the first of texts, and others for what remains; "" if there are too few columns, or a
 * name is not plain.
 */
static void insert_names(struct neap__text *to, const struct neap__table *t,
	const char *const *names, int count, const char *sample)
{
	double number;
	int feature = 0;
	neap__text_add(to, ": sed -i.old '1i ");
	for (int64_t i = 0; i < t->columns; i++) {
		char between[2] = {i ? t->separator : '\0', '\0'};
		int takes = feature < count &&
			    (!t->names || neap__table_number(&number, t->names[i]) == 0);
		if (takes && !is_plain(names[feature], t->separator))
			break;
		int is_sample = !takes && sample && t->names && is_plain(sample, t->separator);
		if (takes)
			neap__text_add(to, "%s%s", between, names[feature++]);
		else if (is_sample)
			neap__text_add(to, "%s%s", between, sample);
		else
			neap__text_add(to, "%scolumn%lld", between, (long long)i + 1);
		if (is_sample) /* the first text */
			sample = NULL;
	}
	neap__text_add(to, "' %s", neap__quoted(t->dir));
	if (feature < count && to->data)
		to->data[0] = '\0';
}

int neap__table_unnamed(
	const struct neap__table *t, const char *const *names, int count, const char *sample)
{
	enum { LONGEST = 600 /* of the command in a message */ };
	const char *data = neap__table_data_name(t);
	struct neap__text command = {0};
	double number;
	char list[300], shows[80] = "";
	int64_t numbers = t->names ? 0 : t->columns;
	for (int64_t i = 0; t->names && i < t->columns; i++)
		numbers += neap__table_number(&number, t->names[i]) == 0;
	insert_names(&command, t, names, count, sample);
	if (data)
		neap__print(shows, sizeof shows, " (the first line has the number '%.30s')", data);
	int rc = neap__fail(NEAP_EUSAGE,
		"'%s' has %lld columns without names%s, but the model was trained on %d "
		"feature%s: %s. %s%s%s",
		t->dir, (long long)t->columns, shows, count, count == 1 ? "" : "s",
		neap__table_list(list, sizeof list, names, count),
		numbers < count ? "Add the missing columns, and a first line with all names"
				: "Insert a first line with the names of the columns",
		numbers > count ? ", for example, if the features come first" : "",
		command.data && strlen(command.data) < LONGEST ? command.data : "");
	neap__text_free(&command);
	return rc;
}

/* The unit behind a number, "V" of "0.5 V", if it can be part of a pattern; else NULL. */
static const char *unit_of(const char *text)
{
	const char *end = text + strspn(text, "+-0123456789.eE");
	char room[40];
	double number;
	if (end == text || end - text >= (int)sizeof room)
		return NULL;
	for (; end > text; end--) { /* "5e" has the unit e */
		neap__print(room, sizeof room, "%.*s", (int)(end - text), text);
		if (neap__table_number(&number, room) == 0)
			break;
	}
	end += strspn(end, " ");
	if (end == text || !*end || strlen(end) > 12 || strpbrk(end, "'\"\\{}$@`,;") ||
		strchr("+-0123456789._:/", *end))
		return NULL;
	return end;
}

/*
 * Cells of a column with the unit from the row read last on; 0 if one is neither a number nor has
 * it. Reads the file to its end, but keeps the line.
 */
static int64_t count_units(struct neap__table *t, int64_t place, const char *unit)
{
	int64_t cells = 0, line = t->csv.line;
	double number;
	do {
		const char *text = t->csv.field[place], *here = unit_of(text);
		if (here && strcmp(here, unit) == 0)
			cells++;
		else if (neap__table_number(&number, text) < 0 && !neap__table_is_gap(text))
			cells = -1;
	} while (cells >= 0 && neap__csv_next(&t->csv) > 0 && t->csv.fields == t->columns);
	t->csv.line = line;
	return cells < 0 ? 0 : cells;
}

/* The program that applies `edit` to the fields `places`, "1, 3" from 0 on, of each line. */
static void edit_columns(char *program, size_t size, const struct neap__table *t, const char *edit,
	const char *places)
{
	const char *sep = t->csv.separator == '\t' ? "\\t" : t->csv.separator == ';' ? ";" : ",";
	neap__print(program, size,
		"perl -i.old -pe 's/\\r?\\n$//; @f = split /%s/, $_, -1; %s for @f[%s]; $_ = "
		"join(\"%s\", @f) . \"\\n\"'",
		sep, edit, places, sep);
}

void neap__table_empty(char *room, size_t size, const struct neap__table *t, double number,
	const int *columns, int count)
{
	enum { COLUMNS = 60 };
	char places[COLUMNS] = "", edit[60], program[240];
	size_t n = 0;
	for (int i = 0; i < count && n + 8 < COLUMNS; i++)
		n += (size_t)neap__print(places + n, COLUMNS - n, "%s%lld", n ? ", " : "",
			(long long)(t->from ? t->from[columns[i]] : columns[i]));
	neap__print(edit, sizeof edit, "s/^ *%g(\\.0*)? *$//", number);
	edit_columns(program, sizeof program, t, edit, places);
	on_all(room, size, t, program);
}

/* Columns of true and false: the command that writes 1 and 0, in all of them. */
static void advise_truth(char *room, size_t size, const struct neap__table *t, const char *name)
{
	enum { COLUMNS = 60 };
	char places[COLUMNS] = "", program[240];
	size_t n = 0;
	for (int64_t i = 0; i < t->columns; i++) {
		int64_t k = t->from ? t->from[i] : i;
		if (t->role[i] == NEAP__COLUMN_FEATURE && is_truth(t->csv.field[k]) &&
			n + 8 < COLUMNS)
			n += (size_t)neap__print(
				places + n, COLUMNS - n, "%s%lld", n ? ", " : "", (long long)k);
	}
	edit_columns(
		program, sizeof program, t, "$_ = /^true$/i ? 1 : /^false$/i ? 0 : $_", places);
	n = (size_t)neap__print(room, size, "Write 1 for true and 0 for false: ");
	if (n < size)
		n += on_all(room + n, size - n, t, program);
	if (n < size && !t->predicts && !t->options->targets && !t->options->labels)
		neap__print(room + n, size - n, "; if it is the target, pass --target %.60s", name);
}

/* A column whose numbers have a unit: the command that removes it, here and in other columns. */
static int advise_unit(
	char *room, size_t size, struct neap__table *t, const char *name, const char *text)
{
	enum { COLUMNS = 60, LEAST = 2 /* cells: one is a slip */ };
	char places[COLUMNS] = "", unit[20], edit[60], program[240];
	const char *found = unit_of(text), *here;
	char number[24];
	int64_t place = -1;
	size_t n = 0;
	if (!found)
		return 0;
	neap__print(unit, sizeof unit, "%s", found);
	for (int64_t i = 0; i < t->columns; i++) {
		int64_t k = t->from ? t->from[i] : i;
		if (t->role[i] != NEAP__COLUMN_FEATURE)
			continue;
		if (place < 0 && strcmp(neap__table_column(t, i, number), name) == 0)
			place = k;
		if ((here = unit_of(t->csv.field[k])) && strcmp(here, unit) == 0 && n + 8 < COLUMNS)
			n += (size_t)neap__print(
				places + n, COLUMNS - n, "%s%lld", n ? ", " : "", (long long)k);
	}
	if (place < 0 || !places[0] || count_units(t, place, unit) < LEAST)
		return 0;
	neap__print(edit, sizeof edit, "s{(?<=[\\d.]) *\\Q%s\\E *$}{}", unit);
	edit_columns(program, sizeof program, t, edit, places);
	n = (size_t)neap__print(room, size,
		"Its numbers have the unit '%s', first in line %lld. Remove the unit: ", unit,
		(long long)t->csv.line);
	if (n < size)
		n += on_all(room + n, size - n, t, program);
	if (n < size && !t->predicts && !t->options->targets && !t->options->labels)
		neap__print(room + n, size - n, "; if they are classes, pass --target %s",
			neap__word(name));
	return 1;
}

/*
 * 1: the column of --sample-column changes in each of the next rows, and column `name` does not:
 * the samples are probably named by the latter. Reads on, but keeps the line.
 */
static int names_samples(struct neap__table *t, const char *name)
{
	enum { ROWS = 50, LEAST = 3 /* rows that are looked at; chosen */ };
	int64_t sample = -1, other = -1, line = t->csv.line, rows = 0, repeats = 0;
	char number[24], last[2][64] = {"", ""};
	int changes = 1;
	for (int64_t i = 0; i < t->columns; i++) {
		int64_t k = t->from ? t->from[i] : i;
		sample = t->role[i] == NEAP__COLUMN_SAMPLE ? k : sample;
		other = strcmp(neap__table_column(t, i, number), name) == 0 ? k : other;
	}
	if (sample < 0 || other < 0)
		return 0;
	do {
		const char *now[2] = {t->csv.field[sample], t->csv.field[other]};
		changes &= rows == 0 || strncmp(now[0], last[0], 63) != 0;
		repeats += rows > 0 && strncmp(now[1], last[1], 63) == 0;
		for (int i = 0; i < 2; i++)
			neap__print(last[i], sizeof last[i], "%s", now[i]);
	} while (++rows < ROWS && neap__csv_next(&t->csv) > 0 && t->csv.fields == t->columns);
	t->csv.line = line;
	return rows >= LEAST && changes && 2 * repeats >= rows;
}

/* 1: the column at `place` of the file has two values in all rows, short words, which `pair` gets.
 */
static int has_pair(const struct neap__table *t, int64_t place, char pair[2][12])
{
	struct neap__csv csv;
	int rc = neap__csv_open(&csv, t->csv.path), found = 0;
	if (rc == 0 && t->header)
		rc = neap__csv_next(&csv);
	while (rc >= 0 && found <= 2 && (rc = neap__csv_next(&csv)) > 0) {
		const char *text = place < csv.fields ? csv.field[place] : "";
		size_t n = strlen(text);
		if (n == 0 || n >= sizeof pair[0] || strspn(text, LETTERS) != n) {
			found = 3;
		} else if (found == 0 || (strcmp(text, pair[0]) != 0 &&
						 (found < 2 || strcmp(text, pair[1]) != 0))) {
			if (found < 2)
				neap__print(pair[found], sizeof pair[0], "%s", text);
			found++;
		}
	}
	neap__csv_close(&csv);
	return rc == 0 && found == 2;
}

/* The command that writes 0 and 1 for the two values of a column, if it has two. */
static void advise_pair(char *room, size_t size, const struct neap__table *t, const char *name)
{
	char number[24], pair[2][12], place[24], edit[80], program[240];
	for (int64_t i = 0; i < t->columns; i++) {
		int64_t k = t->from ? t->from[i] : i;
		if (strcmp(neap__table_column(t, i, number), name) != 0 || !has_pair(t, k, pair))
			continue;
		neap__print(place, sizeof place, "%lld", (long long)k);
		neap__print(edit, sizeof edit, "$_ = $_ eq \"%s\" ? 0 : $_ eq \"%s\" ? 1 : $_",
			pair[0], pair[1]);
		edit_columns(program, sizeof program, t, edit, place);
		size_t n = (size_t)neap__print(room, size,
			"; to learn from it, write 0 for %s and 1 for %s: ", pair[0], pair[1]);
		if (n < size)
			on_all(room + n, size - n, t, program);
		return;
	}
}

/* What to do about a column of texts. In a first line that is data, `name` is one of them. */
static void advise_column(char *room, size_t size, struct neap__table *t, const char *name)
{
	const struct neap_table_options *o = t->options;
	const char *data = neap__table_data_name(t), *sep = "";
	char number[24];
	size_t n = 0;
	if (!data && neap__table_of_texts(room, size, t))
		return;
	if (o->sample_column && names_samples(t, name)) {
		neap__print(room, size,
			"If it names the samples, pass --sample-column %s instead of %.60s, "
			"which changes in every row; if not, pass --drop %s to ignore it",
			neap__word(name), o->sample_column, neap__table_drop(t, name));
		return;
	}
	for (int64_t i = 0; data && i < t->columns; i++)
		if (strcmp(t->names[i], name) == 0) {
			neap__print(number, sizeof number, "%lld", (long long)i + 1);
			name = number;
			break;
		}
	if (data)
		n += (size_t)neap__print(room, size,
			"The first line looks like data ('%.30s' is a number), not names. Pass "
			"--header no, and ",
			data);
	else
		n += (size_t)neap__print(room, size, "Pass ");
	if (!o->targets && !o->labels && !o->label) {
		n += (size_t)neap__print(
			room + n, size - n, "--target %s if it is the target, ", neap__word(name));
		sep = "or ";
	}
	/* Labels of files leave no column for names of samples. */
	if (!o->sample_column && !(o->labels && neap__labels_name(o->labels, t->dir))) {
		n += (size_t)neap__print(room + n, size - n,
			"--sample-column %s if it names the samples, ", neap__word(name));
		sep = "or ";
	}
	n += (size_t)neap__print(
		room + n, size - n, "%s--drop %s to ignore it", sep, neap__table_drop(t, name));
	if (n < size && !data)
		advise_pair(room + n, size - n, t, name);
}

/* 1, and the command without the columns of texts: predict reads all columns, since the model has
 * no names of features. */
static int advise_features(char *room, size_t size, const struct neap__table *t)
{
	struct neap__text drop = {0};
	double number;
	int texts = 0, all = t->names != NULL && !has_numbers_above(t);
	for (int64_t i = 0; all && i < t->columns; i++) {
		const char *field = t->csv.field[t->from ? t->from[i] : i];
		all &= t->role[i] == NEAP__COLUMN_FEATURE;
		if (neap__table_number(&number, field) < 0 && !neap__table_is_gap(field))
			neap__text_add(&drop, "%s%s", texts++ ? "," : "", t->names[i]);
	}
	if (all && texts && texts < t->columns)
		neap__print(room, size,
			"The model has no names of features, so all columns are read. Encode the "
			"table without those that are no features of the model, and pass FILE.h5: "
			"neap encode %s --out FILE.h5 --drop %s%s",
			neap__quoted(t->dir), neap__word(drop.data),
			neap__tables_have_gaps(t->csv.path) ? " --missing previous" : "");
	neap__text_free(&drop);
	return all && texts && texts < t->columns;
}

/* What to do about a field that is not a number. */
void neap__table_advise(
	char *room, size_t size, struct neap__table *t, const char *name, const char *text)
{
	int missing = neap__table_is_gap(text);
	size_t n;
	if (has_comma(text) && t->csv.separator != ',') {
		n = (size_t)neap__print(room, size, "Write decimals with a point: ");
		on_all(room + n, size - n, t, "sed -i.old 's/,/./g'");
	} else if (has_comma(text))
		neap__print(room, size, "Write decimals with a point");
	else if (t->options->header < 0 && t->csv.line == 1 && has_names(t))
		neap__print(room, size, "The first row has names: remove --header no");
	else if (t->columns == 1 && strchr(text, ' '))
		neap__print(room, size, "Separate the fields by commas, semicolons or tabs");
	else if (is_percent(text)) {
		n = (size_t)neap__print(room, size, "Remove the percent signs: ");
		on_all(room + n, size - n, t, "sed -i.old 's/%//g'");
	} else if (is_truth(text)) {
		advise_truth(room, size, t, name);
	} else if (advise_unit(room, size, t, name, text)) {
		return;
	} else if (has_thousands(text))
		neap__print(room, size,
			"Write numbers without separators of thousands, such as 1234.5");
	else if (t->csv.line == 2 && t->header && has_names(t)) {
		n = (size_t)neap__print(
			room, size, "If line 2 has the units of the columns, delete it: ");
		on_all(room + n, size - n, t, "sed -i.old 2d");
	} else if (missing)
		advise_gaps(room, size, t, name);
	else if (t->predicts && advise_features(room, size, t))
		return;
	else if (has_numbers_above(t) || t->predicts)
		neap__print(room, size,
			"Correct line %lld; if '%.30s' marks a missing value, leave the cell empty",
			(long long)t->csv.line, text);
	else
		advise_column(room, size, t, name);
}

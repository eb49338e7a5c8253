/* SPDX-License-Identifier: Apache-2.0 */
/* table_advice.c: what to do about a field that is not a number (table.h). */
#include "data/tables/table.h"
#include "base/print.h"

#include <string.h>
#include <strings.h>

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

static int is_gap(const char *text)
{
	static const char *const gaps[] = {
		"", "nan", "na", "n/a", "null", "none", "inf", "-inf", "?", "-"};
	for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++)
		if (strcasecmp(text, gaps[i]) == 0)
			return 1;
	return 0;
}

/* Gaps of features from the row read last on; reads the file to its end, but keeps the line. */
static int64_t count_gaps(struct neap__table *t)
{
	int64_t gaps = 0, line = t->csv.line;
	do
		for (int64_t i = 0; i < t->columns && i < t->csv.fields; i++)
			gaps += t->role[i] == NEAP__COLUMN_FEATURE &&
				is_gap(t->csv.field[t->from ? t->from[i] : i]);
	while (neap__csv_next(&t->csv) > 0 && t->csv.fields == t->columns);
	t->csv.line = line;
	return gaps;
}

/* The command that runs `program` on the tables, which stay as NAME.old. */
static size_t on_all(char *room, size_t size, const struct neap__table *t, const char *program)
{
	const char *dot = strrchr(t->csv.path, '.');
	if (!neap__recordings_folder(t->dir))
		return (size_t)neap__print(room, size, "%s '%.160s'", program, t->dir);
	return (size_t)neap__print(room, size, "find '%.160s' -name '*%s' -exec %s {} +", t->dir,
		dot ? dot : "", program);
}

static void advise_gaps(char *room, size_t size, struct neap__table *t, const char *name)
{
	char program[300];
	const char *sep = t->csv.separator == '\t' ? "\\t" : t->csv.separator == ';' ? ";" : ",";
	int64_t gaps = count_gaps(t);
	size_t n = (size_t)neap__print(room, size,
		"Fill it in, remove the row, or pass --drop %.60s to ignore the column. The file "
		"has %lld "
		"such cell%s; to repeat the value above each: ",
		name, (long long)gaps, gaps == 1 ? "" : "s");
	neap__print(program, sizeof program,
		"perl -i.old -pe 's/\\r?\\n$//; @f = split /%s/, $_, -1; for (0..$#f) { $f[$_] = "
		"$p[$_] "
		"=~ /^[-+.\\de]+$/i ? $p[$_] : 0 if $f[$_] =~ "
		"/^(nan|n.?a|null|none|-?inf|[?-]?)$/i; "
		"$p[$_] = $f[$_] } $_ = join(\"%s\", @f) . \"\\n\"'",
		sep, sep);
	if (n < size)
		on_all(room + n, size - n, t, program);
}

/* What to do about a field that is not a number. */
void neap__table_advise(
	char *room, size_t size, struct neap__table *t, const char *name, const char *text)
{
	const struct neap_table_options *o = t->options;
	int untold = !o->targets && !o->labels && !o->label, missing = is_gap(text);
	size_t n = 0;
	if (has_comma(text) && t->csv.separator != ',') {
		n = (size_t)neap__print(room, size, "Write decimals with a point: ");
		on_all(room + n, size - n, t, "sed -i.old 's/,/./g'");
	} else if (has_comma(text))
		neap__print(room, size, "Write decimals with a point");
	else if (t->options->header < 0 && t->csv.line == 1)
		neap__print(room, size, "The first row has names: remove --header no");
	else if (t->columns == 1 && strchr(text, ' '))
		neap__print(room, size, "Separate the fields by commas, semicolons or tabs");
	else if (t->predicts)
		neap__print(room, size, "Correct the table");
	else if (missing)
		advise_gaps(room, size, t, name);
	else if (has_numbers_above(t))
		neap__print(room, size, "Correct line %lld", (long long)t->csv.line);
	else {
		n += (size_t)neap__print(room, size, "Pass ");
		if (untold)
			n += (size_t)neap__print(
				room + n, size - n, "--target %.60s if it is the target, ", name);
		if (!o->sample_column)
			n += (size_t)neap__print(room + n, size - n,
				"--sample-column %.60s if it names the samples, ", name);
		neap__print(room + n, size - n, "%s--drop %.60s to ignore it",
			n > strlen("Pass ") ? "or " : "", name);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c: splits rows into fields (csv.h). */
#include "data/tables/csv.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/print.h"
#include "base/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int wrong(const struct neap__csv *csv, int64_t line, const char *what)
{
	return neap__fail(NEAP_EFORMAT, "'%s', line %lld: %s", csv->path, (long long)line, what);
}

static int not_utf8(const struct neap__csv *csv, int64_t line, const char *what, const char *code)
{
	char advice[NEAP__ICONV_TEXT];
	return neap__fail(NEAP_EFORMAT, "'%s', line %lld: %s. %s", csv->path, (long long)line, what,
		neap__iconv_text(advice, csv->path, code));
}

/* Refuses a field that is not UTF-8: names of classes and columns would differ from others. */
static int check_text(const struct neap__csv *csv, const char *field)
{
	char room[120];
	int bytes;
	for (const char *at = field; *at; at += bytes)
		if ((bytes = neap__utf8_bytes(at)) == 0) {
			neap__print(room, sizeof room,
				"'%.40s' is not UTF-8 text, but perhaps Latin-1", field);
			return not_utf8(csv, csv->line, room, "LATIN1");
		}
	return 0;
}

static int add(struct neap__csv *csv, int c)
{
	if (c == '\0')
		return not_utf8(csv, csv->next,
			"contains a zero byte, so it is not UTF-8 text, but perhaps UTF-16",
			"UTF-16");
	if (csv->length >= NEAP__CSV_ROW)
		return wrong(csv, csv->line,
			"the row is longer than 64 MiB. Check for a missing closing quote");
	csv->beyond_ascii |= c > 127;
	if (neap__grow(&csv->text, &csv->text_room, csv->length + 2, 1) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", csv->path);
	csv->text[csv->length++] = (char)c;
	return 0;
}

static int begin_field(struct neap__csv *csv)
{
	if (csv->fields >= NEAP__CSV_FIELDS)
		return wrong(csv, csv->line, "has more than 65792 fields. Split the table");
	if (neap__grow(&csv->start, &csv->start_room, csv->fields + 1, sizeof *csv->start) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", csv->path);
	csv->start[csv->fields++] = csv->length;
	return 0;
}

/* Ends the field: cuts blanks behind it, as far as `from`. */
static int end_field(struct neap__csv *csv, int64_t from)
{
	while (csv->length > from && csv->text[csv->length - 1] == ' ')
		csv->length--;
	if (neap__grow(&csv->text, &csv->text_room, csv->length + 2, 1) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", csv->path);
	csv->text[csv->length++] = '\0';
	return 0;
}

/* Passes the line end that begins with `c`. */
static void line_end(struct neap__csv *csv, int c)
{
	csv->next++;
	int after = c == '\r' ? getc_unlocked(csv->file) : '\n';
	if (after != '\n' && after != EOF)
		ungetc(after, csv->file);
}

/* The rest of a quoted field, whose first quote is read; *c: what follows it. */
static int quoted(struct neap__csv *csv, int *c)
{
	int64_t line = csv->next;
	for (;;) {
		*c = getc_unlocked(csv->file);
		if (*c == EOF)
			return wrong(csv, line, "a quote is not closed. Add the closing quote");
		if (*c == '"') {
			*c = getc_unlocked(csv->file);
			if (*c != '"')
				return 0;
		} else if (*c == '\n' || *c == '\r') {
			line_end(csv, *c);
			*c = '\n';
		}
		NEAP_TRY(add(csv, *c));
	}
}

/* Reads a field; *c: the separator, line end or end of the file behind it. */
static int read_field(struct neap__csv *csv, int *c)
{
	NEAP_TRY(begin_field(csv));
	do
		*c = getc_unlocked(csv->file);
	while (*c == ' ');
	if (*c == '"') {
		NEAP_TRY(quoted(csv, c));
		while (*c == ' ')
			*c = getc_unlocked(csv->file);
		if (*c != csv->separator && *c != '\n' && *c != '\r' && *c != EOF)
			return wrong(csv, csv->next,
				"text follows a closing quote. Write a quote inside a quoted field "
				"twice");
		return end_field(csv, csv->length);
	}
	int64_t from = csv->length;
	while (*c != csv->separator && *c != '\n' && *c != '\r' && *c != EOF) {
		NEAP_TRY(add(csv, *c));
		*c = getc_unlocked(csv->file);
	}
	return end_field(csv, from);
}

/* Reads a row, which may be an empty line: 1, 0 at the end of the file. */
static int read_row(struct neap__csv *csv)
{
	int c = getc_unlocked(csv->file);
	csv->line = csv->next;
	csv->fields = csv->length = csv->beyond_ascii = 0;
	if (c == EOF)
		return ferror(csv->file) ? neap__fail_errno(EIO, "cannot read '%s'", csv->path) : 0;
	ungetc(c, csv->file);
	do
		NEAP_TRY(read_field(csv, &c));
	while (c == csv->separator);
	if (c != EOF)
		line_end(csv, c);
	if (ferror(csv->file))
		return neap__fail_errno(EIO, "cannot read '%s'", csv->path);
	if (neap__grow(&csv->field, &csv->field_room, csv->fields, sizeof *csv->field) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", csv->path);
	for (int64_t i = 0; i < csv->fields; i++) {
		csv->field[i] = csv->text + csv->start[i];
		if (csv->beyond_ascii)
			NEAP_TRY(check_text(csv, csv->field[i]));
	}
	return 1;
}

int neap__csv_next(struct neap__csv *csv)
{
	int64_t empty = 0;
	int rc;
	while ((rc = read_row(csv)) > 0 && csv->fields == 1 && csv->field[0][0] == '\0')
		empty = empty ? empty : csv->line;
	if (rc > 0 && empty)
		return wrong(csv, empty, "is empty, but rows follow. Remove the line");
	return rc;
}

/* The separator of the first line, outside quotes. */
static void find_separator(struct neap__csv *csv)
{
	int c, inside = 0, semicolons = 0;
	csv->separator = ',';
	for (int64_t i = 0; i < NEAP__CSV_ROW && (c = getc_unlocked(csv->file)) != EOF; i++) {
		inside ^= c == '"';
		if (inside)
			continue;
		if (c == '\n' || c == '\r')
			break;
		semicolons += c == ';';
		if (c == '\t') {
			csv->separator = '\t';
			return;
		}
	}
	if (semicolons)
		csv->separator = ';';
}

/* Back to the first row. */
static int rewind_csv(struct neap__csv *csv)
{
	static const unsigned char mark[] = {0xEF, 0xBB, 0xBF};
	size_t i = 0;
	if (fseeko(csv->file, 0, SEEK_SET) < 0)
		return neap__fail_errno(errno, "cannot read '%s'", csv->path);
	clearerr(csv->file);
	while (i < sizeof mark && getc_unlocked(csv->file) == mark[i])
		i++;
	if (i < sizeof mark && fseeko(csv->file, 0, SEEK_SET) < 0)
		return neap__fail_errno(errno, "cannot read '%s'", csv->path);
	csv->next = 1;
	csv->fields = 0;
	return 0;
}

int neap__csv_open(struct neap__csv *csv, const char *path)
{
	struct stat st;
	*csv = (struct neap__csv){.path = path};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0) {
		int err = errno;
		if (fd >= 0)
			close(fd);
		return neap__fail_errno(err, "cannot read '%s'", path);
	}
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return neap__fail(NEAP_EFORMAT, "'%s' is not a regular file", path);
	}
	csv->file = fdopen(fd, "r");
	if (!csv->file) {
		close(fd);
		return neap__fail_errno(ENOMEM, "cannot read '%s'", path);
	}
	NEAP_TRY(rewind_csv(csv));
	find_separator(csv);
	return rewind_csv(csv);
}

void neap__csv_close(struct neap__csv *csv)
{
	if (csv->file)
		fclose(csv->file);
	free(csv->field);
	free(csv->text);
	free(csv->start);
	*csv = (struct neap__csv){0};
}

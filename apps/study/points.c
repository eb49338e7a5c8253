/* SPDX-License-Identifier: Apache-2.0 */
/* points.c: points as rows of cells, and their CSV file. No cell holds a comma, quote or newline.
 */
#include "study/points.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/grow.h"
#include "base/text.h"
#include "sys/atomic_file.h"

#define COLUMNS_MOST 40
#define FILE_MOST ((size_t)64 << 20)

struct neap__points {
	char *path, *head; /* head: "point,a,b" */
	int columns;
	char *name[COLUMNS_MOST]; /* into `names` */
	char *names;
	char **cells; /* [rows * columns] */
	int rows;
	int64_t room; /* rows that `cells` has room for */
};

/* Cuts `line` at its commas; the number of pieces, or -1 if there are more than `most`. */
static int cut(char *line, char **piece, int most)
{
	int n = 0;
	for (char *at = line; at; n++) {
		if (n == most)
			return -1;
		piece[n] = at;
		at = strchr(at, ',');
		if (at)
			*at++ = '\0';
	}
	return n;
}

static int add_cells(struct neap__points *p, char *line, const char *where)
{
	char *piece[COLUMNS_MOST];
	if (cut(line, piece, COLUMNS_MOST) != p->columns)
		return neap__fail(
			NEAP_EFORMAT, "%s: a row must have %d columns", where, p->columns);
	if (neap__grow(&p->cells, &p->room, p->rows + 1, (size_t)p->columns * sizeof *p->cells) < 0)
		return neap__fail_errno(ENOMEM, "%s", where);
	char **row = p->cells + p->rows * p->columns;
	for (int i = 0; i < p->columns; i++)
		if (!(row[i] = strdup(piece[i]))) {
			while (i-- > 0)
				free(row[i]);
			return neap__fail_errno(ENOMEM, "%s", where);
		}
	p->rows++;
	return 0;
}

static int parse(struct neap__points *p, char *text)
{
	char where[512], *save = NULL;
	int number = 1;
	for (char *line = strtok_r(text, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save), number++) {
		snprintf(where, sizeof where, "%s: line %d", p->path, number);
		if (number > 1)
			NEAP_TRY(add_cells(p, line, where));
		else if (strcmp(line, p->head) != 0)
			return neap__fail(NEAP_EFORMAT,
				"%s has the columns of another version. Remove the file", where);
	}
	return 0;
}

static int read_points(struct neap__points *p)
{
	char *text = NULL;
	size_t bytes;
	if (access(p->path, F_OK) < 0 && errno == ENOENT)
		return 0;
	int rc = neap__read_file(&text, &bytes, p->path, FILE_MOST);
	if (rc == 0 && (bytes == 0 || strlen(text) != bytes || text[bytes - 1] != '\n'))
		rc = neap__fail(NEAP_EFORMAT, "%s is not a file of points. Remove it", p->path);
	if (rc == 0)
		rc = parse(p, text);
	free(text);
	return rc;
}

int neap__points_open(struct neap__points **points, const char *path, const char *columns)
{
	struct neap__points *p = calloc(1, sizeof *p);
	if (!p)
		return neap__fail_errno(ENOMEM, "%s", path);
	if (asprintf(&p->head, "point,%s", columns) < 0)
		p->head = NULL;
	p->path = strdup(path);
	p->names = p->head ? strdup(p->head) : NULL;
	int rc = p->path && p->names ? 0 : neap__fail_errno(ENOMEM, "%s", path);
	if (rc == 0) {
		p->columns = cut(p->names, p->name, COLUMNS_MOST);
		rc = read_points(p);
	}
	if (rc < 0) {
		neap__points_free(p);
		return rc;
	}
	*points = p;
	return 0;
}

void neap__points_free(struct neap__points *points)
{
	if (!points)
		return;
	for (int i = 0; i < points->rows * points->columns; i++)
		free(points->cells[i]);
	free(points->cells);
	free(points->names);
	free(points->head);
	free(points->path);
	free(points);
}

int neap__points_has(const struct neap__points *points, const char *point)
{
	for (int i = 0; i < points->rows; i++)
		if (strcmp(points->cells[i * points->columns], point) == 0)
			return 1;
	return 0;
}

int neap__points_add(struct neap__points *points, const char *point, const char *values)
{
	struct neap__text line = {0};
	neap__text_add(&line, "%s,%s", point, values);
	int rc = line.error ? line.error : add_cells(points, line.data, points->path);
	neap__text_free(&line);
	return rc;
}

int neap__points_write(const struct neap__points *points)
{
	struct neap__text out = {0};
	neap__text_add(&out, "%s\n", points->head);
	for (int i = 0; i < points->rows * points->columns; i++)
		neap__text_add(
			&out, "%s%c", points->cells[i], (i + 1) % points->columns ? ',' : '\n');
	int rc = out.error ? out.error : neap__write_file(points->path, out.data, out.length);
	neap__text_free(&out);
	return rc;
}

int neap__points_count(const struct neap__points *points)
{
	return points->rows;
}

static int find(const struct neap__points *points, const char *column)
{
	for (int i = 0; i < points->columns; i++)
		if (strcmp(points->name[i], column) == 0)
			return i;
	return -1;
}

const char *neap__points_text(const struct neap__points *points, int row, const char *column)
{
	int i = find(points, column);
	return i < 0 ? "" : points->cells[row * points->columns + i];
}

double neap__points_number(const struct neap__points *points, int row, const char *column)
{
	const char *text = neap__points_text(points, row, column);
	char *end;
	double value = strtod(text, &end);
	return end == text || *end ? NAN : value;
}

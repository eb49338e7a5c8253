/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points.h: the measured points of an experiment, kept in a CSV file of named columns. A point
 * has one or more rows, and the first column is its name. The rows of a point reach the file
 * together or not at all, so that an interrupted study goes on with the next point.
 */
#ifndef NEAP_STUDY_POINTS_H
#define NEAP_STUDY_POINTS_H

#include <neap/status.h>

struct neap__points;

/*
 * Reads `path` if it is there; its columns must be "point" and `columns` ("a,b,c").
 * NEAP_EFORMAT names the line that is wrong.
 */
int neap__points_open(struct neap__points **points, const char *path, const char *columns);
void neap__points_free(struct neap__points *points);

/* Is the point in the file? */
int neap__points_has(const struct neap__points *points, const char *point);
/* Adds a row of a point, values separated by commas, one a column. */
int neap__points_add(struct neap__points *points, const char *point, const char *values);
/* Writes all rows beside the file and renames it. */
int neap__points_write(const struct neap__points *points);

int neap__points_count(const struct neap__points *points);
/* A cell; "" where there is no such column. */
const char *neap__points_text(const struct neap__points *points, int row, const char *column);
/* A cell as a number; NaN where it is none. */
double neap__points_number(const struct neap__points *points, int row, const char *column);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missing_codes.h: numbers such as -999 that stand for missing values in many tables, although they
 * are read as numbers: they are far from all others of their column.
 */
#ifndef NEAP_DATA_TABLES_MISSING_CODES_H
#define NEAP_DATA_TABLES_MISSING_CODES_H

#include <stddef.h>
#include <stdint.h>

struct neap__table;

/* Of a feature: its first number of that form, how often it is there, and the others. */
struct neap__missing_code {
	double code, least, most;
	int64_t count, others;
};

/* Takes note of the numbers [features] of a row. */
void neap__missing_codes_see(struct neap__missing_code *codes, const double *value, int features);
/*
 * The line about the first feature with such a code, and the command that empties its cells, to
 * line[size]. 1, or 0: there is none.
 */
int neap__missing_codes_doubt(char *line, size_t size, const struct neap__table *table);

#endif

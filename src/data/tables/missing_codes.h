/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missing_codes.h: numbers such as -999 that stand for missing values in many tables, although they
 * are read as numbers: they are far from all others of their column.
 */
#ifndef NEAP_DATA_TABLES_MISSING_CODES_H
#define NEAP_DATA_TABLES_MISSING_CODES_H

#include <stdint.h>

/* Of a feature: its first number of that form, how often it is there, and the others. */
struct neap__missing_code {
	double code, least, most;
	int64_t count, others;
};

/* Takes note of the numbers [features] of a row. */
void neap__missing_codes_see(struct neap__missing_code *codes, const double *value, int features);
/* 1: the code is far from all other numbers of the feature. */
int neap__missing_codes_is(const struct neap__missing_code *code);

#endif

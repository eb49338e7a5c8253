/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_targets.h: what fields of targets are. They are seen once, row by row, to tell classes from
 * numbers and targets of samples from those of steps; then each is made a number. Whole numbers and
 * texts are classes, other numbers are numbers; an empty field and "nan" mask a step.
 */
#ifndef NEAP_DATA_TABLES_TABLE_TARGETS_H
#define NEAP_DATA_TABLES_TABLE_TARGETS_H

#include <stdint.h>
#include <neap/status.h>

struct neap__class_key; /* a name and its number, in table_targets.c */

struct neap__table_targets {
	int width;   /* fields of a row; set before */
	int numbers; /* 1: whole numbers are numbers, too; set before */
	int steps;   /* 1: they are of steps, since they vary in a sample or are masked */
	int vary;    /* 1: they vary in a sample */
	int classes; /* after settle: 1: they are classes */
	int wholes, reals, texts; /* 1: such a field occurred */
	int fractions;		  /* 1: a number that is not whole occurred */
	int64_t first_text;	  /* line of the first text */
	char **before;		  /* [width] fields of the row before, while none varied */
	void *tree;		  /* of names that occurred, while they may be classes */
	char **name;		  /* [names] of the classes that occurred */
	int names;
	struct neap__class_key *key; /* [keys] for all classes, by name */
	int keys;
};

/* 1: a field that masks its step. */
int neap__target_missing(const char *text);
/*
 * Takes note of a row's fields; `path` and `line` are for messages. `begins`: of a new sample. 0,
 * NEAP_EFORMAT or -ENOMEM.
 */
int neap__targets_see(struct neap__table_targets *targets, const char *const *field, int begins,
	const char *path, int64_t line);
/*
 * Numbers the classes, as `given` [count] does or in their order where it is NULL. NEAP_EUSAGE if
 * classes are given and targets are not classes; `path` is for the message.
 */
int neap__targets_settle(
	struct neap__table_targets *targets, const char *const *given, int count, const char *path);
/* A row's fields as numbers [width]: of a class, or NaN where the step is masked. */
int neap__targets_take(const struct neap__table_targets *targets, const char *const *field,
	double *number, const char *path, int64_t line);
void neap__targets_free(struct neap__table_targets *targets);

#endif

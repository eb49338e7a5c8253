/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h: rows of steps in files of text (csv.h): a file or a folder of files, whose columns are
 * features, targets and the names of samples. A file is a sample, or several where a column says
 * which sample a row belongs to. Rows come in the order of the files' names.
 */
#ifndef NEAP_DATA_TABLES_TABLE_H
#define NEAP_DATA_TABLES_TABLE_H

#include "data/dataset.h"
#include "data/recordings.h"
#include "data/tables/csv.h"
#include "data/tables/missing_codes.h"
#include <neap/data.h>

enum neap__table_column {
	NEAP__COLUMN_FEATURE,
	NEAP__COLUMN_TARGET,
	NEAP__COLUMN_SAMPLE,
	NEAP__COLUMN_DROPPED
};

/* What was seen of a feature; bits. */
enum neap__feature_trait {
	NEAP__FALLS = 1,   /* does not increase in every row of a sample */
	NEAP__VARIES = 2,  /* in a sample */
	NEAP__DIFFERS = 4, /* from a row to the next one, of another sample as well */
	NEAP__IS_REAL = 8, /* is not always a whole number of at most NEAP__CLASS_MOST */
};
enum { NEAP__CLASS_MOST = 1000 /* chosen: larger whole numbers are hardly classes */ };

struct neap__table {
	const struct neap_table_options *options; /* borrowed */
	const char *dir;			  /* borrowed */
	struct neap__recordings files;
	int named;	/* 1: files have classes by their names */
	int header;	/* 1: files begin with names of columns */
	char separator; /* of the first file */
	int counts;	/* 1: they do not, but the first row counts 0, 1, 2, ... or 1, 2, 3, ... */
	char **names;	/* [columns] of the header, NULL without */
	enum neap__table_column *role; /* [columns] */
	int *place;		       /* [columns] number of a feature or target */
	int64_t *from; /* [columns] where each is in the file that is read; NULL: in this order */
	char **field;  /* [columns] of the row in the order of `names`, where `from` is set */
	int64_t columns;
	int features, targets;
	int predicts; /* 1: for predict, which has no options about columns; set after open */
	const char
		*meant; /* NULL, or the column that eval compares with; set after open; borrowed */
	struct neap__csv csv; /* the file that is read */
	int64_t file;	      /* its number; -1: none yet */
	char *last;	      /* name of the sample in the row before, NULL where rows begin */
	/* The row read last. */
	double *value;	       /* [features] */
	const char **target;   /* [targets] */
	const char *sample;    /* its name: a field, or the file's path below the folder */
	unsigned char *traits; /* [features] enum neap__feature_trait */
	double *above;	       /* [features] the row before */
	struct neap__missing_code *codes; /* [features] */
	int64_t run, longest;		  /* rows of this sample, of the longest one so far */
	int64_t samples;		  /* so far */
	int has_single;			  /* 1: a sample has one row */
	int begins;			  /* 1: it is the first of its sample */
	int64_t filled, left_out; /* missing cells filled in, and rows left out, since the open */
	/* NULL, or what is called for a row of `sample` that is left out, whose targets are
	 * `target`; 0 or a negative code. */
	int (*leave)(void *user, const char *sample);
	void *user; /* of leave */
};

/* Finds the files and the columns. 0 or a negative code; close it in any case. */
int neap__table_open(struct neap__table *table, const char *path,
	const struct neap_table_options *options, struct neap_table_report *report);
/*
 * Takes the columns of these names alone, in this order, as features; a table without names must
 * have as many columns. A column `sample` that is none of them has the names of samples. `ignored`
 * is a line about the others, "": there are none. 0, NEAP_EUSAGE or -errno.
 */
int neap__table_match(struct neap__table *table, const char *const *names, int count,
	const char *sample, char ignored[NEAP__TAKEN_TEXT]);
/* 1 and a row, 0 at the end, or a negative code, whose line names file and line. Rows that the
 * option `missing` leaves out are passed over. */
int neap__table_next(struct neap__table *table);
/* Warns of what is probably a mistake in the columns, through the options' function. */
void neap__table_doubt(const struct neap__table *table);
/* What to do about the field `text` of the column `name` in the row read last. */
void neap__table_advise(
	char *room, size_t size, struct neap__table *table, const char *name, const char *text);
/* 1: the file that is read has no numbers in any column that is a feature, as tables of labels; and
 * what to do about it. */
int neap__table_of_texts(char *room, size_t size, const struct neap__table *table);
/* 1: a field that marks a missing value. */
int neap__table_is_gap(const char *text);
/* The value of --drop that ignores the column `name` and those that are ignored already, as a word
 * of a command (quote.h). */
const char *neap__table_drop(const struct neap__table *table, const char *name);
/*
 * The line about the first feature with a code of missing values (missing_codes.h), and the command
 * that empties its cells, to line[size]. 1, or 0: there is none.
 */
int neap__table_codes(char *line, size_t size, const struct neap__table *table);
/* Prints the command that empties the cells of these columns that have the number. */
void neap__table_empty(char *room, size_t size, const struct neap__table *table, double number,
	const int *columns, int count);
/*
 * Prints "neap encode FILE ... --out FILE.h5", with `missing` as the value of --missing, for a
 * table of predict, whose other columns are ignored. `sample`: the column that names samples, or
 * NULL.
 */
void neap__table_encoding(char *room, size_t size, const struct neap__table *table,
	const char *sample, const char *missing);
/* A name in the first line that shows that it is data, if --header auto took it for names; or NULL.
 */
const char *neap__table_data_name(const struct neap__table *table);
/* The name of a column, or its number from 1 on, as options take it. */
const char *neap__table_column(const struct neap__table *table, int64_t column, char room[24]);
/* The first few names, "a, b, c, ...", for a message. */
const char *neap__table_list(char *room, size_t size, const char *const *names, int64_t count);
/* What to do if a row is one field, since its fields are separated otherwise; NULL: it is not. */
const char *neap__table_separation(char *room, size_t size, const struct neap__table *table);
/* NEAP_EUSAGE: the `bytes` of `text`, a value of `option`, are not a column. */
int neap__table_no_column(
	const struct neap__table *table, const char *option, int bytes, const char *text);
/* NEAP_EUSAGE: the columns have no names, and the model's features [count] are not all of them.
 * `sample`: its column that names samples, or NULL. */
int neap__table_unnamed(
	const struct neap__table *table, const char *const *names, int count, const char *sample);
/* Back to the first row of all. */
void neap__table_rewind(struct neap__table *table);
/* NEAP_EFORMAT for the row read last. */
int neap__table_wrong(const struct neap__table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void neap__table_close(struct neap__table *table);

/* The number that a whole text is, blanks around it cut: 0, or -1 where it is none. */
int neap__table_number(double *number, const char *text);

#endif

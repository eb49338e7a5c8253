/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.h: reads tables of text row by row: RFC 4180, with quoted fields that may hold separators and
 * line ends, lines that end in LF, CR LF or CR, and a byte order mark in front. Text is UTF-8. The
 * separator is the tab where the first line has one, else the semicolon, else the comma.
 */
#ifndef NEAP_DATA_TABLES_CSV_H
#define NEAP_DATA_TABLES_CSV_H

#include <stdint.h>
#include <stdio.h>
#include <neap/status.h>

enum { NEAP__CSV_FIELDS = 65536 + 256, NEAP__CSV_ROW = 1 << 26 /* bytes */ };

struct neap__csv {
	const char *path; /* borrowed */
	FILE *file;
	char separator;
	char **field;	  /* [fields] of the row read last, without blanks around them */
	int64_t fields;	  /* of it */
	int beyond_ascii; /* 1: it has bytes above 127 */
	int64_t line;	  /* where it begins, from 1 on */
	int64_t next;	  /* line that is read next */
	char *text;	  /* the row's fields, one after the other */
	int64_t *start;	  /* where each begins in text */
	int64_t length, text_room, start_room, field_room;
};

/* Opens a regular file; `csv` is closed in any case. 0, NEAP_EFORMAT or -errno. */
int neap__csv_open(struct neap__csv *csv, const char *path);
/*
 * Reads a row: 1; 0 at the end of the file; NEAP_EFORMAT, naming the line, where it is no row; or
 * -errno. Empty lines are passed over at the end of the file alone.
 */
int neap__csv_next(struct neap__csv *csv);
void neap__csv_close(struct neap__csv *csv);

#endif

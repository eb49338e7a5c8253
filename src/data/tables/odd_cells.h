/* SPDX-License-Identifier: Apache-2.0 */
/*
 * odd_cells.h: finds single rows of another class, or of none, in samples that otherwise have one
 * class: a few of them are probably mistakes, and turn one class per sample into one per step.
 */
#ifndef NEAP_DATA_TABLES_ODD_CELLS_H
#define NEAP_DATA_TABLES_ODD_CELLS_H

#include <stdint.h>

/* A row with its text; the path is borrowed. */
struct neap__odd_cell {
	char *text;
	const char *path;
	int64_t line;
};

/* All zero to begin with; free with neap__odd_cells_free. */
struct neap__odd_cells {
	struct neap__odd_cell first;   /* of all samples */
	char *usual;		       /* class of its sample */
	int64_t samples, odd, count;   /* samples, those with odd cells, odd cells */
	int vary;		       /* 1: classes vary in a sample in another way */
	struct neap__odd_cell here;    /* of the sample that is read */
	struct neap__odd_cell run;     /* its last rows, which are equal: the first of them */
	char *main;		       /* its class of several rows */
	int64_t rows, run_rows, found; /* its rows, those of the run, its single rows */
};

/* Takes note of a row's class, "": none. `begins`: of a new sample. 0 or -ENOMEM. */
int neap__odd_cells_see(struct neap__odd_cells *cells, const char *text, int begins,
	const char *path, int64_t line);
/* Behind all rows. 1: there are odd cells, few enough to be mistakes; `first` and `usual` are set.
 */
int neap__odd_cells_doubt(struct neap__odd_cells *cells);
void neap__odd_cells_free(struct neap__odd_cells *cells);

#endif

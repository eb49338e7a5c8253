/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_tables.h: what the files of the solved solver share.
 *   level_solver.c  levels, hulls, the answer
 *   level_memo.c    costs and counts of stretches, top down, by the hulls or by tables
 *   level_dp.c   the dynamic programme, bottom up, where hulls prove too little
 * All costs in units of one advance.
 */
#ifndef NEAP_PLAN_LEVELS_LEVEL_TABLES_H
#define NEAP_PLAN_LEVELS_LEVEL_TABLES_H

#include "plan/levels/convex_hull.h"
#include "plan/levels/level_solver.h"

/* Hulls of the rows of a level: m = 1..rows; rows beyond are like the last. */
struct neap__hull_rows {
	struct neap__hull_row {
		struct neap__hull p, o;
	} * row;
	int64_t rows, room;
	int unlimited;	/* without limit: one row, O_m-1 is O itself */
	int64_t stride; /* open: the split of every long stretch */
	int64_t far;	/* open: lengths beyond are split so, unasked */
};

enum neap__level_side { NEAP__LEVEL_LIVE, NEAP__LEVEL_SAVED }; /* O, P */

struct neap__level_part {
	int side, k;
	int64_t m, l;
};

struct neap__level_value {
	struct neap__level_counts c;
	int64_t choice; /* O: 1 writes; P: steps to advance, 0 for the levels below */
	uint64_t key;
};

struct neap__level_memo {
	struct neap__level_value *value;
	int64_t count, room;
	int64_t *slot; /* open addressing: index + 1 */
	int64_t mask;
};

/* Decisions of computed cells, ascending in l. */
struct neap__level_cells {
	struct neap__level_cell {
		int32_t l, choice; /* P's; the sign bit says that O does not write */
	} * cell;
	int64_t count, room;
};

struct neap__level_tables {
	struct neap__level_cells *row[NEAP__LEVELS_MOST];
	int64_t rows[NEAP__LEVELS_MOST];
};

struct neap__levels {
	struct neap__levels_problem problem;
	int closed;	       /* level 0 is Revolve's closed form */
	int truncated;	       /* not all places are used: tables would be too large */
	int64_t counted_slots; /* down Revolve's stack */
	double steepest;
	struct neap__hull zero;	   /* {0}: nothing below level 0 */
	struct neap__hull revolve; /* O of a closed level 0 */
	struct neap__hull_rows rows[NEAP__LEVELS_MOST];
	struct neap__level_memo memo;
	struct neap__level_tables *tables; /* NULL: decide by the hulls */
	struct neap__level_counts counts;
	double lower;
};

/* O and P rows as functions: the hull, m = 0 being the levels below. */
const struct neap__hull *neap__levels_o(const struct neap__levels *x, int k, int64_t m);
const struct neap__hull *neap__levels_p(const struct neap__levels *x, int k, int64_t m);
int64_t neap__levels_centre(const struct neap__levels *x, int k, int64_t m, int64_t l);

/* The value of a stretch, computed with all it needs. 0 or a negative code. */
int neap__level_memo_evaluate(
	struct neap__levels *x, struct neap__level_part s, const struct neap__level_value **value);
const struct neap__level_value *neap__level_memo_find(
	const struct neap__levels *x, struct neap__level_part s);
void neap__level_memo_clear(struct neap__level_memo *memo);

/*
 * Fills x->tables. `most`: no better cost is of interest. 1 done, 0 too much work, or
 * a negative code; *cost is the optimum, infinite where it is not below `most`.
 */
int neap__level_dp(struct neap__levels *x, double most, int64_t work, double *cost);
/* P's choice and O's of a cell, or -1 where it was not computed. */
int64_t neap__level_dp_choice(const struct neap__levels *x, struct neap__level_part s);
void neap__level_dp_free(struct neap__level_tables *tables);

#endif

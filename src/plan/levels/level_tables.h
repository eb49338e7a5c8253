/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_tables.h: the structs that the files of the level solver share; the symbols are those of
 * level_solver.h. Inside the solver all costs are in units of one advance, so f is 1.
 *
 *     level_solver.c   levels, builds the hulls, the answer
 *     level_hulls.c    the hull of a part
 *     level_memo.c     costs and counts of parts, top down, as the hulls or the tables decide
 *     level_dp.c       the dynamic program, bottom up, where the hulls prove too little
 */
#ifndef NEAP_PLAN_LEVELS_LEVEL_TABLES_H
#define NEAP_PLAN_LEVELS_LEVEL_TABLES_H

#include "plan/levels/convex_hull.h"
#include "plan/levels/level_solver.h"

/* Hulls of P_k,m and O_k,m of a level k, m = 1..rows; all later rows equal the last one. */
struct neap__hull_rows {
	struct neap__hull_row {
		struct neap__hull p, o;
	} * row;
	int64_t rows, room;
	int unlimited;	/* no limit of places: one row, in which O_k,m-1 is O_k itself */
	int64_t stride; /* unlimited: x of every part that is longer than `far` */
	int64_t far;	/* unlimited: see stride */
};

enum neap__level_side { NEAP__LEVEL_LIVE, NEAP__LEVEL_SAVED }; /* O, P */

/* The part O_k,m(l) or P_k,m(l). */
struct neap__level_part {
	int side, k;
	int64_t m, l;
};

/* The counts and the decision of a part, by its key. */
struct neap__level_value {
	struct neap__level_counts c;
	int64_t choice; /* O: 1 writes; P: steps to advance, 0 for the levels below */
	uint64_t key;
};

/* The parts evaluated so far, in the order of evaluation, and a hash table of their keys. */
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
	int closed;		/* level 0 is Revolve's closed form */
	int truncated;		/* not all places are used, since the tables would be too large */
	int64_t counted_slots;	/* slots whose saves were counted one by one */
	double steepest;	/* the largest slope of the hulls */
	struct neap__hull zero; /* the hull below level 0: {0} */
	struct neap__hull revolve; /* O of a closed level 0 */
	struct neap__hull_rows rows[NEAP__LEVELS_MOST];
	struct neap__level_memo memo;
	struct neap__level_tables *tables; /* NULL: decide by the hulls */
	struct neap__level_counts counts;
	double lower;
};

/* The hulls of O_k,m and P_k,m; O of m = 0 is that of the levels below. */
const struct neap__hull *neap__levels_o(const struct neap__levels *x, int k, int64_t m);
const struct neap__hull *neap__levels_p(const struct neap__levels *x, int k, int64_t m);
/* x of P_k,m(l) by the hulls (convex_hull.h). */
int64_t neap__levels_centre(const struct neap__levels *x, int k, int64_t m, int64_t l);

/* Evaluates a part and all parts that it needs. 0 or a negative code. */
int neap__level_memo_evaluate(
	struct neap__levels *x, struct neap__level_part s, const struct neap__level_value **value);
/* The value of a part, NULL where it was not evaluated. */
const struct neap__level_value *neap__level_memo_find(
	const struct neap__levels *x, struct neap__level_part s);
void neap__level_memo_clear(struct neap__level_memo *memo);

/*
 * Fills x->tables with all parts that a schedule cheaper than `most` can meet. Returns 1, 0
 * where `work` look-ups are too few, or a negative code. *cost gets the optimum, infinite
 * where it is not below `most`.
 */
int neap__level_dp(struct neap__levels *x, double most, int64_t work, double *cost);
/* The decision of a part: x of P, or whether O writes; -1 where it was not computed. */
int64_t neap__level_dp_choice(const struct neap__levels *x, struct neap__level_part s);
void neap__level_dp_free(struct neap__level_tables *tables);

#endif

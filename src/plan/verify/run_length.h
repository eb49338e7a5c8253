/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_length.h: long regular lists in a few rows, so that verify takes memory by the row and
 * not by the action. A run is `count` items, item i being (at + i gap, t + i step): records on
 * a tier (place, step), or recorded ranges on the stack of tapes (height, first step), each
 * `step` steps long. Records that come and go without order take a row each: where there are many
 * of these, a table by place takes their place.
 */
#ifndef NEAP_PLAN_VERIFY_RUN_LENGTH_H
#define NEAP_PLAN_VERIFY_RUN_LENGTH_H

#include <stdint.h>

struct neap__run {
	int64_t at, gap;
	int64_t t, step;
	int64_t count;
};

/* All zero to begin with; free with neap__run_length_free. */
struct neap__run_length {
	struct neap__run *run;
	int64_t count, room;
	int64_t highest; /* of all places that were ever put: those beyond it need no search */
	int64_t *table, table_room; /* the step at a place, -1: none; rows are of places beyond */
};

/* Records: distinct places. find: the step at a place, or -1. */
int neap__run_length_put(struct neap__run_length *r, int64_t place, int64_t t);
int64_t neap__run_length_find(const struct neap__run_length *r, int64_t place);
int neap__run_length_forget(struct neap__run_length *r, int64_t place);

/*
 * Tapes: a stack of ranges. reverse takes [t0, t1) off, NEAP_EILLEGAL unless it
 * is made of whole ranges; what lies above a hole stays where it is.
 */
int neap__run_length_overlap(const struct neap__run_length *r, int64_t t0, int64_t t1);
int neap__run_length_record(struct neap__run_length *r, int64_t t0, int64_t t1);
/* 1 if [t0, t1) is made of whole ranges. */
int neap__run_length_whole(const struct neap__run_length *r, int64_t t0, int64_t t1);
int neap__run_length_reverse(struct neap__run_length *r, int64_t t0, int64_t t1);
int64_t neap__run_length_height(const struct neap__run_length *r); /* steps up to the topmost */

void neap__run_length_free(struct neap__run_length *r);

#endif

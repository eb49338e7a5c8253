/* SPDX-License-Identifier: Apache-2.0 */
/* run_length.c: rows inserted, extended and cut. */
#include "plan/verify/run_length.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"

#define ROWS_MANY 256	     /* more rows than these become a table, */
#define TABLE_MOST (1 << 18) /* of so many places at most */

/* Makes room for a row at `i`; the row is not set. */
static int insert(struct neap__run_length *r, int64_t i)
{
	if (neap__grow(&r->run, &r->room, r->count + 1, sizeof *r->run) < 0)
		return neap__fail(-ENOMEM, "verify: out of memory");
	memmove(r->run + i + 1, r->run + i, (size_t)(r->count - i) * sizeof *r->run);
	r->count++;
	return 0;
}

/* Takes items [from, from + count) out of row i. */
static int cut(struct neap__run_length *r, int64_t i, int64_t from, int64_t count)
{
	struct neap__run row = r->run[i], after = row;
	after.at += (from + count) * row.gap;
	after.t += (from + count) * row.step;
	after.count = row.count - from - count;
	if (from > 0 && after.count > 0) {
		NEAP_TRY(insert(r, i + 1));
		r->run[i].count = from;
		r->run[i + 1] = after;
	} else if (from > 0) {
		r->run[i].count = from;
	} else if (after.count > 0) {
		r->run[i] = after;
	} else {
		memmove(r->run + i, r->run + i + 1, (size_t)(r->count - i - 1) * sizeof *r->run);
		r->count--;
	}
	return 0;
}

static int append(struct neap__run_length *r, struct neap__run row)
{
	NEAP_TRY(insert(r, r->count));
	r->run[r->count - 1] = row;
	return 0;
}

/* Index of `place` in a row, or -1. */
static int64_t item(const struct neap__run *row, int64_t place)
{
	int64_t off = place - row->at;
	if (row->count == 1)
		return off == 0 ? 0 : -1;
	if (off % row->gap || off / row->gap < 0 || off / row->gap >= row->count)
		return -1;
	return off / row->gap;
}

/* The record at `place` of the table, which grows. */
static int put_in_table(struct neap__run_length *r, int64_t place, int64_t t)
{
	int64_t before = r->table_room;
	if (neap__grow(&r->table, &r->table_room, place + 1, sizeof *r->table) < 0)
		return neap__fail(-ENOMEM, "verify: out of memory");
	for (int64_t i = before; i < r->table_room; i++)
		r->table[i] = -1;
	r->table[place] = t;
	return 0;
}

/* From many rows to a table. */
static int make_table(struct neap__run_length *r)
{
	for (int64_t i = 0; i < r->count; i++) {
		const struct neap__run *row = &r->run[i];
		for (int64_t k = 0; k < row->count; k++)
			NEAP_TRY(put_in_table(r, row->at + k * row->gap, row->t + k * row->step));
	}
	r->count = 0;
	return 0;
}

int neap__run_length_put(struct neap__run_length *r, int64_t place, int64_t t)
{
	if (place > r->highest)
		r->highest = place;
	if (r->count > ROWS_MANY && r->highest < TABLE_MOST)
		NEAP_TRY(make_table(r));
	if (r->table && place < TABLE_MOST)
		return put_in_table(r, place, t);
	if (r->count > 0) {
		struct neap__run *last = &r->run[r->count - 1];
		if (last->count == 1) {
			last->gap = place - last->at;
			last->step = t - last->t;
			last->count = 2;
			return 0;
		}
		if (place == last->at + last->count * last->gap &&
			t == last->t + last->count * last->step) {
			last->count++;
			return 0;
		}
	}
	return append(r, (struct neap__run){.at = place, .gap = 1, .t = t, .count = 1});
}

static int64_t row_of(const struct neap__run_length *r, int64_t place)
{
	for (int64_t i = place > r->highest ? -1 : r->count - 1; i >= 0; i--)
		if (item(&r->run[i], place) >= 0)
			return i;
	return -1;
}

static int in_table(const struct neap__run_length *r, int64_t place)
{
	return place >= 0 && place < r->table_room && r->table[place] >= 0;
}

int64_t neap__run_length_find(const struct neap__run_length *r, int64_t place)
{
	if (in_table(r, place))
		return r->table[place];
	int64_t i = row_of(r, place);
	return i < 0 ? -1 : r->run[i].t + item(&r->run[i], place) * r->run[i].step;
}

int neap__run_length_forget(struct neap__run_length *r, int64_t place)
{
	if (in_table(r, place)) {
		r->table[place] = -1;
		return 0;
	}
	int64_t i = row_of(r, place);
	return i < 0 ? NEAP_EILLEGAL : cut(r, i, item(&r->run[i], place), 1);
}

int64_t neap__run_length_height(const struct neap__run_length *r)
{
	if (r->count == 0)
		return 0;
	const struct neap__run *top = &r->run[r->count - 1];
	return top->at + top->count * top->gap;
}

int neap__run_length_overlap(const struct neap__run_length *r, int64_t t0, int64_t t1)
{
	for (int64_t i = 0; i < r->count; i++)
		if (t0 < r->run[i].t + r->run[i].count * r->run[i].step && r->run[i].t < t1)
			return 1;
	return 0;
}

int neap__run_length_record(struct neap__run_length *r, int64_t t0, int64_t t1)
{
	int64_t length = t1 - t0;
	if (r->count > 0) {
		struct neap__run *last = &r->run[r->count - 1];
		if (last->step == length && last->t + last->count * length == t0) {
			last->count++;
			return 0;
		}
	}
	return append(r, (struct neap__run){.at = neap__run_length_height(r),
				 .gap = length,
				 .t = t0,
				 .step = length,
				 .count = 1});
}

/* The row whose item ends at t1, or -1. */
static int64_t row_ending(const struct neap__run_length *r, int64_t t1)
{
	for (int64_t i = r->count - 1; i >= 0; i--) {
		int64_t off = t1 - r->run[i].t;
		if (off > 0 && off <= r->run[i].count * r->run[i].step && off % r->run[i].step == 0)
			return i;
	}
	return -1;
}

int neap__run_length_whole(const struct neap__run_length *r, int64_t t0, int64_t t1)
{
	while (t1 > t0) {
		int64_t i = row_ending(r, t1);
		if (i < 0)
			return 0;
		t1 = t0 > r->run[i].t
			     ? t1 - (t1 - t0 + r->run[i].step - 1) / r->run[i].step * r->run[i].step
			     : r->run[i].t;
	}
	return t1 == t0;
}

int neap__run_length_reverse(struct neap__run_length *r, int64_t t0, int64_t t1)
{
	while (t1 > t0) {
		int64_t i = row_ending(r, t1);
		if (i < 0)
			return NEAP_EILLEGAL;
		int64_t step = r->run[i].step, upto = (t1 - r->run[i].t) / step;
		int64_t take = (t1 - t0) / step;
		if (take > upto)
			take = upto;
		if (take == 0)
			return NEAP_EILLEGAL;
		NEAP_TRY(cut(r, i, upto - take, take));
		t1 -= take * step;
	}
	return 0;
}

void neap__run_length_free(struct neap__run_length *r)
{
	free(r->run);
	free(r->table);
	memset(r, 0, sizeof *r);
}

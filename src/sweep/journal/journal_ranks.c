/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_ranks.c: which commit ranks resume from, and which one counts. A file keeps two commits,
 * and number n overwrites number n - 2. While commit m is written, m - 1 is whole on all ranks. All
 * have m once all answers are good; then m + 1 comes next, over m - 1. Where one answer is bad, m +
 * 2 comes next, over m, since m - 1 must stay; m is whole on some ranks and is never written again.
 */
#include "sweep/journal/journal_ranks.h"
#include "base/fail.h"
#include "sys/clock.h"

/* A number in the range of agreements. */
static int64_t value_of(uint64_t number)
{
	return (int64_t)(number & INT64_MAX);
}

int neap__journal_meet(struct neap__agree_state *a, struct neap__journal *file, int rc)
{
	if (!neap__agrees(a))
		return rc;
	NEAP_TRY(neap__agree_code(a, NEAP__AGREE_JOURNAL, rc));
	int64_t number = value_of(neap__journal_number(file)), values[] = {number, -number};
	NEAP_TRY(neap__agree(a, NEAP__AGREE_JOURNAL, values, 2));
	if (values[0] != -values[1]) {
		a->started_over = 1;
		neap__journal_forget(file);
	}
	return 0;
}

int neap__journal_resume_from(struct neap__agree_state *a, struct neap__journal *file)
{
	int64_t least = INT64_MAX, most = 0, newest = 0;
	while (least != most) {
		int64_t own = value_of(neap__journal_newest(file, (uint64_t)least));
		int64_t values[] = {own, -own};
		NEAP_TRY(neap__agree(a, NEAP__AGREE_JOURNAL, values, 2));
		least = values[0];
		most = -values[1];
		newest = most > newest ? most : newest;
	}
	if (least == 0) {
		a->started_over |= newest > 0;
		return 0;
	}
	int64_t last = -value_of(neap__journal_last(file));
	NEAP_TRY(neap__agree(a, NEAP__AGREE_JOURNAL, &last, 1));
	neap__journal_take(file, (uint64_t)least, (uint64_t)-last);
	return 1;
}

int neap__journal_draw_number(struct neap__agree_state *a, uint64_t *number)
{
	*number = 0;
	if (!neap__agrees(a))
		return 0;
	int64_t value = value_of(neap__unique() >> 2 | 1);
	NEAP_TRY(neap__agree(a, NEAP__AGREE_JOURNAL, &value, 1));
	*number = (uint64_t)value;
	return 0;
}

int neap__journal_settle_commit(struct neap__agree_state *a, struct neap__journal *file, int rc)
{
	int64_t least = rc < 0 ? rc : 0;
	int broken = neap__agree(a, NEAP__AGREE_COMMIT, &least, 1);
	rc = broken < 0 ? broken : (int)least;
	neap__journal_settle(file, rc == 0);
	a->due = 0;
	return rc;
}

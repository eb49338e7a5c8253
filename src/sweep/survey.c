/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep/internal.h"
#include "base/fail.h"
#include "plan/schedule.h"

#include <errno.h>
#include <stdlib.h>

int64_t neap__piece_end(int64_t t, int64_t t1, int64_t seen, int record)
{
	int64_t end = t1;
	if (t < seen && seen < end)
		end = seen;
	if (record && t / NEAP__BLOCK < (end - 1) / NEAP__BLOCK)
		end = (t / NEAP__BLOCK + 1) * NEAP__BLOCK;
	return end;
}

/* Pieces of a recorded range [t0, t1), one more where `seen` falls inside. */
static int64_t pieces(int64_t t0, int64_t t1)
{
	return t1 <= t0 ? 0 : (t1 - 1) / NEAP__BLOCK - t0 / NEAP__BLOCK + 2;
}

static int check_tier(const struct neap_action *a, int ntiers)
{
	if (a->payload != NEAP_STATE)
		return neap__fail(NEAP_EILLEGAL, "a sweep moves states only, no %s",
			a->payload == NEAP_TAPE ? "tapes" : "logs");
	if (a->tier < 1 || a->tier > ntiers)
		return neap__fail(NEAP_EILLEGAL, "%s: there is no tier %d",
			neap_action_name(a->kind), a->tier);
	if (a->place < 0 || a->place >= INT64_MAX / 16)
		return neap__fail(NEAP_EILLEGAL, "%s: place %lld", neap_action_name(a->kind),
			(long long)a->place);
	return 0;
}

int neap__survey(struct neap__survey *survey, int ntiers, struct neap_schedule *schedule)
{
	struct neap_action a;
	int64_t extents = 0, ranges = 0;
	int rc;

	*survey = (struct neap__survey){0};
	while ((rc = neap_schedule_next(schedule, &a)) > 0) {
		if (a.slot >= survey->slots && a.kind >= NEAP_SAVE && a.kind <= NEAP_GET)
			survey->slots = a.slot + 1;
		if (a.kind == NEAP_RECORD) {
			extents += pieces(a.t0, a.t1);
			ranges++;
		} else if (a.kind == NEAP_BACKWARD) {
			extents -= pieces(a.t0, a.t1);
			ranges--;
		} else if (a.kind == NEAP_PUT || a.kind == NEAP_GET || a.kind == NEAP_FORGET) {
			NEAP_TRY(check_tier(&a, ntiers));
			if (a.place >= survey->places[a.tier - 1])
				survey->places[a.tier - 1] = a.place + 1;
		}
		if (extents > survey->extents)
			survey->extents = extents;
		if (ranges > survey->ranges)
			survey->ranges = ranges;
	}
	survey->queue = schedule->room;
	survey->tables = schedule->tables ? schedule->tables(schedule, 0) : 0;
	return rc;
}

int neap__survey_reserve(const struct neap__survey *survey, struct neap_schedule *schedule)
{
	if (schedule->tables) {
		int64_t rows = schedule->tables(schedule, survey->tables);
		if (rows < 0)
			return (int)rows;
	}
	if (schedule->room >= survey->queue)
		return 0;
	struct neap_action *queue = realloc(schedule->queue, survey->queue * sizeof *queue);
	if (!queue)
		return neap__fail_errno(ENOMEM, "queue of a schedule");
	schedule->queue = queue;
	schedule->room = survey->queue;
	return 0;
}

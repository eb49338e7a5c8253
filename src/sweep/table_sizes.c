/* SPDX-License-Identifier: Apache-2.0 */
/* table_sizes.c: counts what is there at every action of a schedule, and keeps the maxima. */
#include "sweep/table_sizes.h"
#include "sweep/steps/piece_ends.h"
#include "base/fail.h"
#include "plan/core/schedule.h"

#include <errno.h>
#include <stdlib.h>

/* What is there at one action. */
struct counts {
	int64_t extents, most;			  /* with the cuts for gaps; the maximum of that */
	int64_t whole, ranges, pieces, span_rows; /* whole: extents that are not cut */
	struct neap_action flights[NEAP_TICKETS]; /* of tapes; kind WAIT: none */
};

static int check_tier(const struct neap_action *a, int ntiers)
{
	if (a->payload > NEAP_LOG)
		return neap__fail(NEAP_EILLEGAL, "a sweep moves states, tapes and logs only");
	if (a->tier < 1 || a->tier > ntiers)
		return neap__fail(NEAP_EILLEGAL, "%s: there is no tier %d",
			neap_action_name(a->kind), a->tier);
	if (a->place < 0 || a->place >= INT64_MAX / 16)
		return neap__fail(NEAP_EILLEGAL, "%s: place %lld", neap_action_name(a->kind),
			(long long)a->place);
	return 0;
}

static void grow(int64_t *most, int64_t value)
{
	if (value > *most)
		*most = value;
}

static int transfer(struct neap__table_sizes *sizes, struct counts *now,
	const struct neap_action *a, int ntiers)
{
	int tier = a->tier - 1;
	NEAP_TRY(check_tier(a, ntiers));
	if (a->payload == NEAP_STATE) {
		grow(&sizes->places[tier], a->place + 1);
		return 0;
	}
	int64_t n = neap__pieces_of(a);
	grow(&sizes->tape_places[tier], a->place + 1);
	sizes->scattered = 1;
	if (a->kind == NEAP_FORGET) {
		now->pieces -= n;
		return 0;
	}
	grow(&(a->payload == NEAP_LOG ? sizes->longest_log : sizes->longest)[tier], a->t1 - a->t0);
	grow(&sizes->spans, n);
	if (a->kind == NEAP_PUT)
		now->pieces += n;
	else
		now->extents += n;
	grow(&sizes->pieces, now->pieces);
	grow(&sizes->span_rows, ++now->span_rows);
	if (a->ticket >= 0 && a->ticket < NEAP_TICKETS)
		now->flights[a->ticket] = *a;
	return 0;
}

static void landed(struct counts *now, const struct neap_action *a)
{
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS || now->flights[a->ticket].kind == NEAP_WAIT)
		return;
	struct neap_action *flight = &now->flights[a->ticket];
	int tapes = flight->payload == NEAP_TAPE;
	if (flight->kind == NEAP_PUT) {
		now->extents -= neap__pieces_of(flight);
		now->ranges -= tapes;
	} else {
		now->ranges += tapes;
	}
	flight->kind = NEAP_WAIT;
	now->span_rows--;
}

static int count_action(struct neap__table_sizes *sizes, struct counts *now,
	const struct neap_action *a, int ntiers)
{
	if (a->kind >= NEAP_SAVE && a->kind <= NEAP_GET && a->payload == NEAP_STATE)
		grow(&sizes->slots, a->slot + 1);
	if (a->payload == NEAP_LOG && (a->kind == NEAP_ADVANCE || a->kind == NEAP_DROP)) {
		int64_t n = neap__pieces_of(a);
		now->extents += a->kind == NEAP_ADVANCE ? n : -n;
		sizes->scattered = 1;
	} else if (a->kind == NEAP_DROP && a->payload == NEAP_TAPE) {
		now->extents -= neap__cut_pieces(a->t0, a->t1);
		now->ranges--;
		sizes->scattered = 1;
	} else if (a->kind == NEAP_RECORD) {
		now->extents += neap__cut_pieces(a->t0, a->t1);
		now->whole += neap__whole_pieces(a->t0, a->t1);
		now->ranges++;
	} else if (a->kind == NEAP_BACKWARD) {
		now->extents -= neap__cut_pieces(a->t0, a->t1);
		now->whole -= neap__whole_pieces(a->t0, a->t1);
		now->ranges--;
	} else if (a->kind == NEAP_PUT || a->kind == NEAP_GET || a->kind == NEAP_FORGET) {
		NEAP_TRY(transfer(sizes, now, a, ntiers));
	} else if (a->kind == NEAP_WAIT) {
		landed(now, a);
	}
	grow(&sizes->extents, now->whole);
	grow(&now->most, now->extents);
	grow(&sizes->ranges, now->ranges);
	return 0;
}

int neap__table_sizes(struct neap__table_sizes *sizes, int ntiers, struct neap_schedule *schedule)
{
	struct counts now = {0};
	struct neap_action a;
	int rc;

	*sizes = (struct neap__table_sizes){0};
	for (int i = 0; i < NEAP_TICKETS; i++)
		now.flights[i].kind = NEAP_WAIT;
	while ((rc = neap_schedule_next(schedule, &a)) > 0)
		NEAP_TRY(count_action(sizes, &now, &a, ntiers));
	if (sizes->scattered)
		sizes->extents = now.most;
	sizes->queue = schedule->room;
	sizes->tables = schedule->tables ? schedule->tables(schedule, 0) : 0;
	return rc;
}

void neap__table_sizes_join(struct neap__table_sizes *sizes, const struct neap__table_sizes *other)
{
	grow(&sizes->slots, other->slots);
	grow(&sizes->extents, other->extents);
	grow(&sizes->ranges, other->ranges);
	grow(&sizes->pieces, other->pieces);
	grow(&sizes->spans, other->spans);
	grow(&sizes->span_rows, other->span_rows);
	grow(&sizes->tables, other->tables);
	sizes->scattered |= other->scattered;
	sizes->queue = other->queue > sizes->queue ? other->queue : sizes->queue;
	for (int i = 0; i < NEAP_TIERS_MAX; i++) {
		grow(&sizes->places[i], other->places[i]);
		grow(&sizes->tape_places[i], other->tape_places[i]);
		grow(&sizes->longest[i], other->longest[i]);
		grow(&sizes->longest_log[i], other->longest_log[i]);
	}
}

int neap__table_sizes_reserve(const struct neap__table_sizes *sizes, struct neap_schedule *schedule)
{
	if (schedule->tables) {
		int64_t rows = schedule->tables(schedule, sizes->tables);
		if (rows < 0)
			return (int)rows;
	}
	if (schedule->room >= sizes->queue)
		return 0;
	struct neap_action *queue = realloc(schedule->queue, sizes->queue * sizeof *queue);
	if (!queue)
		return neap__fail_errno(ENOMEM, "queue of a schedule");
	schedule->queue = queue;
	schedule->room = sizes->queue;
	return 0;
}

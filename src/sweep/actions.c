/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actions.c: checks and performs one action of a schedule; the table at the end has a function a
 * kind. An action that a commit interrupted goes on from journal.phase.
 */
#include "sweep/actions.h"
#include "sweep/arena/arena_logs.h"
#include "sweep/arena/arena_space.h"
#include "sweep/steps/copies.h"
#include "sweep/steps/counts.h"
#include "sweep/steps/pieces.h"
#include "sweep/arena/recorded_ranges.h"
#include "sweep/repair/recover_states.h"
#include "sweep/repair/recover_tapes.h"
#include "sweep/steps/steps.h"
#include "sweep/transfers/tape_transfer.h"
#include "sweep/transfers/transfer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "store/tier_state.h"

static int illegal(const struct neap_action *a, const char *what)
{
	return neap__fail(NEAP_EILLEGAL, "%s [%lld, %lld) slot %lld: %s", neap_action_name(a->kind),
		(long long)a->t0, (long long)a->t1, (long long)a->slot, what);
}

static int check_live(const struct neap_sweep *s, const struct neap_action *a, int changes)
{
	if (s->live_t != a->t0)
		return illegal(a, "the live state is at another step");
	if (changes && s->live_puts)
		return illegal(a, "the live state is being sent");
	return 0;
}

static int check_range(const struct neap_sweep *s, const struct neap_action *a)
{
	if (a->t0 < 0 || a->t1 < a->t0 || a->t1 > s->problem.chain.steps)
		return illegal(a, "no such steps");
	return 0;
}

static int check_slot(const struct neap_sweep *s, const struct neap_action *a, int state)
{
	if (a->slot < 0 || a->slot >= s->arena.nslots)
		return illegal(a, "no such slot");
	const struct neap__slot *slot = &s->arena.slots[a->slot];
	if (slot->state != state || (state == NEAP__SLOT_HELD && slot->t != a->t0))
		return illegal(a, "the slot holds something else");
	return 0;
}

static int advance(struct neap_sweep *s, const struct neap_action *a)
{
	NEAP_TRY(check_range(s, a));
	if (s->journal.phase == NEAP__ACTION_NOT_BEGUN)
		NEAP_TRY(check_live(s, a, 1));
	s->journal.phase = NEAP__ACTION_BEGUN;
	return a->payload == NEAP_LOG ? neap__log_steps(s, a->t1) : neap__step_advance(s, a->t1);
}

/* Makes room for one more tape by packing slots and freeing states kept for recovery. */
static int more_room(struct neap_sweep *s)
{
	const struct neap__arena *arena = &s->arena;
	return neap__arena_space_gap(s, neap__worst(s), 0) == 0 &&
	       neap__arena_gap(arena) >= neap__worst(s) && arena->nextents < arena->extents_max;
}

static int begin_record(struct neap_sweep *s, const struct neap_action *a)
{
	NEAP_TRY(check_live(s, a, 1));
	NEAP_TRY(neap__ranges_add(s, a->t0, a->t1));
	uint64_t tape = s->problem.chain.tape, worst = neap__worst(s);
	uint64_t planned = neap__sat_mul((uint64_t)(a->t1 - a->t0), tape);
	if (s->sizes.scattered)
		return 0;
	return neap__arena_space_gap(s, neap__sat_add(planned, worst - tape), 0);
}

static int record(struct neap_sweep *s, const struct neap_action *a)
{
	NEAP_TRY(check_range(s, a));
	if (a->t0 == a->t1)
		return check_live(s, a, 1);
	if (s->journal.phase == NEAP__ACTION_NOT_BEGUN)
		NEAP_TRY(begin_record(s, a));
	if (s->journal.phase != NEAP__ACTION_OVERFLOWED) {
		s->journal.phase = NEAP__ACTION_BEGUN;
		do
			NEAP_TRY(neap__step_record(s, a->t1));
		while (s->live_t < a->t1 && !s->sizes.scattered && more_room(s));
		if (s->live_t == a->t1)
			return 0;
		neap__count_overflow(s, s->live_t, a->t1);
		if (s->sizes.scattered)
			NEAP_TRY(neap__transfer_keep_state(s));
	}
	s->journal.phase = NEAP__ACTION_OVERFLOWED;
	return neap__step_advance(s, a->t1);
}

static int turn(struct neap_sweep *s, const struct neap_action *a)
{
	if (a->t0 != s->problem.chain.steps || s->position >= 0)
		return illegal(a, "it belongs at the end, once");
	NEAP_TRY(check_live(s, a, 0));
	return neap__step_turn(s);
}

static int backward(struct neap_sweep *s, const struct neap_action *a)
{
	NEAP_TRY(check_range(s, a));
	if (s->journal.phase == NEAP__ACTION_NOT_BEGUN && s->position != a->t1)
		return illegal(a, "the adjoint is at another step");
	if (a->t0 == a->t1)
		return 0;
	s->journal.phase = NEAP__ACTION_BEGUN;
	const struct neap__range *range = neap__ranges_find(s, a->t0, a->t1);
	if (!range)
		return illegal(a, "these steps were not recorded");
	int64_t low = range->t0;
	while (s->position > a->t0) {
		int64_t below;
		NEAP_TRY(neap__step_begin_piece(s));
		struct neap__arena_extent *tape = neap__arena_find(&s->arena, s->position, &below);
		if (tape && tape->t0 >= a->t0) {
			NEAP_TRY(neap__step_backward(s, tape));
			continue;
		}
		if (tape)
			neap__arena_pop(&s->arena, tape); /* a recovery made it, across t0 */
		NEAP_TRY(neap__recover_tapes(s, low, a->t0, s->position));
		if (s->fallback == NEAP__FALLBACK_DUE)
			return 0;
	}
	s->live_t = -1;
	(void)neap__transfer_resume(s);
	NEAP_TRY(neap__ranges_cut(s, a->t0, a->t1));
	/* Where tapes were lost, more will be: then the states kept below serve again. */
	if (low == a->t0 && !(s->sizes.scattered && s->stats.recoveries))
		neap__recover_state_drop_all(s);
	return 0;
}

static int save(struct neap_sweep *s, const struct neap_action *a)
{
	NEAP_TRY(check_live(s, a, 0));
	NEAP_TRY(check_slot(s, a, NEAP__SLOT_FREE));
	NEAP_TRY(neap__arena_space_slot(s));
	neap__arena_take(&s->arena, a->slot);
	struct neap__slot *slot = &s->arena.slots[a->slot];
	slot->state = NEAP__SLOT_HELD;
	slot->t = a->t0;
	return neap__copy_save(s, neap__arena_slot(&s->arena, a->slot));
}

static int load(struct neap_sweep *s, const struct neap_action *a)
{
	NEAP_TRY(check_slot(s, a, NEAP__SLOT_HELD));
	if (s->live_puts)
		return illegal(a, "the live state is being sent");
	return neap__copy_load(s, neap__arena_slot(&s->arena, a->slot), a->t0);
}

static int drop(struct neap_sweep *s, const struct neap_action *a)
{
	if (a->payload == NEAP_LOG) {
		neap__log_drop(s, a->t0, a->t1);
		return 0;
	}
	if (a->payload == NEAP_TAPE) {
		NEAP_TRY(check_range(s, a));
		NEAP_TRY(neap__ranges_cut(s, a->t0, a->t1));
		neap__arena_drop_tapes(&s->arena, a->t0, a->t1);
		return 0;
	}
	NEAP_TRY(check_slot(s, a, NEAP__SLOT_HELD));
	if (s->arena.slots[a->slot].in_flight)
		return illegal(a, "the slot is being sent");
	neap__arena_drop(&s->arena, a->slot);
	return 0;
}

static int forget(struct neap_sweep *s, const struct neap_action *a)
{
	if (a->tier < 1 || a->tier > s->problem.ntiers || a->place < 0)
		return illegal(a, "no such place");
	if (a->payload != NEAP_STATE)
		return neap__tape_transfer_forget(s, a);
	if (a->place >= s->sizes.places[a->tier - 1])
		return illegal(a, "no such place");
	s->state_records[a->tier - 1][a->place] = NEAP__RECORD_NONE;
	(void)neap__tier_forget(s->tiers[a->tier - 1], a->place);
	return 0;
}

static int put(struct neap_sweep *s, const struct neap_action *a)
{
	if (a->payload == NEAP_STATE)
		return neap__transfer_put(s, a);
	NEAP_TRY(check_range(s, a));
	return neap__tape_transfer_put(s, a);
}

static int get(struct neap_sweep *s, const struct neap_action *a)
{
	if (a->payload == NEAP_STATE)
		return neap__transfer_get(s, a);
	NEAP_TRY(check_range(s, a));
	return neap__tape_transfer_get(s, a);
}

/* Ends any ticket; a state that could not be read is recovered. */
static int wait_for(struct neap_sweep *s, const struct neap_action *a)
{
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS ||
		s->tickets[a->ticket].state == NEAP__TICKET_FREE)
		return neap__fail(NEAP_EILLEGAL, "wait: nothing has ticket %d", a->ticket);
	struct neap__ticket *ticket = &s->tickets[a->ticket];
	if (ticket->state == NEAP__TICKET_IN_FLIGHT)
		neap__transfer_end(
			s, ticket, ticket->request.put ? NEAP_STALL_PUT : NEAP_STALL_GET);
	if (ticket->request.payload)
		return neap__tape_transfer_wait(s, ticket);
	ticket->state = NEAP__TICKET_FREE;

	struct neap__slot *slot = ticket->slot == NEAP_LIVE ? NULL : &s->arena.slots[ticket->slot];
	if (slot)
		slot->in_flight--;
	else if (ticket->request.put)
		s->live_puts--;
	if (ticket->request.answer < 0)
		neap__transfer_mark_bad(s, ticket->request.tier, ticket->place, ticket->request.t);
	if (ticket->request.put)
		return 0;
	if (ticket->request.answer < 0)
		return neap__recover_state(s, ticket->slot, ticket->request.t);
	s->rewrite_failures[ticket->request.tier - 1] = 0;
	if (!slot)
		return neap__copy_load(s, neap__transit(s), ticket->request.t);
	slot->state = NEAP__SLOT_HELD;
	return 0;
}

int neap__action_perform(struct neap_sweep *s, const struct neap_action *a)
{
	static int (*const rows[])(struct neap_sweep *, const struct neap_action *) = {
		[NEAP_ADVANCE] = advance,
		[NEAP_RECORD] = record,
		[NEAP_TURN] = turn,
		[NEAP_BACKWARD] = backward,
		[NEAP_SAVE] = save,
		[NEAP_LOAD] = load,
		[NEAP_DROP] = drop,
		[NEAP_PUT] = put,
		[NEAP_GET] = get,
		[NEAP_WAIT] = wait_for,
		[NEAP_FORGET] = forget,
	};
	if (a->kind >= NEAP_ACTION_KINDS)
		return neap__fail(NEAP_EILLEGAL, "action %d is unknown", a->kind);
	NEAP_TRY(rows[a->kind](s, a));
	NEAP_TRY(neap__memory_answer(&s->arena.memory));
	neap__tape_transfer_resume(s);
	neap__journal_action_done(s, a);
	return 0;
}

/*
 * A slot in flight cannot move. States above it that are needed earlier are dropped meanwhile, and
 * tapes could not use the room that they leave. So where room is short, the slot changes places
 * with the topmost of these states before the GET is issued.
 */
static void move_up(struct neap_sweep *s, int64_t awaited)
{
	struct neap__arena *arena = &s->arena;
	const struct neap__slot *slot = &arena->slots[awaited];

	if (neap__arena_gap(arena) >= neap__sat_add(arena->state, neap__worst(s)))
		return;
	for (int64_t at = 0; at < slot->position; at++) {
		const struct neap__slot *other = &arena->slots[arena->occupant[at]];
		if (other->state == NEAP__SLOT_HELD && other->in_flight == 0 &&
			other->t > slot->t) {
			neap__arena_swap(arena, awaited, arena->occupant[at]);
			return;
		}
	}
}

int neap__transfer_get(struct neap_sweep *s, const struct neap_action *a)
{
	struct neap__ticket *ticket = NULL;
	NEAP_TRY(neap__ticket_begin(s, a, &ticket));
	int64_t held = *neap__transfer_record_at(s, a->tier, a->place);
	if (held != a->t0 && held != neap__record_bad(a->t0))
		return neap__fail(NEAP_EILLEGAL, "get: place %lld does not hold state %lld",
			(long long)a->place, (long long)a->t0);
	if (a->slot == NEAP_LIVE) {
		if (s->live_puts)
			return neap__fail(NEAP_EILLEGAL, "get: the live state is being sent");
		s->live_t = -1;
	} else {
		struct neap__slot *slot = &s->arena.slots[a->slot];
		if (slot->state != NEAP__SLOT_FREE)
			return neap__fail(
				NEAP_EILLEGAL, "get: slot %lld is in use", (long long)a->slot);
		NEAP_TRY(neap__arena_space_slot(s));
		neap__arena_take(&s->arena, a->slot);
		slot->state = NEAP__SLOT_AWAITED;
		slot->t = a->t0;
		move_up(s, a->slot);
		slot->in_flight++;
	}
	if (neap__record_is_bad(held))
		neap__ticket_answered(ticket, NEAP_ELOST);
	else
		neap__transfer_issue_get(s, ticket);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify: one pass over the actions, keeping what a sweep would keep: the slots,
 * the tapes, the places of the tiers and the transfers in flight. Memory is
 * O(slots + runs): tapes and places are kept as runs of equal spacing, so that
 * 10^7 checkpoints that a strategy sends out in order are one row.
 *
 * The peak is that of the sweep's layout: slots at the top of the arena, which
 * packs them, and tapes a stack from the bottom. So it counts the slots in use and
 * goes up to the topmost tape, gaps included; where tapes travel or logs are kept there
 * is no stack to speak of, and only what is there counts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "plan/verify/verify_join.h"
#include "plan/verify/run_length.h"
#include "plan/core/stage_sizes.h"
#include "plan/core/sizing.h"

#define SLOTS_MOST ((int64_t)1 << 31)

enum verify_standing { FREE, HELD, ARRIVING };

struct holder { /* a slot, or the live state */
	int64_t t;
	int32_t leaving; /* PUTs in flight from it */
	int32_t standing;
};

struct verify_flight {
	int kind; /* NEAP_PUT, NEAP_GET; 0: ticket free (an ADVANCE has no ticket) */
	int tier;
	int payload;
	int64_t slot, t, t1, place;
};

struct verify_run {
	const struct neap_problem *p;
	struct neap_verdict *out;
	struct holder live, *slots;
	int64_t room, held; /* of slots: allocated; in use */
	struct neap__run_length tapes, logs;
	int64_t steps_taped;  /* steps whose tapes take room: there, leaving or arriving */
	int64_t steps_logged; /* the same of logs */
	int travelled;	      /* tapes did, or there were logs */
	uint64_t peak_held;   /* with the tapes that are there, without gaps */
	struct verify_store {
		struct neap__run_length states, from, to; /* places of states; of tapes: t0, t1 */
		struct neap__run_length logs;		  /* those of the latter that are of logs */
		int64_t state_top, tape_top;		  /* highest place used, plus 1 */
		int64_t longest, longest_log;		  /* steps of the longest record */
	} stores[NEAP_TIERS_MAX];
	struct verify_flight flights[NEAP_TICKETS];
	int64_t in_flight;
	int64_t adjoint; /* -1: none yet */
	int turned;
};

#define ILLEGAL(...) neap__fail(NEAP_EILLEGAL, __VA_ARGS__)
typedef long long ll;

static int range(const struct verify_run *v, const struct neap_action *a)
{
	if (a->t0 < 0 || a->t1 <= a->t0 || a->t1 > v->p->chain.steps)
		return ILLEGAL("range [%lld, %lld) is not within [0, %lld)", (ll)a->t0, (ll)a->t1,
			(ll)v->p->chain.steps);
	return 0;
}

/* The live state must be at t. */
static int live_at(const struct verify_run *v, int64_t t)
{
	if (v->live.standing == ARRIVING)
		return ILLEGAL("the live state is still arriving");
	if (v->live.standing == FREE)
		return ILLEGAL("the live state is undefined, needed at %lld", (ll)t);
	if (v->live.t != t)
		return ILLEGAL("the live state is at %lld, needed at %lld", (ll)v->live.t, (ll)t);
	return 0;
}

static int live_may_change(const struct verify_run *v)
{
	if (v->live.leaving)
		return ILLEGAL("the live state is still leaving for a tier");
	return 0;
}

/* Grows the table so that slot n exists; NULL without memory or for a bad number. */
static struct holder *slot_row(struct verify_run *v, int64_t n)
{
	if (n < 0 || n >= SLOTS_MOST)
		return NULL;
	if (n >= v->room) {
		int64_t room = v->room ? v->room : 16;
		while (room <= n)
			room *= 2;
		struct holder *slots = realloc(v->slots, (size_t)room * sizeof *slots);
		if (!slots)
			return NULL;
		memset(slots + v->room, 0, (size_t)(room - v->room) * sizeof *slots);
		v->slots = slots;
		v->room = room;
	}
	return &v->slots[n];
}

static int slot_find(struct verify_run *v, int64_t n, struct holder **row)
{
	*row = slot_row(v, n);
	if (!*row)
		return n >= 0 && n < SLOTS_MOST ? neap__fail(-ENOMEM, "verify: out of memory")
						: ILLEGAL("no slot %lld", (ll)n);
	return 0;
}

static int slot_fill(struct verify_run *v, int64_t n, int64_t t, int standing)
{
	struct holder *row;
	NEAP_TRY(slot_find(v, n, &row));
	if (row->standing != FREE)
		return ILLEGAL("slot %lld is in use", (ll)n);
	*row = (struct holder){.t = t, .standing = standing};
	v->held++;
	if (n >= v->out->slots)
		v->out->slots = n + 1;
	return 0;
}

static int slot_holds(struct verify_run *v, int64_t n, int64_t t, struct holder **row)
{
	NEAP_TRY(slot_find(v, n, row));
	if ((*row)->standing == ARRIVING)
		return ILLEGAL("slot %lld is still arriving", (ll)n);
	if ((*row)->standing != HELD)
		return ILLEGAL("slot %lld is empty", (ll)n);
	if ((*row)->t != t)
		return ILLEGAL("slot %lld holds step %lld, not %lld", (ll)n, (ll)(*row)->t, (ll)t);
	return 0;
}

/* What there is of tapes or of logs. */
static struct neap__run_length *kept(struct verify_run *v, int payload)
{
	return payload == NEAP_LOG ? &v->logs : &v->tapes;
}

static int64_t *kept_steps(struct verify_run *v, int payload)
{
	return payload == NEAP_LOG ? &v->steps_logged : &v->steps_taped;
}

/* What the tapes or logs of an action take on a channel. */
static uint64_t sent_bytes(const struct verify_run *v, const struct neap_action *a)
{
	return (uint64_t)(a->t1 - a->t0) *
	       (a->payload == NEAP_LOG ? v->p->chain.log : neap__tape_sent(&v->p->chain));
}

/* "tapes" or "logs" */
static const char *plural(int payload)
{
	return payload == NEAP_LOG ? "logs" : "tapes";
}

/* The tapes or logs of [t0, t1) must not be on their way out (NEAP_PUT) or in (NEAP_GET). */
static int at_rest(const struct verify_run *v, int payload, int kind, int64_t t0, int64_t t1)
{
	for (int i = 0; v->travelled && v->in_flight && i < NEAP_TICKETS; i++) {
		const struct verify_flight *f = &v->flights[i];
		if (f->kind == kind && f->payload == payload && f->t < t1 && t0 < f->t1)
			return ILLEGAL("%s of [%lld, %lld) are still %s", plural(payload), (ll)f->t,
				(ll)f->t1, kind == NEAP_PUT ? "leaving for a tier" : "arriving");
	}
	return 0;
}

/* No tape, or log, of the range may be there or arriving. */
static int absent(struct verify_run *v, const struct neap_action *a, int payload)
{
	if (neap__run_length_overlap(kept(v, payload), a->t0, a->t1))
		return ILLEGAL("a %s of [%lld, %lld) is there already",
			payload == NEAP_LOG ? "log" : "tape", (ll)a->t0, (ll)a->t1);
	return at_rest(v, payload, NEAP_GET, a->t0, a->t1);
}

static int whole(struct verify_run *v, const struct neap_action *a, int payload)
{
	if (!neap__run_length_whole(kept(v, payload), a->t0, a->t1))
		return ILLEGAL("the %s of [%lld, %lld) are not there as whole records",
			plural(payload), (ll)a->t0, (ll)a->t1);
	return 0;
}

static int logs_exist(struct verify_run *v)
{
	if (!v->p->chain.log)
		return ILLEGAL("there are no logs in this problem");
	v->travelled = 1;
	return 0;
}

static int do_advance(struct verify_run *v, const struct neap_action *a)
{
	NEAP_TRY(range(v, a));
	NEAP_TRY(live_at(v, a->t0));
	NEAP_TRY(live_may_change(v));
	if (a->payload == NEAP_LOG) {
		NEAP_TRY(logs_exist(v));
		NEAP_TRY(absent(v, a, NEAP_LOG));
		NEAP_TRY(neap__run_length_record(&v->logs, a->t0, a->t1));
		v->steps_logged += a->t1 - a->t0;
	}
	v->live.t = a->t1;
	v->out->advance_steps += a->t1 - a->t0;
	return 0;
}

static int do_record(struct verify_run *v, const struct neap_action *a)
{
	NEAP_TRY(range(v, a));
	NEAP_TRY(live_at(v, a->t0));
	NEAP_TRY(live_may_change(v));
	if (a->payload == NEAP_LOG) {
		NEAP_TRY(logs_exist(v));
		NEAP_TRY(whole(v, a, NEAP_LOG));
		NEAP_TRY(at_rest(v, NEAP_LOG, NEAP_PUT, a->t0, a->t1));
	}
	NEAP_TRY(absent(v, a, NEAP_TAPE));
	NEAP_TRY(neap__run_length_record(&v->tapes, a->t0, a->t1));
	v->steps_taped += a->t1 - a->t0;
	if (v->p->chain.flags & NEAP_CHAIN_CLASSIC && !(v->p->chain.flags & NEAP_CHAIN_MIXED) &&
		neap__run_length_height(&v->tapes) > 1)
		return ILLEGAL("more than one tape in a classic problem");
	v->live.t = a->t1;
	v->out->record_steps += a->t1 - a->t0;
	return 0;
}

static int do_turn(struct verify_run *v, const struct neap_action *a)
{
	(void)a;
	if (v->turned)
		return ILLEGAL("a second turn");
	NEAP_TRY(live_at(v, v->p->chain.steps));
	v->turned = 1;
	v->adjoint = v->p->chain.steps;
	return 0;
}

static int do_backward(struct verify_run *v, const struct neap_action *a)
{
	NEAP_TRY(range(v, a));
	if (!v->turned)
		return ILLEGAL("backward before the turn");
	if (v->adjoint != a->t1)
		return ILLEGAL("the adjoint is at %lld, needed at %lld", (ll)v->adjoint, (ll)a->t1);
	NEAP_TRY(live_may_change(v));
	NEAP_TRY(at_rest(v, NEAP_TAPE, NEAP_PUT, a->t0, a->t1));
	NEAP_TRY(whole(v, a, NEAP_TAPE));
	NEAP_TRY(neap__run_length_reverse(&v->tapes, a->t0, a->t1));
	v->steps_taped -= a->t1 - a->t0;
	v->adjoint = a->t0;
	v->out->backward_steps += a->t1 - a->t0;
	if (v->live.standing == HELD)
		v->live.standing = FREE;
	return 0;
}

static int do_save(struct verify_run *v, const struct neap_action *a)
{
	NEAP_TRY(live_at(v, a->t0));
	return slot_fill(v, a->slot, a->t0, HELD);
}

static int do_load(struct verify_run *v, const struct neap_action *a)
{
	struct holder *row;
	NEAP_TRY(slot_holds(v, a->slot, a->t0, &row));
	if (v->live.standing == ARRIVING)
		return ILLEGAL("the live state is still arriving");
	NEAP_TRY(live_may_change(v));
	v->live.t = a->t0;
	v->live.standing = HELD;
	return 0;
}

static int drop_log(struct verify_run *v, const struct neap_action *a)
{
	NEAP_TRY(range(v, a));
	NEAP_TRY(at_rest(v, NEAP_LOG, NEAP_PUT, a->t0, a->t1));
	NEAP_TRY(whole(v, a, NEAP_LOG));
	v->steps_logged -= a->t1 - a->t0;
	return neap__run_length_reverse(&v->logs, a->t0, a->t1);
}

static int do_drop(struct verify_run *v, const struct neap_action *a)
{
	struct holder *row;
	if (a->payload == NEAP_LOG)
		return drop_log(v, a);
	NEAP_TRY(slot_holds(v, a->slot, a->t0, &row));
	if (row->leaving)
		return ILLEGAL("slot %lld is still leaving for a tier", (ll)a->slot);
	row->standing = FREE;
	v->held--;
	return 0;
}

/* Tier and ticket of a transfer; the ticket must be free. */
static int transfer_check(struct verify_run *v, const struct neap_action *a)
{
	if (a->tier < 1 || a->tier > v->p->ntiers)
		return ILLEGAL("no tier %d", a->tier);
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS)
		return ILLEGAL("no ticket %d", a->ticket);
	if (v->flights[a->ticket].kind)
		return ILLEGAL("ticket %d is in flight", a->ticket);
	if (a->payload > NEAP_LOG)
		return ILLEGAL("only states, tapes and logs travel");
	if (a->payload != NEAP_STATE &&
		v->p->chain.flags & (NEAP_CHAIN_CLASSIC | NEAP_CHAIN_TAPES_STAY))
		return ILLEGAL("%s do not travel in this problem", plural(a->payload));
	if (a->place < 0 || a->place >= INT64_MAX / 16)
		return ILLEGAL("no place %lld", (ll)a->place);
	if (a->payload != NEAP_STATE && a->slot != 0)
		return ILLEGAL("%s have no slot %lld", plural(a->payload), (ll)a->slot);
	return a->payload != NEAP_STATE ? range(v, a) : 0;
}

static void take_off(struct verify_run *v, const struct neap_action *a)
{
	v->flights[a->ticket] = (struct verify_flight){.kind = a->kind,
		.tier = a->tier - 1,
		.payload = a->payload,
		.slot = a->slot,
		.t = a->t0,
		.t1 = a->t1,
		.place = a->place};
	if (++v->in_flight > v->out->transfers_in_flight)
		v->out->transfers_in_flight = v->in_flight;
}

/* Room for the record at `place`: states are numbered apart from tapes and logs. */
static int store_grow(struct verify_run *v, const struct neap_action *a)
{
	struct verify_store *x = &v->stores[a->tier - 1];
	struct neap_tier_use *use = &v->out->tiers[a->tier - 1];
	uint64_t states, tapes, each, log;
	if (a->payload != NEAP_STATE) {
		int64_t *longest = a->payload == NEAP_LOG ? &x->longest_log : &x->longest;
		if (a->place >= x->tape_top)
			x->tape_top = a->place + 1;
		if (a->t1 - a->t0 > *longest)
			*longest = a->t1 - a->t0;
	} else if (a->place >= x->state_top) {
		x->state_top = a->place + 1;
	}
	each = (uint64_t)x->longest * v->p->chain.tape;
	log = (uint64_t)x->longest_log * v->p->chain.log;
	each = log > each ? log : each;
	if (neap__mul_u64(&states, (uint64_t)x->state_top, v->p->chain.state) ||
		neap__mul_u64(&tapes, (uint64_t)x->tape_top, each) ||
		neap__add_u64(&tapes, tapes, states) || tapes > v->p->tiers[a->tier - 1].capacity)
		return ILLEGAL("place %lld is beyond the tier's capacity", (ll)a->place);
	use->peak_bytes = tapes;
	return 0;
}

static int put_tapes(struct verify_run *v, const struct neap_action *a)
{
	struct verify_store *x = &v->stores[a->tier - 1];
	if (a->payload == NEAP_LOG)
		NEAP_TRY(logs_exist(v));
	NEAP_TRY(at_rest(v, a->payload, NEAP_PUT, a->t0, a->t1));
	NEAP_TRY(whole(v, a, a->payload));
	if (neap__run_length_find(&x->from, a->place) >= 0)
		return ILLEGAL("place %lld is in use", (ll)a->place);
	NEAP_TRY(store_grow(v, a));
	NEAP_TRY(neap__run_length_put(&x->from, a->place, a->t0));
	NEAP_TRY(neap__run_length_put(&x->to, a->place, a->t1));
	if (a->payload == NEAP_LOG)
		NEAP_TRY(neap__run_length_put(&x->logs, a->place, 0));
	v->out->tiers[a->tier - 1].written += sent_bytes(v, a);
	v->travelled = 1;
	take_off(v, a);
	return 0;
}

static int do_put(struct verify_run *v, const struct neap_action *a)
{
	struct holder *from = &v->live;
	NEAP_TRY(transfer_check(v, a));
	if (a->payload != NEAP_STATE)
		return put_tapes(v, a);
	if (a->slot == NEAP_LIVE)
		NEAP_TRY(live_at(v, a->t0));
	else
		NEAP_TRY(slot_holds(v, a->slot, a->t0, &from));
	struct verify_store *x = &v->stores[a->tier - 1];
	if (neap__run_length_find(&x->states, a->place) >= 0)
		return ILLEGAL("place %lld is in use", (ll)a->place);
	NEAP_TRY(store_grow(v, a));
	NEAP_TRY(neap__run_length_put(&x->states, a->place, a->t0));
	v->out->tiers[a->tier - 1].written += v->p->chain.state;
	from->leaving++;
	take_off(v, a);
	return 0;
}

/* Is what is at the place, tapes or a log, of the action's kind? */
static int is_kind(const struct verify_store *x, const struct neap_action *a)
{
	return (neap__run_length_find(&x->logs, a->place) == 0) == (a->payload == NEAP_LOG);
}

static int get_tapes(struct verify_run *v, const struct neap_action *a)
{
	struct verify_store *x = &v->stores[a->tier - 1];
	if (neap__run_length_find(&x->from, a->place) != a->t0 ||
		neap__run_length_find(&x->to, a->place) != a->t1 || !is_kind(x, a))
		return ILLEGAL("place %lld does not hold the %s of [%lld, %lld)", (ll)a->place,
			plural(a->payload), (ll)a->t0, (ll)a->t1);
	NEAP_TRY(absent(v, a, a->payload));
	*kept_steps(v, a->payload) += a->t1 - a->t0;
	v->out->tiers[a->tier - 1].read += sent_bytes(v, a);
	take_off(v, a);
	return 0;
}

static int do_get(struct verify_run *v, const struct neap_action *a)
{
	NEAP_TRY(transfer_check(v, a));
	if (a->payload != NEAP_STATE)
		return get_tapes(v, a);
	int tier = a->tier - 1;
	if (neap__run_length_find(&v->stores[tier].states, a->place) != a->t0 || a->t0 < 0)
		return ILLEGAL("place %lld does not hold step %lld", (ll)a->place, (ll)a->t0);
	if (a->slot == NEAP_LIVE) {
		if (v->live.standing == ARRIVING)
			return ILLEGAL("the live state is still arriving");
		NEAP_TRY(live_may_change(v));
		v->live.standing = ARRIVING;
	} else {
		NEAP_TRY(slot_fill(v, a->slot, a->t0, ARRIVING));
	}
	v->out->tiers[tier].read += v->p->chain.state;
	take_off(v, a);
	return 0;
}

/* The end of a transfer of tapes: they left, or they are there. */
static int tapes_end(struct verify_run *v, const struct verify_flight *f)
{
	if (f->kind == NEAP_GET)
		return neap__run_length_record(kept(v, f->payload), f->t, f->t1);
	*kept_steps(v, f->payload) -= f->t1 - f->t;
	return neap__run_length_reverse(kept(v, f->payload), f->t, f->t1);
}

static int do_wait(struct verify_run *v, const struct neap_action *a)
{
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS || !v->flights[a->ticket].kind)
		return ILLEGAL("ticket %d is not in flight", a->ticket);
	struct verify_flight *f = &v->flights[a->ticket];
	if (f->payload != NEAP_STATE) {
		NEAP_TRY(tapes_end(v, f));
		f->kind = 0;
		v->in_flight--;
		return 0;
	}
	struct holder *end = f->slot == NEAP_LIVE ? &v->live : &v->slots[f->slot];
	if (f->kind == NEAP_PUT) {
		end->leaving--;
	} else {
		end->standing = HELD;
		end->t = f->t;
	}
	f->kind = 0;
	v->in_flight--;
	return 0;
}

static int do_forget(struct verify_run *v, const struct neap_action *a)
{
	if (a->tier < 1 || a->tier > v->p->ntiers)
		return ILLEGAL("no tier %d", a->tier);
	int tier = a->tier - 1;
	for (int i = 0; i < NEAP_TICKETS && v->in_flight; i++)
		if (v->flights[i].kind && v->flights[i].tier == tier &&
			v->flights[i].payload == a->payload && v->flights[i].place == a->place)
			return ILLEGAL("place %lld is in flight", (ll)a->place);
	struct verify_store *x = &v->stores[tier];
	int tapes = a->payload != NEAP_STATE;
	if (a->t0 < 0 || neap__run_length_find(tapes ? &x->from : &x->states, a->place) != a->t0 ||
		(tapes && !is_kind(x, a)))
		return ILLEGAL("place %lld does not hold step %lld", (ll)a->place, (ll)a->t0);
	if (!tapes)
		return neap__run_length_forget(&x->states, a->place);
	NEAP_TRY(neap__run_length_forget(&x->from, a->place));
	if (a->payload == NEAP_LOG)
		NEAP_TRY(neap__run_length_forget(&x->logs, a->place));
	return neap__run_length_forget(&x->to, a->place);
}

static int (*const handlers[NEAP_ACTION_KINDS])(struct verify_run *, const struct neap_action *) = {
	[NEAP_ADVANCE] = do_advance,
	[NEAP_RECORD] = do_record,
	[NEAP_TURN] = do_turn,
	[NEAP_BACKWARD] = do_backward,
	[NEAP_SAVE] = do_save,
	[NEAP_LOAD] = do_load,
	[NEAP_DROP] = do_drop,
	[NEAP_PUT] = do_put,
	[NEAP_GET] = do_get,
	[NEAP_WAIT] = do_wait,
	[NEAP_FORGET] = do_forget,
};

static void measure(struct verify_run *v)
{
	uint64_t slots = (uint64_t)v->held * v->p->chain.state;
	uint64_t held = slots + (uint64_t)v->steps_taped * v->p->chain.tape +
			(uint64_t)v->steps_logged * v->p->chain.log;
	uint64_t bytes = slots + (uint64_t)neap__run_length_height(&v->tapes) * v->p->chain.tape;
	if (v->p->chain.flags & NEAP_CHAIN_MIXED && neap__run_length_height(&v->tapes) > 1)
		bytes += (uint64_t)neap__run_length_height(&v->tapes) - 1;
	if (bytes > v->out->peak_bytes)
		v->out->peak_bytes = bytes;
	if (held > v->peak_held)
		v->peak_held = held;
}

/* Once the bytes of slots and tapes are known: what is always there. */
static void add_fixed(struct verify_run *v)
{
	struct neap_verdict *out = v->out;
	if (v->p->chain.steps == 0)
		return;
	if (v->travelled)
		out->peak_bytes = v->peak_held;
	out->peak_bytes += v->p->chain.adjoint + neap__live_bytes(v->p);
	for (int i = 0; i < v->p->ntiers; i++)
		if (v->stores[i].state_top || v->stores[i].tape_top) /* used, if by no byte */
			out->peak_bytes += v->p->tiers[i].staging;
	out->arena_bytes = out->peak_bytes + neap__tape_reserve(v->p);
}

static int complete(const struct verify_run *v)
{
	if (!v->turned)
		return ILLEGAL("the schedule ends without a turn");
	if (v->adjoint != 0)
		return ILLEGAL("the schedule ends with the adjoint at %lld", (ll)v->adjoint);
	if (v->in_flight)
		return ILLEGAL(
			"the schedule ends with %lld transfers not waited for", (ll)v->in_flight);
	return 0;
}

static int audit(struct verify_run *v, struct neap_schedule *schedule)
{
	struct neap_action a;
	int rc;
	while ((rc = neap_schedule_next(schedule, &a)) > 0) {
		rc = a.kind < NEAP_ACTION_KINDS ? handlers[a.kind](v, &a)
						: ILLEGAL("kind %d is unknown", a.kind);
		if (rc < 0)
			return neap__fail_in(rc, "action %lld (%s): ", (ll)v->out->actions,
				neap_action_name(a.kind));
		v->out->actions++;
		measure(v);
	}
	return rc < 0 ? rc : complete(v);
}

static void store_free(struct verify_store *x)
{
	neap__run_length_free(&x->states);
	neap__run_length_free(&x->from);
	neap__run_length_free(&x->to);
	neap__run_length_free(&x->logs);
}

static int verify_all(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule)
{
	struct verify_run v = {.p = problem, .out = verdict, .adjoint = -1};
	NEAP_TRY(neap_problem_check(problem));
	if (problem->chain.stages)
		return neap__stages_verify(verdict, problem, schedule);
	if (problem->chain.join)
		return neap__verify_join(verdict, problem, schedule);
	v.live = (struct holder){.t = 0, .standing = HELD};
	int rc = audit(&v, schedule);
	add_fixed(&v);
	free(v.slots);
	neap__run_length_free(&v.tapes);
	neap__run_length_free(&v.logs);
	for (int i = 0; i < NEAP_TIERS_MAX; i++)
		store_free(&v.stores[i]);
	return rc;
}

int neap_verify(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule)
{
	struct neap_verdict found = {.size = sizeof found};
	NEAP_TRY(neap__struct_size(
		verdict->size, sizeof verdict->size, sizeof found, "neap_verdict"));
	int rc = verify_all(&found, problem, schedule);
	neap__struct_give(verdict, &found, sizeof found);
	return rc;
}

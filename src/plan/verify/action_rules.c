/* SPDX-License-Identifier: Apache-2.0 */
/* action_rules.c: the table of rules, their checks, and the state they are about. */
#include "plan/verify/action_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/grow.h"

typedef long long ll;

/* Places are multiplied by up to 16 when bytes of a tier are counted: no overflow. */
#define PLACES_MOST (INT64_MAX / 16)

#define R(rule) ((uint32_t)1 << NEAP__##rule)
#define FORWARD (R(RANGE_IN_CHAIN) | R(LIVE_AT_START) | R(LIVE_MAY_CHANGE))
#define LOAD (R(SOURCE_HOLDS) | R(LIVE_MAY_CHANGE))
#define DROP (R(SOURCE_HOLDS) | R(SLOT_NOT_LEAVING))
#define PUT (R(TRANSFER_POSSIBLE) | R(PAYLOAD_FITS_ACTION) | R(PLACE_FREE) | R(ROOM_ON_TIER))
#define GET (R(TRANSFER_POSSIBLE) | R(PLACE_HOLDS))
#define RANGES (R(RANGE_IN_CHAIN) | R(PAYLOAD_FITS_ACTION))
#define ALL(rules)                                                                                 \
	{                                                                                          \
		(rules), (rules), (rules)                                                          \
	}

/* By kind; by payload: state, tape, log. */
static const uint32_t table[NEAP_ACTION_KINDS][NEAP_LOG + 1] = {
	/* clang-format off */
	[NEAP_ADVANCE]  = {FORWARD, FORWARD, FORWARD | R(PAYLOAD_FITS_ACTION)},
	[NEAP_RECORD]   = ALL(FORWARD | R(PAYLOAD_FITS_ACTION)),
	[NEAP_TURN]     = ALL(R(TURN_FIRST) | R(LIVE_AT_LAST)),
	[NEAP_BACKWARD] = ALL(RANGES | R(ADJOINT_AT_END) | R(LIVE_NOT_LEAVING)),
	[NEAP_SAVE]     = ALL(R(LIVE_AT_START) | R(TARGET_FREE)),
	[NEAP_LOAD]     = ALL(LOAD),
	[NEAP_DROP]     = {DROP, RANGES, RANGES},
	[NEAP_PUT]      = {PUT | R(SOURCE_HOLDS), PUT | RANGES, PUT | RANGES},
	[NEAP_GET]      = {GET | R(TARGET_FREE), GET | RANGES, GET | RANGES},
	[NEAP_WAIT]     = ALL(R(TICKET_IN_FLIGHT) | R(PAYLOAD_FITS_ACTION)),
	[NEAP_FORGET]   = ALL(R(PLACE_AT_REST) | R(PLACE_HOLDS)),
	/* clang-format on */
};

int neap__rules_check(neap__rule_holds *holds, void *self, const struct neap_action *a)
{
	uint32_t rules = table[a->kind][a->payload > NEAP_LOG ? NEAP_STATE : a->payload];
	for (; rules; rules &= rules - 1)
		NEAP_TRY(holds(self, (enum neap__action_rule)__builtin_ctz(rules), a));
	return 0;
}

int neap__rules_pass(struct neap_schedule *schedule, struct neap_verdict *verdict, int first,
	int (*perform)(void *self, const struct neap_action *action), void *self)
{
	struct neap_action a;
	int rc;
	while ((rc = neap_schedule_next(schedule, &a)) > 0) {
		rc = perform(self, &a);
		if (rc < 0)
			return neap__fail_in(rc, "action %lld (%s): ", (ll)verdict->actions + first,
				neap_action_name(a.kind));
		verdict->actions++;
	}
	return rc;
}

static int tier_exists(const struct neap__rules *r, const struct neap_action *a)
{
	if (a->tier < 1 || a->tier > r->p->ntiers)
		return NEAP__ILLEGAL("no tier %d", a->tier);
	return 0;
}

static int transfer_possible(const struct neap__rules *r, const struct neap_action *a)
{
	int stages = r->p->chain.stages != NULL;
	const uint32_t stay = NEAP_CHAIN_TAPES_STAY | NEAP_CHAIN_CLASSIC;
	NEAP_TRY(tier_exists(r, a));
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS)
		return NEAP__ILLEGAL("no ticket %d", a->ticket);
	if (r->flights[a->ticket].kind)
		return NEAP__ILLEGAL("ticket %d is in flight", a->ticket);
	if (a->payload > NEAP_LOG)
		return NEAP__ILLEGAL(
			"only states%s travel", stages ? " and tapes" : ", tapes and logs");
	if (a->payload != NEAP_STATE && r->p->chain.flags & stay)
		return NEAP__ILLEGAL("%s do not travel in this problem", neap__plural(a->payload));
	if (a->place < 0 || a->place >= PLACES_MOST)
		return NEAP__ILLEGAL("no place %lld", (ll)a->place);
	if (a->payload != NEAP_STATE && a->slot != 0)
		return NEAP__ILLEGAL("%s have no slot %lld", neap__plural(a->payload), (ll)a->slot);
	if (stages && a->payload == NEAP_STATE && (a->t0 < 0 || a->t0 > r->p->chain.steps))
		return NEAP__ILLEGAL("there is no state at %lld", (ll)a->t0);
	return 0;
}

static int place_at_rest(const struct neap__rules *r, const struct neap_action *a)
{
	NEAP_TRY(tier_exists(r, a));
	for (int i = 0; i < NEAP_TICKETS && r->in_flight; i++) {
		const struct neap__flight *f = &r->flights[i];
		if (f->kind && f->tier == a->tier - 1 && f->payload == a->payload &&
			f->place == a->place)
			return NEAP__ILLEGAL("place %lld is in flight", (ll)a->place);
	}
	return 0;
}

static int live_at(const struct neap__rules *r, int64_t t)
{
	if (r->live.standing == NEAP__ARRIVING)
		return NEAP__ILLEGAL("the live state is still arriving");
	if (r->live.standing == NEAP__FREE)
		return NEAP__ILLEGAL("the live state is undefined, needed at %lld", (ll)t);
	if (r->live.t != t)
		return NEAP__ILLEGAL(
			"the live state is at %lld, needed at %lld", (ll)r->live.t, (ll)t);
	return 0;
}

/* The slot's row, or a free one where the table does not reach so far. */
static int slot_find(const struct neap__rules *r, int64_t n, struct neap__holder *row)
{
	if (n < 0 || n >= r->slots_most)
		return NEAP__ILLEGAL("no slot %lld", (ll)n);
	*row = n < r->room ? r->slots[n] : (struct neap__holder){.standing = NEAP__FREE};
	return 0;
}

static int source_holds(struct neap__rules *r, const struct neap_action *a)
{
	struct neap__holder row = {0};
	if (a->kind == NEAP_PUT && a->slot == NEAP_LIVE)
		return live_at(r, a->t0);
	if (a->kind == NEAP_LOAD && a->payload == NEAP_TAPE && r->p->chain.stages)
		return r->ops->payload(r, a);
	NEAP_TRY(slot_find(r, a->slot, &row));
	if (row.standing == NEAP__ARRIVING)
		return NEAP__ILLEGAL("slot %lld is still arriving", (ll)a->slot);
	if (row.standing != NEAP__HELD)
		return NEAP__ILLEGAL("slot %lld is empty", (ll)a->slot);
	if (row.t != a->t0)
		return NEAP__ILLEGAL(
			"slot %lld holds step %lld, not %lld", (ll)a->slot, (ll)row.t, (ll)a->t0);
	return 0;
}

static int place_holds(const struct neap__rules *r, const struct neap_action *a)
{
	const struct neap__stored *x = &r->stored[a->tier - 1];
	int state = a->payload == NEAP_STATE || a->payload > NEAP_LOG;
	int there = a->t0 >= 0 &&
		    neap__run_length_find(state ? &x->states : &x->from, a->place) == a->t0;
	if (!state) /* places of tapes and of logs are numbered together */
		there &= (neap__run_length_find(&x->logs, a->place) == 0) ==
			 (a->payload == NEAP_LOG);
	if (!state && a->kind == NEAP_GET &&
		(!there || neap__run_length_find(&x->to, a->place) != a->t1))
		return NEAP__ILLEGAL("place %lld does not hold the %s of [%lld, %lld)",
			(ll)a->place, neap__plural(a->payload), (ll)a->t0, (ll)a->t1);
	return there ? 0
		     : NEAP__ILLEGAL("place %lld does not hold step %lld", (ll)a->place, (ll)a->t0);
}

static int live_not_leaving(const struct neap__rules *r)
{
	return r->live.leaving ? NEAP__ILLEGAL("the live state is still leaving for a tier") : 0;
}

static int live_may_change(const struct neap__rules *r)
{
	if (r->live.standing == NEAP__ARRIVING)
		return NEAP__ILLEGAL("the live state is still arriving");
	return live_not_leaving(r);
}

static int target_free(const struct neap__rules *r, const struct neap_action *a)
{
	struct neap__holder row = {0};
	if (a->kind == NEAP_GET && a->slot == NEAP_LIVE)
		return live_may_change(r);
	NEAP_TRY(slot_find(r, a->slot, &row));
	return row.standing == NEAP__FREE ? 0 : NEAP__ILLEGAL("slot %lld is in use", (ll)a->slot);
}

static int place_free(const struct neap__rules *r, const struct neap_action *a)
{
	const struct neap__stored *x = &r->stored[a->tier - 1];
	if (neap__run_length_find(a->payload == NEAP_STATE ? &x->states : &x->from, a->place) >= 0)
		return NEAP__ILLEGAL("place %lld is in use", (ll)a->place);
	return 0;
}

static int holds(void *self, enum neap__action_rule rule, const struct neap_action *a)
{
	struct neap__rules *r = self;
	int64_t last = r->p->chain.steps;
	switch (rule) {
	case NEAP__TRANSFER_POSSIBLE:
		return transfer_possible(r, a);
	case NEAP__TICKET_IN_FLIGHT:
		if (a->ticket < 0 || a->ticket >= NEAP_TICKETS || !r->flights[a->ticket].kind)
			return NEAP__ILLEGAL("ticket %d is not in flight", a->ticket);
		return 0;
	case NEAP__PLACE_AT_REST:
		return place_at_rest(r, a);
	case NEAP__RANGE_IN_CHAIN:
		if (a->t0 < 0 || a->t1 <= a->t0 || a->t1 > last)
			return NEAP__ILLEGAL("range [%lld, %lld) is not within [0, %lld)",
				(ll)a->t0, (ll)a->t1, (ll)last);
		return 0;
	case NEAP__TURN_FIRST:
		return r->turned ? NEAP__ILLEGAL("a second turn") : 0;
	case NEAP__ADJOINT_AT_END:
		if (!r->turned)
			return NEAP__ILLEGAL("backward before the turn");
		if (r->adjoint != a->t1)
			return NEAP__ILLEGAL("the adjoint is at %lld, needed at %lld",
				(ll)r->adjoint, (ll)a->t1);
		return 0;
	case NEAP__LIVE_AT_START:
		return live_at(r, a->t0);
	case NEAP__LIVE_AT_LAST:
		return live_at(r, last);
	case NEAP__SOURCE_HOLDS:
		return source_holds(r, a);
	case NEAP__PLACE_HOLDS:
		return place_holds(r, a);
	case NEAP__LIVE_MAY_CHANGE:
		return live_may_change(r);
	case NEAP__LIVE_NOT_LEAVING:
		return live_not_leaving(r);
	case NEAP__SLOT_NOT_LEAVING:
		if (r->slots[a->slot].leaving)
			return NEAP__ILLEGAL("slot %lld is still leaving for a tier", (ll)a->slot);
		return 0;
	case NEAP__PAYLOAD_FITS_ACTION:
		return r->ops->payload(r, a);
	case NEAP__TARGET_FREE:
		return target_free(r, a);
	case NEAP__PLACE_FREE:
		return place_free(r, a);
	default:
		return r->ops->room(r, a);
	}
}

static struct neap__holder *holder(struct neap__rules *r, int64_t slot)
{
	return slot == NEAP_LIVE ? &r->live : &r->slots[slot];
}

static int slot_fill(struct neap__rules *r, int64_t n, struct neap__holder row)
{
	int64_t before = r->room;
	if (neap__grow(&r->slots, &r->room, n + 1, sizeof *r->slots) < 0)
		return neap__fail(-ENOMEM, "verify: out of memory");
	memset(r->slots + before, 0, (size_t)(r->room - before) * sizeof *r->slots);
	r->slots[n] = row;
	if (n >= r->out->slots)
		r->out->slots = n + 1;
	return 0;
}

static void take_off(struct neap__rules *r, const struct neap_action *a)
{
	struct neap_tier_use *use = &r->out->tiers[a->tier - 1];
	*(a->kind == NEAP_PUT ? &use->written : &use->read) += r->ops->bytes(r, a);
	r->flights[a->ticket] = (struct neap__flight){.kind = a->kind,
		.tier = a->tier - 1,
		.payload = a->payload,
		.slot = a->slot,
		.t0 = a->t0,
		.t1 = a->t1,
		.place = a->place};
	if (++r->in_flight > r->out->transfers_in_flight)
		r->out->transfers_in_flight = r->in_flight;
}

static int apply_put(struct neap__rules *r, const struct neap_action *a)
{
	struct neap__stored *x = &r->stored[a->tier - 1];
	take_off(r, a);
	if (a->payload == NEAP_STATE) {
		holder(r, a->slot)->leaving++;
		return neap__run_length_put(&x->states, a->place, a->t0);
	}
	NEAP_TRY(neap__run_length_put(&x->from, a->place, a->t0));
	NEAP_TRY(neap__run_length_put(&x->to, a->place, a->t1));
	return a->payload == NEAP_LOG ? neap__run_length_put(&x->logs, a->place, 0) : 0;
}

static int apply_get(struct neap__rules *r, const struct neap_action *a)
{
	take_off(r, a);
	if (a->payload != NEAP_STATE)
		return 0;
	if (a->slot != NEAP_LIVE)
		return slot_fill(
			r, a->slot, (struct neap__holder){.t = a->t0, .standing = NEAP__ARRIVING});
	r->live.t = a->t0;
	r->live.standing = NEAP__ARRIVING;
	return 0;
}

static void apply_wait(struct neap__rules *r, const struct neap_action *a)
{
	struct neap__flight *f = &r->flights[a->ticket];
	if (f->payload == NEAP_STATE && f->kind == NEAP_PUT)
		holder(r, f->slot)->leaving--;
	else if (f->payload == NEAP_STATE)
		holder(r, f->slot)->standing = NEAP__HELD;
	f->kind = 0;
	r->in_flight--;
}

static int apply_forget(struct neap__rules *r, const struct neap_action *a)
{
	struct neap__stored *x = &r->stored[a->tier - 1];
	if (a->payload == NEAP_STATE || a->payload > NEAP_LOG)
		return neap__run_length_forget(&x->states, a->place);
	NEAP_TRY(neap__run_length_forget(&x->from, a->place));
	if (a->payload == NEAP_LOG)
		NEAP_TRY(neap__run_length_forget(&x->logs, a->place));
	return neap__run_length_forget(&x->to, a->place);
}

static void set_live(struct neap__rules *r, int64_t t)
{
	r->live.t = t;
	r->live.standing = NEAP__HELD;
}

static int apply(struct neap__rules *r, const struct neap_action *a)
{
	switch (a->kind) {
	case NEAP_ADVANCE:
		r->out->advance_steps += a->t1 - a->t0;
		set_live(r, a->t1);
		return 0;
	case NEAP_RECORD:
		r->out->record_steps += a->t1 - a->t0;
		set_live(r, a->t1);
		return 0;
	case NEAP_TURN:
		r->turned = 1;
		r->adjoint = r->p->chain.steps;
		return 0;
	case NEAP_BACKWARD:
		r->out->backward_steps += a->t1 - a->t0;
		r->adjoint = a->t0;
		if (r->live.standing == NEAP__HELD)
			r->live.standing = NEAP__FREE;
		return 0;
	case NEAP_SAVE:
		return slot_fill(r, a->slot,
			(struct neap__holder){
				.t = a->t0, .standing = NEAP__HELD, .part = r->live.part});
	case NEAP_LOAD:
		set_live(r, a->t0);
		return 0;
	case NEAP_DROP:
		if (a->payload == NEAP_STATE)
			r->slots[a->slot].standing = NEAP__FREE;
		return 0;
	case NEAP_PUT:
		return apply_put(r, a);
	case NEAP_GET:
		return apply_get(r, a);
	case NEAP_WAIT:
		apply_wait(r, a);
		return 0;
	default:
		return apply_forget(r, a);
	}
}

int neap__rules_perform(struct neap__rules *r, const struct neap_action *a)
{
	if (a->kind >= NEAP_ACTION_KINDS)
		return NEAP__ILLEGAL("kind %d is unknown", a->kind);
	NEAP_TRY(neap__rules_check(holds, r, a));
	NEAP_TRY(r->ops->apply(r, a));
	return apply(r, a);
}

int neap__rules_complete(const struct neap__rules *r)
{
	if (!r->turned)
		return NEAP__ILLEGAL("the schedule ends without a turn");
	if (r->adjoint != 0)
		return NEAP__ILLEGAL("the schedule ends with the adjoint at %lld", (ll)r->adjoint);
	if (r->in_flight)
		return NEAP__ILLEGAL(
			"the schedule ends with %lld transfers not waited for", (ll)r->in_flight);
	return 0;
}

void neap__rules_begin(struct neap__rules *r, const struct neap_problem *problem,
	struct neap_verdict *verdict, int64_t slots_most)
{
	r->p = problem;
	r->out = verdict;
	r->slots_most = slots_most;
	r->adjoint = -1;
	set_live(r, 0);
}

void neap__rules_free(struct neap__rules *r)
{
	free(r->slots);
	for (int i = 0; i < NEAP_TIERS_MAX; i++) {
		neap__run_length_free(&r->stored[i].states);
		neap__run_length_free(&r->stored[i].from);
		neap__run_length_free(&r->stored[i].to);
		neap__run_length_free(&r->stored[i].logs);
	}
}

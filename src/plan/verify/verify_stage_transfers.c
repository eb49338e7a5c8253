/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stagetransfer: the transfers of a chain whose steps differ. A tier holds bytes:
 * each record takes those of its own state or tapes until FORGET.
 */
#include "plan/verify/verify_stages.h"

static int transfer_check(struct neap__stage_verify *v, const struct neap_action *a)
{
	if (a->tier < 1 || a->tier > v->p->ntiers)
		return NEAP__ILLEGAL("no tier %d", a->tier);
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS)
		return NEAP__ILLEGAL("no ticket %d", a->ticket);
	if (v->flights[a->ticket].kind)
		return NEAP__ILLEGAL("ticket %d is in flight", a->ticket);
	if (a->payload != NEAP_STATE && a->payload != NEAP_TAPE)
		return NEAP__ILLEGAL("only states and tapes travel");
	if (a->payload == NEAP_TAPE && v->p->chain.flags & NEAP_CHAIN_TAPES_STAY)
		return NEAP__ILLEGAL("tapes do not travel in this problem");
	if (a->place < 0 || a->place >= INT64_MAX / 16)
		return NEAP__ILLEGAL("no place %lld", (ll)a->place);
	if (a->payload == NEAP_TAPE && a->slot != 0)
		return NEAP__ILLEGAL("tapes have no slot %lld", (ll)a->slot);
	if (a->payload == NEAP_TAPE)
		return neap__stage_verify_range(v, a);
	if (a->t0 < 0 || a->t0 > v->p->chain.steps)
		return NEAP__ILLEGAL("there is no state at %lld", (ll)a->t0);
	return 0;
}

static void take_off(struct neap__stage_verify *v, const struct neap_action *a)
{
	v->flights[a->ticket] = (struct neap__verify_flight){.kind = a->kind,
		.tier = a->tier - 1,
		.payload = a->payload,
		.slot = a->slot,
		.t = a->t0,
		.t1 = a->t1,
		.place = a->place};
	if (++v->in_flight > v->out->transfers_in_flight)
		v->out->transfers_in_flight = v->in_flight;
}

/* Room on the tier for what a PUT sends. */
static int store_grow(struct neap__stage_verify *v, const struct neap_action *a)
{
	struct neap__verify_store *x = &v->stores[a->tier - 1];
	struct neap_tier_use *use = &v->out->tiers[a->tier - 1];
	uint64_t bytes = neap__stages_bytes(v->stages, a);
	if (neap__run_length_find(a->payload == NEAP_TAPE ? &x->from : &x->states, a->place) >= 0)
		return NEAP__ILLEGAL("place %lld is in use", (ll)a->place);
	x->bytes += bytes;
	if (x->bytes > v->p->tiers[a->tier - 1].capacity)
		return NEAP__ILLEGAL(
			"%llu bytes are beyond the tier's capacity", (unsigned long long)x->bytes);
	if (x->bytes > use->peak_bytes)
		use->peak_bytes = x->bytes;
	use->written += bytes;
	return 0;
}

static int put_tapes(struct neap__stage_verify *v, const struct neap_action *a)
{
	struct neap__verify_store *x = &v->stores[a->tier - 1];
	for (int64_t i = a->t0; i < a->t1; i++)
		NEAP_TRY(neap__stage_verify_tape_rests(v, i));
	NEAP_TRY(store_grow(v, a));
	NEAP_TRY(neap__run_length_put(&x->from, a->place, a->t0));
	NEAP_TRY(neap__run_length_put(&x->to, a->place, a->t1));
	for (int64_t i = a->t0; i < a->t1; i++)
		neap__stage_verify_tape(v, i, LEAVING);
	take_off(v, a);
	return 0;
}

int neap__stage_verify_put(struct neap__stage_verify *v, const struct neap_action *a)
{
	struct neap__verify_slot *from = &v->live;
	NEAP_TRY(transfer_check(v, a));
	if (a->payload == NEAP_TAPE)
		return put_tapes(v, a);
	if (a->slot == NEAP_LIVE)
		NEAP_TRY(neap__stage_verify_live_at(v, a->t0));
	else
		NEAP_TRY(neap__stage_verify_slot_holds(v, a->slot, a->t0, &from));
	if (from->part && neap__stage_verify_in_tape(v, a->t0))
		return NEAP__ILLEGAL("the state at %lld is a part of a tape", (ll)a->t0);
	NEAP_TRY(store_grow(v, a));
	NEAP_TRY(neap__run_length_put(&v->stores[a->tier - 1].states, a->place, a->t0));
	from->leaving++;
	take_off(v, a);
	return 0;
}

static int get_tapes(struct neap__stage_verify *v, const struct neap_action *a)
{
	struct neap__verify_store *x = &v->stores[a->tier - 1];
	if (neap__run_length_find(&x->from, a->place) != a->t0 ||
		neap__run_length_find(&x->to, a->place) != a->t1)
		return NEAP__ILLEGAL("place %lld does not hold the tapes of [%lld, %lld)",
			(ll)a->place, (ll)a->t0, (ll)a->t1);
	for (int64_t i = a->t0; i < a->t1; i++)
		if (v->taped[i])
			return NEAP__ILLEGAL("a tape of %lld is there already", (ll)i);
	for (int64_t i = a->t0; i < a->t1; i++)
		neap__stage_verify_tape(v, i, ARRIVING);
	v->out->tiers[a->tier - 1].read += neap__stages_bytes(v->stages, a);
	take_off(v, a);
	return 0;
}

int neap__stage_verify_get(struct neap__stage_verify *v, const struct neap_action *a)
{
	NEAP_TRY(transfer_check(v, a));
	if (a->payload == NEAP_TAPE)
		return get_tapes(v, a);
	int tier = a->tier - 1;
	if (neap__run_length_find(&v->stores[tier].states, a->place) != a->t0)
		return NEAP__ILLEGAL("place %lld does not hold step %lld", (ll)a->place, (ll)a->t0);
	if (a->slot == NEAP_LIVE) {
		NEAP_TRY(neap__stage_verify_live_may_change(v));
		neap__stage_verify_live(v, a->t0, COMING);
	} else {
		NEAP_TRY(neap__stage_verify_slot_fill(v, a->slot, a->t0, COMING));
	}
	v->out->tiers[tier].read += v->stages->state[a->t0];
	take_off(v, a);
	return 0;
}

int neap__stage_verify_wait(struct neap__stage_verify *v, const struct neap_action *a)
{
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS || !v->flights[a->ticket].kind)
		return NEAP__ILLEGAL("ticket %d is not in flight", a->ticket);
	struct neap__verify_flight *f = &v->flights[a->ticket];
	struct neap__verify_slot *end = f->slot == NEAP_LIVE ? &v->live : &v->slots[f->slot];
	for (int64_t i = f->t; f->payload == NEAP_TAPE && i < f->t1; i++) {
		int left = f->kind == NEAP_PUT;
		if (left && v->live.t == i + 1 && v->live.part && !v->live.arriving)
			neap__stage_verify_live(v, NOWHERE, OWN);
		if (left && v->parts[i + 1])
			return NEAP__ILLEGAL(
				"a slot holds the state at %lld as a part of the tape", (ll)i + 1);
		neap__stage_verify_tape(v, i, left ? ABSENT : HERE);
	}
	if (f->payload == NEAP_STATE && f->kind == NEAP_PUT)
		end->leaving--;
	else if (f->payload == NEAP_STATE)
		neap__stage_verify_arrived(v, end);
	f->kind = 0;
	v->in_flight--;
	return 0;
}

int neap__stage_verify_forget(struct neap__stage_verify *v, const struct neap_action *a)
{
	if (a->tier < 1 || a->tier > v->p->ntiers)
		return NEAP__ILLEGAL("no tier %d", a->tier);
	int tier = a->tier - 1, tapes = a->payload == NEAP_TAPE;
	struct neap_action gone = *a;
	struct neap__verify_store *x = &v->stores[tier];
	for (int i = 0; i < NEAP_TICKETS && v->in_flight; i++)
		if (v->flights[i].kind && v->flights[i].tier == tier &&
			v->flights[i].payload == a->payload && v->flights[i].place == a->place)
			return NEAP__ILLEGAL("place %lld is in flight", (ll)a->place);
	if (a->t0 < 0 || neap__run_length_find(tapes ? &x->from : &x->states, a->place) != a->t0)
		return NEAP__ILLEGAL("place %lld does not hold step %lld", (ll)a->place, (ll)a->t0);
	if (tapes)
		gone.t1 = neap__run_length_find(&x->to, a->place);
	x->bytes -= neap__stages_bytes(v->stages, &gone);
	if (!tapes)
		return neap__run_length_forget(&x->states, a->place);
	NEAP_TRY(neap__run_length_forget(&x->from, a->place));
	return neap__run_length_forget(&x->to, a->place);
}

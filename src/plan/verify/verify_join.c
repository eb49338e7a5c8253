/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_join.c: is a schedule of two chains into one loss legal (neap/plan.h has the
 * rules). Each chain has a live state, an adjoint and tapes of its own. In a problem that counts
 * states one tape of one step may be there at a time, and what counts is slots in use and live
 * states, those at the chains' starts and ends included; else their bytes and those of tapes and
 * both adjoints. The rules are those of action_rules.h; their checks differ, since a
 * state's number says which chain the state belongs to.
 */
#include "plan/verify/verify_join.h"

#include <errno.h>
#include <stdlib.h>
#include "base/grow.h"
#include "plan/core/sizing.h"
#include "plan/verify/action_rules.h"

typedef long long ll;

struct join_verify {
	const struct neap_problem *p;
	struct neap_verdict *out;
	int64_t *slots; /* the time of what each holds, or -1 */
	int64_t room, in_use;
	int64_t live[2], adjoint[2]; /* by chain; -1: undefined */
	int64_t from[2], to[2];	     /* the steps whose tapes are there, by chain; equal: none */
	int classic;
};

static int64_t end_of(const struct join_verify *v, int chain)
{
	int64_t a = v->p->chain.steps;
	return chain ? a + 1 + v->p->chain.join : a;
}

static int64_t start_of(const struct join_verify *v, int chain)
{
	return chain ? v->p->chain.steps + 1 : 0;
}

/* Which chain a state belongs to, or an error. */
static int chain_of(const struct join_verify *v, int64_t t)
{
	if (t < 0 || t > end_of(v, 1))
		return NEAP__ILLEGAL("there is no state %lld", (ll)t);
	return t > end_of(v, 0);
}

static int needs_live(const struct join_verify *v, int chain, int64_t t)
{
	if (v->live[chain] != t)
		return NEAP__ILLEGAL(
			"the live state is at %lld, needed at %lld", (ll)v->live[chain], (ll)t);
	return 0;
}

static int64_t tapes(const struct join_verify *v)
{
	return v->to[0] - v->from[0] + v->to[1] - v->from[1];
}

/*
 * The tapes of one range of a chain, of one step of one chain if classic: absent before RECORD,
 * there before BACKWARD.
 */
static int tape_fits(const struct join_verify *v, int chain, const struct neap_action *a)
{
	if (a->kind == NEAP_RECORD && v->classic && (tapes(v) > 0 || a->t1 - a->t0 != 1))
		return NEAP__ILLEGAL("one tape can be had at a time");
	if (a->kind == NEAP_RECORD && v->to[chain] > v->from[chain])
		return NEAP__ILLEGAL("the tapes of [%lld, %lld) are there already",
			(ll)v->from[chain], (ll)v->to[chain]);
	if (a->kind == NEAP_BACKWARD && (v->from[chain] != a->t0 || v->to[chain] != a->t1))
		return NEAP__ILLEGAL(
			"the range [%lld, %lld) was not recorded", (ll)a->t0, (ll)a->t1);
	return 0;
}

/* SAVE: the slot must be free; LOAD and DROP: it must hold the state. */
static int slot_fits(const struct join_verify *v, const struct neap_action *a)
{
	int64_t held = a->slot >= 0 && a->slot < v->room ? v->slots[a->slot] : -1;
	uint64_t slots = v->p->memory / v->p->chain.state;
	if (a->slot < 0 || (uint64_t)a->slot >= slots)
		return NEAP__ILLEGAL("slot %lld of %llu", (ll)a->slot, (unsigned long long)slots);
	if (a->kind == NEAP_SAVE && held >= 0)
		return NEAP__ILLEGAL("slot %lld is taken", (ll)a->slot);
	if (a->kind != NEAP_SAVE && held != a->t0)
		return NEAP__ILLEGAL("slot %lld does not hold state %lld", (ll)a->slot, (ll)a->t0);
	return 0;
}

static int holds(void *self, enum neap__action_rule rule, const struct neap_action *a)
{
	const struct join_verify *v = self;
	int chain = rule == NEAP__TURN_FIRST || rule == NEAP__LIVE_AT_LAST ? 0 : chain_of(v, a->t0);
	NEAP_TRY(chain);
	switch (rule) {
	case NEAP__RANGE_IN_CHAIN:
		if (a->t1 < a->t0 || a->t1 > end_of(v, chain))
			return NEAP__ILLEGAL(
				"[%lld, %lld) are no steps of one chain", (ll)a->t0, (ll)a->t1);
		return 0;
	case NEAP__TURN_FIRST:
		if (v->adjoint[0] >= 0)
			return NEAP__ILLEGAL("a second turn");
		return a->t0 == end_of(v, 1) ? 0 : NEAP__ILLEGAL("the turn belongs at the end");
	case NEAP__ADJOINT_AT_END:
		if (v->adjoint[chain] != a->t1)
			return NEAP__ILLEGAL("the adjoint is at %lld, needed at %lld",
				(ll)v->adjoint[chain], (ll)a->t1);
		return 0;
	case NEAP__LIVE_AT_START:
		return needs_live(v, chain, a->t0);
	case NEAP__LIVE_AT_LAST:
		NEAP_TRY(needs_live(v, 0, end_of(v, 0)));
		return needs_live(v, 1, end_of(v, 1));
	case NEAP__SOURCE_HOLDS:
	case NEAP__TARGET_FREE:
		return slot_fits(v, a);
	case NEAP__PAYLOAD_FITS_ACTION:
		return tape_fits(v, chain, a);
	default: /* rules of transfers, which a join has not */
		return 0;
	}
}

static int save(struct join_verify *v, const struct neap_action *a)
{
	int64_t before = v->room;
	if (neap__grow(&v->slots, &v->room, a->slot + 1, sizeof *v->slots) < 0)
		return neap__fail(-ENOMEM, "verify: out of memory");
	for (int64_t i = before; i < v->room; i++)
		v->slots[i] = -1;
	v->slots[a->slot] = a->t0;
	v->in_use++;
	if (a->slot >= v->out->slots)
		v->out->slots = a->slot + 1;
	return 0;
}

static int apply(struct join_verify *v, const struct neap_action *a, int chain)
{
	switch (a->kind) {
	case NEAP_ADVANCE:
		v->out->advance_steps += a->t1 - a->t0;
		v->live[chain] = a->t1;
		return 0;
	case NEAP_RECORD:
		v->out->record_steps += a->t1 - a->t0;
		v->from[chain] = a->t0;
		v->to[chain] = v->live[chain] = a->t1;
		return 0;
	case NEAP_TURN:
		for (int k = 0; k < 2; k++) {
			v->live[k] = -1;
			v->adjoint[k] = end_of(v, k);
		}
		return 0;
	case NEAP_BACKWARD:
		v->out->backward_steps += a->t1 - a->t0;
		v->adjoint[chain] = a->t0;
		v->from[chain] = v->to[chain] = v->live[chain] = -1;
		return 0;
	case NEAP_SAVE:
		return save(v, a);
	case NEAP_LOAD:
		v->live[chain] = a->t0;
		return 0;
	default: /* NEAP_DROP */
		v->slots[a->slot] = -1;
		v->in_use--;
		return 0;
	}
}

static void measure(struct join_verify *v)
{
	const struct neap_chain *c = &v->p->chain;
	uint64_t live = (uint64_t)(v->live[0] >= 0) + (uint64_t)(v->live[1] >= 0);
	uint64_t bytes = (uint64_t)v->in_use * c->state +
			 live * (v->classic ? 1 : neap__live_bytes(v->p)) +
			 (uint64_t)tapes(v) * c->tape + 2 * c->adjoint;
	if (bytes > v->out->peak_bytes)
		v->out->peak_bytes = bytes;
}

static int perform(void *self, const struct neap_action *a)
{
	struct join_verify *v = self;
	if (a->kind > NEAP_DROP || a->payload != NEAP_STATE)
		return NEAP__ILLEGAL("two chains have states in slots and nothing else");
	NEAP_TRY(neap__rules_check(holds, v, a));
	NEAP_TRY(apply(v, a, a->t0 > end_of(v, 0)));
	measure(v);
	return 0;
}

static int complete(const struct join_verify *v)
{
	for (int chain = 0; chain < 2; chain++)
		if (v->adjoint[chain] != start_of(v, chain))
			return NEAP__ILLEGAL("the schedule ends with the adjoint at %lld, not %lld",
				(ll)v->adjoint[chain], (ll)start_of(v, chain));
	v->out->arena_bytes = v->out->peak_bytes + neap__tape_reserve(v->p);
	if (v->out->arena_bytes > v->p->memory)
		return NEAP__ILLEGAL("%llu %s at once, %llu are allowed",
			(unsigned long long)v->out->arena_bytes, v->classic ? "states" : "bytes",
			(unsigned long long)v->p->memory);
	return 0;
}

int neap__verify_join(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule)
{
	struct join_verify v = {.p = problem,
		.out = verdict,
		.live = {0, problem->chain.steps + 1},
		.adjoint = {-1, -1},
		.from = {-1, -1},
		.to = {-1, -1},
		.classic = (problem->chain.flags & NEAP_CHAIN_CLASSIC) != 0};
	measure(&v);
	/* Actions of joins are counted from 1 in detail lines. */
	int rc = neap__rules_pass(schedule, verdict, 1, perform, &v);
	if (rc == 0)
		rc = complete(&v);
	free(v.slots);
	return rc;
}

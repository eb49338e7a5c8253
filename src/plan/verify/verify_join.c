/* SPDX-License-Identifier: Apache-2.0 */
/*
 * joinaudit: the rules of plan.h for two chains into one loss. Each chain has a
 * live state and an adjoint of its own, one tape may be there at a time, and what
 * is counted is states: slots in use and live ones, those at the chains' starts
 * and ends included.
 */
#include "plan/verify/verify_join.h"

#include <errno.h>
#include <stdlib.h>
#include "plan/core/schedule.h"

typedef long long ll;

struct join_verify {
	const struct neap_problem *p;
	struct neap_verdict *out;
	int64_t *slots; /* the time of what each holds, or -1 */
	int64_t room, in_use;
	int64_t live[2], adjoint[2]; /* by chain; -1: undefined */
	int64_t tape;		     /* its step, or -1 */
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

static int steps_of(const struct join_verify *v, const struct neap_action *a)
{
	int chain = chain_of(v, a->t0);
	NEAP_TRY(chain);
	if (a->t1 < a->t0 || a->t1 > end_of(v, chain))
		return NEAP__ILLEGAL(
			"[%lld, %lld) are no steps of one chain", (ll)a->t0, (ll)a->t1);
	return chain;
}

static int needs_live(const struct join_verify *v, int chain, int64_t t)
{
	if (v->live[chain] != t)
		return NEAP__ILLEGAL(
			"the live state is at %lld, needed at %lld", (ll)v->live[chain], (ll)t);
	return 0;
}

static void measure(struct join_verify *v)
{
	int64_t states = v->in_use + (v->live[0] >= 0) + (v->live[1] >= 0);
	if ((uint64_t)states > v->out->peak_bytes)
		v->out->peak_bytes = (uint64_t)states;
}

static int advance(struct join_verify *v, const struct neap_action *a)
{
	int chain = steps_of(v, a);
	NEAP_TRY(chain);
	NEAP_TRY(needs_live(v, chain, a->t0));
	v->live[chain] = a->t1;
	v->out->advance_steps += a->t1 - a->t0;
	return 0;
}

static int record(struct join_verify *v, const struct neap_action *a)
{
	int chain = steps_of(v, a);
	NEAP_TRY(chain);
	NEAP_TRY(needs_live(v, chain, a->t0));
	if (v->tape >= 0 || a->t1 - a->t0 != 1)
		return NEAP__ILLEGAL("one tape can be had at a time");
	v->tape = a->t0;
	v->live[chain] = a->t1;
	v->out->record_steps++;
	return 0;
}

static int turn(struct join_verify *v, const struct neap_action *a)
{
	if (a->t0 != end_of(v, 1) || v->adjoint[0] >= 0)
		return NEAP__ILLEGAL(
			v->adjoint[0] >= 0 ? "a second turn" : "the turn belongs at the end");
	for (int chain = 0; chain < 2; chain++) {
		NEAP_TRY(needs_live(v, chain, end_of(v, chain)));
		v->live[chain] = -1;
		v->adjoint[chain] = end_of(v, chain);
	}
	return 0;
}

static int backward(struct join_verify *v, const struct neap_action *a)
{
	int chain = steps_of(v, a);
	NEAP_TRY(chain);
	if (v->adjoint[chain] != a->t1)
		return NEAP__ILLEGAL(
			"the adjoint is at %lld, needed at %lld", (ll)v->adjoint[chain], (ll)a->t1);
	if (a->t1 - a->t0 != 1 || v->tape != a->t0)
		return NEAP__ILLEGAL("step %lld was not recorded", (ll)a->t0);
	v->adjoint[chain] = a->t0;
	v->tape = v->live[chain] = -1;
	v->out->backward_steps++;
	return 0;
}

static int grow(struct join_verify *v, int64_t slot)
{
	if (slot < 0 || (uint64_t)slot >= v->p->memory)
		return NEAP__ILLEGAL(
			"slot %lld of %llu", (ll)slot, (unsigned long long)v->p->memory);
	if (slot < v->room)
		return 0;
	int64_t room = slot < 32 ? 64 : 2 * slot;
	int64_t *slots = realloc(v->slots, (size_t)room * sizeof *slots);
	if (!slots)
		return neap__fail(-ENOMEM, "verify: out of memory");
	for (int64_t i = v->room; i < room; i++)
		slots[i] = -1;
	v->slots = slots;
	v->room = room;
	return 0;
}

static int save(struct join_verify *v, const struct neap_action *a)
{
	int chain = chain_of(v, a->t0);
	NEAP_TRY(chain);
	NEAP_TRY(needs_live(v, chain, a->t0));
	NEAP_TRY(grow(v, a->slot));
	if (v->slots[a->slot] >= 0)
		return NEAP__ILLEGAL("slot %lld is taken", (ll)a->slot);
	v->slots[a->slot] = a->t0;
	v->in_use++;
	if (a->slot >= v->out->slots)
		v->out->slots = a->slot + 1;
	return 0;
}

static int holds(struct join_verify *v, const struct neap_action *a)
{
	int chain = chain_of(v, a->t0);
	NEAP_TRY(chain);
	NEAP_TRY(grow(v, a->slot));
	if (v->slots[a->slot] != a->t0)
		return NEAP__ILLEGAL("slot %lld does not hold state %lld", (ll)a->slot, (ll)a->t0);
	return chain;
}

static int load(struct join_verify *v, const struct neap_action *a)
{
	int chain = holds(v, a);
	NEAP_TRY(chain);
	v->live[chain] = a->t0;
	return 0;
}

static int drop(struct join_verify *v, const struct neap_action *a)
{
	NEAP_TRY(holds(v, a));
	v->slots[a->slot] = -1;
	v->in_use--;
	return 0;
}

static int step(struct join_verify *v, const struct neap_action *a)
{
	static int (*const rows[])(struct join_verify *, const struct neap_action *) = {
		[NEAP_ADVANCE] = advance,
		[NEAP_RECORD] = record,
		[NEAP_TURN] = turn,
		[NEAP_BACKWARD] = backward,
		[NEAP_SAVE] = save,
		[NEAP_LOAD] = load,
		[NEAP_DROP] = drop,
	};
	if (a->kind >= sizeof rows / sizeof rows[0] || a->payload != NEAP_STATE)
		return NEAP__ILLEGAL("two chains have states in slots and nothing else");
	NEAP_TRY(rows[a->kind](v, a));
	measure(v);
	return 0;
}

static int all(struct join_verify *v, struct neap_schedule *schedule)
{
	struct neap_action a;
	int rc;
	measure(v);
	while ((rc = neap_schedule_next(schedule, &a)) > 0) {
		v->out->actions++;
		rc = step(v, &a);
		if (rc < 0)
			return neap__fail_in(rc, "action %lld (%s): ", (ll)v->out->actions,
				neap_action_name(a.kind));
	}
	NEAP_TRY(rc);
	for (int chain = 0; chain < 2; chain++)
		if (v->adjoint[chain] != start_of(v, chain))
			return NEAP__ILLEGAL("the schedule ends with the adjoint at %lld, not %lld",
				(ll)v->adjoint[chain], (ll)start_of(v, chain));
	if (v->out->peak_bytes > v->p->memory)
		return NEAP__ILLEGAL("%llu states at once, %llu are allowed",
			(unsigned long long)v->out->peak_bytes, (unsigned long long)v->p->memory);
	return 0;
}

int neap__join_verify(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule)
{
	struct join_verify v = {.p = problem,
		.out = verdict,
		.live = {0, problem->chain.steps + 1},
		.adjoint = {-1, -1},
		.tape = -1};
	int rc = all(&v, schedule);
	verdict->arena_bytes = verdict->peak_bytes;
	free(v.slots);
	return rc;
}

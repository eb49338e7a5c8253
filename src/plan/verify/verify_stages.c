/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stageaudit: verify for chains whose steps differ. A state is kept while it is
 * live, in a slot or in a tape that is there, and counts once: SAVE and LOAD hand
 * it on. A tape on its way out counts, and can be read, until the WAIT; what is on
 * its way in counts, by itself, from the GET on and can be read after the WAIT. The
 * state that a tape holds travels with it: what was saved of it is a part of it. What
 * an action needs while it runs is in struct neap_stages. Sizes differ, so the peak
 * is that of what is kept; where it lies is up to whoever runs it.
 */
#include <errno.h>
#include <stdlib.h>
#include "plan/verify/verify_stages.h"

int neap__stage_verify_in_tape(const struct neap__stage_verify *v, int64_t t)
{
	return t > 0 && neap__tape_holds_output(v->stages) &&
	       (v->taped[t - 1] == HERE || v->taped[t - 1] == LEAVING);
}

static void hold(struct neap__stage_verify *v, int64_t t)
{
	if (v->held[t]++ == 0 && !neap__stage_verify_in_tape(v, t))
		v->bytes += v->stages->state[t];
}

static void let_go(struct neap__stage_verify *v, int64_t t)
{
	if (--v->held[t] == 0 && !neap__stage_verify_in_tape(v, t))
		v->bytes -= v->stages->state[t];
}

static uint64_t with_tape(const struct neap__stage_verify *v, int64_t i)
{
	uint64_t state = v->held[i + 1] && !neap__stage_verify_in_tape(v, i + 1)
				 ? v->stages->state[i + 1]
				 : 0;
	return state + (v->taped[i] ? v->stages->tape[i] : 0);
}

void neap__stage_verify_tape(struct neap__stage_verify *v, int64_t i, enum neap__verify_tape there)
{
	v->bytes -= with_tape(v, i);
	v->taped[i] = (uint8_t)there;
	v->bytes += with_tape(v, i);
}

static void begin(struct neap__stage_verify *v, struct neap__verify_slot *row, int64_t t,
	enum neap__verify_origin origin)
{
	row->t = t;
	row->arriving = origin == COMING;
	row->part = origin == PART;
	if (row->arriving)
		v->bytes += v->stages->state[t];
	else if (t != NOWHERE)
		hold(v, t);
}

void neap__stage_verify_arrived(struct neap__stage_verify *v, struct neap__verify_slot *row)
{
	row->arriving = 0;
	v->bytes -= v->stages->state[row->t];
	hold(v, row->t);
}

void neap__stage_verify_live(
	struct neap__stage_verify *v, int64_t t, enum neap__verify_origin origin)
{
	if (v->live.t != NOWHERE)
		let_go(v, v->live.t);
	begin(v, &v->live, t, origin);
}

/* What is kept and `more`, for as long as an action runs. */
static void measure(struct neap__stage_verify *v, uint64_t more)
{
	uint64_t bytes = v->bytes + more;
	if (bytes > v->out->peak_bytes)
		v->out->peak_bytes = bytes;
}

int neap__stage_verify_range(const struct neap__stage_verify *v, const struct neap_action *a)
{
	if (a->t0 < 0 || a->t1 <= a->t0 || a->t1 > v->p->chain.steps)
		return NEAP__ILLEGAL("range [%lld, %lld) is not within [0, %lld)", (ll)a->t0,
			(ll)a->t1, (ll)v->p->chain.steps);
	return 0;
}

int neap__stage_verify_live_at(const struct neap__stage_verify *v, int64_t t)
{
	if (v->live.arriving)
		return NEAP__ILLEGAL("the live state is still arriving");
	if (v->live.t == NOWHERE)
		return NEAP__ILLEGAL("the live state is undefined, needed at %lld", (ll)t);
	if (v->live.t != t)
		return NEAP__ILLEGAL(
			"the live state is at %lld, needed at %lld", (ll)v->live.t, (ll)t);
	return 0;
}

int neap__stage_verify_live_may_change(const struct neap__stage_verify *v)
{
	if (v->live.arriving)
		return NEAP__ILLEGAL("the live state is still arriving");
	if (v->live.leaving)
		return NEAP__ILLEGAL("the live state is still leaving for a tier");
	return 0;
}

/*
 * All states are of one size, and x_i is held by the live state alone: no step up to
 * `end` takes more than the next one. The step to be done then.
 */
static int64_t skip_ahead(struct neap__stage_verify *v, int64_t i, int64_t end)
{
	if (i >= end)
		return i;
	measure(v, v->stages->state[i]);
	v->out->advance_steps += end - i;
	neap__stage_verify_live(v, end, 0);
	return end;
}

static int do_forward(struct neap__stage_verify *v, const struct neap_action *a)
{
	const struct neap_stages *s = v->stages;
	NEAP_TRY(neap__stage_verify_range(v, a));
	NEAP_TRY(neap__stage_verify_live_at(v, a->t0));
	NEAP_TRY(neap__stage_verify_live_may_change(v));
	for (int64_t i = a->t0; i < a->t1; i++) {
		uint64_t output = s->state[i + 1];
		if (a->kind == NEAP_ADVANCE) {
			measure(v, output + (uint64_t)neap__stage_advance_tmp(s, i));
			neap__stage_verify_live(v, i + 1, OWN);
			v->out->advance_steps++;
			if (v->flat && v->held[i + 1] == 1 && !neap__stage_verify_in_tape(v, i + 1))
				i = skip_ahead(v, i + 1, a->t1) - 1;
			continue;
		}
		if (v->taped[i])
			return NEAP__ILLEGAL("a tape of %lld is there already", (ll)i);
		measure(v, (neap__tape_holds_output(s) ? 0 : output) + s->tape[i] +
				   (uint64_t)neap__stage_record_tmp(s, i));
		neap__stage_verify_tape(v, i, HERE);
		neap__stage_verify_live(v, i + 1, neap__tape_holds_output(s) ? PART : OWN);
		v->out->record_steps++;
	}
	return 0;
}

static int do_turn(struct neap__stage_verify *v, const struct neap_action *a)
{
	int64_t last = v->p->chain.steps;
	(void)a;
	if (v->turned)
		return NEAP__ILLEGAL("a second turn");
	NEAP_TRY(neap__stage_verify_live_at(v, last));
	v->bytes += (uint64_t)neap__stage_gradient(&v->p->chain, last);
	measure(v, (uint64_t)neap__stage_backward_tmp(v->stages, last));
	if (!v->live.leaving)
		neap__stage_verify_live(v, NOWHERE, OWN); /* nothing needs x_L any more */
	v->turned = 1;
	v->adjoint = last;
	return 0;
}

int neap__stage_verify_tape_rests(const struct neap__stage_verify *v, int64_t i)
{
	static const char *const why[] = {
		"is not there", "", "is leaving for a tier", "is still arriving"};
	if (v->taped[i] != HERE)
		return NEAP__ILLEGAL("the tape of %lld %s", (ll)i, why[v->taped[i]]);
	return 0;
}

static int do_backward(struct neap__stage_verify *v, const struct neap_action *a)
{
	const struct neap_chain *c = &v->p->chain;
	NEAP_TRY(neap__stage_verify_range(v, a));
	if (!v->turned)
		return NEAP__ILLEGAL("backward before the turn");
	if (v->adjoint != a->t1)
		return NEAP__ILLEGAL(
			"the adjoint is at %lld, needed at %lld", (ll)v->adjoint, (ll)a->t1);
	if (v->live.leaving)
		return NEAP__ILLEGAL("the live state is still leaving for a tier");
	for (int64_t i = a->t1 - 1; i >= a->t0; i--) {
		int needs = neap__backward_needs_input(v->stages);
		NEAP_TRY(neap__stage_verify_tape_rests(v, i));
		if (!v->live.arriving && (!needs || v->live.t != i))
			neap__stage_verify_live(v, NOWHERE, OWN);
		if (needs && !v->held[i] && !neap__stage_verify_in_tape(v, i))
			return NEAP__ILLEGAL("backward needs the state at %lld", (ll)i);
		v->bytes += (uint64_t)neap__stage_gradient(c, i);
		measure(v, (uint64_t)neap__stage_backward_tmp(v->stages, i));
		v->bytes -= (uint64_t)neap__stage_gradient(c, i + 1);
		neap__stage_verify_tape(v, i, ABSENT);
		v->adjoint = i;
		v->out->backward_steps++;
	}
	if (!v->live.arriving)
		neap__stage_verify_live(v, NOWHERE, OWN);
	return 0;
}

static int slot_find(struct neap__stage_verify *v, int64_t n, struct neap__verify_slot **row)
{
	if (n < 0 || n > v->p->chain.steps + 1)
		return NEAP__ILLEGAL("no slot %lld", (ll)n);
	*row = &v->slots[n];
	return 0;
}

int neap__stage_verify_slot_fill(
	struct neap__stage_verify *v, int64_t n, int64_t t, enum neap__verify_origin origin)
{
	struct neap__verify_slot *row = NULL;
	NEAP_TRY(slot_find(v, n, &row));
	if (row->t != NOWHERE)
		return NEAP__ILLEGAL("slot %lld is in use", (ll)n);
	if (n >= v->out->slots)
		v->out->slots = n + 1;
	begin(v, row, t, origin);
	v->parts[t] += row->part;
	return 0;
}

int neap__stage_verify_slot_holds(
	struct neap__stage_verify *v, int64_t n, int64_t t, struct neap__verify_slot **row)
{
	NEAP_TRY(slot_find(v, n, row));
	if ((*row)->arriving)
		return NEAP__ILLEGAL("slot %lld is still arriving", (ll)n);
	if ((*row)->t == NOWHERE)
		return NEAP__ILLEGAL("slot %lld is empty", (ll)n);
	if ((*row)->t != t)
		return NEAP__ILLEGAL(
			"slot %lld holds step %lld, not %lld", (ll)n, (ll)(*row)->t, (ll)t);
	return 0;
}

static int do_save(struct neap__stage_verify *v, const struct neap_action *a)
{
	NEAP_TRY(neap__stage_verify_live_at(v, a->t0));
	return neap__stage_verify_slot_fill(v, a->slot, a->t0, v->live.part ? PART : OWN);
}

static int do_load(struct neap__stage_verify *v, const struct neap_action *a)
{
	struct neap__verify_slot *row = NULL;
	if (a->payload == NEAP_TAPE) {
		if (a->t0 < 1 || a->t0 > v->p->chain.steps || !neap__stage_verify_in_tape(v, a->t0))
			return NEAP__ILLEGAL("no tape holds the state at %lld", (ll)a->t0);
	} else {
		NEAP_TRY(neap__stage_verify_slot_holds(v, a->slot, a->t0, &row));
	}
	NEAP_TRY(neap__stage_verify_live_may_change(v));
	neap__stage_verify_live(v, a->t0, !row || row->part ? PART : OWN);
	return 0;
}

static int do_drop(struct neap__stage_verify *v, const struct neap_action *a)
{
	struct neap__verify_slot *row = NULL;
	NEAP_TRY(neap__stage_verify_slot_holds(v, a->slot, a->t0, &row));
	if (row->leaving)
		return NEAP__ILLEGAL("slot %lld is still leaving for a tier", (ll)a->slot);
	let_go(v, row->t);
	v->parts[row->t] -= row->part;
	row->t = NOWHERE;
	return 0;
}

static int (*const handlers[NEAP_ACTION_KINDS])(
	struct neap__stage_verify *, const struct neap_action *) = {
	[NEAP_ADVANCE] = do_forward,
	[NEAP_RECORD] = do_forward,
	[NEAP_TURN] = do_turn,
	[NEAP_BACKWARD] = do_backward,
	[NEAP_SAVE] = do_save,
	[NEAP_LOAD] = do_load,
	[NEAP_DROP] = do_drop,
	[NEAP_PUT] = neap__stage_verify_put,
	[NEAP_GET] = neap__stage_verify_get,
	[NEAP_WAIT] = neap__stage_verify_wait,
	[NEAP_FORGET] = neap__stage_verify_forget,
};

static int complete(struct neap__stage_verify *v)
{
	if (!v->turned)
		return NEAP__ILLEGAL("the schedule ends without a turn");
	if (v->adjoint != 0)
		return NEAP__ILLEGAL("the schedule ends with the adjoint at %lld", (ll)v->adjoint);
	if (v->in_flight)
		return NEAP__ILLEGAL(
			"the schedule ends with %lld transfers not waited for", (ll)v->in_flight);
	for (int i = 0; i < v->p->ntiers; i++)
		if (v->out->tiers[i].written || v->out->tiers[i].read)
			v->out->peak_bytes += v->p->tiers[i].staging;
	if (v->p->chain.steps == 0)
		v->out->peak_bytes = 0; /* x_0 and the gradient are the caller's */
	v->out->arena_bytes = v->out->peak_bytes;
	return 0;
}

static int audit(struct neap__stage_verify *v, struct neap_schedule *schedule)
{
	struct neap_action a;
	int rc;
	measure(v, 0);
	while ((rc = neap_schedule_next(schedule, &a)) > 0) {
		if (a.payload == NEAP_LOG)
			rc = NEAP__ILLEGAL("there are no logs in this problem");
		else
			rc = a.kind < NEAP_ACTION_KINDS
				     ? handlers[a.kind](v, &a)
				     : NEAP__ILLEGAL("kind %d is unknown", a.kind);
		if (rc < 0)
			return neap__fail_in(rc, "action %lld (%s): ", (ll)v->out->actions,
				neap_action_name(a.kind));
		v->out->actions++;
		measure(v, 0);
	}
	return rc < 0 ? rc : complete(v);
}

static void store_free(struct neap__verify_store *x)
{
	neap__run_length_free(&x->states);
	neap__run_length_free(&x->from);
	neap__run_length_free(&x->to);
}

int neap__stages_verify(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule)
{
	int64_t n = problem->chain.steps;
	struct neap__stage_verify v = {.p = problem,
		.stages = problem->chain.stages,
		.out = verdict,
		.live.t = NOWHERE,
		.adjoint = -1,
		.flat = neap__stages_flat(&problem->chain)};
	v.slots = calloc((size_t)n + 2, sizeof *v.slots);
	v.held = calloc((size_t)n + 1, sizeof *v.held);
	v.parts = calloc((size_t)n + 1, sizeof *v.parts);
	v.taped = calloc((size_t)n + 1, sizeof *v.taped);
	int rc = -ENOMEM;
	if (v.slots && v.held && v.parts && v.taped) {
		for (int64_t i = 0; i < n + 2; i++)
			v.slots[i].t = NOWHERE;
		neap__stage_verify_live(&v, 0, OWN);
		rc = audit(&v, schedule);
	} else {
		neap__fail(rc, "verify: out of memory");
	}
	free(v.slots);
	free(v.held);
	free(v.parts);
	free(v.taped);
	for (int i = 0; i < NEAP_TIERS_MAX; i++)
		store_free(&v.stores[i]);
	return rc;
}

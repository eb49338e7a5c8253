/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stageaudit: verify for chains whose steps differ. A state is kept while it is
 * live, in a slot or in a held tape, and counts once: SAVE and LOAD hand it on.
 * What an action needs while it runs is in struct neap_stages. Sizes differ, so
 * the peak is that of what is kept; where it lies is up to whoever runs it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "base/fail.h"
#include "runs.h"
#include "stages.h"

typedef long long ll;
#define ILLEGAL(...) neap__fail(NEAP_EILLEGAL, __VA_ARGS__)
#define NOWHERE (-1)

struct slot {
	int64_t t; /* NOWHERE: free */
	int32_t leaving, arriving;
};

struct flight {
	int kind; /* NEAP_PUT, NEAP_GET; 0: ticket free */
	int tier;
	int64_t slot, t, place;
};

struct audit {
	const struct neap_problem *p;
	const struct neap_stages *stages;
	struct neap_verdict *out;
	struct slot live, *slots; /* slots: [steps + 2] */
	int64_t most;
	int32_t *held;	/* [steps + 1] how many of live and slots hold x_t */
	uint8_t *taped; /* [steps] */
	struct neap__runs places[NEAP_TIERS_MAX];
	uint64_t stored[NEAP_TIERS_MAX]; /* bytes on a tier */
	struct flight flights[NEAP_TICKETS];
	int64_t in_flight, adjoint;
	uint64_t bytes; /* kept, the gradient included */
	uint64_t staging;
	int turned;
};

/* Is x_t counted with the tape of t - 1? */
static int in_tape(const struct audit *v, int64_t t)
{
	return t > 0 && neap__tape_holds_output(v->stages) && v->taped[t - 1];
}

static void hold(struct audit *v, int64_t t)
{
	if (v->held[t]++ == 0 && !in_tape(v, t))
		v->bytes += v->stages->state[t];
}

static void let_go(struct audit *v, int64_t t)
{
	if (--v->held[t] == 0 && !in_tape(v, t))
		v->bytes -= v->stages->state[t];
}

static void set_tape(struct audit *v, int64_t i, uint8_t there)
{
	uint64_t state =
		v->held[i + 1] && neap__tape_holds_output(v->stages) ? v->stages->state[i + 1] : 0;
	v->taped[i] = there;
	if (there)
		v->bytes += v->stages->tape[i] - state;
	else
		v->bytes -= v->stages->tape[i] - state;
}

static void set_live(struct audit *v, int64_t t)
{
	if (v->live.t != NOWHERE)
		let_go(v, v->live.t);
	v->live.t = t;
	if (t != NOWHERE)
		hold(v, t);
}

/* What is kept and `more`, for as long as an action runs. */
static void measure(struct audit *v, uint64_t more)
{
	uint64_t bytes = v->bytes + more;
	if (bytes > v->out->peak_bytes)
		v->out->peak_bytes = bytes;
}

static int range(const struct audit *v, const struct neap_action *a)
{
	if (a->t0 < 0 || a->t1 <= a->t0 || a->t1 > v->p->chain.steps)
		return ILLEGAL("range [%lld, %lld) is not within [0, %lld)", (ll)a->t0, (ll)a->t1,
			(ll)v->p->chain.steps);
	return 0;
}

static int live_at(const struct audit *v, int64_t t)
{
	if (v->live.arriving)
		return ILLEGAL("the live state is still arriving");
	if (v->live.t == NOWHERE)
		return ILLEGAL("the live state is undefined, needed at %lld", (ll)t);
	if (v->live.t != t)
		return ILLEGAL("the live state is at %lld, needed at %lld", (ll)v->live.t, (ll)t);
	return 0;
}

static int live_may_change(const struct audit *v)
{
	if (v->live.arriving)
		return ILLEGAL("the live state is still arriving");
	if (v->live.leaving)
		return ILLEGAL("the live state is still leaving for a tier");
	return 0;
}

static int do_forward(struct audit *v, const struct neap_action *a)
{
	const struct neap_stages *s = v->stages;
	NEAP_TRY(range(v, a));
	NEAP_TRY(live_at(v, a->t0));
	NEAP_TRY(live_may_change(v));
	for (int64_t i = a->t0; i < a->t1; i++) {
		uint64_t output = s->state[i + 1];
		if (a->kind == NEAP_ADVANCE) {
			measure(v, output + (uint64_t)neap__stage_advance_tmp(s, i));
			set_live(v, i + 1);
			v->out->advance_steps++;
			continue;
		}
		if (v->taped[i])
			return ILLEGAL("a tape of %lld is there already", (ll)i);
		measure(v, (neap__tape_holds_output(s) ? 0 : output) + s->tape[i] +
				   (uint64_t)neap__stage_record_tmp(s, i));
		set_tape(v, i, 1);
		set_live(v, i + 1);
		v->out->record_steps++;
	}
	return 0;
}

static int do_turn(struct audit *v, const struct neap_action *a)
{
	int64_t last = v->p->chain.steps;
	(void)a;
	if (v->turned)
		return ILLEGAL("a second turn");
	NEAP_TRY(live_at(v, last));
	v->bytes += (uint64_t)neap__stage_gradient(&v->p->chain, last);
	measure(v, (uint64_t)neap__stage_backward_tmp(v->stages, last));
	v->turned = 1;
	v->adjoint = last;
	return 0;
}

static int do_backward(struct audit *v, const struct neap_action *a)
{
	const struct neap_chain *c = &v->p->chain;
	NEAP_TRY(range(v, a));
	if (!v->turned)
		return ILLEGAL("backward before the turn");
	if (v->adjoint != a->t1)
		return ILLEGAL("the adjoint is at %lld, needed at %lld", (ll)v->adjoint, (ll)a->t1);
	NEAP_TRY(live_may_change(v));
	for (int64_t i = a->t1 - 1; i >= a->t0; i--) {
		int needs = neap__backward_needs_input(v->stages);
		if (!v->taped[i])
			return ILLEGAL("the tape of %lld is not there", (ll)i);
		if (!needs || v->live.t != i)
			set_live(v, NOWHERE);
		if (needs && !v->held[i] && !in_tape(v, i))
			return ILLEGAL("backward needs the state at %lld", (ll)i);
		v->bytes += (uint64_t)neap__stage_gradient(c, i);
		measure(v, (uint64_t)neap__stage_backward_tmp(v->stages, i));
		v->bytes -= (uint64_t)neap__stage_gradient(c, i + 1);
		set_tape(v, i, 0);
		v->adjoint = i;
		v->out->backward_steps++;
	}
	set_live(v, NOWHERE);
	return 0;
}

static int slot_find(struct audit *v, int64_t n, struct slot **row)
{
	if (n < 0 || n > v->p->chain.steps + 1)
		return ILLEGAL("no slot %lld", (ll)n);
	*row = &v->slots[n];
	return 0;
}

static int slot_fill(struct audit *v, int64_t n, int64_t t, int arriving)
{
	struct slot *row = NULL;
	NEAP_TRY(slot_find(v, n, &row));
	if (row->t != NOWHERE)
		return ILLEGAL("slot %lld is in use", (ll)n);
	row->t = t;
	row->arriving = arriving;
	if (n >= v->out->slots)
		v->out->slots = n + 1;
	hold(v, t);
	return 0;
}

static int slot_holds(struct audit *v, int64_t n, int64_t t, struct slot **row)
{
	NEAP_TRY(slot_find(v, n, row));
	if ((*row)->arriving)
		return ILLEGAL("slot %lld is still arriving", (ll)n);
	if ((*row)->t == NOWHERE)
		return ILLEGAL("slot %lld is empty", (ll)n);
	if ((*row)->t != t)
		return ILLEGAL("slot %lld holds step %lld, not %lld", (ll)n, (ll)(*row)->t, (ll)t);
	return 0;
}

static int do_save(struct audit *v, const struct neap_action *a)
{
	NEAP_TRY(live_at(v, a->t0));
	return slot_fill(v, a->slot, a->t0, 0);
}

static int do_load(struct audit *v, const struct neap_action *a)
{
	struct slot *row = NULL;
	if (a->payload == NEAP_TAPE) {
		if (a->t0 < 1 || a->t0 > v->p->chain.steps || !in_tape(v, a->t0))
			return ILLEGAL("no tape holds the state at %lld", (ll)a->t0);
	} else {
		NEAP_TRY(slot_holds(v, a->slot, a->t0, &row));
	}
	NEAP_TRY(live_may_change(v));
	set_live(v, a->t0);
	return 0;
}

static int do_drop(struct audit *v, const struct neap_action *a)
{
	struct slot *row = NULL;
	NEAP_TRY(slot_holds(v, a->slot, a->t0, &row));
	if (row->leaving)
		return ILLEGAL("slot %lld is still leaving for a tier", (ll)a->slot);
	let_go(v, row->t);
	row->t = NOWHERE;
	return 0;
}

static int transfer_check(struct audit *v, const struct neap_action *a)
{
	if (a->tier < 1 || a->tier > v->p->ntiers)
		return ILLEGAL("no tier %d", a->tier);
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS)
		return ILLEGAL("no ticket %d", a->ticket);
	if (v->flights[a->ticket].kind)
		return ILLEGAL("ticket %d is in flight", a->ticket);
	if (a->payload != NEAP_STATE)
		return ILLEGAL("only states travel");
	if (a->t0 < 0 || a->t0 > v->p->chain.steps)
		return ILLEGAL("there is no state at %lld", (ll)a->t0);
	return 0;
}

static void take_off(struct audit *v, const struct neap_action *a)
{
	v->flights[a->ticket] = (struct flight){a->kind, a->tier - 1, a->slot, a->t0, a->place};
	if (++v->in_flight > v->out->transfers_in_flight)
		v->out->transfers_in_flight = v->in_flight;
}

static int do_put(struct audit *v, const struct neap_action *a)
{
	struct slot *from = &v->live;
	NEAP_TRY(transfer_check(v, a));
	if (a->slot == NEAP_LIVE)
		NEAP_TRY(live_at(v, a->t0));
	else
		NEAP_TRY(slot_holds(v, a->slot, a->t0, &from));
	int tier = a->tier - 1;
	uint64_t bytes = v->stages->state[a->t0];
	if (a->place < 0 || neap__runs_find(&v->places[tier], a->place) >= 0)
		return ILLEGAL("place %lld is in use", (ll)a->place);
	v->stored[tier] += bytes;
	if (v->stored[tier] > v->p->tiers[tier].capacity)
		return ILLEGAL("%llu bytes are beyond the tier's capacity",
			(unsigned long long)v->stored[tier]);
	NEAP_TRY(neap__runs_put(&v->places[tier], a->place, a->t0));
	struct neap_tier_use *use = &v->out->tiers[tier];
	if (v->stored[tier] > use->peak_bytes)
		use->peak_bytes = v->stored[tier];
	use->written += bytes;
	from->leaving++;
	take_off(v, a);
	return 0;
}

static int do_get(struct audit *v, const struct neap_action *a)
{
	NEAP_TRY(transfer_check(v, a));
	int tier = a->tier - 1;
	if (neap__runs_find(&v->places[tier], a->place) != a->t0)
		return ILLEGAL("place %lld does not hold step %lld", (ll)a->place, (ll)a->t0);
	if (a->slot == NEAP_LIVE) {
		NEAP_TRY(live_may_change(v));
		set_live(v, a->t0);
		v->live.arriving = 1;
	} else {
		NEAP_TRY(slot_fill(v, a->slot, a->t0, 1));
	}
	v->out->tiers[tier].read += v->stages->state[a->t0];
	take_off(v, a);
	return 0;
}

static int do_wait(struct audit *v, const struct neap_action *a)
{
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS || !v->flights[a->ticket].kind)
		return ILLEGAL("ticket %d is not in flight", a->ticket);
	struct flight *f = &v->flights[a->ticket];
	struct slot *end = f->slot == NEAP_LIVE ? &v->live : &v->slots[f->slot];
	if (f->kind == NEAP_PUT)
		end->leaving--;
	else
		end->arriving = 0;
	f->kind = 0;
	v->in_flight--;
	return 0;
}

static int do_forget(struct audit *v, const struct neap_action *a)
{
	if (a->tier < 1 || a->tier > v->p->ntiers)
		return ILLEGAL("no tier %d", a->tier);
	int tier = a->tier - 1;
	for (int i = 0; i < NEAP_TICKETS && v->in_flight; i++)
		if (v->flights[i].kind && v->flights[i].tier == tier &&
			v->flights[i].place == a->place)
			return ILLEGAL("place %lld is in flight", (ll)a->place);
	if (a->t0 < 0 || neap__runs_find(&v->places[tier], a->place) != a->t0)
		return ILLEGAL("place %lld does not hold step %lld", (ll)a->place, (ll)a->t0);
	v->stored[tier] -= v->stages->state[a->t0];
	return neap__runs_forget(&v->places[tier], a->place);
}

static int (*const handlers[NEAP_ACTION_KINDS])(struct audit *, const struct neap_action *) = {
	[NEAP_ADVANCE] = do_forward,
	[NEAP_RECORD] = do_forward,
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

static int complete(struct audit *v)
{
	if (!v->turned)
		return ILLEGAL("the schedule ends without a turn");
	if (v->adjoint != 0)
		return ILLEGAL("the schedule ends with the adjoint at %lld", (ll)v->adjoint);
	if (v->in_flight)
		return ILLEGAL(
			"the schedule ends with %lld transfers not waited for", (ll)v->in_flight);
	for (int i = 0; i < v->p->ntiers; i++)
		if (v->out->tiers[i].written || v->out->tiers[i].read)
			v->out->peak_bytes += v->p->tiers[i].staging;
	if (v->p->chain.steps == 0)
		v->out->peak_bytes = 0; /* x_0 and the gradient are the caller's */
	v->out->arena_bytes = v->out->peak_bytes;
	return 0;
}

static int audit(struct audit *v, struct neap_schedule *schedule)
{
	struct neap_action a;
	int rc;
	measure(v, 0);
	while ((rc = neap_schedule_next(schedule, &a)) > 0) {
		rc = a.kind < NEAP_ACTION_KINDS ? handlers[a.kind](v, &a)
						: ILLEGAL("kind %d is unknown", a.kind);
		if (rc < 0)
			return neap__fail_in(rc, "action %lld (%s): ", (ll)v->out->actions,
				neap_action_name(a.kind));
		v->out->actions++;
		measure(v, 0);
	}
	return rc < 0 ? rc : complete(v);
}

int neap__stages_verify(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule)
{
	int64_t n = problem->chain.steps;
	struct audit v = {.p = problem,
		.stages = problem->chain.stages,
		.out = verdict,
		.live.t = NOWHERE,
		.adjoint = -1};
	v.slots = calloc((size_t)n + 2, sizeof *v.slots);
	v.held = calloc((size_t)n + 1, sizeof *v.held);
	v.taped = calloc((size_t)n + 1, sizeof *v.taped);
	int rc = -ENOMEM;
	if (v.slots && v.held && v.taped) {
		for (int64_t i = 0; i < n + 2; i++)
			v.slots[i].t = NOWHERE;
		set_live(&v, 0);
		rc = audit(&v, schedule);
	} else {
		neap__fail(rc, "verify: out of memory");
	}
	free(v.slots);
	free(v.held);
	free(v.taped);
	for (int i = 0; i < NEAP_TIERS_MAX; i++)
		neap__runs_free(&v.places[i]);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_stages.c: is a schedule of stages legal, and what does it take. action_rules.h
 * knows the rules, stage_memory.h counts the bytes of fast memory; this file says which
 * tapes an action needs, follows what arrives and leaves, and counts the bytes of tiers:
 * each record takes those of its own state or tapes until FORGET.
 *
 * A tape on its way out counts, and can be read, until the WAIT; what is on its way in
 * counts, by itself, from the GET on and can be read after the WAIT. The state that a tape
 * holds travels with the tape. Sizes differ, so the peak is that of what is kept; a sweep
 * decides where each buffer lies (sweep/stages).
 */
#include "plan/verify/verify_stages.h"

#include <errno.h>
#include <stdlib.h>
#include "plan/stages/stage_memory.h"
#include "plan/verify/action_rules.h"

typedef long long ll;

struct stages_run {
	struct neap__rules rules;
	const struct neap_chain *chain;
	const struct neap_stages *stages;
	struct neap__stage_memory memory;
	int32_t *parts; /* [steps + 1] slots that hold x_t as a part of a tape */
	uint64_t stored[NEAP_TIERS_MAX];
	int flat; /* neap__stages_flat: long advances need not be followed stage by stage */
};

static void measure(struct stages_run *v, int64_t bytes)
{
	if ((uint64_t)bytes > v->rules.out->peak_bytes)
		v->rules.out->peak_bytes = (uint64_t)bytes;
}

static int tape_rests(const struct stages_run *v, int64_t i)
{
	static const char *const why[] = {
		"is not there", "", "is leaving for a tier", "is still arriving"};
	int place = v->memory.taped[i];
	if (place != NEAP__TAPE_HERE)
		return NEAP__ILLEGAL("the tape of %lld %s", (ll)i, why[place]);
	return 0;
}

static int may_reverse(const struct stages_run *v, const struct neap_action *a)
{
	for (int64_t i = a->t1 - 1; i >= a->t0; i--) {
		/* The live state is given up by the first stage whose input it is not. */
		int given_up = v->memory.live == i && i != a->t1 - 1;
		NEAP_TRY(tape_rests(v, i));
		if (neap__backward_needs_input(v->stages) && v->memory.held[i] - given_up == 0 &&
			!neap__stage_memory_in_tape(&v->memory, i))
			return NEAP__ILLEGAL("backward needs the state at %lld", (ll)i);
	}
	return 0;
}

static int tapes_absent(const struct stages_run *v, const struct neap_action *a)
{
	for (int64_t i = a->t0; i < a->t1; i++)
		if (v->memory.taped[i])
			return NEAP__ILLEGAL("a tape of %lld is there already", (ll)i);
	return 0;
}

static int may_leave(const struct stages_run *v, const struct neap_action *a)
{
	const struct neap__rules *r = &v->rules;
	if (a->payload == NEAP_STATE) {
		int part = a->slot == NEAP_LIVE ? v->memory.part : r->slots[a->slot].part;
		if (part && neap__stage_memory_in_tape(&v->memory, a->t0))
			return NEAP__ILLEGAL("the state at %lld is a part of a tape", (ll)a->t0);
		return 0;
	}
	for (int64_t i = a->t0; i < a->t1; i++)
		NEAP_TRY(tape_rests(v, i));
	return 0;
}

/* No slot may depend on a tape that has left. */
static int may_have_left(const struct stages_run *v, const struct neap__flight *f)
{
	if (f->kind == NEAP_PUT && f->payload == NEAP_TAPE)
		for (int64_t t = f->t0 + 1; t <= f->t1; t++)
			if (v->parts[t])
				return NEAP__ILLEGAL(
					"a slot holds the state at %lld as a part of the tape",
					(ll)t);
	return 0;
}

static int payload_fits(struct neap__rules *rules, const struct neap_action *a)
{
	struct stages_run *v = rules->self;
	switch (a->kind) {
	case NEAP_RECORD:
	case NEAP_GET:
		return tapes_absent(v, a);
	case NEAP_BACKWARD:
		return may_reverse(v, a);
	case NEAP_PUT:
		return may_leave(v, a);
	case NEAP_WAIT:
		return may_have_left(v, &rules->flights[a->ticket]);
	case NEAP_DROP:
		return NEAP__ILLEGAL("tapes of stages are not dropped");
	case NEAP_LOAD: /* from a tape */
		if (a->t0 < 1 || a->t0 > v->chain->steps ||
			!neap__stage_memory_in_tape(&v->memory, a->t0))
			return NEAP__ILLEGAL("no tape holds the state at %lld", (ll)a->t0);
		return 0;
	default:
		return 0;
	}
}

static int room(struct neap__rules *rules, const struct neap_action *a)
{
	struct stages_run *v = rules->self;
	struct neap_tier_use *use = &rules->out->tiers[a->tier - 1];
	uint64_t *stored = &v->stored[a->tier - 1];
	*stored += neap__stages_bytes(v->stages, a);
	if (*stored > rules->p->tiers[a->tier - 1].capacity)
		return NEAP__ILLEGAL(
			"%llu bytes are beyond the tier's capacity", (unsigned long long)*stored);
	if (*stored > use->peak_bytes)
		use->peak_bytes = *stored;
	return 0;
}

static uint64_t bytes(const struct neap__rules *rules, const struct neap_action *a)
{
	return neap__stages_bytes(rules->p->chain.stages, a);
}

static void stage_done(struct stages_run *v, int kind, int64_t i)
{
	const struct neap_action one = {.kind = (uint8_t)kind, .t0 = i, .t1 = i + 1};
	measure(v, neap__stage_memory_need(&v->memory, &one));
	neap__stage_memory_apply(&v->memory, &one);
}

/*
 * Where all states are of one size and x_{i+1} is held by the live state alone, every
 * further stage takes as much as the next one.
 */
static void advance(struct stages_run *v, const struct neap_action *a)
{
	for (int64_t i = a->t0; i < a->t1; i++) {
		stage_done(v, NEAP_ADVANCE, i);
		if (v->flat && i + 1 < a->t1 && v->memory.held[i + 1] == 1 &&
			!neap__stage_memory_in_tape(&v->memory, i + 1)) {
			measure(v, v->memory.bytes + (int64_t)v->stages->state[i + 1]);
			neap__stage_memory_live(&v->memory, a->t1);
			return;
		}
	}
}

static void turn(struct stages_run *v)
{
	const struct neap_action a = {.kind = NEAP_TURN};
	measure(v, neap__stage_memory_need(&v->memory, &a));
	if (v->rules.live.leaving)
		v->memory.bytes += neap__stage_gradient(v->chain, v->chain->steps);
	else
		neap__stage_memory_apply(&v->memory, &a);
}

static void move_tapes(struct stages_run *v, int64_t t0, int64_t t1, enum neap__tape_place place)
{
	for (int64_t i = t0; i < t1; i++)
		neap__stage_memory_tape(&v->memory, i, place);
}

static void arrive(struct stages_run *v, const struct neap__flight *f)
{
	v->memory.bytes -= (int64_t)v->stages->state[f->t0];
	if (f->slot == NEAP_LIVE)
		neap__stage_memory_live(&v->memory, f->t0);
	else
		neap__stage_memory_hold(&v->memory, f->t0);
}

static void transfer(struct stages_run *v, const struct neap_action *a)
{
	if (a->payload == NEAP_TAPE) {
		move_tapes(v, a->t0, a->t1,
			a->kind == NEAP_PUT ? NEAP__TAPE_LEAVING : NEAP__TAPE_ARRIVING);
	} else if (a->kind == NEAP_GET) {
		if (a->slot == NEAP_LIVE)
			neap__stage_memory_live(&v->memory, -1);
		v->memory.bytes += (int64_t)v->stages->state[a->t0];
	}
}

static void waited(struct stages_run *v, const struct neap__flight *f)
{
	if (f->payload == NEAP_TAPE)
		move_tapes(
			v, f->t0, f->t1, f->kind == NEAP_PUT ? NEAP__TAPE_ABSENT : NEAP__TAPE_HERE);
	else if (f->kind == NEAP_GET)
		arrive(v, f);
}

static void forget(struct stages_run *v, const struct neap_action *a)
{
	struct neap_action record = *a;
	if (a->payload == NEAP_TAPE)
		record.t1 = neap__run_length_find(&v->rules.stored[a->tier - 1].to, a->place);
	v->stored[a->tier - 1] -= neap__stages_bytes(v->stages, &record);
}

/* SAVE, LOAD or DROP. */
static void slot(struct stages_run *v, const struct neap_action *a)
{
	int part = a->kind == NEAP_SAVE				     ? v->memory.part
		   : a->payload == NEAP_TAPE && a->kind == NEAP_LOAD ? 1
								     : v->rules.slots[a->slot].part;
	neap__stage_memory_apply(&v->memory, a);
	if (a->kind == NEAP_LOAD)
		v->memory.part = part;
	else
		v->parts[a->t0] += a->kind == NEAP_SAVE ? part : -part;
}

static int apply(struct neap__rules *rules, const struct neap_action *a)
{
	struct stages_run *v = rules->self;
	switch (a->kind) {
	case NEAP_ADVANCE:
		advance(v, a);
		break;
	case NEAP_RECORD:
		for (int64_t i = a->t0; i < a->t1; i++)
			stage_done(v, NEAP_RECORD, i);
		break;
	case NEAP_TURN:
		turn(v);
		break;
	case NEAP_BACKWARD:
		for (int64_t i = a->t1 - 1; i >= a->t0; i--)
			stage_done(v, NEAP_BACKWARD, i);
		break;
	case NEAP_PUT:
	case NEAP_GET:
		transfer(v, a);
		break;
	case NEAP_WAIT:
		waited(v, &rules->flights[a->ticket]);
		break;
	case NEAP_FORGET:
		forget(v, a);
		break;
	default:
		slot(v, a);
	}
	measure(v, v->memory.bytes);
	rules->live.part = (uint8_t)v->memory.part;
	if (rules->live.standing == NEAP__HELD && v->memory.live < 0)
		rules->live.standing = NEAP__FREE;
	return 0;
}

static int perform(void *self, const struct neap_action *a)
{
	struct stages_run *v = self;
	if (a->payload == NEAP_LOG)
		return NEAP__ILLEGAL("there are no logs in this problem");
	return neap__rules_perform(&v->rules, a);
}

static int complete(struct stages_run *v)
{
	const struct neap_problem *p = v->rules.p;
	struct neap_verdict *out = v->rules.out;
	NEAP_TRY(neap__rules_complete(&v->rules));
	for (int i = 0; i < p->ntiers; i++)
		if (out->tiers[i].written || out->tiers[i].read)
			out->peak_bytes += p->tiers[i].staging;
	if (p->chain.steps == 0)
		out->peak_bytes = 0; /* x_0 and the gradient are the caller's */
	out->arena_bytes = out->peak_bytes;
	return 0;
}

int neap__stages_verify(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule)
{
	static const struct neap__rules_ops ops = {payload_fits, room, bytes, apply};
	struct stages_run v = {
		.rules = {.ops = &ops, .self = &v},
		.chain = &problem->chain,
		.stages = problem->chain.stages,
		.flat = neap__stages_flat(&problem->chain),
	};
	int64_t steps = problem->chain.steps;
	neap__rules_begin(&v.rules, problem, verdict, steps + 2);
	v.parts = calloc((size_t)steps + 1, sizeof *v.parts);
	int rc = v.parts ? neap__stage_memory_init(&v.memory, &problem->chain)
			 : neap__fail(-ENOMEM, "verify: out of memory");
	if (rc == 0) {
		neap__stage_memory_begin(&v.memory);
		measure(&v, v.memory.bytes);
		rc = neap__rules_pass(schedule, verdict, 0, perform, &v);
	}
	if (rc == 0)
		rc = complete(&v);
	free(v.parts);
	neap__stage_memory_fini(&v.memory);
	neap__rules_free(&v.rules);
	return rc;
}

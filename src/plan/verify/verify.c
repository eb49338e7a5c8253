/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c: is a schedule of equal steps legal, and what does it take. One pass over the
 * actions keeps what a sweep would keep; action_rules.h knows the rules, this file counts
 * tapes, logs and bytes. Memory is O(slots + runs): tapes and places are kept as runs of
 * equal spacing (run_length.h), so that 10^7 checkpoints that a strategy sends out in order
 * take one row.
 *
 * The peak is that of the sweep's layout: slots lie at the top of the arena, which packs
 * them, and tapes are a stack from the bottom. So the slots in use count, and the tapes up
 * to the topmost, gaps included. Where tapes travel or logs are kept the stack has too many
 * gaps to tell anything, and only the tapes that are there count.
 */
#include <string.h>
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "plan/verify/action_rules.h"
#include "plan/core/sizing.h"
#include "plan/verify/verify_join.h"
#include "plan/verify/verify_stages.h"

/* Slot numbers are below; as many as a plan read from text may use (plan_read.c). */
#define SLOTS_MOST ((int64_t)1 << 31)

typedef long long ll;

struct verify_run {
	struct neap__rules rules;
	const struct neap_chain *chain;
	struct neap__run_length tapes, logs;
	int64_t slots;	      /* in use */
	int64_t steps_taped;  /* steps whose tapes take room: there, leaving or arriving */
	int64_t steps_logged; /* the same of logs */
	int travelled;	      /* tapes did, or there were logs */
	uint64_t peak_there;  /* bytes with the tapes that are there, without gaps */
	struct verify_places {
		int64_t state_top, tape_top;  /* highest place used, plus 1 */
		int64_t longest, longest_log; /* steps of the longest record */
	} places[NEAP_TIERS_MAX];
};

static struct neap__run_length *ranges(struct verify_run *v, int payload)
{
	return payload == NEAP_LOG ? &v->logs : &v->tapes;
}

static int64_t *steps(struct verify_run *v, int payload)
{
	return payload == NEAP_LOG ? &v->steps_logged : &v->steps_taped;
}

/* The tapes or logs of an action must not be on their way out (NEAP_PUT) or in (NEAP_GET). */
static int at_rest(
	const struct verify_run *v, const struct neap_action *a, int payload, int direction)
{
	for (int i = 0; v->travelled && v->rules.in_flight && i < NEAP_TICKETS; i++) {
		const struct neap__flight *f = &v->rules.flights[i];
		if (f->kind == direction && f->payload == payload && f->t0 < a->t1 && a->t0 < f->t1)
			return NEAP__ILLEGAL("%s of [%lld, %lld) are still %s",
				neap__plural(payload), (ll)f->t0, (ll)f->t1,
				direction == NEAP_PUT ? "leaving for a tier" : "arriving");
	}
	return 0;
}

/* No tape, or log, of the range may be there or arriving. */
static int absent(struct verify_run *v, const struct neap_action *a, int payload)
{
	if (neap__run_length_overlap(ranges(v, payload), a->t0, a->t1))
		return NEAP__ILLEGAL("a %s of [%lld, %lld) is there already",
			payload == NEAP_LOG ? "log" : "tape", (ll)a->t0, (ll)a->t1);
	return at_rest(v, a, payload, NEAP_GET);
}

static int whole(struct verify_run *v, const struct neap_action *a, int payload)
{
	if (!neap__run_length_whole(ranges(v, payload), a->t0, a->t1))
		return NEAP__ILLEGAL("the %s of [%lld, %lld) are not there as whole records",
			neap__plural(payload), (ll)a->t0, (ll)a->t1);
	return 0;
}

static int logs_exist(struct verify_run *v)
{
	if (!v->chain->log)
		return NEAP__ILLEGAL("there are no logs in this problem");
	v->travelled = 1;
	return 0;
}

static int may_record(struct verify_run *v, const struct neap_action *a)
{
	uint32_t kind = v->chain->flags & (NEAP_CHAIN_CLASSIC | NEAP_CHAIN_MIXED);
	if (a->payload == NEAP_LOG) {
		NEAP_TRY(logs_exist(v));
		NEAP_TRY(whole(v, a, NEAP_LOG));
		NEAP_TRY(at_rest(v, a, NEAP_LOG, NEAP_PUT));
	}
	NEAP_TRY(absent(v, a, NEAP_TAPE));
	if (kind == NEAP_CHAIN_CLASSIC && neap__run_length_height(&v->tapes) + a->t1 - a->t0 > 1)
		return NEAP__ILLEGAL("more than one tape in a classic problem");
	return 0;
}

static int payload_fits(struct neap__rules *rules, const struct neap_action *a)
{
	struct verify_run *v = rules->self;
	int payload = a->kind == NEAP_BACKWARD ? NEAP_TAPE : a->payload;
	switch (a->kind) {
	case NEAP_ADVANCE:
		NEAP_TRY(logs_exist(v));
		return absent(v, a, NEAP_LOG);
	case NEAP_RECORD:
		return may_record(v, a);
	case NEAP_PUT:
		if (payload == NEAP_LOG)
			NEAP_TRY(logs_exist(v));
		/* fall through */
	case NEAP_BACKWARD:
	case NEAP_DROP:
		if (payload == NEAP_STATE)
			return 0;
		NEAP_TRY(at_rest(v, a, payload, NEAP_PUT));
		return whole(v, a, payload);
	case NEAP_GET:
		return absent(v, a, payload);
	default:
		return 0;
	}
}

/* Room for the record at `place`: states are numbered apart from tapes and logs. */
static int room(struct neap__rules *rules, const struct neap_action *a)
{
	struct verify_run *v = rules->self;
	struct verify_places *x = &v->places[a->tier - 1];
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
	each = (uint64_t)x->longest * v->chain->tape;
	log = (uint64_t)x->longest_log * v->chain->log;
	each = log > each ? log : each;
	if (neap__mul_u64(&states, (uint64_t)x->state_top, v->chain->state) ||
		neap__mul_u64(&tapes, (uint64_t)x->tape_top, each) ||
		neap__add_u64(&tapes, tapes, states) ||
		tapes > rules->p->tiers[a->tier - 1].capacity)
		return NEAP__ILLEGAL("place %lld is beyond the tier's capacity", (ll)a->place);
	rules->out->tiers[a->tier - 1].peak_bytes = tapes;
	return 0;
}

static uint64_t bytes(const struct neap__rules *rules, const struct neap_action *a)
{
	const struct neap_chain *c = &rules->p->chain;
	if (a->payload == NEAP_STATE)
		return c->state;
	return (uint64_t)(a->t1 - a->t0) * (a->payload == NEAP_LOG ? c->log : neap__tape_sent(c));
}

static int make(struct verify_run *v, const struct neap_action *a, int payload)
{
	*steps(v, payload) += a->t1 - a->t0;
	return neap__run_length_record(ranges(v, payload), a->t0, a->t1);
}

static int release(struct verify_run *v, int payload, int64_t t0, int64_t t1)
{
	*steps(v, payload) -= t1 - t0;
	return neap__run_length_reverse(ranges(v, payload), t0, t1);
}

static int apply(struct neap__rules *rules, const struct neap_action *a)
{
	struct verify_run *v = rules->self;
	const struct neap__flight *f = &rules->flights[a->kind == NEAP_WAIT ? a->ticket : 0];
	int tapes = a->payload != NEAP_STATE;
	switch (a->kind) {
	case NEAP_ADVANCE:
		return a->payload == NEAP_LOG ? make(v, a, NEAP_LOG) : 0;
	case NEAP_RECORD:
		return make(v, a, NEAP_TAPE);
	case NEAP_BACKWARD:
		return release(v, NEAP_TAPE, a->t0, a->t1);
	case NEAP_SAVE:
		v->slots++;
		return 0;
	case NEAP_DROP:
		v->travelled |= tapes; /* they leave from below */
		if (tapes)
			return release(v, a->payload, a->t0, a->t1);
		v->slots--;
		return 0;
	case NEAP_PUT:
		v->travelled |= tapes;
		return 0;
	case NEAP_GET:
		if (tapes)
			*steps(v, a->payload) += a->t1 - a->t0;
		else
			v->slots += a->slot != NEAP_LIVE;
		return 0;
	case NEAP_WAIT:
		if (f->payload == NEAP_STATE)
			return 0;
		return f->kind == NEAP_PUT
			       ? release(v, f->payload, f->t0, f->t1)
			       : neap__run_length_record(ranges(v, f->payload), f->t0, f->t1);
	default:
		return 0;
	}
}

static void measure(struct verify_run *v)
{
	const struct neap_chain *c = v->chain;
	uint64_t height = (uint64_t)neap__run_length_height(&v->tapes);
	uint64_t slots = (uint64_t)v->slots * c->state;
	uint64_t there =
		slots + (uint64_t)v->steps_taped * c->tape + (uint64_t)v->steps_logged * c->log;
	uint64_t bytes = slots + height * c->tape;
	if (c->flags & NEAP_CHAIN_MIXED && height > 1)
		bytes += height - 1;
	if (bytes > v->rules.out->peak_bytes)
		v->rules.out->peak_bytes = bytes;
	if (there > v->peak_there)
		v->peak_there = there;
}

/* Once the bytes of slots and tapes are known: what is always there. */
static void add_fixed(struct verify_run *v)
{
	const struct neap_problem *p = v->rules.p;
	struct neap_verdict *out = v->rules.out;
	if (p->chain.steps == 0)
		return;
	if (v->travelled)
		out->peak_bytes = v->peak_there;
	out->peak_bytes += p->chain.adjoint + neap__live_bytes(p);
	for (int i = 0; i < p->ntiers; i++)
		if (v->places[i].state_top || v->places[i].tape_top) /* used, if by no byte */
			out->peak_bytes += p->tiers[i].staging;
	out->arena_bytes = out->peak_bytes + neap__tape_reserve(p);
}

static int perform(void *self, const struct neap_action *a)
{
	struct verify_run *v = self;
	NEAP_TRY(neap__rules_perform(&v->rules, a));
	measure(v);
	return 0;
}

static int verify_all(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule)
{
	static const struct neap__rules_ops ops = {payload_fits, room, bytes, apply};
	struct verify_run v = {
		.rules = {.ops = &ops, .self = &v},
		.chain = &problem->chain,
	};
	NEAP_TRY(neap_problem_check(problem));
	if (problem->chain.stages)
		return neap__stages_verify(verdict, problem, schedule);
	if (problem->chain.join)
		return neap__verify_join(verdict, problem, schedule);
	neap__rules_begin(&v.rules, problem, verdict, SLOTS_MOST);
	int rc = neap__rules_pass(schedule, verdict, 0, perform, &v);
	if (rc == 0)
		rc = neap__rules_complete(&v.rules);
	add_fixed(&v);
	neap__rules_free(&v.rules);
	neap__run_length_free(&v.tapes);
	neap__run_length_free(&v.logs);
	return rc;
}

int neap_verify(struct neap_verdict *verdict, const struct neap_problem *problem,
	struct neap_schedule *schedule)
{
	NEAP_NEED(verdict, problem, schedule);
	struct neap_verdict found = {.size = sizeof found};
	NEAP_TRY(neap__struct_size(
		verdict->size, sizeof verdict->size, sizeof found, "neap_verdict"));
	int rc = verify_all(&found, problem, schedule);
	neap__struct_give(verdict, &found, sizeof found);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c: actions pushed and pulled, the outbox, and how schedules are opened and closed. */
#include "plan/core/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "base/grow.h"
#include "plan/core/sizing.h"
#include "plan/core/strategy.h"

const char *neap_action_name(int kind)
{
	static const char *const names[] = {
#define NEAP_X(name, text) [name] = text,
		NEAP_ACTION_TABLE(NEAP_X)
#undef NEAP_X
	};
	return kind >= 0 && kind < NEAP_ACTION_KINDS ? names[kind] : "?";
}

void neap__emit(struct neap_schedule *s, const struct neap_action *action)
{
	int64_t room = (int64_t)s->room;
	if (s->error)
		return;
	if (neap__grow(&s->queue, &room, (int64_t)s->length + 1, sizeof *s->queue) < 0) {
		s->error = neap__fail(-ENOMEM, "schedule: out of memory");
		return;
	}
	s->room = (size_t)room;
	s->queue[s->length++] = *action;
}

void neap__advance(struct neap_schedule *s, int64_t t0, int64_t t1)
{
	if (t0 < t1)
		neap__emit(s, &(struct neap_action){.kind = NEAP_ADVANCE, .t0 = t0, .t1 = t1});
}

void neap__record(struct neap_schedule *s, int64_t t0, int64_t t1)
{
	neap__emit(s, &(struct neap_action){.kind = NEAP_RECORD, .t0 = t0, .t1 = t1});
}

void neap__emit_turn(struct neap_schedule *s)
{
	int64_t t = s->problem.chain.steps;
	neap__emit(s, &(struct neap_action){.kind = NEAP_TURN, .t0 = t, .t1 = t});
}

void neap__backward(struct neap_schedule *s, int64_t t0, int64_t t1)
{
	neap__emit(s, &(struct neap_action){.kind = NEAP_BACKWARD, .t0 = t0, .t1 = t1});
}

void neap__save(struct neap_schedule *s, int64_t slot, int64_t t)
{
	neap__emit(s, &(struct neap_action){.kind = NEAP_SAVE, .slot = slot, .t0 = t, .t1 = t});
}

void neap__load(struct neap_schedule *s, int64_t slot, int64_t t)
{
	neap__emit(s, &(struct neap_action){.kind = NEAP_LOAD, .slot = slot, .t0 = t, .t1 = t});
}

void neap__drop(struct neap_schedule *s, int64_t slot, int64_t t)
{
	neap__emit(s, &(struct neap_action){.kind = NEAP_DROP, .slot = slot, .t0 = t, .t1 = t});
}

void neap__compute(
	struct neap_schedule *s, int64_t advanced, int64_t recorded, int64_t saves, int64_t loads)
{
	neap__emit(s, &(struct neap_action){.kind = NEAP__COMPUTE,
			      .t0 = advanced,
			      .t1 = recorded,
			      .slot = saves,
			      .place = loads});
}

static void transfer(struct neap_schedule *s, uint8_t kind, int64_t slot, int64_t t, int64_t place,
	int32_t ticket)
{
	neap__emit(s, &(struct neap_action){.kind = kind,
			      .tier = (uint16_t)s->plan.tier,
			      .ticket = ticket,
			      .slot = slot,
			      .t0 = t,
			      .t1 = t,
			      .place = place});
}

void neap__put(struct neap_schedule *s, int64_t slot, int64_t t, int64_t place, int32_t ticket)
{
	transfer(s, NEAP_PUT, slot, t, place, ticket);
}

void neap__get(struct neap_schedule *s, int64_t slot, int64_t t, int64_t place, int32_t ticket)
{
	transfer(s, NEAP_GET, slot, t, place, ticket);
}

void neap__wait(struct neap_schedule *s, int32_t ticket)
{
	transfer(s, NEAP_WAIT, 0, 0, 0, ticket);
}

void neap__forget(struct neap_schedule *s, int64_t t, int64_t place)
{
	transfer(s, NEAP_FORGET, 0, t, place, 0);
}

static void log_action(struct neap_schedule *s, uint8_t kind, int64_t t0, int64_t t1, int64_t place,
	int32_t ticket)
{
	neap__emit(s, &(struct neap_action){.kind = kind,
			      .payload = NEAP_LOG,
			      .tier = (uint16_t)(kind >= NEAP_PUT ? s->plan.tier : 0),
			      .ticket = ticket,
			      .t0 = t0,
			      .t1 = t1,
			      .place = place});
}

void neap__advance_log(struct neap_schedule *s, int64_t t0, int64_t t1)
{
	log_action(s, NEAP_ADVANCE, t0, t1, 0, 0);
}

void neap__record_log(struct neap_schedule *s, int64_t t0, int64_t t1)
{
	log_action(s, NEAP_RECORD, t0, t1, 0, 0);
}

void neap__drop_log(struct neap_schedule *s, int64_t t0, int64_t t1)
{
	log_action(s, NEAP_DROP, t0, t1, 0, 0);
}

void neap__put_log(struct neap_schedule *s, int64_t t0, int64_t t1, int64_t place, int32_t ticket)
{
	log_action(s, NEAP_PUT, t0, t1, place, ticket);
}

void neap__get_log(struct neap_schedule *s, int64_t t0, int64_t t1, int64_t place, int32_t ticket)
{
	log_action(s, NEAP_GET, t0, t1, place, ticket);
}

void neap__forget_log(struct neap_schedule *s, int64_t t0, int64_t place)
{
	log_action(s, NEAP_FORGET, t0, t0, place, 0);
}

static void settle_oldest(struct neap_schedule *s, struct neap__outbox *box)
{
	int64_t slot = box->settled % box->room;
	neap__wait(s, (int32_t)slot);
	neap__drop(s, slot, box->times[slot]);
	box->settled++;
}

void neap__outbox_send(struct neap_schedule *s, struct neap__outbox *box, int64_t t, int64_t place)
{
	if (box->room == 0) {
		neap__put(s, NEAP_LIVE, t, place, 0);
		neap__wait(s, 0);
		return;
	}
	if (box->issued - box->settled == box->room)
		settle_oldest(s, box);
	int64_t slot = box->issued % box->room;
	neap__save(s, slot, t);
	neap__put(s, slot, t, place, (int32_t)slot);
	box->times[slot] = t;
	box->issued++;
}

void neap__outbox_free(struct neap_schedule *s, struct neap__outbox *box, int64_t slot)
{
	for (int64_t i = box->settled; i < box->issued; i++)
		if (slot < 0 || i % box->room == slot)
			while (box->settled <= i)
				settle_oldest(s, box);
}

void neap__outbox_skip(struct neap__outbox *box, int64_t units, int64_t steps)
{
	for (int64_t i = 0; i < box->room; i++)
		box->times[i] += steps;
	if (box->room > 0) {
		box->issued += units;
		box->settled += units;
	}
}

/* T = 0: there is only the loss. */
static int refill_empty(struct neap_schedule *s)
{
	if (s->plan.slots == 0) {
		s->plan.slots = -1;
		neap__emit_turn(s);
	}
	return 0;
}

/* A list of actions, as it is. */
static int refill_list(struct neap_schedule *s)
{
	for (int i = 0; i < 32 && s->plan.action_count > 0; i++) {
		neap__emit(s, s->plan.actions++);
		s->plan.action_count--;
	}
	return 0;
}

static int open_row(struct neap_schedule *s)
{
	const struct neap_problem whole = s->problem;
	const int64_t g = s->plan.params.group;
	if (g == 0)
		return s->row->open(s);
	if (!s->row->leaf_steps || g < 0 || g > whole.chain.steps ||
		!neap__grouped_chain(&s->problem, &whole, g))
		return neap__fail(
			NEAP_EUSAGE, "schedule: %s: group is %lld", s->row->name, (long long)g);
	s->group = g;
	s->steps = whole.chain.steps;
	return s->row->open(s);
}

int neap__schedule_open_row(struct neap_schedule **schedule, const struct neap__strategy *row,
	const struct neap_problem *problem, const struct neap_plan *plan)
{
	struct neap_schedule *s = calloc(1, sizeof *s);
	if (!s)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->problem = neap__calls_counted(problem);
	s->plan = *plan;
	s->row = row;
	int rc = 0;
	if (plan->actions)
		s->refill = refill_list;
	else if (problem->chain.steps == 0)
		s->refill = refill_empty, s->plan.slots = 0;
	else if ((problem->chain.stages && !(row->traits & NEAP_STRATEGY_STAGES)) ||
		 (problem->chain.join && !(row->traits & NEAP_STRATEGY_JOIN)))
		rc = neap__fail(NEAP_EUSAGE, "schedule: %s: not a problem it plans", row->name);
	else if (plan->tier < 0 || plan->tier > problem->ntiers || plan->stage_slots < 0 ||
		 plan->stage_slots > NEAP__OUTBOX_MOST)
		rc = neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	else
		rc = open_row(s);
	if (rc < 0) {
		neap_schedule_close(s);
		return rc;
	}
	*schedule = s;
	return 0;
}

/* Of group i, or of the end. */
static int64_t first_step(const struct neap_schedule *s, int64_t i)
{
	return i > s->steps / s->group ? s->steps : i * s->group;
}

static int hand_out(struct neap_schedule *s, struct neap_action *action)
{
	if (s->user_next)
		return s->user_next(s->user, action);
	if (s->head == s->length) {
		s->head = s->length = 0;
		if (!s->error) {
			int rc = s->refill(s);
			if (rc < 0)
				s->error = rc;
		}
		if (s->error)
			return s->error;
		if (s->length == 0)
			return 0;
	}
	*action = s->queue[s->head++];
	if (s->group) {
		action->t0 = first_step(s, action->t0);
		action->t1 = first_step(s, action->t1);
	}
	return 1;
}

int neap_schedule_next(struct neap_schedule *s, struct neap_action *action)
{
	NEAP_NEED(s, action);
	NEAP_TRY(neap__gate_enter(&s->gate, __func__, "schedule"));
	int rc = hand_out(s, action);
	neap__gate_leave(&s->gate);
	return rc;
}

int neap_schedule_wrap(struct neap_schedule **schedule,
	int (*next)(void *user, struct neap_action *action), void (*close)(void *user), void *user)
{
	NEAP_NEED(schedule, next);
	struct neap_schedule *s = calloc(1, sizeof *s);
	if (!s)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->user_next = next;
	s->user_close = close;
	s->user = user;
	*schedule = s;
	return 0;
}

void neap_schedule_close(struct neap_schedule *s)
{
	if (!s || neap__gate_enter(&s->gate, __func__, "schedule") < 0)
		return;
	if (s->user_close)
		s->user_close(s->user);
	if (s->fini && s->self)
		s->fini(s);
	free(s->self);
	free(s->queue);
	free(s);
}

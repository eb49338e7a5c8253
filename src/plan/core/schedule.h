/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h: how a strategy produces actions. A strategy is a state machine: each call of
 * `refill` pushes the next few actions (those of one chunk) with the functions below; pushing
 * none ends the schedule.
 */
#ifndef NEAP_PLAN_CORE_SCHEDULE_H
#define NEAP_PLAN_CORE_SCHEDULE_H

#include "base/fail.h"
#include "base/gate.h"
#include "plan/core/strategy.h"

/* NEAP_EILLEGAL with a detail line: why an action, or the end, of a schedule is not legal. */
#define NEAP__ILLEGAL(...) neap__fail(NEAP_EILLEGAL, __VA_ARGS__)

struct neap_schedule {
	struct neap__gate gate; /* next, or close */
	/* Pushes the next actions; 0 or a negative code. NULL for wrapped ones. */
	int (*refill)(struct neap_schedule *s);
	void *self;			       /* the strategy's state, freed by close */
	void (*fini)(struct neap_schedule *s); /* frees what hangs on self; may be NULL */
	/*
	 * Grows the strategy's tables to `room` rows at least and answers how many
	 * they have, or a negative code; NULL where they never grow. A sweep gives a
	 * fresh schedule the room that a drained one had: no allocation while it runs.
	 */
	int64_t (*tables)(struct neap_schedule *s, int64_t room);
	/*
	 * For predicting long schedules. alike: how many of the next units are the same
	 * but for their numbers, 0 where the phase changes, -1 within a unit; in *every,
	 * units after which tickets come round. skip: leaves `units` of them out, a
	 * multiple of *every; the schedule is then good for simulation only. NULL: none.
	 */
	int64_t (*alike)(struct neap_schedule *s, int64_t *every);
	void (*skip)(struct neap_schedule *s, int64_t units);
	struct neap_problem problem;
	struct neap_plan plan;
	const struct neap__strategy *row; /* that made the plan; NULL: a list, or wrapped */
	struct neap_action *queue;	  /* [head, length) are still to be handed out */
	size_t head, length, room;
	int error; /* sticky */
	/* If not 0: `problem` has groups of steps (leaf_groups.h), and these are of the chain. */
	int64_t group, steps; /* steps of a group, and all of them */
	/*
	 * Coarse: the schedule is only going to be simulated, and stretches without
	 * transfers may be emitted as one NEAP__COMPUTE.
	 */
	int coarse;

	int (*user_next)(void *user, struct neap_action *action);
	void (*user_close)(void *user);
	void *user;
};

/*
 * As neap_schedule_open for the plan of a known row (NULL where plan->actions has the
 * schedule) and a checked problem.
 */
int neap__schedule_open_row(struct neap_schedule **schedule, const struct neap__strategy *row,
	const struct neap_problem *problem, const struct neap_plan *plan);

/*
 * Internal kind: t0 steps advanced, t1 recorded and reversed, slot saves, place loads; a
 * call of ADVANCE after each save, of RECORD and of BACKWARD after each load.
 */
#define NEAP__COMPUTE NEAP_ACTION_KINDS
void neap__compute(
	struct neap_schedule *s, int64_t advanced, int64_t recorded, int64_t saves, int64_t loads);

void neap__emit(struct neap_schedule *s, const struct neap_action *action);
void neap__advance(struct neap_schedule *s, int64_t t0, int64_t t1); /* none if empty */
void neap__record(struct neap_schedule *s, int64_t t0, int64_t t1);
void neap__emit_turn(struct neap_schedule *s);
void neap__backward(struct neap_schedule *s, int64_t t0, int64_t t1);
void neap__save(struct neap_schedule *s, int64_t slot, int64_t t);
void neap__load(struct neap_schedule *s, int64_t slot, int64_t t);
void neap__drop(struct neap_schedule *s, int64_t slot, int64_t t);
/* A state to or from `place` of the plan's tier. */
void neap__put(struct neap_schedule *s, int64_t slot, int64_t t, int64_t place, int32_t ticket);
void neap__get(struct neap_schedule *s, int64_t slot, int64_t t, int64_t place, int32_t ticket);
void neap__wait(struct neap_schedule *s, int32_t ticket);
void neap__forget(struct neap_schedule *s, int64_t t, int64_t place);

/* The same with or from a log of [t0, t1), and what moves it. */
void neap__advance_log(struct neap_schedule *s, int64_t t0, int64_t t1);
void neap__record_log(struct neap_schedule *s, int64_t t0, int64_t t1);
void neap__drop_log(struct neap_schedule *s, int64_t t0, int64_t t1);
void neap__put_log(struct neap_schedule *s, int64_t t0, int64_t t1, int64_t place, int32_t ticket);
void neap__get_log(struct neap_schedule *s, int64_t t0, int64_t t1, int64_t place, int32_t ticket);
void neap__forget_log(struct neap_schedule *s, int64_t t0, int64_t place);

/*
 * States on their way out through `room` staging slots 0..room-1 in rotation
 * (room 0: straight from the live state, waiting for each). Tickets 0..room-1.
 */
struct neap__outbox {
	int64_t room;
	int64_t issued;	 /* states sent */
	int64_t settled; /* of them, waited for and dropped */
	int64_t times[NEAP__OUTBOX_MOST];
};

/* Sends the live state, at t, to `place`. */
void neap__outbox_send(struct neap_schedule *s, struct neap__outbox *box, int64_t t, int64_t place);
/* As if `units` more had been sent, a multiple of room, and as many settled. */
void neap__outbox_skip(struct neap__outbox *box, int64_t units, int64_t steps);
/* Waits until staging slot `slot` is free; slot < 0: all of them. */
void neap__outbox_free(struct neap_schedule *s, struct neap__outbox *box, int64_t slot);

#endif

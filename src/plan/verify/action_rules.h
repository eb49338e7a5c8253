/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_rules.h: what each kind of action needs and changes, for the verifiers. A table in
 * action_rules.c has one row per kind of action and lists the rules that the action must
 * obey; neap__rules_check asks them in a fixed order, so that every verifier refuses the
 * same action with the same line. Equal steps (verify.c) and stages (verify_stages.c) share
 * the state below, which knows the live state, slots, places, tickets and the adjoint; each
 * of them keeps its own tapes and counts its own bytes. Joins (verify_join.c) have two live
 * states and two adjoints, and answer the rules with checks of their own.
 */
#ifndef NEAP_PLAN_VERIFY_ACTION_RULES_H
#define NEAP_PLAN_VERIFY_ACTION_RULES_H

#include "plan/core/schedule.h"
#include "plan/verify/run_length.h"

/* In the order in which they are checked. */
enum neap__action_rule {
	NEAP__TRANSFER_POSSIBLE, /* tier, free ticket, payload that travels, number of a place */
	NEAP__TICKET_IN_FLIGHT,
	NEAP__PLACE_AT_REST, /* the tier exists, no transfer of the record is in flight */
	NEAP__RANGE_IN_CHAIN,
	NEAP__TURN_FIRST,	   /* no turn yet */
	NEAP__ADJOINT_AT_END,	   /* the turn was made, the adjoint is at t1 */
	NEAP__LIVE_AT_START,	   /* the live state is there, at t0 */
	NEAP__LIVE_AT_LAST,	   /* the same at the end of the chain */
	NEAP__SOURCE_HOLDS,	   /* the slot, or the live state of a PUT, holds t0 */
	NEAP__PLACE_HOLDS,	   /* the record is on the tier */
	NEAP__LIVE_MAY_CHANGE,	   /* the live state neither arrives nor leaves */
	NEAP__LIVE_NOT_LEAVING,	   /* the live state does not leave */
	NEAP__SLOT_NOT_LEAVING,	   /* the slot does not leave */
	NEAP__PAYLOAD_FITS_ACTION, /* tapes and logs: there and at rest, or absent */
	NEAP__TARGET_FREE,	   /* the slot, or the live state of a GET, may be filled */
	NEAP__PLACE_FREE,
	NEAP__ROOM_ON_TIER, /* takes the room: the last rule */
};

/* Does an action obey a rule? 0, or NEAP_EILLEGAL with a line. */
typedef int neap__rule_holds(
	void *self, enum neap__action_rule rule, const struct neap_action *action);

/*
 * Asks every rule of the action's row. 0, or the first negative code. The action's kind is
 * below NEAP_ACTION_KINDS.
 */
int neap__rules_check(neap__rule_holds *holds, void *self, const struct neap_action *action);

/*
 * Pulls the schedule to its end and gives every action to `perform`. Counts actions in
 * verdict->actions and puts the number of a refused action, counted from `first`, before
 * the detail line. 0 or the first negative code.
 */
int neap__rules_pass(struct neap_schedule *schedule, struct neap_verdict *verdict, int first,
	int (*perform)(void *self, const struct neap_action *action), void *self);

static inline const char *neap__plural(int payload)
{
	return payload == NEAP_LOG ? "logs" : "tapes";
}

enum neap__standing { NEAP__FREE, NEAP__HELD, NEAP__ARRIVING };

struct neap__holder { /* a slot, or the live state */
	int64_t t;
	int32_t leaving;  /* PUTs in flight from here */
	uint8_t standing; /* enum neap__standing */
	uint8_t part;	  /* stages: the state is a part of a tape, as long as that is there */
};

struct neap__flight {
	int kind; /* NEAP_PUT, NEAP_GET; 0: the ticket is free (an ADVANCE has no ticket) */
	int tier; /* 0 = the problem's tiers[0] */
	int payload;
	int64_t slot, t0, t1, place;
};

struct neap__stored {
	struct neap__run_length states;	  /* place to step */
	struct neap__run_length from, to; /* of tapes and logs: place to t0 and to t1 */
	struct neap__run_length logs;	  /* the places of the latter that hold logs */
};

struct neap__rules;

/* What verifiers of equal steps and of stages do each in their own way. 0 or a negative code. */
struct neap__rules_ops {
	/* NEAP__PAYLOAD_FITS_ACTION and NEAP__ROOM_ON_TIER */
	int (*payload)(struct neap__rules *rules, const struct neap_action *action);
	int (*room)(struct neap__rules *rules, const struct neap_action *action);
	/* Bytes that a PUT or a GET moves. */
	uint64_t (*bytes)(const struct neap__rules *rules, const struct neap_action *action);
	/* Tapes, logs and bytes after a legal action; called before the state below changes. */
	int (*apply)(struct neap__rules *rules, const struct neap_action *action);
};

/* All zero but what neap__rules_begin sets; free with neap__rules_free. */
struct neap__rules {
	const struct neap_problem *p;
	struct neap_verdict *out;
	const struct neap__rules_ops *ops;
	void *self; /* the verifier, for its ops */
	struct neap__holder live, *slots;
	int64_t room, slots_most; /* rows of `slots`; slot numbers are below slots_most */
	struct neap__stored stored[NEAP_TIERS_MAX];
	struct neap__flight flights[NEAP_TICKETS];
	int64_t in_flight;
	int64_t adjoint; /* -1: none yet */
	int turned;
};

/* x_0 is live, nothing else is there. */
void neap__rules_begin(struct neap__rules *rules, const struct neap_problem *problem,
	struct neap_verdict *verdict, int64_t slots_most);
void neap__rules_free(struct neap__rules *rules);

/* Checks an action and performs it. 0, NEAP_EILLEGAL with a line, or -ENOMEM. */
int neap__rules_perform(struct neap__rules *rules, const struct neap_action *action);

/* At the end: turned, reversed to x_0, every transfer waited for. 0 or NEAP_EILLEGAL. */
int neap__rules_complete(const struct neap__rules *rules);

#endif

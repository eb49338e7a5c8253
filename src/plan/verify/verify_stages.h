/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_stages.h: what verify keeps of a chain whose steps differ.
 *   verify_stages.c     computing, slots, the whole pass
 *   verify_stage_transfers.c  PUT, GET, WAIT, FORGET
 */
#ifndef NEAP_PLAN_VERIFY_VERIFY_STAGES_H
#define NEAP_PLAN_VERIFY_VERIFY_STAGES_H

#include "plan/core/schedule.h"
#include "plan/verify/run_length.h"
#include "plan/core/stage_sizes.h"

typedef long long ll;
#define NOWHERE (-1)

struct neap__verify_slot {
	int64_t t; /* NOWHERE: free */
	int32_t leaving;
	uint8_t arriving;
	uint8_t part; /* of the tape that holds x_t, as long as that is there */
};

enum neap__verify_tape { ABSENT, HERE, LEAVING, ARRIVING };

struct neap__verify_flight {
	int kind; /* NEAP_PUT, NEAP_GET; 0: ticket free */
	int tier, payload;
	int64_t slot, t, t1, place;
};

struct neap__verify_store {
	struct neap__run_length states, from, to; /* places of states; of tapes: t0, t1 */
	uint64_t bytes;
};

struct neap__stage_verify {
	const struct neap_problem *p;
	const struct neap_stages *stages;
	struct neap_verdict *out;
	struct neap__verify_slot live, *slots; /* slots: [steps + 2] */
	int64_t most;
	int32_t *held;	/* [steps + 1] how many of live and slots hold x_t, arrived */
	int32_t *parts; /* [steps + 1] slots that hold x_t as a part of a tape */
	uint8_t *taped; /* [steps] enum neap__verify_tape */
	struct neap__verify_store stores[NEAP_TIERS_MAX];
	struct neap__verify_flight flights[NEAP_TICKETS];
	int64_t in_flight, adjoint;
	uint64_t bytes; /* kept, the gradient included */
	uint64_t staging;
	int turned;
	int flat; /* neap__stages_flat: long advances need not be followed step by step */
};

/* Is x_t counted with the tape of t - 1, and can be read there? */
int neap__stage_verify_in_tape(const struct neap__stage_verify *v, int64_t t);
/* What becomes of the tape of stage i. */
void neap__stage_verify_tape(struct neap__stage_verify *v, int64_t i, enum neap__verify_tape there);
/* x_t, or no state (NOWHERE), in the live state or a slot. */
enum neap__verify_origin { OWN, PART, COMING };
void neap__stage_verify_live(
	struct neap__stage_verify *v, int64_t t, enum neap__verify_origin origin);
int neap__stage_verify_slot_fill(
	struct neap__stage_verify *v, int64_t n, int64_t t, enum neap__verify_origin origin);
int neap__stage_verify_slot_holds(
	struct neap__stage_verify *v, int64_t n, int64_t t, struct neap__verify_slot **row);
/* The state that was to come into a slot or the live state is there. */
void neap__stage_verify_arrived(struct neap__stage_verify *v, struct neap__verify_slot *row);
/* NEAP_EILLEGAL with a line unless it is so. */
int neap__stage_verify_range(const struct neap__stage_verify *v, const struct neap_action *a);
int neap__stage_verify_live_at(const struct neap__stage_verify *v, int64_t t);
int neap__stage_verify_live_may_change(const struct neap__stage_verify *v);
int neap__stage_verify_tape_rests(const struct neap__stage_verify *v, int64_t i);

int neap__stage_verify_put(struct neap__stage_verify *v, const struct neap_action *a);
int neap__stage_verify_get(struct neap__stage_verify *v, const struct neap_action *a);
int neap__stage_verify_wait(struct neap__stage_verify *v, const struct neap_action *a);
int neap__stage_verify_forget(struct neap__stage_verify *v, const struct neap_action *a);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_stages.h: what verify keeps of a chain whose steps differ.
 *   verify_stages.c     computing, slots, the whole pass
 *   verify_stage_transfers.c  PUT, GET, WAIT, FORGET
 */
#ifndef NEAP_PLAN_STAGEAUDIT_H
#define NEAP_PLAN_STAGEAUDIT_H

#include "base/fail.h"
#include "plan/verify/run_length.h"
#include "plan/core/stage_sizes.h"

typedef long long ll;
#define ILLEGAL(...) neap__fail(NEAP_EILLEGAL, __VA_ARGS__)
#define NOWHERE (-1)

struct slot {
	int64_t t; /* NOWHERE: free */
	int32_t leaving;
	uint8_t arriving;
	uint8_t part; /* of the tape that holds x_t, as long as that is there */
};

enum tape { ABSENT, HERE, LEAVING, ARRIVING };

struct flight {
	int kind; /* NEAP_PUT, NEAP_GET; 0: ticket free */
	int tier, payload;
	int64_t slot, t, t1, place;
};

struct store {
	struct neap__runs states, from, to; /* places of states; of tapes: t0, t1 */
	uint64_t bytes;
};

struct audit {
	const struct neap_problem *p;
	const struct neap_stages *stages;
	struct neap_verdict *out;
	struct slot live, *slots; /* slots: [steps + 2] */
	int64_t most;
	int32_t *held;	/* [steps + 1] how many of live and slots hold x_t, arrived */
	int32_t *parts; /* [steps + 1] slots that hold x_t as a part of a tape */
	uint8_t *taped; /* [steps] enum tape */
	struct store stores[NEAP_TIERS_MAX];
	struct flight flights[NEAP_TICKETS];
	int64_t in_flight, adjoint;
	uint64_t bytes; /* kept, the gradient included */
	uint64_t staging;
	int turned;
	int flat; /* neap__stages_flat: long advances need not be followed step by step */
};

/* Is x_t counted with the tape of t - 1, and can be read there? */
int neap__audit_in_tape(const struct audit *v, int64_t t);
/* What becomes of the tape of stage i. */
void neap__audit_tape(struct audit *v, int64_t i, enum tape there);
/* x_t, or no state (NOWHERE), in the live state or a slot. */
enum origin { OWN, PART, COMING };
void neap__audit_live(struct audit *v, int64_t t, enum origin origin);
int neap__audit_slot_fill(struct audit *v, int64_t n, int64_t t, enum origin origin);
int neap__audit_slot_holds(struct audit *v, int64_t n, int64_t t, struct slot **row);
/* The state that was to come into a slot or the live state is there. */
void neap__audit_arrived(struct audit *v, struct slot *row);
/* NEAP_EILLEGAL with a line unless it is so. */
int neap__audit_range(const struct audit *v, const struct neap_action *a);
int neap__audit_live_at(const struct audit *v, int64_t t);
int neap__audit_live_may_change(const struct audit *v);
int neap__audit_tape_rests(const struct audit *v, int64_t i);

int neap__audit_put(struct audit *v, const struct neap_action *a);
int neap__audit_get(struct audit *v, const struct neap_action *a);
int neap__audit_wait(struct audit *v, const struct neap_action *a);
int neap__audit_forget(struct audit *v, const struct neap_action *a);

#endif

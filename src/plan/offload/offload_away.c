/* SPDX-License-Identifier: Apache-2.0 */
/* offload_away.c: tries tapes and states, on each tier, and takes what needs the least. */
#include "plan/offload/offload_away.h"

#include <string.h>
#include "base/fail.h"
#include "plan/core/stage_sizes.h"
#include "plan/verify/measure_list.h"

/* A transfer of x_i or of the tape of stage i, and its end; a state goes from, or comes, live. */
static void move(struct neap__action_list *x, int kind, int payload, int tier, int64_t i)
{
	neap__action_list_add(x, &(struct neap_action){.kind = (uint8_t)kind,
					 .payload = (uint8_t)payload,
					 .tier = (uint16_t)tier,
					 .slot = payload == NEAP_STATE ? NEAP_LIVE : 0,
					 .t0 = i,
					 .t1 = payload == NEAP_STATE ? i : i + 1,
					 .place = i});
	neap__action_list_add(x, &(struct neap_action){.kind = NEAP_WAIT, .tier = (uint16_t)tier});
}

static void step(struct neap__action_list *x, int kind, int64_t i)
{
	neap__action_list_add(
		x, &(struct neap_action){.kind = (uint8_t)kind, .t0 = i, .t1 = i + 1});
}

/* Every stage is recorded once; its tape is offloaded, and its input if backward needs it. */
static void tapes_leave(struct neap__action_list *x, const struct neap_chain *c, int tier)
{
	int holds = neap__tape_holds_output(c->stages),
	    needs = neap__backward_needs_input(c->stages);
	if (needs && c->steps > 0)
		move(x, NEAP_PUT, NEAP_STATE, tier, 0);
	for (int64_t i = 0; i < c->steps; i++) {
		step(x, NEAP_RECORD, i);
		/* A state that is a part of the tape leaves with it. */
		if (holds || (needs && i + 1 < c->steps))
			move(x, NEAP_PUT, NEAP_STATE, tier, i + 1);
		move(x, NEAP_PUT, NEAP_TAPE, tier, i);
		if (holds)
			move(x, NEAP_GET, NEAP_STATE, tier, i + 1);
	}
	neap__action_list_add(
		x, &(struct neap_action){.kind = NEAP_TURN, .t0 = c->steps, .t1 = c->steps});
	for (int64_t i = c->steps; i-- > 0;) {
		if (needs)
			move(x, NEAP_GET, NEAP_STATE, tier, i);
		move(x, NEAP_GET, NEAP_TAPE, tier, i);
		step(x, NEAP_BACKWARD, i);
	}
}

/* Every state leaves; a stage is recorded from it just before its backward. */
static void states_leave(struct neap__action_list *x, const struct neap_chain *c, int tier)
{
	int needs = neap__backward_needs_input(c->stages);
	for (int64_t i = 0; i < c->steps; i++) {
		move(x, NEAP_PUT, NEAP_STATE, tier, i);
		step(x, NEAP_ADVANCE, i);
	}
	neap__action_list_add(
		x, &(struct neap_action){.kind = NEAP_TURN, .t0 = c->steps, .t1 = c->steps});
	for (int64_t i = c->steps; i-- > 0;) {
		move(x, NEAP_GET, NEAP_STATE, tier, i);
		if (needs)
			neap__action_list_slot(x, NEAP_SAVE, 0, i);
		step(x, NEAP_RECORD, i);
		step(x, NEAP_BACKWARD, i);
		if (needs)
			neap__action_list_slot(x, NEAP_DROP, 0, i);
	}
}

int neap__offload_away(
	struct neap__action_list *out, const struct neap_problem *problem, uint64_t *least)
{
	static void (*const ways[])(struct neap__action_list *, const struct neap_chain *, int) = {
		tapes_leave, states_leave};
	struct neap_problem p = *problem;
	p.memory = NEAP_INFINITE;
	*least = UINT64_MAX;
	for (int tier = 1; tier <= p.ntiers; tier++)
		for (int way = 0; way < 2; way++) {
			struct neap__action_list list = {0};
			struct neap_plan plan = {.size = sizeof plan};
			ways[way](&list, &p.chain, tier);
			int rc = list.error;
			if (rc == 0)
				rc = neap__action_list_measure(&plan, &p, &list);
			if (rc == 0 && plan.arena_bytes < *least) {
				*least = plan.arena_bytes;
				neap__action_list_free(out);
				*out = list;
				continue;
			}
			neap__action_list_free(&list);
			if (rc < 0 && rc != NEAP_EILLEGAL) /* what does not fit a tier */
				return rc;
		}
	return *least < UINT64_MAX ? 0 : neap__fail(NEAP_EINFEASIBLE, "no tier holds it");
}

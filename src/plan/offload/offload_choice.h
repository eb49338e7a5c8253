/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_choice.h: a choice of what the forward pass over a chain of stages records, stores and
 * offloads; the rest of a plan follows from it. Stages between two stored states that were not
 * recorded are a group: when the backward pass reaches the group, the dynamic programme of
 * chain_table.h reverses it in the memory that is then free.
 */
#ifndef NEAP_PLAN_OFFLOAD_OFFLOAD_CHOICE_H
#define NEAP_PLAN_OFFLOAD_OFFLOAD_CHOICE_H

#include "plan/offload/offload_fit.h"
#include "plan/stages/chain_table.h"

enum { NEAP__NOT_KEPT, NEAP__STAYS }; /* STAYS + k: offloaded to tier k until it is needed */

struct neap__offload_choice {
	int64_t n;
	uint8_t *tape;	/* [n] of stage i: not recorded, stays in memory, or is offloaded */
	uint8_t *state; /* [n] x_i: not in a slot, stays in a slot, or is offloaded */
	uint8_t *ahead; /* [n] group ending at i: number of records that it leaves memory for */
};

/* Sets all to zero except x_0, which stays. Returns 0 or -ENOMEM; free it in every case. */
int neap__offload_choice_init(struct neap__offload_choice *x, int64_t n);
void neap__offload_choice_free(struct neap__offload_choice *x);
void neap__offload_choice_copy(
	struct neap__offload_choice *to, const struct neap__offload_choice *from);

/* Sets the choice to the forward pass of the table's plan for `bytes` bytes, including x_0. */
void neap__offload_choice_spine(
	struct neap__offload_choice *x, const struct neap__chain_table *tables, int64_t bytes);

/* Writes the schedule, lists its items, and marks those to offload. 1, 0 or a negative code. */
int neap__offload_choice_load(struct neap__offload *x, struct neap__action_list *plain,
	const struct neap__offload_choice *choice, const struct neap__chain_table *tables);

/*
 * Changes the choice until it fits: at an action with too few bytes, the unused item that is needed
 * last is offloaded to a tier with enough capacity, or, if there is none, not stored. Returns 1 if
 * it fits, 0 if it does not, or a negative code.
 */
int neap__offload_choice_relieve(struct neap__offload *x, struct neap__action_list *plain,
	struct neap__offload_choice *choice, const struct neap__chain_table *tables);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_choice.h: what the first sweep over a chain of stages records, keeps and sends away;
 * the rest of a plan follows from that. Stages between two kept states that were not recorded
 * are a group: when the backward reaches the group, the dynamic program of chain_table.h does
 * it in the bytes that are then left.
 */
#ifndef NEAP_PLAN_OFFLOAD_OFFLOAD_CHOICE_H
#define NEAP_PLAN_OFFLOAD_OFFLOAD_CHOICE_H

#include "plan/offload/offload_fit.h"
#include "plan/stages/chain_table.h"

enum { NEAP__NOT_KEPT, NEAP__STAYS }; /* STAYS + k: in tier k until it is needed */

struct neap__offload_choice {
	int64_t n;
	uint8_t *tape;	/* [n] of stage i: not recorded, recorded and stays, or goes */
	uint8_t *state; /* [n] x_i in a slot: no, stays, or goes */
	uint8_t *ahead; /* [n] group ending at i: how many records it leaves room for */
};

/* All zero but x_0, which stays. 0 or -ENOMEM; free in every case. */
int neap__offload_choice_init(struct neap__offload_choice *x, int64_t n);
void neap__offload_choice_free(struct neap__offload_choice *x);
void neap__offload_choice_copy(
	struct neap__offload_choice *to, const struct neap__offload_choice *from);

/* The first sweep of the table's plan for so many bytes, x_0's included. */
void neap__offload_choice_spine(
	struct neap__offload_choice *x, const struct neap__chain_table *tables, int64_t bytes);

/*
 * The schedule without transfers. The tables are those of the problem's budget.
 * 1, or 0 where some backward would find no state to start from.
 */
int neap__offload_choice_write(struct neap__action_list *list, const struct neap__offload_choice *x,
	const struct neap__chain_table *tables, const struct neap_problem *problem);

/* Writes, surveys and marks what is to travel. 1, 0 or a negative code. */
int neap__offload_choice_load(struct neap__offload *x, struct neap__action_list *plain,
	const struct neap__offload_choice *choice, const struct neap__chain_table *tables);

/*
 * Until it fits: where bytes are short, what idles there and is needed last goes to
 * a tier that has room, or, where there is none, is not kept. 1 it fits, 0 it does
 * not, or a negative code.
 */
int neap__offload_choice_relieve(struct neap__offload *x, struct neap__action_list *plain,
	struct neap__offload_choice *choice, const struct neap__chain_table *tables);

#endif

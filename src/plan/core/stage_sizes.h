/* SPDX-License-Identifier: Apache-2.0 */
/* stage_sizes.h: sizes and seconds of stages (struct neap_stages), checked and summed. */
#ifndef NEAP_PLAN_CORE_STAGE_SIZES_H
#define NEAP_PLAN_CORE_STAGE_SIZES_H

#include <neap/plan.h>

#define NEAP__STAGES_MOST 1000000 /* planners keep tables of some 100 bytes a stage */

/* Every number of chain->stages; NEAP_EUSAGE with a line that names it. */
int neap__stages_check(const struct neap_chain *chain);

/* Record and backward of every stage once, and the loss: no schedule is faster. */
double neap__stages_least_time(const struct neap_chain *chain);

/* Are all states of one size, and does no advance take more? */
int neap__stages_flat(const struct neap_chain *chain);

/* Seconds of an ADVANCE, RECORD, TURN or BACKWARD. */
double neap__stages_seconds(const struct neap_chain *chain, const struct neap_action *a);
/* Does the chain have the state or the tapes that an action moves? */
int neap__stages_hold(const struct neap_chain *chain, const struct neap_action *a);
/* Bytes of the state or the tapes that an action moves. */
uint64_t neap__stages_bytes(const struct neap_stages *s, const struct neap_action *a);

static inline double neap__stage_record(const struct neap_stages *s, int64_t i)
{
	return s->record ? s->record[i] : s->advance[i];
}

static inline int64_t neap__stage_advance_tmp(const struct neap_stages *s, int64_t i)
{
	return s->advance_tmp ? (int64_t)s->advance_tmp[i] : 0;
}

static inline int64_t neap__stage_record_tmp(const struct neap_stages *s, int64_t i)
{
	return s->record_tmp ? (int64_t)s->record_tmp[i] : neap__stage_advance_tmp(s, i);
}

static inline int64_t neap__stage_backward_tmp(const struct neap_stages *s, int64_t i)
{
	return s->backward_tmp ? (int64_t)s->backward_tmp[i] : 0;
}

/* Bytes of the gradient of x_i. */
static inline int64_t neap__stage_gradient(const struct neap_chain *c, int64_t i)
{
	return (int64_t)(c->adjoint ? c->adjoint : c->stages->state[i]);
}

static inline int neap__tape_holds_output(const struct neap_stages *s)
{
	return (s->flags & NEAP_STAGES_TAPE_HOLDS_OUTPUT) != 0;
}

static inline int neap__backward_needs_input(const struct neap_stages *s)
{
	return (s->flags & NEAP_STAGES_BACKWARD_NEEDS_INPUT) != 0;
}

#endif

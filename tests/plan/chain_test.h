/* SPDX-License-Identifier: Apache-2.0 */
/* chain_test.h: chains whose steps differ, for the planner's tests. */
#ifndef NEAP_CHAIN_TEST_H
#define NEAP_CHAIN_TEST_H

#include "plan_test.h"

#define MOST 512

struct chain {
	double advance[MOST], record[MOST], backward[MOST + 1];
	uint64_t state[MOST + 1], tape[MOST], advance_tmp[MOST], record_tmp[MOST],
		backward_tmp[MOST + 1];
	struct neap_stages stages;
	struct neap_problem p;
};

static inline void wire(struct chain *c, int64_t steps)
{
	c->stages = (struct neap_stages){c->advance, NULL, c->backward, c->state, c->tape,
		c->advance_tmp, NULL, c->backward_tmp,
		NEAP_STAGES_TAPE_HOLDS_OUTPUT | NEAP_STAGES_BACKWARD_NEEDS_INPUT, 0};
	c->p.size = sizeof c->p;
	c->p.chain.steps = steps;
	c->p.chain.stages = &c->stages;
}

/* Plans, verifies and simulates; all agree. */
static inline struct neap_plan checked(struct chain *c, uint64_t memory)
{
	struct neap_plan plan = {.size = sizeof plan};
	c->p.memory = memory;
	if (neap_plan_make(&plan, &c->p, "chain", NULL) < 0)
		fail_msg("chain: %s", neap_detail());
	if (!plan.feasible)
		return plan;
	struct neap_verdict v = verified(&c->p, &plan);
	assert_true(v.peak_bytes <= memory);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_int_equal(v.advance_steps, plan.advance_steps);
	assert_int_equal(v.record_steps, plan.record_steps);
	assert_int_equal(v.record_steps >= c->p.chain.steps, 1);
	assert_int_equal(v.backward_steps, c->p.chain.steps);
	assert_true(near(simulated(&c->p, &plan).makespan, plan.makespan));
	assert_true(plan.bound <= plan.makespan * (1 + 1e-12));
	return plan;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* levels_test.h: problems of several synchronous levels, and plans that keep their word. */
#ifndef NEAP_LEVELS_TEST_H
#define NEAP_LEVELS_TEST_H

#include "plan_test.h"

#define LEVELS 5

struct level {
	uint64_t slots;
	double write, read;
};

/* Level 0: slots of tier 0; recording costs nothing, as in the tables. */
static inline struct neap_problem levelled(
	int64_t steps, double uf, double ub, const struct level *level, int levels)
{
	struct neap_problem p = classic_problem(steps, level[0].slots);
	p.chain.advance = uf;
	p.chain.record = 0;
	p.chain.backward = ub;
	p.chain.slot_write = level[0].write;
	p.chain.slot_read = level[0].read;
	for (int i = 1; i < levels; i++) {
		add_tier(&p, level[i].slots, 0, NEAP_TIER_SYNC);
		p.tiers[i - 1].write_fixed = level[i].write;
		p.tiers[i - 1].read_fixed = level[i].read;
	}
	return p;
}

static inline struct neap_plan planned(
	const struct neap_problem *p, const char *strategy, const struct neap_params *params)
{
	struct neap_plan plan = {.size = sizeof plan};
	if (neap_plan_make(&plan, p, strategy, params) < 0)
		fail_msg("%s: %s", strategy, neap_detail());
	return plan;
}

/* The plan, its schedule legal and as costly as it says. */
static inline struct neap_plan checked(
	const struct neap_problem *p, const char *strategy, const struct neap_params *params)
{
	struct neap_plan plan = planned(p, strategy, params);
	if (!plan.feasible)
		return plan;
	struct neap_verdict v = verified(p, &plan);
	struct neap_simulation m = simulated(p, &plan);
	if (!near(m.makespan, plan.makespan))
		fail_msg("%s: simulated %.17g, planned %.17g", strategy, m.makespan, plan.makespan);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_int_equal(v.advance_steps, plan.advance_steps);
	assert_true(v.arena_bytes <= p->memory);
	for (int i = 0; i < p->ntiers; i++) {
		assert_int_equal(v.tiers[i].peak_bytes, plan.tiers[i].peak_bytes);
		assert_int_equal(v.tiers[i].written, plan.tiers[i].written);
		assert_int_equal(v.tiers[i].read, plan.tiers[i].read);
	}
	assert_true(plan.model_bound <= plan.makespan * (1 + 1e-12));
	return plan;
}

#endif

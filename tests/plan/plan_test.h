/* SPDX-License-Identifier: Apache-2.0 */
/* plan_test.h: what the planner's tests share. */
#ifndef NEAP_PLAN_TEST_H
#define NEAP_PLAN_TEST_H

#include "test.h"
#include <neap/plan.h>
#include "base/philox.h"

/* S = A = 1 byte, unit costs, no adjoint; `memory` besides the live state. */
static inline struct neap_problem unit_problem(int64_t steps, uint64_t memory)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	p.chain.steps = steps;
	p.chain.state = p.chain.tape = p.chain.live = 1;
	p.chain.advance = p.chain.record = p.chain.backward = 1;
	p.memory = memory + 1;
	return p;
}

static inline struct neap_problem classic_problem(int64_t steps, uint64_t slots)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	p.chain.steps = steps;
	p.chain.state = 1;
	p.chain.flags = NEAP_CHAIN_CLASSIC;
	p.chain.advance = p.chain.record = p.chain.backward = 1;
	p.memory = slots;
	return p;
}

static inline void add_tier(struct neap_problem *p, uint64_t capacity, double fixed, uint32_t flags)
{
	struct neap_tier_spec *tier = &p->tiers[p->ntiers++];
	snprintf(tier->name, sizeof tier->name, "tier%d", p->ntiers);
	tier->capacity = capacity;
	tier->write_fixed = tier->read_fixed = fixed;
	tier->flags = flags;
}

struct random {
	uint64_t seed, n;
};

static inline double uniform(struct random *r)
{
	return neap__random_uniform(r->seed, NEAP__STREAM_TEST, 0, r->n++);
}

static inline int64_t below(struct random *r, int64_t n)
{
	return (int64_t)neap__random_below(r->seed, NEAP__STREAM_TEST, 0, r->n++, (uint64_t)n);
}

/* Even on the logarithmic scale, between a and b. */
static inline double decades(struct random *r, double a, double b)
{
	return a * pow(b / a, uniform(r));
}

static inline double maybe(struct random *r, double p, double value)
{
	return uniform(r) < p ? value : 0;
}

static inline struct neap_tier_spec random_tier(struct random *r, const struct neap_chain *c)
{
	struct neap_tier_spec t = {.name = "disk"};
	double all = (double)c->steps * (double)c->state;
	t.capacity = uniform(r) < 0.6 ? NEAP_INFINITE : (uint64_t)(all * decades(r, 1e-3, 2));
	double rate = (double)c->state / fmax(c->advance, 1e-9);
	t.write_rate = maybe(r, 0.8, rate * decades(r, 0.01, 100));
	t.read_rate = maybe(r, 0.8, rate * decades(r, 0.01, 100));
	t.write_fixed = maybe(r, 0.4, c->advance * decades(r, 0.01, 100));
	t.read_fixed = maybe(r, 0.4, c->advance * decades(r, 0.01, 100));
	t.staging = (uint64_t)maybe(r, 0.3, (double)c->state * decades(r, 0.1, 3));
	t.cpu = maybe(r, 0.3, decades(r, 1e-3, 1e2) / rate);
	t.cpu_fixed = maybe(r, 0.3, c->advance * decades(r, 1e-3, 1e2));
	t.flags = (uniform(r) < 0.3 ? NEAP_TIER_SYNC : 0u) |
		  (uniform(r) < 0.5 ? NEAP_TIER_DUPLEX : 0u);
	return t;
}

/* What a call costs, of draws of its own: the other numbers are as they were without it. */
static inline double random_call(const struct random *r, double advance)
{
	struct random own = {r->seed ^ 0x63616c6c, r->n};
	return maybe(&own, 0.3, (advance > 0 ? advance : 1) * decades(&own, 0.01, 100));
}

static inline struct neap_problem random_problem(struct random *r, double steps_most)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_chain *c = &p.chain;
	int classic = uniform(r) < 0.2;
	c->steps = uniform(r) < 0.3 ? below(r, 12) : (int64_t)decades(r, 1, steps_most);
	c->state = classic ? 1 : (uint64_t)decades(r, 1, 1e6);
	if (!classic) {
		c->tape = (uint64_t)((double)c->state * decades(r, 0.01, 100));
		c->tape_max = (uint64_t)maybe(r, 0.3, (double)c->tape * decades(r, 1, 3));
		c->adjoint = (uint64_t)maybe(r, 0.7, (double)c->state);
		c->live = uniform(r) < 0.5 ? c->state : 0;
	}
	c->flags = classic ? NEAP_CHAIN_CLASSIC : 0;
	c->advance = maybe(r, 0.95, decades(r, 1e-6, 1e-2));
	c->record = c->advance * decades(r, 1, 4);
	c->backward = maybe(r, 0.95, decades(r, 1e-6, 1e-2));
	c->slot_write = maybe(r, 0.4, c->advance * decades(r, 0.01, 10));
	c->slot_read = maybe(r, 0.4, c->advance * decades(r, 0.01, 10));
	p.ntiers = (int)below(r, 3);
	for (int i = 0; i < p.ntiers; i++)
		p.tiers[i] = random_tier(r, c);
	double all = (double)(c->state + (classic ? 0 : c->tape)) * (double)(c->steps + 1);
	uint64_t least = neap_problem_least(&p);
	p.memory = uniform(r) < 0.1 ? least : least + (uint64_t)(all * decades(r, 1e-4, 2));
	if (uniform(r) < 0.05)
		p.memory = least / 2;
	if (!classic && uniform(r) < 0.4) {
		c->log = (uint64_t)((double)c->tape * decades(r, 0.01, 2)) + 1;
		c->replay = c->record * decades(r, 0.1, 2);
	}
	c->call = random_call(r, c->advance);
	return p;
}

/* Verifies a plan's schedule; fails the test with the detail line. */
static inline struct neap_verdict verified(
	const struct neap_problem *p, const struct neap_plan *plan)
{
	struct neap_verdict v = {.size = sizeof v};
	struct neap_schedule *s;
	int rc = neap_schedule_open(&s, p, plan);
	if (rc < 0)
		fail_msg("%s: open: %s", plan->strategy, neap_detail());
	rc = neap_verify(&v, p, s);
	if (rc < 0)
		fail_msg("%s (%s): verify: %s", plan->strategy, plan->chosen, neap_detail());
	neap_schedule_close(s);
	return v;
}

static inline struct neap_simulation simulated(
	const struct neap_problem *p, const struct neap_plan *plan)
{
	struct neap_simulation m = {.size = sizeof m};
	struct neap_schedule *s;
	assert_int_equal(neap_schedule_open(&s, p, plan), 0);
	assert_int_equal(neap_simulate(&m, p, s), 0);
	neap_schedule_close(s);
	return m;
}

/* Adds text to a string that has room for PLAN_TEXT bytes. */
#define PLAN_TEXT 16384
static inline int plan_keep_text(void *user, const char *text, size_t length)
{
	char *kept = user;
	assert_true(strlen(kept) + length < PLAN_TEXT);
	strncat(kept, text, length);
	return 0;
}

/* What is written and read back is the same plan. */
static inline void plan_read_back(const struct neap_plan *plan, const struct neap_problem *p)
{
	char text[PLAN_TEXT] = "", again[PLAN_TEXT] = "";
	struct neap_saved *saved;
	assert_int_equal(neap_plan_write(plan, p, 0, plan_keep_text, text), 0);
	if (neap_plan_read(&saved, text, strlen(text), 1 << 30) < 0)
		fail_msg("%s\n%s", neap_detail(), text);
	assert_int_equal(saved->plan->replan_count, plan->replan_count);
	assert_memory_equal(saved->plan->replans, plan->replans, sizeof plan->replans);
	assert_memory_equal(&saved->plan->near, &plan->near, sizeof plan->near);
	assert_int_equal(neap_plan_write(saved->plan, saved->problem, 0, plan_keep_text, again), 0);
	assert_string_equal(text, again);
	neap_saved_free(saved);
}

static inline int near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-18;
}

/* Bytes, steps and seconds of a plan are those of its schedule. */
static inline void as_said(const struct neap_problem *p, const struct neap_plan *plan)
{
	struct neap_verdict v = verified(p, plan);
	struct neap_simulation m = simulated(p, plan);
	assert_int_equal(v.arena_bytes, plan->arena_bytes);
	assert_true(v.arena_bytes <= p->memory);
	assert_int_equal(v.advance_steps, plan->advance_steps);
	assert_int_equal(v.record_steps, plan->record_steps);
	assert_int_equal(v.backward_steps, p->chain.steps);
	for (int i = 0; i < p->ntiers; i++) {
		assert_int_equal(v.tiers[i].peak_bytes, plan->tiers[i].peak_bytes);
		assert_int_equal(v.tiers[i].written, plan->tiers[i].written);
		assert_int_equal(v.tiers[i].read, plan->tiers[i].read);
		assert_true(v.tiers[i].peak_bytes <= p->tiers[i].capacity);
	}
	assert_true(fabs(m.makespan / plan->makespan - 1) < 1e-9);
	assert_true(m.makespan >= neap_bound(p) * (1 - 1e-9));
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of chains whose rows are not kept (chain_table.h) make the choices of tables that keep
 * them, for the chain and for parts of it, and planning takes little memory.
 */
#include "chain_test.h"
#include "plan/stages/chain_table.h"
#include "count_heap.h"

#define PART 120 /* stages whose rows are not kept */

static uint64_t unequal(struct chain *c, struct random *r, int64_t steps, uint32_t flags)
{
	uint64_t all = 0;
	for (int64_t i = 0; i <= steps; i++) {
		c->state[i] = 1024 + (uint64_t)below(r, 60000);
		c->backward[i] = 0.2 + 3.8 * uniform(r);
		c->backward_tmp[i] = (uint64_t)below(r, 3000);
	}
	for (int64_t i = 0; i < steps; i++) {
		c->advance[i] = 0.1 + 1.9 * uniform(r);
		c->tape[i] = c->state[i + 1] + 1024 + (uint64_t)below(r, 200000);
		c->advance_tmp[i] = (uint64_t)below(r, 3000);
		all += c->tape[i];
	}
	wire(c, steps);
	c->stages.flags = flags;
	return all;
}

/* Stages `at` and following of a chain. */
static struct neap_stages from_stage(const struct neap_stages *s, int64_t at)
{
	struct neap_stages part = *s;
	part.advance += at;
	part.backward += at;
	part.state += at;
	part.tape += at;
	part.advance_tmp += at;
	part.backward_tmp += at;
	return part;
}

/* A table of stages at..at + last, compared with one that keeps all rows. */
static void compare(struct random *r, const struct neap__chain_table *kept, int64_t at,
	int64_t last, int taped, int64_t bytes)
{
	struct neap_stages stages = from_stage(kept->chain->stages, at);
	struct neap_chain chain = *kept->chain;
	struct neap__chain_table x;
	chain.stages = &stages;
	chain.steps = at + last < kept->n ? last + 1 : last;
	const struct neap__chain_table_part part = {
		(uint64_t)bytes + stages.state[0], last, taped, kept->unit};
	assert_int_equal(neap__chain_table_fill_part(&x, &chain, &part), 0);
	assert_false(x.whole);
	for (int k = 0; k < 3000; k++) {
		int64_t i = below(r, last), b = below(r, bytes + 1);
		if (b < (taped ? x.parts.need_d : x.parts.need_c)[neap__pair(i, last)])
			continue;
		struct neap__chain_table_choice a = neap__chain_table_choose(&x, taped, i, last, b);
		struct neap__chain_table_choice e =
			neap__chain_table_choose(kept, taped, at + i, at + last, b);
		if (a.j + at != e.j || a.record != e.record || a.left != e.left ||
			a.right != e.right)
			fail_msg("stages %lld to %lld in %lld bytes: %lld %d, expected %lld %d",
				(long long)(at + i), (long long)(at + last), (long long)b,
				(long long)(a.j + at), a.record, (long long)e.j, e.record);
	}
	neap__chain_table_free(&x);
}

static void choices(void **state)
{
	static struct chain c;
	struct random r = {test_seed(45), 0};
	(void)state;
	for (uint32_t k = 0; k < 2; k++) {
		/* Backward needs its input, or D of several stages has no choices. */
		uint32_t flags = NEAP_STAGES_BACKWARD_NEEDS_INPUT |
				 (k % 2 ? NEAP_STAGES_TAPE_HOLDS_OUTPUT : 0);
		int64_t more = below(&r, 20);
		uint64_t all = unequal(&c, &r, PART + more, flags);
		uint64_t memory = (uint64_t)((double)all * (0.03 + 0.4 * uniform(&r))) + 400000;
		struct neap__chain_table kept;
		assert_int_equal(neap__chain_table_fill(&kept, &c.p.chain, memory), 0);
		int64_t bytes = (int64_t)(memory - c.state[0]);
		compare(&r, &kept, 0, kept.n, 0, bytes);
		compare(&r, &kept, more, PART - 1, 0, bytes);
		compare(&r, &kept, more / 2, PART - 1, 1,
			bytes - (int64_t)c.tape[more / 2 + PART - 1]);
		neap__chain_table_free(&kept);
	}
}

/* Sizes that divide the budget, so that a level is exactly a number of bytes and there are many. */
static void exact(struct chain *c, int64_t steps)
{
	for (int64_t i = 0; i <= steps; i++) {
		c->state[i] = 1000 + 100 * (uint64_t)i;
		c->advance[i] = 1 + 0.01 * (double)i;
		c->backward[i] = 2 * c->advance[i];
		c->backward_tmp[i] = c->advance_tmp[i] = 0;
		if (i < steps)
			c->tape[i] = 30000 + 300 * (uint64_t)i;
	}
	wire(c, steps);
	c->stages.flags = NEAP_STAGES_TAPE_HOLDS_OUTPUT | NEAP_STAGES_BACKWARD_NEEDS_INPUT;
}

static void choices_of_exact_levels(void **state)
{
	static struct chain c;
	struct random r = {test_seed(47), 0};
	struct neap__chain_table kept;
	(void)state;
	exact(&c, 40);
	assert_int_equal(neap__chain_table_fill(&kept, &c.p.chain, 300000), 0);
	assert_true(kept.levels > 2000);
	compare(&r, &kept, 0, kept.n, 0, 299000);
	compare(&r, &kept, 3, 35, 1, 200000);
	neap__chain_table_free(&kept);
}

/* Bytes of planning at most, and the plan. */
static size_t planned(struct neap_plan *plan, const struct chain *c)
{
	size_t before = held;
	most = held;
	*plan = (struct neap_plan){.size = sizeof *plan};
	assert_int_equal(neap_plan_make(plan, &c->p, "chain", NULL), 0);
	assert_true(plan->feasible);
	fprintf(stderr, "# %d stages: %.1f MiB\n", (int)c->p.chain.steps,
		(double)(most - before) / (1 << 20));
	return most - before;
}

/* Of chains as they are usual in scans; with exact levels it was 60 MiB, and 100 stages took 22
 * MiB. */
static void memory_of_usual_chains(void **state)
{
	static struct chain c;
	struct random r = {test_seed(48), 0};
	struct neap_plan plan;
	(void)state;
	exact(&c, 50);
	c.p.memory = 572250;
	assert_true(planned(&plan, &c) < (size_t)24 << 20);
	uint64_t all = unequal(
		&c, &r, 100, NEAP_STAGES_TAPE_HOLDS_OUTPUT | NEAP_STAGES_BACKWARD_NEEDS_INPUT);
	c.p.memory = all / 5;
	assert_true(planned(&plan, &c) < (size_t)10 << 20);
}

static void memory_of_planning(void **state)
{
	static struct chain c;
	struct random r = {test_seed(46), 0};
	struct neap_plan plan = {.size = sizeof plan};
	(void)state;
	uint64_t all = unequal(
		&c, &r, 300, NEAP_STAGES_TAPE_HOLDS_OUTPUT | NEAP_STAGES_BACKWARD_NEEDS_INPUT);
	c.p.memory = all / 8;
	most = held;
	size_t before = held;
	assert_int_equal(neap_plan_make(&plan, &c.p, "chain", NULL), 0);
	assert_true(plan.feasible);
	fprintf(stderr, "# 300 stages: %.1f MiB\n", (double)(most - before) / (1 << 20));
	/* With the program and its libraries (10 MiB) below 64 MiB. */
	assert_true(most - before < (size_t)54 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(choices),
		cmocka_unit_test(choices_of_exact_levels),
		cmocka_unit_test(memory_of_usual_chains),
		cmocka_unit_test(memory_of_planning),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

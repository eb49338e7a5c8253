/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sizes.c: structures of callers with older and newer headers: an output that is shorter
 * than the library's is filled as far as it reaches, a longer one is refused.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <neap/neap.h>
#include "test.h"

static struct neap_problem small(void)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	p.chain.steps = 40;
	p.chain.state = p.chain.tape = p.chain.adjoint = 64;
	p.chain.advance = p.chain.record = 1;
	p.chain.backward = 2;
	p.memory = 64 * 12;
	return p;
}

static void refused(int rc, const char *name, const char *says)
{
	assert_int_equal(rc, NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), name));
	assert_non_null(strstr(neap_detail(), says));
}

static void test_plan(void **state)
{
	(void)state;
	struct neap_problem p = small();
	struct neap_plan plan = {.size = sizeof plan}, cut;
	assert_int_equal(neap_plan_make(&plan, &p, "revolve", NULL), 0);
	assert_int_equal(plan.size, sizeof plan);
	memset(&cut, 0x5a, sizeof cut);
	cut.size = offsetof(struct neap_plan, params);
	assert_int_equal(neap_plan_make(&cut, &p, "revolve", NULL), 0);
	assert_int_equal(cut.size, offsetof(struct neap_plan, params));
	assert_true(cut.feasible == plan.feasible && cut.chosen == plan.chosen);
	for (size_t i = cut.size; i < sizeof cut; i++)
		assert_int_equal(((unsigned char *)&cut)[i], 0x5a);
	cut.size = sizeof cut + 8;
	refused(neap_plan_make(&cut, &p, "revolve", NULL), "neap_plan", "older than the header");
	cut.size = 0;
	refused(neap_plan_make(&cut, &p, "revolve", NULL), "neap_plan", "set size");
	struct neap_schedule *s = NULL;
	plan.size += 8;
	refused(neap_schedule_open(&s, &p, &plan), "neap_plan", "older than the header");
}

static void test_problem(void **state)
{
	(void)state;
	struct neap_problem p = small();
	struct neap_plan plan = {.size = sizeof plan};
	p.size = 0;
	refused(neap_problem_check(&p), "neap_problem", "set size");
	p.size = sizeof p + 16;
	refused(neap_plan_make(&plan, &p, "auto", NULL), "neap_problem", "older than the header");
}

static void test_consumers(void **state)
{
	(void)state;
	struct neap_problem p = small();
	struct neap_plan plan = {.size = sizeof plan};
	struct neap_verdict v = {.size = sizeof v + 8};
	struct neap_simulation m = {.size = 0};
	struct neap_machine machine = {.size = sizeof machine + 1};
	struct neap_schedule *s = NULL;
	assert_int_equal(neap_plan_make(&plan, &p, "mixed", NULL), 0);
	assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
	refused(neap_verify(&v, &p, s), "neap_verdict", "older than the header");
	refused(neap_simulate(&m, &p, s), "neap_simulation", "set size");
	refused(neap_machine_describe(&machine), "neap_machine", "older than the header");
	v.size = offsetof(struct neap_verdict, tiers);
	assert_int_equal(neap_verify(&v, &p, s), 0);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_int_equal(v.actions, 0); /* beyond what the caller has */
	neap_schedule_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_problem),
		cmocka_unit_test(test_consumers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

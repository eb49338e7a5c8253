/* SPDX-License-Identifier: Apache-2.0 */
/* Chains whose steps differ, with tiers: the rules, and the strategies that offload. */
#include "plan_test.h"

/* Two stages; sizes small enough to add up by hand. */
static const double advance[] = {1, 1}, backward[] = {2, 2, 1};
static const uint64_t state[] = {2, 3, 1}, tape[] = {4, 5};
static const struct neap_stages two = {.advance = advance,
	.backward = backward,
	.state = state,
	.tape = tape,
	.flags = NEAP_STAGES_TAPE_HOLDS_OUTPUT | NEAP_STAGES_BACKWARD_NEEDS_INPUT};

/* One tier, a byte a second each way. */
static struct neap_problem two_stages(uint64_t capacity, uint32_t flags)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	p.chain.steps = 2;
	p.chain.stages = &two;
	p.memory = 1000;
	add_tier(&p, capacity, 0, flags);
	p.tiers[0].write_rate = p.tiers[0].read_rate = 1;
	return p;
}

struct script {
	const struct neap_action *a;
	int n, next;
};

static int script_next(void *user, struct neap_action *a)
{
	struct script *s = user;
	if (s->next == s->n)
		return 0;
	*a = s->a[s->next++];
	return 1;
}

static int verify_script(struct neap_verdict *v, const struct neap_problem *p, struct script s)
{
	struct neap_schedule *schedule;
	assert_int_equal(neap_schedule_wrap(&schedule, script_next, NULL, &s), 0);
	int rc = neap_verify(v, p, schedule);
	neap_schedule_close(schedule);
	return rc;
}

static double makespan_of(const struct neap_problem *p, struct script s)
{
	struct neap_schedule *schedule;
	struct neap_simulation m;
	assert_int_equal(neap_schedule_wrap(&schedule, script_next, NULL, &s), 0);
	assert_int_equal(neap_simulate(&m, p, schedule), 0);
	neap_schedule_close(schedule);
	return m.makespan;
}

#define RUN(k, from, to)                                                                           \
	{                                                                                          \
		.kind = (k), .t0 = (from), .t1 = (to)                                              \
	}
#define SLOT(k, s, t)                                                                              \
	{                                                                                          \
		.kind = (k), .slot = (s), .t0 = (t), .t1 = (t)                                     \
	}
#define WAIT(k)                                                                                    \
	{                                                                                          \
		.kind = NEAP_WAIT, .ticket = (k)                                                   \
	}
#define TAPES(k, from, to, at, by)                                                                 \
	{                                                                                          \
		.kind = (k), .payload = NEAP_TAPE, .tier = 1, .ticket = (by), .t0 = (from),        \
		.t1 = (to), .place = (at)                                                          \
	}
#define STATE(k, s, t, at, by)                                                                     \
	{                                                                                          \
		.kind = (k), .tier = 1, .ticket = (by), .slot = (s), .t0 = (t), .t1 = (t),         \
		.place = (at)                                                                      \
	}

/* The tape of step 0 goes out and comes back; x_0 and x_1 in slots. */
static const struct neap_action travel[] = {
	SLOT(NEAP_SAVE, 0, 0),		/* 2 */
	RUN(NEAP_ADVANCE, 0, 1),	/* 2 + 3 */
	SLOT(NEAP_SAVE, 1, 1),		/* not a part of the tape */
	SLOT(NEAP_LOAD, 0, 0),		/* */
	RUN(NEAP_RECORD, 0, 1),		/* 5 + 4, then 2 + 4 */
	TAPES(NEAP_PUT, 0, 1, 0, 0),	/* leaving */
	SLOT(NEAP_LOAD, 1, 1),		/* */
	RUN(NEAP_RECORD, 1, 2),		/* 6 + 5 */
	WAIT(0),			/* 2 + 3 + 5 */
	RUN(NEAP_TURN, 2, 2),		/* + 1 */
	RUN(NEAP_BACKWARD, 1, 2),	/* 11 + 3, then 2 + 3 + 3 */
	TAPES(NEAP_GET, 0, 1, 0, 0),	/* + 4 */
	SLOT(NEAP_DROP, 1, 1),		/* - 3 */
	WAIT(0),			/* */
	TAPES(NEAP_FORGET, 0, 1, 0, 0), /* */
	RUN(NEAP_BACKWARD, 0, 1),	/* 2 + 3 + 4 + 2 */
};
enum { TRAVEL = sizeof travel / sizeof travel[0] };

static void travels(void **unused)
{
	(void)unused;
	struct neap_problem p = two_stages(4, 0);
	struct neap_verdict v;
	if (verify_script(&v, &p, (struct script){travel, TRAVEL, 0}) < 0)
		fail_msg("%s", neap_detail());
	assert_int_equal(v.peak_bytes, 14);
	assert_int_equal(v.tiers[0].peak_bytes, 4);
	assert_int_equal(v.tiers[0].written, 4);
	assert_int_equal(v.tiers[0].read, 4);
	/* PUT 2..6, turn to 7, backward to 9, GET to 13, backward to 15. */
	assert_true(makespan_of(&p, (struct script){travel, TRAVEL, 0}) == 15);
	p.tiers[0].flags = NEAP_TIER_SYNC;
	assert_true(makespan_of(&p, (struct script){travel, TRAVEL, 0}) == 16);
	p.tiers[0].flags = 0;
	p.tiers[0].staging = 7;
	assert_int_equal(verify_script(&v, &p, (struct script){travel, TRAVEL, 0}), 0);
	assert_int_equal(v.peak_bytes, 21);
}

/* What is in flight takes room: from the GET on, and until the WAIT of the PUT. */
static void pinned(void **unused)
{
	(void)unused;
	struct neap_problem p = two_stages(4, NEAP_TIER_DUPLEX);
	struct neap_verdict v;
	struct neap_action a[TRAVEL];
	memcpy(a, travel, sizeof a);
	a[8] = travel[9], a[9] = travel[10], a[10] = travel[8]; /* the WAIT after BACKWARD */
	if (verify_script(&v, &p, (struct script){a, TRAVEL, 0}) < 0)
		fail_msg("%s", neap_detail());
	assert_int_equal(v.peak_bytes, 15);
	assert_true(makespan_of(&p, (struct script){a, TRAVEL, 0}) == 12);
	memcpy(a, travel, sizeof a);
	a[10] = travel[11], a[11] = travel[10]; /* the GET before BACKWARD */
	if (verify_script(&v, &p, (struct script){a, TRAVEL, 0}) < 0)
		fail_msg("%s", neap_detail());
	assert_int_equal(v.peak_bytes, 18);
	assert_true(makespan_of(&p, (struct script){a, TRAVEL, 0}) == 13);
}

/* A state that arrives beside another copy of it takes room of its own. */
static void states(void **unused)
{
	(void)unused;
	struct neap_problem p = two_stages(2, NEAP_TIER_DUPLEX);
	struct neap_verdict v;
	const struct neap_action a[] = {
		SLOT(NEAP_SAVE, 0, 0),
		STATE(NEAP_PUT, 0, 0, 0, 0),
		RUN(NEAP_RECORD, 0, 1), /* 2 + 4 */
		SLOT(NEAP_SAVE, 1, 1),
		RUN(NEAP_RECORD, 1, 2), /* + 5 */
		STATE(NEAP_GET, 2, 0, 0, 1),
		RUN(NEAP_TURN, 2, 2), /* 11 + 2 + 1 */
		WAIT(0),
		SLOT(NEAP_DROP, 0, 0),
		RUN(NEAP_BACKWARD, 1, 2), /* 12 + 3, then 2 + 4 + 3 */
		WAIT(1),
		RUN(NEAP_BACKWARD, 0, 1),
	};
	int n = sizeof a / sizeof a[0];
	if (verify_script(&v, &p, (struct script){a, n, 0}) < 0)
		fail_msg("%s", neap_detail());
	assert_int_equal(v.peak_bytes, 15);
	/* BACKWARD of 0 without WAIT(1): x_0 is on its way. */
	struct neap_action b[16];
	memcpy(b, a, sizeof a);
	b[10] = a[11], b[11] = a[10];
	assert_int_equal(verify_script(&v, &p, (struct script){b, n, 0}), NEAP_EILLEGAL);
	assert_non_null(strstr(neap_detail(), "backward needs the state at 0"));
}

static void refused(const struct neap_problem *p, int at, struct neap_action with, const char *why)
{
	struct neap_action a[TRAVEL];
	struct neap_verdict v;
	memcpy(a, travel, sizeof a);
	a[at] = with;
	if (verify_script(&v, p, (struct script){a, TRAVEL, 0}) != NEAP_EILLEGAL ||
		!strstr(neap_detail(), why))
		fail_msg("\"%s\", not \"%s\"", neap_detail(), why);
}

static void illegal(void **unused)
{
	(void)unused;
	struct neap_problem p = two_stages(4, 0);
	const struct neap_action nothing = SLOT(NEAP_SAVE, 3, 1);
	refused(&p, 5, (struct neap_action)TAPES(NEAP_PUT, 1, 2, 0, 0),
		"the tape of 1 is not there");
	refused(&p, 5, (struct neap_action)TAPES(NEAP_PUT, 0, 3, 0, 0), "not within");
	refused(&p, 5, (struct neap_action)TAPES(NEAP_PUT, 0, 1, -1, 0), "no place -1");
	refused(&p, 6, (struct neap_action)TAPES(NEAP_PUT, 0, 1, 1, 1), "leaving for a tier");
	refused(&p, 6, (struct neap_action)TAPES(NEAP_FORGET, 0, 1, 0, 0), "in flight");
	refused(&p, 9, (struct neap_action)TAPES(NEAP_GET, 0, 1, 1, 0), "does not hold");
	refused(&p, 9, (struct neap_action)TAPES(NEAP_GET, 0, 2, 0, 0), "does not hold");
	refused(&p, 12, (struct neap_action)TAPES(NEAP_GET, 0, 1, 0, 1), "there already");
	refused(&p, 13, nothing, "is undefined");
	refused(&p, 13, (struct neap_action)SLOT(NEAP_LOAD, 0, 0), "is in flight");
	refused(&p, 11, (struct neap_action)SLOT(NEAP_LOAD, 1, 1), "ticket 0 is not in flight");
	refused(&p, 8, (struct neap_action)TAPES(NEAP_GET, 0, 1, 0, 1), "there already");
	/* What is a part of a tape goes with it. */
	refused(&p, 6, (struct neap_action)SLOT(NEAP_SAVE, 2, 1), "a slot holds the state at 1");
	refused(&p, 6, (struct neap_action)WAIT(0), "is undefined");
	refused(&p, 6, (struct neap_action)STATE(NEAP_PUT, NEAP_LIVE, 1, 0, 1), "a part of a tape");
	struct neap_action a = TAPES(NEAP_PUT, 0, 1, 0, 0);
	a.slot = 1;
	refused(&p, 5, a, "tapes have no slot");
	a.slot = 0;
	a.payload = NEAP_LOG;
	refused(&p, 5, a, "only states and tapes travel");
	p.chain.flags = NEAP_CHAIN_TAPES_STAY;
	refused(&p, 5, travel[5], "tapes do not travel");
	p = two_stages(3, 0);
	refused(&p, 5, travel[5], "4 bytes are beyond the tier's capacity");
	/* The simulator looks for no tape that does not exist. */
	struct neap_simulation m;
	struct neap_schedule *s;
	a = (struct neap_action)TAPES(NEAP_PUT, 1, 3, 0, 0);
	struct script script = {&a, 1, 0};
	assert_int_equal(neap_schedule_wrap(&s, script_next, NULL, &script), 0);
	assert_int_equal(neap_simulate(&m, &p, s), NEAP_EILLEGAL);
	neap_schedule_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(travels),
		cmocka_unit_test(pinned),
		cmocka_unit_test(states),
		cmocka_unit_test(illegal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Chains whose steps differ, with tiers: the rules, and the strategies that offload. */
#include "oracle_test.h"
#include "plan/offload_exact.h"
#include "plan/offload/offload_search.h"
#include "plan/verify/measure_list.h"

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
	struct neap_simulation m = {.size = sizeof m};
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
	struct neap_verdict v = {.size = sizeof v};
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
	struct neap_verdict v = {.size = sizeof v};
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
	struct neap_verdict v = {.size = sizeof v};
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
	struct neap_verdict v = {.size = sizeof v};
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
	refused(&p, 5, a, "no logs");
	p.chain.flags = NEAP_CHAIN_TAPES_STAY;
	refused(&p, 5, travel[5], "tapes do not travel");
	p = two_stages(3, 0);
	refused(&p, 5, travel[5], "4 bytes are beyond the tier's capacity");
	/* The simulator looks for no tape that does not exist. */
	struct neap_simulation m = {.size = sizeof m};
	struct neap_schedule *s;
	a = (struct neap_action)TAPES(NEAP_PUT, 1, 3, 0, 0);
	struct script script = {&a, 1, 0};
	assert_int_equal(neap_schedule_wrap(&s, script_next, NULL, &script), 0);
	assert_int_equal(neap_simulate(&m, &p, s), NEAP_EILLEGAL);
	neap_schedule_close(s);
}

/* Plans, verifies and simulates; all agree. */
static struct neap_plan planned(const struct neap_problem *p, const char *strategy)
{
	struct neap_plan plan = {.size = sizeof plan};
	if (neap_plan_make(&plan, p, strategy, NULL) < 0)
		fail_msg("%s: %s", strategy, neap_detail());
	if (!plan.feasible)
		return plan;
	static struct neap_action actions[20000];
	struct script script = {actions, 0, 0};
	struct neap_schedule *s;
	struct neap_verdict v = {.size = sizeof v};
	if (neap_schedule_open(&s, p, &plan) < 0)
		fail_msg("%s: open: %s", strategy, neap_detail());
	while (script.n < 20000 && neap_schedule_next(s, &actions[script.n]) > 0)
		script.n++;
	neap_schedule_close(s);
	if (verify_script(&v, p, script) < 0)
		fail_msg("%s (%s): verify: %s", plan.strategy, plan.chosen, neap_detail());
	assert_true(v.peak_bytes <= p->memory);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_int_equal(v.backward_steps, p->chain.steps);
	for (int i = 0; i < p->ntiers; i++) {
		assert_true(v.tiers[i].peak_bytes <= p->tiers[i].capacity);
		assert_int_equal(v.tiers[i].written, plan.tiers[i].written);
	}
	assert_true(near(makespan_of(p, script), plan.makespan));
	assert_true(plan.bound <= plan.makespan * (1 + 1e-12));
	return plan;
}

/* With memory for all, each step runs once, and the bound says so: 2 forward and 5 backward. */
/* A tape cannot leave while the live state, which it holds, is still to be used. */
static void live_parts(void **unused)
{
	const struct neap_action plain[] = {{.kind = NEAP_RECORD, .t0 = 0, .t1 = 1},
		{.kind = NEAP_RECORD, .t0 = 1, .t1 = 2}, {.kind = NEAP_TURN, .t0 = 2, .t1 = 2},
		{.kind = NEAP_BACKWARD, .t0 = 1, .t1 = 2},
		{.kind = NEAP_BACKWARD, .t0 = 0, .t1 = 1}};
	struct neap_problem p = two_stages(NEAP_INFINITE, 0);
	struct neap__action_list list = {0};
	struct neap__offload fit;
	(void)unused;
	for (int i = 0; i < 5; i++)
		neap__action_list_add(&list, &plain[i]);
	assert_int_equal(neap__offload_init(&fit, &p), 0);
	assert_int_equal(neap__offload_survey(&fit, &list), 0);
	assert_int_equal(fit.n, 2);
	assert_int_equal(fit.items[0].gap0, 1); /* x_1 is live until stage 1 is done */
	assert_int_equal(fit.items[1].gap0, 2); /* x_2 until the turn */
	neap__offload_fini(&fit);
	neap__action_list_free(&list);
}

static void ample(void **unused)
{
	struct neap_problem p = two_stages(1000, 0);
	(void)unused;
	struct neap_plan plan = planned(&p, "auto");
	assert_true(plan.feasible && near(plan.makespan, 7) && near(plan.bound, 7));
}

/* `auto` against exhaustive search, recomputation and two channels together. */
static void oracle(void **unused)
{
	char path[4200], line[256], id[32], none[32];
	long long steps, memory;
	double beta, exact, over = 0, worst = 0;
	int rows = 0, equal = 0;
	(void)unused;
	json_t *chains = load("chains_async.json");
	snprintf(path, sizeof path, "%s/chain_async_exact.csv", test_oracles());
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		static struct chain c;
		if (sscanf(line, "%31[^,],%lld,%lld,%lf,%31[^,],%lf", id, &steps, &memory, &beta,
			    none, &exact) != 6 ||
			isinf(exact))
			continue;
		oracle_chain(&c, json_object_get(chains, id), steps);
		c.p.memory = (uint64_t)memory;
		add_tier(&c.p, NEAP_INFINITE, 0, NEAP_TIER_DUPLEX);
		c.p.tiers[0].write_rate = c.p.tiers[0].read_rate = beta;
		struct neap_plan plan = planned(&c.p, "auto");
		if (!plan.feasible)
			fail_msg("%s at %lld: %s", id, memory, plan.why);
		if (plan.makespan < exact * (1 - 1e-12))
			fail_msg("%s at %lld: %g, below %g", id, memory, plan.makespan, exact);
		double more = plan.makespan / exact - 1;
		over += more;
		worst = fmax(worst, more);
		equal += more < 1e-12;
		rows++;
	}
	fclose(f);
	json_decref(chains);
	fprintf(stderr, "# %d rows, %d exact, %.3f%% above on average, %.3f%% at worst\n", rows,
		equal, 100 * over / rows, 100 * worst);
	assert_true(rows > 100 && over / rows <= 0.03 && worst <= 0.15);
}

/* Two to five stages of small whole numbers, of which some do not hold their output. */
static void few_stages(struct random *r, struct chain *c)
{
	int64_t steps = 2 + below(r, 4), all = 0;
	memset(c, 0, sizeof *c);
	for (int64_t i = 0; i <= steps; i++) {
		c->state[i] = 1 + (uint64_t)below(r, 6);
		c->backward[i] = (double)(1 + below(r, 4));
	}
	for (int64_t i = 0; i < steps; i++) {
		c->advance[i] = (double)(1 + below(r, 4));
		c->tape[i] = c->state[i + 1] + (uint64_t)below(r, 8);
		all += (int64_t)(c->tape[i] + c->state[i]);
	}
	wire(c, steps);
	c->stages.flags = (uint32_t)below(r, 4);
	c->p.memory = neap_problem_least(&c->p) + (uint64_t)below(r, all);
	add_tier(&c->p, NEAP_INFINITE, 0, uniform(r) < 0.5 ? NEAP_TIER_DUPLEX : 0);
	c->p.tiers[0].write_rate = c->p.tiers[0].read_rate = (double)(1 + below(r, 4));
}

/* What the exact search finds is legal where copies cost nothing, and as fast as it was asked. */
static void exact_lists(void **unused)
{
	struct random r = {test_seed(33), 0};
	int found = 0;
	(void)unused;
	for (int k = 0; k < 200; k++) {
		static struct chain c;
		struct neap__action_list list = {0};
		struct neap_plan plan = {.size = sizeof plan};
		int proved;
		few_stages(&r, &c);
		int rc = neap__offload_exact(&list, &c.p, 20000, INFINITY, &proved);
		assert_true(rc >= 0);
		if (rc > 0 && neap__action_list_measure(&plan, &c.p, &list) < 0)
			fail_msg("chain %d, flags %u: %s", k, c.stages.flags, neap_detail());
		if (rc > 0 && proved) {
			struct neap_plan other = planned(&c.p, "pofo");
			assert_true(
				!other.feasible || plan.makespan <= other.makespan * (1 + 1e-12));
			assert_true(plan.bound <= plan.makespan * (1 + 1e-12));
			found++;
		}
		neap__action_list_free(&list);
	}
	fprintf(stderr, "# %d proved\n", found);
	assert_true(found > 100);
}

/* No strategy beats auto; what is refused is told how much would do. */
static int compare(const struct neap_problem *p)
{
	static const char *const names[] = {"chain", "pofo"};
	struct neap_plan plan = planned(p, "auto");
	for (int i = 0; i < 2; i++) {
		struct neap_plan other = planned(p, names[i]);
		if (other.feasible &&
			(!plan.feasible || plan.makespan > other.makespan * (1 + 1e-12)))
			fail_msg("auto %g, %s %g", plan.makespan, names[i], other.makespan);
	}
	if (plan.feasible)
		return 1;
	struct neap_problem more = *p;
	assert_true(plan.least_bytes > p->memory);
	assert_int_equal(plan.least_bytes, neap_problem_least(p));
	more.memory = plan.least_bytes;
	assert_true(planned(&more, "auto").feasible);
	return 0;
}

/* A few stages with tiers of every kind, none of them of any use among them. */
static void kinds(void **unused)
{
	(void)unused;
	struct random r = {test_seed(31), 0};
	int feasible = 0, used = 0, slower = 0;
	for (int k = 0; k < 80; k++) {
		int64_t steps = 1 + below(&r, 5);
		static struct chain c;
		c = random_chain(&r, steps, 8);
		vary(&r, &c, steps);
		c.p.memory = neap_problem_least(&c.p);
		c.p.memory = c.p.memory * (uint64_t)(7 + below(&r, 8)) / 10;
		for (int64_t i = below(&r, 3); i >= 0; i--) {
			uint64_t capacity =
				uniform(&r) < 0.5 ? NEAP_INFINITE : (uint64_t)below(&r, 20);
			add_tier(&c.p, capacity, maybe(&r, 0.3, uniform(&r)),
				(uint32_t)below(&r, 4));
			c.p.tiers[c.p.ntiers - 1].write_rate = maybe(&r, 0.9, decades(&r, 0.1, 20));
			c.p.tiers[c.p.ntiers - 1].read_rate = maybe(&r, 0.9, decades(&r, 0.1, 20));
			c.p.tiers[c.p.ntiers - 1].staging = (uint64_t)maybe(&r, 0.2, 2);
			c.p.tiers[c.p.ntiers - 1].cpu = maybe(&r, 0.3, decades(&r, 0.01, 3));
			c.p.tiers[c.p.ntiers - 1].cpu_fixed = maybe(&r, 0.3, decades(&r, 0.1, 30));
		}
		c.p.chain.flags = uniform(&r) < 0.2 ? NEAP_CHAIN_TAPES_STAY : 0;
		c.p.chain.slot_write = maybe(&r, 0.1, 0.5);
		if (!compare(&c.p))
			continue;
		struct neap_plan plan = planned(&c.p, "auto"), alone = {.size = sizeof alone};
		feasible++;
		used += plan.slow_bytes > 0;
		/* Places that hold nothing change nothing. */
		for (int i = 0; i < c.p.ntiers; i++)
			c.p.tiers[i].capacity = 0;
		plan = planned(&c.p, "auto");
		alone = planned(&c.p, "chain");
		assert_int_equal(plan.slow_bytes, 0);
		assert_true(plan.feasible >= alone.feasible);
		slower += plan.feasible && alone.feasible && plan.makespan < alone.makespan;
	}
	fprintf(stderr, "# %d feasible, %d of them use a tier; %d times chain alone is beaten\n",
		feasible, used, slower);
	assert_true(feasible > 25 && used > 8);
}

/* One stage, no limit, nothing at all: the ends of every range. */
static void ends(void **unused)
{
	(void)unused;
	static struct chain c;
	static const char *const names[] = {"chain", "pofo", "auto"};
	memset(&c, 0, sizeof c);
	wire(&c, 1);
	c.advance[0] = 1, c.backward[0] = 2, c.state[0] = c.state[1] = 3, c.tape[0] = 5;
	add_tier(&c.p, NEAP_INFINITE, 0, 0);
	for (int i = 0; i < 3; i++) {
		c.p.memory = NEAP_INFINITE;
		assert_true(planned(&c.p, names[i]).makespan == 3);
		/* x_0, both gradients and the tape; no tier can help. */
		c.p.memory = 14;
		assert_true(planned(&c.p, names[i]).makespan == 3);
		c.p.memory = 13;
		struct neap_plan plan = planned(&c.p, names[i]);
		assert_false(plan.feasible);
		assert_int_equal(plan.least_bytes, 14);
		c.p.memory = 0;
		assert_int_equal(planned(&c.p, names[i]).least_bytes, 14);
	}
	/* A tier that takes no time holds all of the second stage's room. */
	wire(&c, 2);
	c.advance[1] = 1, c.backward[1] = 2, c.state[2] = 3, c.tape[1] = 5;
	c.p.memory = 14;
	assert_false(planned(&c.p, "chain").feasible);
	assert_true(planned(&c.p, "auto").makespan <= 7);
	struct neap_plan nothing = {.size = sizeof nothing};
	c.p.chain.steps = 0;
	assert_int_equal(neap_plan_make(&nothing, &c.p, "auto", NULL), 0);
	assert_true(nothing.feasible && nothing.makespan == 0);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Layers of six decades of sizes and speeds would hide what is compared: three do. */
static void random_layers(struct random *r, struct chain *c)
{
	int64_t steps = 20 + below(r, 41);
	double work = 0, bytes = 0;
	memset(c, 0, sizeof *c);
	for (int64_t i = 0; i <= steps; i++)
		c->state[i] = (uint64_t)decades(r, 1e5, 2e6);
	for (int64_t i = 0; i < steps; i++) {
		c->advance[i] = decades(r, 1e-4, 2e-3);
		c->record[i] = c->advance[i] * (1 + maybe(r, 0.3, 0.2 * uniform(r)));
		c->backward[i] = c->advance[i] * (1 + 1.5 * uniform(r));
		c->tape[i] = c->state[i + 1] + (uint64_t)decades(r, 1e5, 6e6);
		c->advance_tmp[i] = (uint64_t)maybe(r, 0.2, decades(r, 1e4, 5e5));
		c->backward_tmp[i] = (uint64_t)maybe(r, 0.2, decades(r, 1e4, 5e5));
		work += c->advance[i];
		bytes += (double)c->tape[i];
	}
	c->backward[steps] = 1e-4;
	wire(c, steps);
	c->stages.record = c->record;
	c->stages.flags = uniform(r) < 0.75 ? 3 : (uint32_t)below(r, 4);
	c->p.memory = (uint64_t)((double)neap_problem_least(&c->p) * (1.2 + 1.8 * uniform(r)));
	add_tier(&c->p, uniform(r) < 0.8 ? NEAP_INFINITE : (uint64_t)(bytes * uniform(r)),
		maybe(r, 0.3, 1e-5),
		(uniform(r) < 0.2 ? NEAP_TIER_SYNC : 0u) |
			(uniform(r) < 0.5 ? NEAP_TIER_DUPLEX : 0u));
	c->p.tiers[0].write_rate = bytes / work * decades(r, 0.05, 2);
	c->p.tiers[0].read_rate = c->p.tiers[0].write_rate * (1 + maybe(r, 0.3, 1));
	c->p.tiers[0].cpu = maybe(r, 0.3, work / bytes * decades(r, 0.01, 1));
}

static int layers_of = 20;

/* The plan of the greedy ladder without further search: a baseline to compare with. */
static int greedy_plan(struct neap_plan *plan, const struct neap_problem *p)
{
	struct neap__offload_search x;
	struct neap__action_list list = {0};
	int rc = neap__offload_search_init(&x, p, 0);
	if (rc == 0)
		rc = neap__offload_search_greedy(&x);
	if (rc == 0 && x.makespan < INFINITY)
		rc = neap__offload_search_list(&x, &list);
	if (rc == 0 && x.makespan < INFINITY)
		rc = neap__action_list_measure(plan, p, &list);
	neap__action_list_free(&list);
	neap__offload_search_fini(&x);
	return rc;
}

static void layers(void **unused)
{
	(void)unused;
	struct random r = {test_seed(32), 0};
	static const char *const names[] = {"chain", "pofo", "auto"};
	static double gap[4][256];
	for (int k = 0; k < layers_of; k++) {
		static struct chain c;
		struct neap_plan plan[3], greedy = {.size = sizeof greedy};
		random_layers(&r, &c);
		for (int i = 0; i < 3; i++) {
			plan[i] = planned(&c.p, names[i]);
			assert_true(plan[i].feasible);
			gap[i][k] = plan[i].gap;
		}
		assert_int_equal(greedy_plan(&greedy, &c.p), 0);
		assert_true(greedy.feasible);
		gap[3][k] = greedy.makespan / plan[2].bound - 1;
		for (int i = 0; i < 4; i++)
			if (gap[2][k] > gap[i][k] + 1e-9)
				fail_msg("chain %d: auto %g above the bound, %s %g", k, gap[2][k],
					i < 3 ? names[i] : "greedy", gap[i][k]);
	}
	for (int i = 0; i < 4; i++)
		qsort(gap[i], (size_t)layers_of, sizeof(double), by_size);
	fprintf(stderr,
		"# median gap to the bound: chain %.4f, pofo %.4f, greedy %.4f, auto %.4f\n",
		gap[0][layers_of / 2], gap[1][layers_of / 2], gap[3][layers_of / 2],
		gap[2][layers_of / 2]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(travels),
		cmocka_unit_test(pinned),
		cmocka_unit_test(states),
		cmocka_unit_test(illegal),
		cmocka_unit_test(live_parts),
		cmocka_unit_test(ample),
		cmocka_unit_test(oracle),
		cmocka_unit_test(exact_lists),
		cmocka_unit_test(kinds),
		cmocka_unit_test(ends),
		cmocka_unit_test(layers),
	};
	const struct CMUnitTest big[] = {cmocka_unit_test(layers)};
	if (argc < 2 || strcmp(argv[1], "big") != 0)
		return cmocka_run_group_tests(tests, NULL, NULL);
	layers_of = 200;
	return cmocka_run_group_tests(big, NULL, NULL);
}

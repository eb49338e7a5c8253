/* SPDX-License-Identifier: Apache-2.0 */
/* Problems, the table of strategies, small chains, the simulator's clock, pictures. */
#include "plan_test.h"
#include <float.h>

static void tier_seconds(void **state)
{
	(void)state;
	struct neap_tier_spec t = {.write_rate = 100, .read_rate = 50, .write_fixed = 2};
	assert_true(near(neap_tier_seconds(&t, 1, 1000), 12));
	assert_true(near(neap_tier_seconds(&t, 0, 1000), 20));
	t.read_rate = 0;
	t.read_fixed = 3;
	assert_true(near(neap_tier_seconds(&t, 0, 1000), 3));
}

static void checks(void **state)
{
	(void)state;
	struct neap_problem good = unit_problem(100, 100);
	add_tier(&good, NEAP_INFINITE, 1, 0);
	assert_int_equal(neap_problem_check(&good), 0);
	static const double bad[] = {-1, NAN, INFINITY, -INFINITY, DBL_MAX};
#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		struct neap_problem p = good;                                                      \
		p.field = value;                                                                   \
		assert_int_equal(neap_problem_check(&p), NEAP_EUSAGE);                             \
		assert_true(neap_detail()[0]);                                                     \
	} while (0)
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		REFUSED(chain.advance, bad[i]);
		REFUSED(chain.record, bad[i]);
		REFUSED(chain.backward, bad[i]);
		REFUSED(chain.slot_write, bad[i]);
		REFUSED(chain.slot_read, bad[i]);
		REFUSED(chain.call, bad[i]);
		REFUSED(chain.last, bad[i]);
		REFUSED(tiers[0].write_rate, bad[i]);
		REFUSED(tiers[0].read_rate, bad[i]);
		REFUSED(tiers[0].write_fixed, bad[i]);
		REFUSED(tiers[0].read_fixed, bad[i]);
		REFUSED(tiers[0].cpu, bad[i]);
		REFUSED(tiers[0].cpu_fixed, bad[i]);
	}
	REFUSED(chain.steps, -1);
	REFUSED(chain.steps, INT64_MAX);
	REFUSED(chain.state, 0);
	REFUSED(chain.state, UINT64_MAX);
	REFUSED(chain.state, (uint64_t)1 << 56); /* a hundred of them are too many */
	REFUSED(chain.tape, UINT64_MAX);
	REFUSED(chain.tape_mean, good.chain.tape + 1);
	REFUSED(chain.last, 1.5);
	REFUSED(chain.adjoint, UINT64_MAX);
	REFUSED(chain.live, UINT64_MAX);
	REFUSED(tiers[0].staging, UINT64_MAX);
	REFUSED(tiers[0].flags, 64);
	REFUSED(chain.flags, 64);
	REFUSED(chain.flags, NEAP_CHAIN_CLASSIC); /* with a tape in bytes */
	REFUSED(ntiers, -1);
	REFUSED(ntiers, NEAP_TIERS_MAX + 1);
	REFUSED(chain.stages, (const struct neap_stages *)&good);
	good.chain.tape = 5;
	REFUSED(chain.tape_max, 4);
	struct neap_plan plan = {.size = sizeof plan};
	assert_int_equal(neap_plan_make(&plan, &good, "nonesuch", NULL), NEAP_EUSAGE);
	assert_int_equal(neap_plan_make(&plan, &good, NULL, NULL), NEAP_EUSAGE);
	struct neap_params params = {.chunk = -1};
	assert_int_equal(neap_plan_make(&plan, &good, "standard", &params), NEAP_EUSAGE);
}

/* A classic chain keeps single tapes: chunks of one step, said or not. */
static void classic_chunks(void **state)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_plan plan = {.size = sizeof plan};
	(void)state;
	p.chain = (struct neap_chain){.steps = 40, .state = 1, .flags = NEAP_CHAIN_CLASSIC};
	p.memory = 5;
	p.ntiers = 1;
	p.tiers[0].write_rate = p.tiers[0].read_rate = 1;
	for (int chunk = 0; chunk <= 2; chunk++) {
		const struct neap_params params = {.chunk = chunk};
		assert_int_equal(neap_plan_make(&plan, &p, "async", &params), 0);
		assert_int_equal(plan.feasible, chunk < 2);
	}
}

static void names(void **state)
{
	static const char *const expected[] = {
		"bptt", "standard", "remote", "hierarchical", "double", "revolve", "auto"};
	(void)state;
	int n = 0;
	for (; neap_strategy_name(n); n++)
		assert_non_null(neap_strategy_about(neap_strategy_name(n)));
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
		assert_non_null(neap_strategy_about(expected[i]));
	assert_string_equal(neap_strategy_name(n - 1), "auto");
	assert_null(neap_strategy_name(n + 1));
	assert_null(neap_strategy_name(-1));
	assert_null(neap_strategy_about("nonesuch"));
	assert_string_equal(neap_action_name(NEAP_FORGET), "forget");
	assert_string_equal(neap_action_name(-1), "?");
	assert_string_equal(neap_action_name(NEAP_ACTION_KINDS), "?");
}

/* What a row says of its strategy is what its plans are like. */
static void traits(void **state)
{
	struct neap_problem p = {.size = sizeof p,
		.chain = {.steps = 200,
			.state = 64,
			.live = 64,
			.tape = 64,
			.adjoint = 64,
			.advance = 1e-3,
			.record = 1e-3,
			.backward = 2e-3},
		.memory = 3000,
		.ntiers = 1};
	p.tiers[0] = (struct neap_tier_spec){.name = "disk",
		.capacity = NEAP_INFINITE,
		.write_rate = 1e6,
		.read_rate = 1e6,
		.flags = NEAP_TIER_DUPLEX};
	(void)state;
	int choosing = 0, beyond = 0;
	for (int n = 0; neap_strategy_name(n); n++) {
		struct neap_plan plan = {.size = sizeof plan};
		const char *name = neap_strategy_name(n);
		uint32_t bits = neap_strategy_traits(name);
		p.chain.log = bits & NEAP_STRATEGY_REPLAYS ? 8 : 0;
		p.chain.replay = p.chain.log ? 1e-3 : 0;
		assert_int_equal(neap_plan_make(&plan, &p, name, NULL), 0);
		choosing += (bits & NEAP_STRATEGY_CHOOSES) != 0;
		beyond += plan.feasible && plan.slow_bytes > 0;
		if (plan.slow_bytes > 0 && !(bits & NEAP_STRATEGY_TIERS))
			fail_msg("%s uses a tier", name);
		if (plan.feasible && plan.chosen == plan.strategy) {
			int64_t held = neap_plan_tapes_held(&plan, p.chain.steps);
			assert_in_range(held, 1, p.chain.steps);
		}
		if (bits & NEAP_STRATEGY_REPLAYS) {
			p.chain.log = 0;
			p.chain.replay = 0;
			assert_int_equal(neap_plan_make(&plan, &p, name, NULL), 0);
			assert_false(plan.feasible);
		}
	}
	assert_int_equal(choosing, 1);
	assert_true(beyond >= 5);
	assert_int_equal(neap_strategy_traits("nonesuch"), 0);
	assert_int_equal(neap_strategy_traits(NULL), 0);
}

/* T = 0: every strategy, any budget: nothing but the turn. */
static void no_steps(void **state)
{
	(void)state;
	for (int n = 0; neap_strategy_name(n); n++) {
		struct neap_problem p = unit_problem(0, 0);
		struct neap_plan plan = {.size = sizeof plan};
		struct neap_schedule *s;
		struct neap_action a;
		p.memory = 0;
		assert_int_equal(neap_plan_make(&plan, &p, neap_strategy_name(n), NULL), 0);
		assert_true(plan.feasible && plan.makespan == 0 && plan.peak_bytes == 0);
		assert_true(plan.overhead == 0 && plan.gap == 0 && plan.bound == 0);
		assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
		assert_int_equal(neap_schedule_next(s, &a), 1);
		assert_int_equal(a.kind, NEAP_TURN);
		assert_int_equal(neap_schedule_next(s, &a), 0);
		assert_int_equal(neap_schedule_next(s, &a), 0);
		neap_schedule_close(s);
		assert_int_equal(verified(&p, &plan).peak_bytes, 0);
	}
}

static void one_step(void **state)
{
	(void)state;
	struct neap_problem p = classic_problem(1, 0);
	struct neap_plan plan = {.size = sizeof plan};
	assert_int_equal(neap_plan_make(&plan, &p, "revolve", NULL), 0);
	assert_true(plan.feasible && plan.advance_steps == 0 && plan.slots == 0);
	assert_int_equal(neap_plan_make(&plan, &p, "bptt", NULL), 0);
	assert_true(plan.feasible);
	p = unit_problem(1, 1);
	for (int n = 0; neap_strategy_name(n); n++) {
		assert_int_equal(neap_plan_make(&plan, &p, neap_strategy_name(n), NULL), 0);
		if (plan.feasible)
			assert_int_equal(verified(&p, &plan).peak_bytes, 2);
		else
			assert_int_equal(strncmp(plan.why, "needs ", 6), 0); /* another problem */
	}
}

static void classic(void **state)
{
	(void)state;
	struct neap_problem p = classic_problem(10, 0);
	struct neap_plan plan = {.size = sizeof plan};
	assert_int_equal(neap_plan_make(&plan, &p, "revolve", NULL), 0);
	assert_true(!plan.feasible && plan.least_bytes == 1);
	assert_int_equal(neap_problem_least(&p), 1);
	assert_int_equal(neap_plan_make(&plan, &p, "bptt", NULL), 0);
	assert_true(!plan.feasible && plan.least_bytes == 0);
	assert_non_null(strstr(plan.why, "needs bytes"));
	struct neap_params params = {.chunk = 2};
	assert_int_equal(neap_plan_make(&plan, &p, "standard", &params), 0);
	assert_true(!plan.feasible && strstr(plan.why, "needs bytes"));
	/* No slot, but a tier: every step's state is fetched from it. */
	add_tier(&p, 9, 0.5, NEAP_TIER_SYNC);
	assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
	assert_true(plan.feasible);
	assert_int_equal(verified(&p, &plan).slots, 0);
	assert_int_equal(neap_problem_least(&p), 0);
}

static void least(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(100, 0);
	p.chain.state = p.chain.live = 10;
	p.chain.adjoint = 7;
	p.chain.tape = 3;
	p.chain.tape_max = 5;
	assert_int_equal(neap_problem_least(&p), 10 + 10 + 7 + 5);
	add_tier(&p, NEAP_INFINITE, 1, 0);
	p.tiers[0].staging = 4;
	assert_int_equal(neap_problem_least(&p), 10 + 7 + 5 + 4);
	p.tiers[0].capacity = 9; /* no state */
	assert_int_equal(neap_problem_least(&p), 10 + 10 + 7 + 5);
	p.tiers[0].capacity = 19; /* one, read again and again */
	assert_int_equal(neap_problem_least(&p), 10 + 7 + 5 + 4);
	struct neap_plan plan = {.size = sizeof plan};
	p.memory = neap_problem_least(&p);
	assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
	assert_true(plan.feasible);
	assert_int_equal(plan.arena_bytes, p.memory);
	assert_int_equal(plan.peak_bytes, p.memory - 2);
	p.memory--;
	assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
	assert_true(!plan.feasible && plan.least_bytes == p.memory + 1);
}

/* A tier too small is passed over for the next. */
static void second_tier(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(100, 5);
	struct neap_plan plan = {.size = sizeof plan};
	add_tier(&p, 3, 1, 0);
	add_tier(&p, 1000, 1, 0);
	assert_int_equal(neap_plan_make(&plan, &p, "remote", NULL), 0);
	assert_true(plan.feasible && plan.tier == 2);
	assert_int_equal(plan.tiers[0].written, 0);
	assert_int_equal(verified(&p, &plan).tiers[1].peak_bytes, plan.slow_bytes);
}

struct script {
	const struct neap_action *next;
	int left, closed;
};

static int script_next(void *user, struct neap_action *action)
{
	struct script *s = user;
	if (s->left == 0)
		return 0;
	*action = *s->next++;
	s->left--;
	return 1;
}

static void script_close(void *user)
{
	((struct script *)user)->closed++;
}

static double makespan(struct neap_problem *p, const struct neap_action *list, int count,
	struct neap_simulation *m)
{
	struct script script = {list, count, 0};
	struct neap_schedule *s;
	assert_int_equal(neap_schedule_wrap(&s, script_next, script_close, &script), 0);
	assert_int_equal(neap_simulate(m, p, s), 0);
	neap_schedule_close(s);
	assert_int_equal(script.closed, 1);
	return m->makespan;
}

/* By hand: channels, their order, a GET behind its PUT. */
static void clock_by_hand(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(10, 100);
	struct neap_simulation m = {.size = sizeof m};
	add_tier(&p, NEAP_INFINITE, 0, NEAP_TIER_DUPLEX);
	p.tiers[0].write_fixed = 5;
	p.tiers[0].read_fixed = 2;
	static const struct neap_action list[] = {
		{.kind = NEAP_PUT, .tier = 1, .slot = 0, .place = 0, .ticket = 0},
		{.kind = NEAP_PUT, .tier = 1, .slot = 1, .place = 1, .ticket = 1},
		{.kind = NEAP_GET, .tier = 1, .slot = 2, .place = 0, .ticket = 2},
		{.kind = NEAP_GET, .tier = 1, .slot = 3, .place = 7, .ticket = 3},
		{.kind = NEAP_ADVANCE, .t0 = 0, .t1 = 6},
		{.kind = NEAP_WAIT, .ticket = 2},
		{.kind = NEAP_WAIT, .ticket = 0},
		{.kind = NEAP_WAIT, .ticket = 3},
		{.kind = NEAP_WAIT, .ticket = 1},
	};
	/* Writes end at 5 and 10; reads run 5..7 and 7..9, beside the second write. */
	assert_true(near(makespan(&p, list, 9, &m), 10));
	assert_true(near(m.stall_read[0], 3) && near(m.stall_write[0], 1));
	assert_true(near(m.advance, 6));
	p.tiers[0].flags = 0; /* one channel: writes to 10, reads to 12 and 14 */
	assert_true(near(makespan(&p, list, 9, &m), 14));
	assert_true(near(m.stall_read[0], 8) && near(m.stall_write[0], 0));
	p.tiers[0].flags = NEAP_TIER_SYNC;
	assert_true(near(makespan(&p, list, 9, &m), 20));
	assert_true(near(m.stall, 14));
	/* Four transfers of a byte cost a second each, unless the tier is waited for. */
	p.tiers[0].cpu = 1;
	assert_true(near(makespan(&p, list, 9, &m), 20) && near(m.lost, 0));
	p.tiers[0].flags = NEAP_TIER_DUPLEX;
	/* Writes 0..5 and 5..10; reads 5..7 and 7..9; computing 4..10. */
	assert_true(near(makespan(&p, list, 9, &m), 10));
	assert_true(near(m.lost, 4) && near(m.stall, 0));
	p.tiers[0].cpu = 2;
	assert_true(near(makespan(&p, list, 9, &m), 14));
	assert_true(near(m.lost, 8) && near(m.stall, 0));
}

/* Where moving bytes costs more computing than recomputing, nothing moves. */
static void costly_transfers(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(2000, 100);
	struct neap_plan plan = {.size = sizeof plan}, mixed = {.size = sizeof mixed};
	add_tier(&p, NEAP_INFINITE, 0, NEAP_TIER_DUPLEX);
	assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
	assert_true(near(plan.makespan, 4000) && plan.slow_bytes > 0);
	assert_int_equal(neap_plan_make(&mixed, &p, "mixed", NULL), 0);
	double extra = mixed.makespan - 4000, before = 4000;
	for (double cpu = 1e-3; cpu < 10; cpu *= 2) {
		p.tiers[0].cpu = cpu;
		assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
		assert_true(plan.makespan <= mixed.makespan * (1 + 1e-12));
		assert_true(plan.makespan >= before * (1 - 1e-12));
		/* All tapes out and back at most. */
		assert_true(plan.makespan <= 4000 + 2 * 2000 * cpu + 1e-9);
		assert_true(plan.bound <= plan.makespan * (1 + 1e-12));
		before = plan.makespan;
	}
	assert_true(extra > 0 && plan.slow_bytes == 0 && near(plan.makespan, mixed.makespan));
}

/* The hull of the best recomputation, against numbers worked out by hand. */
static void bounds(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(10, 10);
	assert_true(near(neap_bound(&p), 20)); /* all tapes fit */
	p = classic_problem(3, 1);
	assert_true(near(neap_bound(&p), 6 + 3));
	p = unit_problem(3, 2); /* a slot and a tape, then two tapes: 2 steps again */
	assert_true(near(neap_bound(&p), 6 + 2));
	p.chain.record = 0.5; /* a forward step may be the cheaper record */
	assert_true(near(neap_bound(&p), 4.5 + 1));
	p = unit_problem(1000000000, 2); /* one slot: the far end of the hull */
	assert_true(near(neap_bound(&p), 2e9 + 1e9 * (1e9 - 1) / 2));
	add_tier(&p, NEAP_INFINITE, 1, 0);
	assert_true(near(neap_bound(&p), 2e9));
}

struct text {
	char *data;
	size_t length;
};

static int keep(void *user, const char *text, size_t length)
{
	struct text *t = user;
	t->data = realloc(t->data, t->length + length + 1);
	memcpy(t->data + t->length, text, length);
	t->length += length;
	t->data[t->length] = 0;
	return 0;
}

static int64_t occurrences(const char *text, const char *word)
{
	int64_t n = 0;
	for (const char *at = text; (at = strstr(at, word)); at++)
		n++;
	return n;
}

/* Step 0 lies at the lower edge of the frame, where the axis of time is. */
static void lowest_step(const char *svg)
{
	double top, height, zero;
	const char *frame = strstr(svg, "fill=\"none\" stroke=\"");
	const char *label = strstr(svg, "text-anchor=\"end\">0</text>");
	assert_non_null(frame);
	assert_non_null(label);
	while (strncmp(frame, "<rect", 5) != 0)
		frame--;
	while (strncmp(label, "<text", 5) != 0)
		label--;
	assert_int_equal(sscanf(frame, "<rect x=\"%*f\" y=\"%lf\" width=\"%*f\" height=\"%lf\"",
				 &top, &height),
		2);
	assert_int_equal(sscanf(label, "<text class=\"tick-y\" x=\"%*f\" y=\"%lf\"", &zero), 1);
	assert_true(fabs(zero - (top + height)) < 0.1);
}

static void pictures(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(100, 12);
	struct neap_plan plan = {.size = sizeof plan};
	struct neap_schedule *s;
	struct text t = {0};
	add_tier(&p, NEAP_INFINITE, 9, NEAP_TIER_DUPLEX);
	for (int n = 0; neap_strategy_name(n); n++) {
		assert_int_equal(neap_plan_make(&plan, &p, neap_strategy_name(n), NULL), 0);
		if (!plan.feasible)
			continue;
		struct neap_verdict v = verified(&p, &plan);
		assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
		t.length = 0;
		assert_int_equal(neap_draw(&p, s, "a < b & \"c\"", 0, keep, &t), 0);
		neap_schedule_close(s);
		assert_non_null(strstr(t.data, "a &lt; b &amp; &quot;c&quot;"));
		assert_true(strncmp(t.data, "<svg", 4) == 0);
		assert_non_null(strstr(t.data, "</svg>"));
		assert_int_equal(occurrences(t.data, "<g "), occurrences(t.data, "</g>"));
		assert_null(strstr(t.data, "nan"));
		lowest_step(t.data);
		assert_true(occurrences(t.data, "<path ") < v.actions * 2);
		if (plan.tiers[0].written)
			assert_non_null(strstr(t.data, ">tier1</text>"));
		const char *folder = getenv("NEAP_PICTURES");
		if (folder) {
			char path[4200];
			snprintf(path, sizeof path, "%s/%s.svg", folder, plan.strategy);
			FILE *f = fopen(path, "w");
			assert_non_null(f);
			fwrite(t.data, 1, t.length, f);
			fclose(f);
		}
		assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
		/* More marks than that: some of each kind, and the title says so. */
		t.length = 0;
		assert_int_equal(neap_draw(&p, s, NULL, 6, keep, &t), 0);
		assert_true(occurrences(t.data, "<path ") <= 6);
		assert_non_null(strstr(t.data, "thinned: one short mark of "));
		neap_schedule_close(s);
	}
	free(t.data);
}

/* Numbers from anywhere: an answer or NEAP_EUSAGE, and plans that can be opened. */
static void absurd(void **state)
{
	(void)state;
	struct random r = {test_seed(5), 0};
	static const double times[] = {0, 1, 1e-300, 1e15, -1, NAN, INFINITY, 1e308, 5e-324};
	static const uint64_t sizes[] = {0, 1, 2, 1000, 1u << 30, (uint64_t)1 << 59,
		(uint64_t)1 << 60, INT64_MAX, UINT64_MAX};
	static const int64_t counts[] = {
		0, 1, 2, 3, 1000, 1000000000, 1000000000000, INT64_MAX, -1};
	int answered = 0;
#define PICK(table) table[below(&r, uniform(&r) < 0.85 ? 4 : 9)]
	const int problems = TEST_SANITIZED ? 2000 : 8000;
	for (int i = 0; i < problems; i++) {
		struct neap_problem p = NEAP_PROBLEM_INIT;
		p.chain = (struct neap_chain){.steps = PICK(counts),
			.state = PICK(sizes),
			.tape = PICK(sizes),
			.tape_max = PICK(sizes),
			.adjoint = PICK(sizes),
			.live = PICK(sizes),
			.advance = PICK(times),
			.record = PICK(times),
			.backward = PICK(times),
			.slot_write = PICK(times),
			.slot_read = PICK(times),
			.flags = (uint32_t)below(&r, 40) / 39};
		p.memory = sizes[below(&r, 9)];
		p.ntiers = (int)below(&r, 3);
		for (int k = 0; k < p.ntiers; k++)
			p.tiers[k] = (struct neap_tier_spec){.capacity = sizes[below(&r, 9)],
				.write_rate = PICK(times),
				.read_rate = PICK(times),
				.write_fixed = PICK(times),
				.read_fixed = PICK(times),
				.staging = PICK(sizes),
				.flags = (uint32_t)below(&r, 4)};
		struct neap_params params = {.chunk = PICK(counts),
			.checkpoints = PICK(counts),
			.remote_chunk = PICK(counts)};
		for (int n = 0; neap_strategy_name(n); n++) {
			struct neap_plan plan = {.size = sizeof plan};
			struct neap_schedule *s;
			struct neap_action a;
			int rc = neap_plan_make(&plan, &p, neap_strategy_name(n), &params);
			assert_true(rc == 0 || rc == NEAP_EUSAGE);
			answered += rc == 0;
			if (rc < 0 || !plan.feasible)
				continue;
			assert_true(plan.makespan >= 0 && plan.makespan <= 1e300);
			assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
			for (int k = 0; k < 20 && neap_schedule_next(s, &a) > 0; k++)
				assert_true(a.kind < NEAP_ACTION_KINDS);
			neap_schedule_close(s);
		}
	}
	assert_true(answered > problems / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tier_seconds),
		cmocka_unit_test(checks),
		cmocka_unit_test(classic_chunks),
		cmocka_unit_test(names),
		cmocka_unit_test(traits),
		cmocka_unit_test(no_steps),
		cmocka_unit_test(one_step),
		cmocka_unit_test(classic),
		cmocka_unit_test(least),
		cmocka_unit_test(second_tier),
		cmocka_unit_test(clock_by_hand),
		cmocka_unit_test(costly_transfers),
		cmocka_unit_test(bounds),
		cmocka_unit_test(pictures),
		cmocka_unit_test(absurd),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

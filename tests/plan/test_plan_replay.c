/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay: the rules of logs, one case each; on tiny chains the best of all partitions
 * into blocks; the best of all intervals through a tier; plans as text and back.
 */
#include "plan_test.h"

#include <stdlib.h>
#include <string.h>

struct list {
	struct neap_action actions[256];
	int64_t count, at;
};

static int list_next(void *user, struct neap_action *action)
{
	struct list *list = user;
	if (list->at == list->count)
		return 0;
	*action = list->actions[list->at++];
	return 1;
}

static void add_action(
	struct list *list, int kind, int payload, int64_t t0, int64_t t1, int64_t where)
{
	assert_true(list->count < 256);
	struct neap_action a = {.kind = (uint8_t)kind,
		.payload = (uint8_t)payload,
		.t0 = t0,
		.t1 = t1,
		.slot = payload == NEAP_STATE ? where : 0,
		.place = payload == NEAP_STATE ? 0 : where,
		.tier = kind == NEAP_PUT || kind == NEAP_GET || kind == NEAP_FORGET};
	list->actions[list->count++] = a;
}

static struct neap_schedule *wrapped(struct list *list)
{
	struct neap_schedule *s;
	list->at = 0;
	assert_int_equal(neap_schedule_wrap(&s, list_next, NULL, list), 0);
	return s;
}

static int verify_list(const struct neap_problem *p, struct list *list, struct neap_verdict *v)
{
	struct neap_schedule *s = wrapped(list);
	int rc = neap_verify(v, p, s);
	neap_schedule_close(s);
	return rc;
}

static struct neap_problem logged(int64_t steps, uint64_t tape, uint64_t log, uint64_t memory)
{
	struct neap_problem p = unit_problem(steps, memory);
	p.chain.tape = tape;
	p.chain.log = log;
	p.chain.record = 2;
	p.chain.replay = 0.5;
	return p;
}

/* Log [0, 4), record the rest, turn, then what the text says: one letter an action. */
static int run_case(const struct neap_problem *p, const char *acts)
{
	struct list list = {.count = 0};
	struct neap_verdict v = {.size = sizeof v};
	add_action(&list, NEAP_SAVE, NEAP_STATE, 0, 0, 0);
	for (const char *c = acts; *c; c++)
		switch (*c) {
		case 'a':
			add_action(&list, NEAP_ADVANCE, NEAP_LOG, 0, 4, 0);
			break;
		case 'p':
			add_action(&list, NEAP_PUT, NEAP_LOG, 0, 4, 0);
			break;
		case 'w':
			add_action(&list, NEAP_WAIT, 0, 0, 0, 0);
			break;
		case 'g':
			add_action(&list, NEAP_GET, NEAP_LOG, 0, 4, 0);
			break;
		case 'G':
			add_action(&list, NEAP_GET, NEAP_TAPE, 0, 4, 0);
			break;
		case 'f':
			add_action(&list, NEAP_FORGET, NEAP_LOG, 0, 0, 0);
			break;
		case 'F':
			add_action(&list, NEAP_FORGET, NEAP_TAPE, 0, 0, 0);
			break;
		case 'e': /* the end of the chain */
			add_action(&list, NEAP_RECORD, NEAP_STATE, 4, 8, 0);
			add_action(&list, NEAP_TURN, 0, 8, 8, 0);
			add_action(&list, NEAP_BACKWARD, NEAP_STATE, 4, 8, 0);
			add_action(&list, NEAP_LOAD, NEAP_STATE, 0, 0, 0);
			break;
		case 'r':
			add_action(&list, NEAP_RECORD, NEAP_LOG, 0, 4, 0);
			break;
		case 'h':
			add_action(&list, NEAP_RECORD, NEAP_LOG, 0, 2, 0);
			break;
		case 'd':
			add_action(&list, NEAP_DROP, NEAP_LOG, 0, 4, 0);
			break;
		default:
			add_action(&list, NEAP_BACKWARD, NEAP_STATE, 0, 4, 0);
		}
	return verify_list(p, &list, &v);
}

static void rules(void **state)
{
	(void)state;
	struct neap_problem p = logged(8, 3, 1, 100);
	add_tier(&p, NEAP_INFINITE, 0, 0);
	assert_int_equal(run_case(&p, "aerb"), 0);
	assert_int_equal(run_case(&p, "aerdb"), 0);
	assert_int_equal(run_case(&p, "aepwgwrdb"), 0);
	assert_int_equal(run_case(&p, "apewgwfrb"), 0);
	assert_int_equal(run_case(&p, "apegwrb"), NEAP_EILLEGAL); /* ticket in flight */
	static const char *const wrong[] = {
		"aedrb",     /* dropped */
		"aehrb",     /* not a whole record */
		"erb",	     /* never logged (and the live state is elsewhere) */
		"aepwrb",    /* sent away */
		"aeprwb",    /* on its way out */
		"aepwgrwb",  /* on its way in */
		"aepwGwrb",  /* tapes asked for where a log is */
		"aepwgwFrb", /* the same of a place */
		"aerb d",    /* something after the end */
		"aepwgdwrb", /* dropped before it is there */
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		if (run_case(&p, wrong[i]) != NEAP_EILLEGAL)
			fail_msg("%s is legal", wrong[i]);
	p.chain.flags = NEAP_CHAIN_TAPES_STAY;
	assert_int_equal(run_case(&p, "aepwgwrb"), NEAP_EILLEGAL);
	assert_int_equal(run_case(&p, "aerb"), 0);
	p.chain.flags = 0;
	p.chain.log = 0;
	assert_int_equal(run_case(&p, "aerb"), NEAP_EILLEGAL);
}

static void refusals(void **state)
{
	(void)state;
	struct neap_problem p = logged(100, 8, 0, 50);
	struct neap_plan plan = {.size = sizeof plan};
	assert_int_equal(neap_plan_make(&plan, &p, "replay", NULL), 0);
	assert_false(plan.feasible);
	assert_non_null(strstr(plan.why, "needs a log"));
	p.chain.log = 8;
	assert_int_equal(neap_plan_make(&plan, &p, "replay", NULL), 0);
	assert_false(plan.feasible);
	assert_non_null(strstr(plan.why, "no smaller than a tape"));
	p.chain.log = 1;
	p.chain.replay = -1;
	assert_int_equal(neap_plan_make(&plan, &p, "replay", NULL), NEAP_EUSAGE);
	p = classic_problem(10, 3);
	p.chain.log = 1;
	assert_int_equal(neap_plan_make(&plan, &p, "replay", NULL), NEAP_EUSAGE);
}

/* Blocks that end where `cuts` has a bit, states in slots, logs kept; as the strategy. */
static void write_blocks(struct list *list, int steps, int body, unsigned cuts)
{
	int start[16] = {0}, n = 0;
	for (int t = 0; t < body; t++)
		if (t == 0 || cuts >> (t - 1) & 1)
			start[n++] = t;
	start[n] = body;
	list->count = 0;
	for (int j = 0; j < n; j++) {
		add_action(list, NEAP_SAVE, NEAP_STATE, start[j], start[j], j);
		add_action(list, NEAP_ADVANCE, NEAP_LOG, start[j], start[j + 1], 0);
	}
	if (body < steps)
		add_action(list, NEAP_RECORD, NEAP_STATE, body, steps, 0);
	add_action(list, NEAP_TURN, NEAP_STATE, steps, steps, 0);
	if (body < steps)
		add_action(list, NEAP_BACKWARD, NEAP_STATE, body, steps, 0);
	for (int j = n - 1; j >= 0; j--) {
		add_action(list, NEAP_LOAD, NEAP_STATE, start[j], start[j], j);
		add_action(list, NEAP_DROP, NEAP_STATE, start[j], start[j], j);
		add_action(list, NEAP_RECORD, NEAP_LOG, start[j], start[j + 1], 0);
		add_action(list, NEAP_DROP, NEAP_LOG, start[j], start[j + 1], 0);
		add_action(list, NEAP_BACKWARD, NEAP_STATE, start[j], start[j + 1], 0);
	}
}

/* The fastest of all partitions that fit; infinite if none does. */
static double best_partition(const struct neap_problem *p)
{
	int steps = (int)p->chain.steps;
	double best = INFINITY;
	struct list list;
	for (int body = 0; body <= steps; body++)
		for (unsigned cuts = 0; cuts < (body > 1 ? 1u << (body - 1) : 1u); cuts++) {
			struct neap_verdict v = {.size = sizeof v};
			struct neap_simulation m = {.size = sizeof m};
			write_blocks(&list, steps, body, cuts);
			assert_int_equal(verify_list(p, &list, &v), 0);
			if (v.arena_bytes > p->memory)
				continue;
			struct neap_schedule *s = wrapped(&list);
			assert_int_equal(neap_simulate(&m, p, s), 0);
			neap_schedule_close(s);
			best = fmin(best, m.makespan);
		}
	return best;
}

static void all_partitions(void **state)
{
	(void)state;
	struct random r = {test_seed(7), 0};
	int feasible = 0;
	for (int i = 0; i < 150; i++) {
		struct neap_problem p = logged(1 + below(&r, 9), 2 + (uint64_t)below(&r, 8), 0, 0);
		struct neap_plan plan = {.size = sizeof plan};
		p.chain.state = 1 + (uint64_t)below(&r, 8);
		p.chain.live = p.chain.state;
		p.chain.log = 1 + (uint64_t)below(&r, (int64_t)p.chain.tape - 1);
		p.chain.replay = 0.25 * (double)below(&r, 12);
		p.memory = p.chain.live + (uint64_t)below(&r, 60);
		double best = best_partition(&p);
		assert_int_equal(neap_plan_make(&plan, &p, "replay", NULL), 0);
		assert_int_equal(plan.feasible, isfinite(best));
		if (!plan.feasible)
			continue;
		feasible++;
		assert_true(near(plan.makespan, best));
		assert_true(plan.bound <= best * (1 + 1e-12));
		struct neap_plan any = {.size = sizeof any};
		assert_int_equal(neap_plan_make(&any, &p, "auto", NULL), 0);
		assert_true(any.makespan <= best * (1 + 1e-12));
	}
	assert_true(feasible > 50);
}

/* Through a tier: no interval given by hand is better than the one chosen. */
static void all_intervals(void **state)
{
	(void)state;
	struct random r = {test_seed(8), 0};
	int feasible = 0;
	for (int i = 0; i < 120; i++) {
		struct neap_problem p =
			logged(2 + below(&r, 30), 2 + (uint64_t)below(&r, 20), 0, 0);
		struct neap_plan plan = {.size = sizeof plan}, other = {.size = sizeof other};
		p.chain.state = p.chain.live = 1 + (uint64_t)below(&r, 12);
		p.chain.log = 1 + (uint64_t)below(&r, (int64_t)p.chain.tape - 1);
		p.memory = p.chain.live + p.chain.tape + (uint64_t)below(&r, 120);
		add_tier(&p, NEAP_INFINITE, uniform(&r), below(&r, 2) ? NEAP_TIER_DUPLEX : 0);
		p.tiers[0].write_rate = p.tiers[0].read_rate = decades(&r, 0.3, 30);
		assert_int_equal(neap_plan_make(&plan, &p, "replay", NULL), 0);
		for (int64_t n = 1; n <= p.chain.steps; n++) {
			struct neap_params fixed = {.interval = n};
			assert_int_equal(neap_plan_make(&other, &p, "replay", &fixed), 0);
			if (!other.feasible)
				continue;
			assert_true(plan.feasible);
			struct neap_verdict v = verified(&p, &other);
			assert_int_equal(v.peak_bytes, other.peak_bytes);
			assert_true(near(simulated(&p, &other).makespan, other.makespan));
			if (other.makespan < plan.makespan * (1 - 1e-9))
				fail_msg("problem %d: interval %lld takes %g (%d), the plan's %lld "
					 "%g (%d)",
					i, (long long)n, other.makespan, other.variant,
					(long long)plan.params.interval, plan.makespan,
					plan.variant);
		}
		feasible += plan.feasible;
	}
	assert_true(feasible > 60);
}

/* Bits of what the actions of a plan send to the tier and keep in slots: 1 states in slots, 2
 * states and 4 logs sent. */
static int places_of(const struct neap_problem *p, const struct neap_plan *plan)
{
	struct neap_schedule *s;
	struct neap_action a;
	int places = 0;
	assert_int_equal(neap_schedule_open(&s, p, plan), 0);
	while (neap_schedule_next(s, &a) > 0) {
		if (a.kind == NEAP_SAVE)
			places |= 1;
		if (a.kind == NEAP_PUT)
			places |= a.payload == NEAP_LOG ? 4 : 2;
	}
	neap_schedule_close(s);
	return places;
}

/* Each way to keep states and logs is the best one of some problem. */
static void all_places(void **state)
{
	(void)state;
	struct random r = {test_seed(9), 0};
	int seen[8] = {0};
	for (int i = 0; i < 400; i++) {
		struct neap_problem p =
			logged(4 + below(&r, 40), 10 + (uint64_t)below(&r, 20), 0, 0);
		struct neap_plan plan = {.size = sizeof plan};
		p.chain.state = p.chain.live = 1 + (uint64_t)below(&r, 30);
		p.chain.log = 1 + (uint64_t)below(&r, (int64_t)p.chain.tape - 1);
		p.memory = p.chain.live + p.chain.tape + (uint64_t)below(&r, 160);
		add_tier(&p, NEAP_INFINITE, 0, NEAP_TIER_DUPLEX);
		p.tiers[0].write_rate = p.tiers[0].read_rate = decades(&r, 1, 30);
		p.tiers[0].write_fixed = p.tiers[0].read_fixed = uniform(&r);
		assert_int_equal(neap_plan_make(&plan, &p, "replay", NULL), 0);
		if (plan.feasible)
			seen[places_of(&p, &plan)]++;
	}
	/* Both in tier 0; states sent, perhaps from a slot; logs sent; both sent. */
	fprintf(stderr, "# %d %d %d %d\n", seen[1], seen[2] + seen[3], seen[5], seen[6] + seen[7]);
	assert_true(seen[1] > 0 && seen[2] + seen[3] > 0 && seen[5] > 0 && seen[6] + seen[7] > 0);
}

struct text {
	char data[65536];
	size_t length;
};

static int keep_text(void *user, const char *text, size_t length)
{
	struct text *to = user;
	assert_true(to->length + length < sizeof to->data);
	memcpy(to->data + to->length, text, length);
	to->length += length;
	return 0;
}

/* By its numbers and by its list: read back, checked, the same. */
static void as_text(void **state)
{
	(void)state;
	struct text *text = malloc(sizeof *text);
	assert_non_null(text);
	for (int tier = 0; tier < 2; tier++)
		for (uint32_t flags = 0; flags < 2; flags++) {
			struct neap_problem p = logged(60, 16, 2, 200);
			struct neap_plan plan = {.size = sizeof plan};
			struct neap_saved *saved;
			if (tier) {
				add_tier(&p, NEAP_INFINITE, 0.1, 0);
				p.memory = 100;
			}
			assert_int_equal(neap_plan_make(&plan, &p, "replay", NULL), 0);
			assert_true(plan.feasible && plan.params.tail < 60);
			text->length = 0;
			assert_int_equal(neap_plan_write(&plan, &p, flags, keep_text, text), 0);
			int rc = neap_plan_read(&saved, text->data, text->length, 0);
			if (rc < 0)
				fail_msg("%s", neap_detail());
			assert_true(saved->problem->chain.log == 2);
			assert_true(near(saved->plan->makespan, plan.makespan));
			assert_int_equal(saved->plan->peak_bytes, plan.peak_bytes);
			neap_saved_free(saved);
		}
	free(text);
}

/* A million steps: numbers that verify finds, and auto as good. */
static void long_chain(void **state)
{
	(void)state;
	struct neap_problem p = logged(1000000, 11000, 700, 0);
	struct neap_plan plan = {.size = sizeof plan}, other = {.size = sizeof other};
	p.chain.state = p.chain.live = 70000;
	p.chain.advance = 1e-3;
	p.chain.record = 1.2e-3;
	p.chain.replay = 0.6e-3;
	p.chain.backward = 2e-3;
	p.memory = 64 << 20;
	add_tier(&p, NEAP_INFINITE, 1e-4, 0);
	p.tiers[0].write_rate = p.tiers[0].read_rate = 2e6;
	assert_int_equal(neap_plan_make(&plan, &p, "replay", NULL), 0);
	assert_true(plan.feasible);
	struct neap_verdict v = verified(&p, &plan);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_int_equal(v.tiers[0].written, plan.tiers[0].written);
	assert_true(near(simulated(&p, &plan).makespan, plan.makespan));
	assert_int_equal(neap_plan_make(&other, &p, "auto", NULL), 0);
	assert_true(other.makespan <= plan.makespan);
	assert_int_equal(neap_plan_make(&other, &p, "stream", NULL), 0);
	assert_true(other.makespan > plan.makespan); /* the channel is too slow for tapes */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules),
		cmocka_unit_test(refusals),
		cmocka_unit_test(all_partitions),
		cmocka_unit_test(all_intervals),
		cmocka_unit_test(all_places),
		cmocka_unit_test(as_text),
		cmocka_unit_test(long_chain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

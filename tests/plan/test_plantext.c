/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans as text: what is written reads back as the same plan, whatever the problem
 * and the strategy; a text that lies about a number, or is damaged, is refused with
 * the line's number; actions of another program are played.
 */
#include <inttypes.h>
#include "base/text.h"
#include "plan/text/action_text.h"
#include "plan_test.h"

static int collect(void *user, const char *text, size_t length)
{
	return neap__text_add(user, "%.*s", (int)length, text);
}

static struct neap__text written(
	const struct neap_plan *plan, const struct neap_problem *p, uint32_t flags)
{
	struct neap__text text = {0};
	if (neap_plan_write(plan, p, flags, collect, &text) < 0)
		fail_msg("%s: write: %s", plan->strategy, neap_detail());
	return text;
}

static struct neap_saved *read_text(const char *name, const char *text, size_t length)
{
	struct neap_saved *saved = NULL;
	if (neap_plan_read(&saved, text, length, 0) < 0)
		fail_msg("%s: read: %s\n%.6000s", name, neap_detail(), text);
	return saved;
}

/* Everything a strategy's plan says. */
static void same_plan(const struct neap_plan *a, const struct neap_plan *b, int ntiers)
{
	assert_string_equal(a->strategy, b->strategy);
	assert_string_equal(a->chosen, b->chosen);
	assert_memory_equal(&a->params, &b->params, sizeof a->params);
	assert_memory_equal(&a->blocks, &b->blocks, sizeof a->blocks);
	assert_memory_equal(a->tiers, b->tiers, sizeof a->tiers[0] * (size_t)ntiers);
	assert_int_equal(a->tier, b->tier);
	assert_int_equal(a->variant, b->variant);
	assert_int_equal(a->slots, b->slots);
	assert_int_equal(a->stage_slots, b->stage_slots);
	assert_true(a->peak_bytes == b->peak_bytes && a->arena_bytes == b->arena_bytes);
	assert_true(a->slow_bytes == b->slow_bytes);
	assert_true(a->advance_steps == b->advance_steps && a->record_steps == b->record_steps);
	assert_true(a->makespan == b->makespan && a->stall == b->stall && a->bound == b->bound);
	assert_true(a->overhead == b->overhead && a->gap == b->gap);
	assert_true(a->model_bound == b->model_bound);
}

static void same_actions(struct neap_schedule *a, struct neap_schedule *b)
{
	struct neap_action x, y;
	int more, other;
	do {
		more = neap_schedule_next(a, &x);
		other = neap_schedule_next(b, &y);
		assert_true(more == other && more >= 0);
		if (more == 0)
			break;
		char line[NEAP_ACTION_TEXT], again[NEAP_ACTION_TEXT];
		neap_action_show(line, &x);
		assert_string_equal(line, neap_action_show(again, &y));
		/* And the line reads back as the action. */
		struct neap_action parsed;
		assert_int_equal(neap__action_parse(&parsed, line), 0);
		assert_string_equal(neap_action_show(again, &parsed), line);
		if (x.kind == NEAP_TURN)
			assert_true(x.t0 == y.t0 && x.t1 == y.t1);
	} while (1);
}

static void round_trip(const struct neap_problem *p, const struct neap_plan *plan, uint32_t flags)
{
	struct neap__text text = written(plan, p, flags);
	struct neap_saved *saved = read_text(plan->strategy, text.data, text.length);
	same_plan(plan, saved->plan, p->ntiers);
	int listed = flags || plan->actions || p->chain.stages;
	struct neap_schedule *a, *b;
	assert_int_equal(saved->plan->actions != NULL, listed);
	assert_int_equal(neap_schedule_open(&a, p, plan), 0);
	assert_int_equal(neap_schedule_open(&b, saved->problem, saved->plan), 0);
	same_actions(a, b);
	neap_schedule_close(a);
	neap_schedule_close(b);
	/* Saved again, not a byte is different. */
	struct neap__text again = written(saved->plan, saved->problem, flags);
	assert_string_equal(again.data, text.data);
	neap__text_free(&again);
	neap__text_free(&text);
	neap_saved_free(saved);
}

static void test_every_strategy(void **state)
{
	struct random r = {test_seed(11), 0};
	int done = 0;
	(void)state;
	for (int i = 0; i < 60; i++) {
		struct neap_problem p = random_problem(&r, 2000);
		struct neap_params params = {.effort = 30};
		for (int k = 0; neap_strategy_name(k); k++) {
			struct neap_plan plan = {.size = sizeof plan};
			assert_int_equal(
				neap_plan_make(&plan, &p, neap_strategy_name(k), &params), 0);
			if (!plan.feasible)
				continue;
			round_trip(&p, &plan, i % 4 == 0 ? NEAP_WRITE_ACTIONS : 0);
			done++;
		}
	}
	assert_in_range(done, 200, 2000);
}

/* Long plans, whose makespan is continued in a straight line. */
static void test_long(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(400000, 1000);
	add_tier(&p, NEAP_INFINITE, 3.5, 0);
	p.tiers[0].write_rate = 0.3;
	for (int k = 0; neap_strategy_name(k); k++) {
		struct neap_params params = {.effort = 5};
		struct neap_plan plan = {.size = sizeof plan};
		assert_int_equal(neap_plan_make(&plan, &p, neap_strategy_name(k), &params), 0);
		if (!plan.feasible)
			continue;
		struct neap__text text = written(&plan, &p, 0);
		struct neap_saved *saved = read_text(plan.strategy, text.data, text.length);
		same_plan(&plan, saved->plan, p.ntiers);
		neap_saved_free(saved);
		neap__text_free(&text);
	}
}

static const double advance[] = {1, 2.5, 0.1, 4}, backward[] = {2, 1e-7, 3, 1.0 / 3, 0.5};
static const uint64_t state_sizes[] = {10, 20, 5, 8, 1}, tapes[] = {25, 30, 20, 44};

static void test_stages(void **state)
{
	(void)state;
	struct neap_stages stages = {.advance = advance,
		.backward = backward,
		.state = state_sizes,
		.tape = tapes,
		.backward_tmp = state_sizes,
		.flags = NEAP_STAGES_TAPE_HOLDS_OUTPUT};
	struct neap_problem p = {
		.size = sizeof p, .chain = {.steps = 4, .stages = &stages}, .memory = 140};
	struct neap_plan plan = {.size = sizeof plan};
	assert_int_equal(neap_plan_make(&plan, &p, "chain", NULL), 0);
	assert_true(plan.feasible);
	round_trip(&p, &plan, 0);
	struct neap__text text = written(&plan, &p, 0);
	struct neap_saved *saved = read_text("chain", text.data, text.length);
	const struct neap_stages *s = saved->problem->chain.stages;
	assert_memory_equal(s->advance, advance, sizeof advance);
	assert_memory_equal(s->backward, backward, sizeof backward);
	assert_memory_equal(s->backward_tmp, state_sizes, sizeof state_sizes);
	assert_null(s->record);
	assert_int_equal(s->flags, NEAP_STAGES_TAPE_HOLDS_OUTPUT);
	neap_saved_free(saved);
	neap__text_free(&text);
	/* Without what may be missing. */
	stages.backward_tmp = NULL;
	assert_int_equal(neap_plan_make(&plan, &p, "chain", NULL), 0);
	round_trip(&p, &plan, NEAP_WRITE_ACTIONS);
}

static void test_edges(void **state)
{
	(void)state;
	struct neap_plan plan = {.size = sizeof plan};
	struct neap_problem p = unit_problem(0, 10);
	assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
	round_trip(&p, &plan, 0);
	round_trip(&p, &plan, NEAP_WRITE_ACTIONS);
	p = classic_problem(5, 6);
	p.chain.join = 7;
	assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
	round_trip(&p, &plan, 0);
	round_trip(&p, &plan, NEAP_WRITE_ACTIONS);
	p = unit_problem(30, 20);
	p.memory = NEAP_INFINITE;
	add_tier(&p, 100, 0, NEAP_TIER_SYNC);
	strcpy(p.tiers[0].name, "a 50% \n\x80name");
	assert_int_equal(neap_plan_make(&plan, &p, "remote", NULL), 0);
	round_trip(&p, &plan, 0);
	p.tiers[0].name[0] = '\0';
	round_trip(&p, &plan, 0);
	p.memory = 1;
	assert_int_equal(neap_plan_make(&plan, &p, "remote", NULL), 0);
	assert_int_equal(neap_plan_write(&plan, &p, 0, collect, NULL), NEAP_EINFEASIBLE);
}

static const char minimal[] = "neap plan 1\n"
			      "# two lines of a person's own\r\n"
			      "[chain]\nsteps 10\nstate 1\ntape 1\nadvance 1\nrecord 1\n"
			      "backward 1\nmemory 9\n\n"
			      "[plan]\nstrategy standard\n[params]\nchunk 4\nend\n";

static void test_by_hand(void **state)
{
	(void)state;
	struct neap_saved *saved = read_text("hand", minimal, strlen(minimal));
	assert_int_equal(saved->plan->advance_steps, 6);
	assert_int_equal(saved->plan->record_steps, 10);
	assert_int_equal(saved->plan->peak_bytes, 7);
	assert_true(near(saved->plan->makespan, 26));
	assert_true(near(saved->plan->overhead, 0.3));
	neap_saved_free(saved);
}

static const char own[] = "neap plan 1\n[chain]\nsteps 2\nstate 8\ntape 4\nlive 8\nadvance 1\n"
			  "record 1\nbackward 2\nmemory 40\n[tier]\nname disk\nwrite_rate 4\n"
			  "[actions]\nput state at 0 tier 1 place 0 ticket 0 live\nwait ticket 0\n"
			  "advance 0 1\nrecord 1 2\nturn\nbackward 1 2\n"
			  "get state at 0 tier 1 place 0 ticket 0 live\nwait ticket 0\n"
			  "forget state at 0 tier 1 place 0\nrecord 0 1\nbackward 0 1\nend\n";

static void test_own_actions(void **state)
{
	(void)state;
	struct neap_saved *saved = read_text("own", own, strlen(own));
	assert_string_equal(saved->plan->strategy, "own");
	assert_int_equal(saved->plan->action_count, 11);
	assert_int_equal(saved->plan->peak_bytes, 12);
	assert_int_equal(saved->plan->tiers[0].written, 8);
	assert_true(near(saved->plan->makespan, 2 + 1 + 2 + 4 + 0));
	round_trip(saved->problem, saved->plan, 0);
	neap_saved_free(saved);
}

/* A copy outlives what it was made from, with its list of actions. */
static void test_copy(void **state)
{
	(void)state;
	struct neap_saved *saved = read_text("own", own, strlen(own));
	struct neap_problem p = *saved->problem;
	struct neap_plan *copy, *again, made = {.size = sizeof made}, unset = {0};
	assert_int_equal(neap_plan_copy(&copy, saved->plan), 0);
	neap_saved_free(saved);
	assert_int_equal(copy->action_count, 11);
	round_trip(&p, copy, 0);
	assert_int_equal(neap_plan_copy(&again, copy), 0);
	neap_plan_free(copy);
	assert_string_equal(again->strategy, "own");
	round_trip(&p, again, 0);
	neap_plan_free(again);
	p = unit_problem(100, 20);
	assert_int_equal(neap_plan_make(&made, &p, "auto", NULL), 0);
	assert_int_equal(neap_plan_copy(&copy, &made), 0);
	assert_null(copy->actions);
	assert_memory_equal(copy, &made, sizeof made);
	neap_plan_free(copy);
	neap_plan_free(NULL);
	assert_int_equal(neap_plan_copy(&copy, &unset), NEAP_EUSAGE);
	assert_int_equal(neap_plan_copy(NULL, &made), NEAP_EUSAGE);
}

/* The first piece of `text` that is `from` becomes `to`; the text is refused. */
static void refused(const char *text, const char *from, const char *to, const char *why)
{
	struct neap_saved *saved = NULL;
	struct neap__text bad = {0};
	const char *at = strstr(text, from);
	if (!at)
		fail_msg("no '%s' in the text", from);
	neap__text_add(&bad, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	int rc = neap_plan_read(&saved, bad.data, bad.length, 0);
	if (rc == 0)
		fail_msg("'%s' for '%s' is read", to, from);
	if (!strstr(neap_detail(), why))
		fail_msg("'%s' for '%s': %s", to, from, neap_detail());
	neap__text_free(&bad);
}

/* A lower bound of another version, weaker or above the plan, is replaced if its gap fits it. */
static void other_bound(const char *text, double bound)
{
	struct neap_saved *saved = NULL;
	struct neap__text older = {0};
	char from[40];
	const char *at = strstr(text, "\nbound "), *gap = strstr(text, "\ngap ");
	const char *rest = strchr(gap + 1, '\n');
	double makespan = atof(strstr(text, "\nmakespan ") + strlen("\nmakespan "));
	snprintf(from, sizeof from, "\nbound %g", bound);
	neap__text_add(&older, "%.*s%s\ngap %.17g%s", (int)(at - text), text, from,
		makespan / bound - 1, rest);
	assert_int_equal(neap_plan_read(&saved, older.data, older.length, 0), 0);
	assert_true(saved->plan->bound > 1 && saved->plan->bound <= makespan);
	assert_true(saved->plan->gap == makespan / saved->plan->bound - 1);
	neap_saved_free(saved);
	refused(older.data, from, "\nbound 2", "bound: the file has 2");
	neap__text_free(&older);
}

static void test_lies(void **state)
{
	(void)state;
	static const char *const keys[] = {"arena_bytes ", "peak_bytes ", "slow_bytes ",
		"advance_steps ", "record_steps ", "makespan ", "stall ", "overhead ", "bound ",
		"gap ", "written ", "read "};
	struct neap_problem p = unit_problem(100, 20);
	struct neap_plan plan = {.size = sizeof plan};
	add_tier(&p, NEAP_INFINITE, 2, 0);
	assert_int_equal(neap_plan_make(&plan, &p, "double", NULL), 0);
	struct neap__text text = written(&plan, &p, 0);
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		char from[32], to[32];
		snprintf(from, sizeof from, "\n%s", keys[i]);
		snprintf(to, sizeof to, "\n%s7", keys[i]);
		refused(text.data, from, to, "line ");
		refused(text.data, from, to, "was computed");
	}
	refused(text.data, "makespan ", "makespan -", "was computed");
	other_bound(text.data, 1);
	other_bound(text.data, 4000);
	refused(text.data, "\nchunk ", "\nchunk 1", "");
	refused(text.data, "memory ", "memory 1\n#", "budget");
	refused(text.data, "\n[predicted]", "\n[predicted]\nmodel_bound 1e300", "model_bound");
	neap__text_free(&text);
}

static void test_damage(void **state)
{
	(void)state;
	refused(minimal, "plan 1", "plan 2", "line 1");
	refused(minimal, "steps 10", "steps 1e1", "line 4: steps");
	refused(minimal, "steps 10", "steps -1", "line 4: steps");
	refused(minimal, "steps 10", "steps 9223372036854775808", "line 4: steps");
	refused(minimal, "steps 10", "steps 10\nsteps 10", "line 5: steps: is there twice");
	refused(minimal, "steps 10\n", "", "steps and memory");
	refused(minimal, "state 1", "state 18446744073709551616", "line 5: state");
	refused(minimal, "state 1", "state 0x1", "line 5: state");
	refused(minimal, "advance 1", "advance nan", "line 7: advance");
	refused(minimal, "advance 1", "advance 1e999", "line 7: advance");
	refused(minimal, "advance 1", "advance inf", "advance");
	refused(minimal, "advance 1", "advance -1", "advance");
	refused(minimal, "advance 1", "speed 1", "line 7: speed: unknown key of [chain]");
	refused(minimal, "[params]", "[banana]", "line 14: [banana]: unknown section");
	refused(minimal, "[params]", "[plan]", "line 14: [plan]: is there more than once");
	refused(minimal, "standard", "banana", "line 13: strategy");
	refused(minimal, "strategy standard\n", "", "strategy");
	refused(minimal, "chunk 4", "chunk 0", "chunk");
	refused(minimal, "chunk 4", "chunk 9", "budget");
	refused(minimal, "end\n", "", "before 'end'");
	refused(minimal, "end\n", "end\nend\n", "follows the end");
	refused(own, "advance 0 1", "advance 0", "line 17: 'advance 0' is not an action");
	refused(own, "turn", "turn 1", "is not an action");
	refused(own, "turn\n", "", "action 4 (backward)");
	refused(own, "ticket 0 live", "ticket 256 live", "is not an action");
	refused(own, "ticket 0 live", "ticket 0 slot 1000000000", "beyond the number of actions");
	refused(own, "place 0", "place 9223372036854775807", "place");
	refused(own, "tier 1", "tier 9", "is not an action");
	refused(own, "name disk", "name a%0", "line 12: name");
	refused(own, "name disk", "name abcdefghijklmnopqrstuvwxyz", "line 12: name");
}

static const char blocks[] =
	"neap plan 1\n[chain]\nsteps 100\nstate 8\ntape 1000000000000000\nadvance 1\n"
	"record 1\nbackward 2\nmemory 3000000000000000\n[tier]\nname disk\n[plan]\n"
	"strategy stream\ntier 1\n[blocks]\nrecord 1\nchunk 1\ntail 1\nend\n";

/* Numbers of their kind that no strategy would choose: no overflow, no endless table. */
static void test_hostile(void **state)
{
	(void)state;
	struct neap_saved *saved = read_text("blocks", blocks, strlen(blocks));
	neap_saved_free(saved);
	refused(blocks, "record 1\nchunk 1", "record 1000000000000000\nchunk 1000000000000000",
		"fit");
	refused(blocks, "record 1\nchunk 1", "advance 100000000\ninner 2", "fit");
	refused(blocks, "tail 1", "reserve 4611686018427387904", "fit");
	refused(blocks, "tail 1", "tail 1\ninner 4", "inner");
	refused(blocks, "record 1\nchunk 1", "advance 5\ninner 3", "fit");
	refused(blocks, "record 1\nchunk 1",
		"advance 9\nreserve_steps 9\ninner 3\nkept_states 900000000000000", "fit");
	refused(blocks, "record 1\nchunk 1", "advance 9\nreserve_steps 9\ninner 3\nkept_states 11",
		"fit");
	refused(blocks, "record 1\nchunk 1", "advance 9\nreserve_steps 8\ninner 2\nevery 1001",
		"fit");
	refused(blocks, "record 1\nchunk 1", "advance 9\nreserve_steps 8\nevery 2", "fit");
	refused(blocks, "record 1\nchunk 1",
		"advance 1000000000000000\nreserve_steps 1000000000000000\ninner 2\nevery 1000",
		"fit");
	/* A strategy of uniform chains, on stages. */
	static const char stages[] =
		"neap plan 1\n[chain]\nsteps 1\nmemory 90\n[stages]\n"
		"columns advance backward state tape\n0 1 1 8 8\n1 - 1 8 -\n[tier]\nname disk\n"
		"[plan]\nstrategy chain\n[blocks]\nadvance 1\ntail 1\nend\n";
	saved = read_text("stages", stages, strlen(stages));
	neap_saved_free(saved);
	for (int i = 0; neap_strategy_name(i); i++) {
		char to[32];
		snprintf(to, sizeof to, "strategy %s", neap_strategy_name(i));
		if (!(neap_strategy_traits(neap_strategy_name(i)) & NEAP_STRATEGY_STAGES))
			refused(stages, "strategy chain", to, "not a problem it plans");
	}
	/* Slots without end, of a budget of nine. */
	refused(minimal, "steps 10", "steps 1000000000000", "budget");
	refused(minimal, "standard\n[params]\nchunk 4",
		"revolve\n[params]\ncheckpoints 1000000000000000", "");
	struct neap__text text = {0};
	neap__text_add(&text,
		"neap plan 1\n[chain]\nsteps 1000000000000\nstate 1\nmemory 1000\n[plan]\n"
		"strategy revolve\n[params]\ncheckpoints 1000000000000\nend\n");
	assert_int_equal(neap_plan_read(&saved, text.data, text.length, 0), NEAP_EINFEASIBLE);
	assert_non_null(strstr(neap_detail(), "beyond the budget"));
	neap__text_free(&text);
}

/* Every prefix, and every byte changed, of every kind of text: refused or right. */
static void test_every_cut(void **state)
{
	(void)state;
	struct neap_saved *saved;
	size_t n = strlen(own);
	for (size_t cut = 0; cut < n - 1; cut++)
		assert_true(neap_plan_read(&saved, own, cut, 100) < 0);
	char copy[sizeof own];
	for (size_t at = 0; at < n; at++)
		for (int change = 1; change < 256; change += 50) {
			memcpy(copy, own, sizeof own);
			copy[at] = (char)(copy[at] ^ change);
			if (neap_plan_read(&saved, copy, n, 100) == 0)
				neap_saved_free(saved);
			else
				assert_true(neap_detail()[0]);
		}
}

static void test_walk(void **state)
{
	struct neap_saved *saved;
	(void)state;
	assert_int_equal(neap_plan_read(&saved, own, strlen(own), 10), NEAP_EUSAGE);
	assert_int_equal(neap_plan_read(&saved, own, strlen(own), 11), 0);
	neap_saved_free(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_strategy),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_stages),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_own_actions),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_walk),
	};
	return cmocka_run_group_tests_name("plantext", tests, NULL, NULL);
}

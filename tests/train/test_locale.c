/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a program whose locale has a decimal comma, every text is as in any other: plans, drawings,
 * traces, run.json, metrics, models; and texts of others are read.
 */
#include "runs.h"
#include "comma_locale.h"
#include "base/text.h"

#include <jansson.h>
#include <neap/neap.h>

static int collect(void *user, const char *text, size_t length)
{
	return neap__text_add(user, "%.*s", (int)length, text);
}

/* A plan with odd times, as text and drawing, and read back. */
static void plan_texts(struct neap__text *all)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_plan plan = {.size = sizeof plan};
	struct neap_schedule *schedule;
	struct neap_saved *saved;
	p.chain = (struct neap_chain){.steps = 300, .state = 1000, .adjoint = 1000, .tape = 3000};
	p.chain.advance = 0.0015;
	p.chain.record = 0.00165;
	p.chain.backward = 0.00225;
	p.memory = 90000;
	p.ntiers = 1;
	p.tiers[0] = (struct neap_tier_spec){.name = "disk",
		.capacity = NEAP_INFINITE,
		.write_rate = 1.5e6,
		.read_rate = 2.5e6,
		.write_fixed = 1.5e-5};
	for (int i = 0; i < 2; i++) {
		const char *strategy = i ? "async" : "revolve";
		assert_int_equal(neap_plan_make(&plan, &p, strategy, NULL), 0);
		assert_true(plan.feasible);
		size_t from = all->length;
		assert_int_equal(
			neap_plan_write(&plan, &p, i ? NEAP_WRITE_ACTIONS : 0, collect, all), 0);
		if (neap_plan_read(&saved, all->data + from, all->length - from, 0) < 0)
			fail_msg("%s", neap_detail());
		assert_true(saved->plan->makespan == plan.makespan);
		neap_saved_free(saved);
		assert_int_equal(neap_schedule_open(&schedule, &p, &plan), 0);
		assert_int_equal(neap_draw(&p, schedule, strategy, 0, collect, all), 0);
		neap_schedule_close(schedule);
	}
	p.chain.advance = -0.5;
	assert_int_equal(neap_problem_check(&p), NEAP_EUSAGE);
	neap__text_add(all, "%s\n", neap_detail());
}

static void plans_are_the_same(void **state)
{
	(void)state;
	struct neap__text plain = {0}, comma = {0};
	plan_texts(&plain);
	take_comma_locale(folder);
	plan_texts(&comma);
	setlocale(LC_ALL, "C");
	assert_non_null(strstr(plain.data, "0.0015"));
	assert_string_equal(plain.data, comma.data);
	neap__text_free(&plain);
	neap__text_free(&comma);
}

static int commas(const char *name)
{
	char line[1000];
	int most = 0;
	FILE *f = fopen(in_folder(name), "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		int n = 0;
		for (const char *c = line; *c; c++)
			n += *c == ',';
		assert_true(!most || n == most);
		most = n;
	}
	fclose(f);
	return most;
}

static void check_json(const char *name)
{
	json_error_t error;
	json_t *root = json_load_file(in_folder(name), JSON_REJECT_DUPLICATES, &error);
	if (!root)
		fail_msg("%s: line %d: %s", name, error.line, error.text);
	json_decref(root);
}

static void runs_are_the_same(void **state)
{
	(void)state;
	uint64_t hash[2];
	for (int i = 0; i < 2; i++) {
		struct neap_train_options o = small_run(i ? "run_comma" : "run_plain");
		o.net.spec = "lif:32r:tau=12.5ms:dropout=0.25,li:tau=7.5ms";
		o.data = "randman:classes=4,units=20,steps=60,samples=200,alpha=1.5";
		o.augment.jitter = 1.5e-3;
		o.sweep.trace = in_folder(i ? "comma.trace" : "plain.trace");
		o.epochs = 2;
		if (i)
			take_comma_locale(folder);
		train_hash(&o);
		struct neap_run *run;
		assert_int_equal(neap_run_open(&run, o.out), 0);
		struct neap_train_options kept = *neap_run_options(run);
		kept.out = o.out;
		kept.epochs = 3;
		hash[i] = train_hash(&kept);
		neap_run_close(run);
		struct neap_eval_options eo = {.size = sizeof eo, .model = o.out, .data = o.data};
		struct neap_eval_result e = {.size = sizeof e};
		assert_int_equal(neap_eval(&e, &eo), 0);
		neap_eval_result_free(&e);
		setlocale(LC_ALL, "C");
	}
	assert_true(hash[0] == hash[1]);
	assert_int_equal(commas("run_comma/metrics.csv"), commas("run_plain/metrics.csv"));
	check_json("run_comma/run.json");
	check_json("comma.trace");
	same_files("run_comma/model.safetensors", "run_plain/model.safetensors");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_are_the_same),
		cmocka_unit_test(runs_are_the_same),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sweep over a plan that was saved and read again: the same bits, the same peak
 * and the same traffic as over the plan itself, and the gradient of storing
 * everything; a plan of another problem is refused.
 */
#include "chainmodel.h"

#include "base/text.h"
#include "sweep/sweep.h"

static int collect(void *user, const char *text, size_t length)
{
	return neap__text_add(user, "%.*s", (int)length, text);
}

/* Saved as text, and read. */
static struct neap_saved *again(const struct neap_sweep *sweep, uint32_t flags)
{
	struct neap_saved *saved = NULL;
	struct neap__text text = {0};
	if (neap_plan_write(
		    neap_sweep_plan(sweep), neap_sweep_problem(sweep), flags, collect, &text) < 0 ||
		neap_plan_read(&saved, text.data, text.length, 0) < 0)
		fail_msg("%s: %s", neap_sweep_plan(sweep)->strategy, neap_detail());
	neap__text_free(&text);
	return saved;
}

static void run(struct neap_sweep *sweep, struct model *m, const struct gradient *want,
	struct neap_sweep_stats *stats)
{
	struct gradient got;
	neap__sweep_poison(sweep, 1);
	int rc = run_model(sweep, m, &got, stats);
	if (rc < 0 || m->broken[0] || memcmp(&got, want, sizeof got) != 0)
		fail_msg("%s: %d %s; %s", neap_sweep_plan(sweep)->strategy, rc,
			rc < 0 ? neap_detail() : "gradient", m->broken);
}

static void same(const struct neap_sweep_stats *a, const struct neap_sweep_stats *b)
{
	assert_true(a->arena_bytes == b->arena_bytes && a->peak_measured == b->peak_measured);
	assert_true(a->peak_planned == b->peak_planned && a->predicted == b->predicted);
	assert_true(a->advance_steps == b->advance_steps && a->record_steps == b->record_steps);
	assert_memory_equal(a->written, b->written, sizeof a->written);
	assert_memory_equal(a->read, b->read, sizeof a->read);
}

/* 1 where the strategy plans this. */
static int one(struct model *m, const struct neap_sweep_options *options, uint32_t flags)
{
	struct neap_sweep_options o = *options;
	struct neap_step_ops ops = model_ops(m, 0);
	struct gradient want = reference(m);
	struct neap_sweep_stats planned = {.size = sizeof planned},
				replayed = {.size = sizeof replayed};
	struct neap_sweep *sweep;
	if (neap_sweep_create(&sweep, &ops, m, &o) < 0)
		return 0;
	struct neap_saved *saved = again(sweep, flags);
	run(sweep, m, &want, &planned);
	neap_sweep_free(sweep);
	/* Whatever is asked for and costs now, the plan is the saved one. */
	o.saved = saved;
	o.strategy = "bptt";
	o.advance = 17;
	assert_int_equal(neap_sweep_create(&sweep, &ops, m, &o), 0);
	run(sweep, m, &want, &replayed);
	same(&planned, &replayed);
	run(sweep, m, &want, &replayed);
	neap_sweep_free(sweep);
	neap_saved_free(saved);
	return 1;
}

static void test_same_run(void **state)
{
	struct neap_tier *tiers[2];
	int done = 0;
	(void)state;
	assert_int_equal(neap_tier_open_memory(&tiers[0], 100000), 0);
	assert_int_equal(neap_tier_open_memory(&tiers[1], NEAP_INFINITE), 0);
	for (int64_t steps = 0; steps <= 400; steps = steps * 3 + 40) {
		struct model m;
		model_init(&m, steps, 3 + (uint64_t)steps);
		for (int i = 0; neap_strategy_name(i); i++)
			for (uint64_t memory = 1 << 10; memory <= 1 << 16; memory *= 8) {
				struct neap_sweep_options o = {.size = sizeof o,
					FIXED_COSTS,
					.steps = steps,
					.memory = memory,
					.strategy = neap_strategy_name(i),
					.tiers = tiers,
					.ntiers = 2};
				done += one(&m, &o, i % 2 ? NEAP_WRITE_ACTIONS : 0);
			}
		model_fini(&m);
	}
	assert_in_range(done, 50, 1000);
	neap_tier_close(tiers[0]);
	neap_tier_close(tiers[1]);
}

static void refused(struct model *m, const struct neap_step_ops *ops, struct neap_sweep_options *o,
	int code, const char *why)
{
	struct neap_sweep *sweep = NULL;
	assert_int_equal(neap_sweep_create(&sweep, ops, m, o), code);
	if (!strstr(neap_detail(), why))
		fail_msg("%s: %s", why, neap_detail());
}

/* A saved plan asks of a tier what it puts there, not what was free when it was made. */
static void test_less_room(void **state)
{
	struct neap_tier *wide, *narrow;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct model m;
	(void)state;
	model_init(&m, 300, 7);
	struct neap_step_ops ops = model_ops(&m, 0);
	struct gradient want = reference(&m);
	assert_int_equal(neap_tier_open_memory(&wide, 1 << 30), 0);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = 300,
		.memory = 8 << 10,
		.strategy = "double",
		.tiers = &wide,
		.ntiers = 1};
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	struct neap_saved *saved = again(sweep, 0);
	uint64_t used = neap_sweep_plan(sweep)->tiers[0].peak_bytes;
	neap_sweep_free(sweep);
	assert_true(used > 0);
	o.saved = saved;
	o.tiers = &narrow;
	/* The least that will do is what the line says. */
	assert_int_equal(neap_tier_open_memory(&narrow, used / 2), 0);
	refused(&m, &ops, &o, NEAP_EINFEASIBLE, "bytes on slow tier 1, which has");
	uint64_t needs = strtoull(strstr(neap_detail(), "needs ") + 6, NULL, 10);
	neap_tier_close(narrow);
	assert_true(needs >= used);
	assert_int_equal(neap_tier_open_memory(&narrow, needs - 1), 0);
	refused(&m, &ops, &o, NEAP_EINFEASIBLE, "the saved plan needs");
	neap_tier_close(narrow);
	assert_int_equal(neap_tier_open_memory(&narrow, needs), 0);
	if (neap_sweep_create(&sweep, &ops, &m, &o) < 0)
		fail_msg("%s", neap_detail());
	run(sweep, &m, &want, &stats);
	assert_true(stats.recoveries == 0);
	neap_sweep_free(sweep);
	neap_tier_close(narrow);
	neap_tier_close(wide);
	neap_saved_free(saved);
	model_fini(&m);
}

static void test_refused(void **state)
{
	struct neap_sweep *sweep;
	struct model m;
	(void)state;
	model_init(&m, 100, 5);
	struct neap_step_ops ops = model_ops(&m, 0), other = ops;
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = 100,
		.memory = 8 << 10,
		.strategy = "revolve"};
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	struct neap_saved *saved = again(sweep, NEAP_WRITE_ACTIONS);
	neap_sweep_free(sweep);
	o.saved = saved;
	o.steps = 99;
	refused(&m, &ops, &o, NEAP_EUSAGE, "steps is 100 there, but 99 here");
	o.steps = 100;
	other.state_bytes += 64;
	refused(&m, &other, &o, NEAP_EUSAGE, "state is ");
	other = ops;
	other.tape_bytes += 64;
	refused(&m, &other, &o, NEAP_EUSAGE, "tape is ");
	o.memory = saved->plan->arena_bytes - 1;
	refused(&m, &ops, &o, NEAP_EINFEASIBLE, "more than");
	o.memory = saved->plan->arena_bytes;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	neap_sweep_free(sweep);
	saved->problem->ntiers = 1;
	refused(&m, &ops, &o, NEAP_EUSAGE, "number of tiers");
	saved->problem->ntiers = 0;
	saved->plan->arena_bytes -= 64;
	refused(&m, &ops, &o, NEAP_EILLEGAL, "takes");
	saved->plan->arena_bytes += 64;
	saved->plan->action_count--;
	refused(&m, &ops, &o, NEAP_EILLEGAL, "the saved plan: the schedule ends");
	neap_saved_free(saved);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_run),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_less_room),
	};
	return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}

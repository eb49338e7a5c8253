/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a trace says of a sweep is what its statistics say: the same seconds by kind and
 * reason, the same bytes and counts; events nest; a ring that is too small keeps the
 * last ones and counts the rest; without a trace nothing else changes.
 */
#include "chainmodel.h"

#include <math.h>
#include "store/fault_tier.h"
#include "sweep/sweep_state.h"
#include "sys/atomic_file.h"

#define STEPS 700

static uint32_t waves(const struct model *m, int64_t t)
{
	return (uint32_t)neap__random_below(m->seed, NEAP__STREAM_TEST, 2, (uint64_t)t / 30, 40);
}

static struct neap_sweep_stats swept(struct model *m, struct neap_tier *tier, uint64_t memory,
	const char *strategy, struct neap_trace *trace)
{
	struct neap_step_ops ops = model_ops(m, m->extra_most ? 288 : 0);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = STEPS,
		.memory = memory,
		.strategy = strategy,
		.tiers = &tier,
		.ntiers = tier != NULL,
		.trace = trace};
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_sweep *sweep;
	struct gradient got;
	int rc = neap_sweep_create(&sweep, &ops, m, &o);
	if (rc < 0)
		fail_msg("%s: %s", strategy, neap_detail());
	assert_int_equal(run_model(sweep, m, &got, &stats), 0);
	neap_sweep_free(sweep);
	assert_string_equal(m->broken, "");
	return stats;
}

static int same(double a, double b)
{
	return fabs(a - b) <= 1e-9 + 1e-9 * fabs(b);
}

struct sums {
	double kind[NEAP__EVENTS];
	int64_t count[NEAP__EVENTS], steps[NEAP__EVENTS];
	uint64_t written, read;
};

static struct sums sums_of(const struct neap_trace *trace)
{
	struct sums x = {0};
	for (int64_t i = 0; i < neap_trace_events(trace); i++) {
		const struct neap__event *e = &trace->ring[i];
		assert_true(e->kind < NEAP__EVENTS);
		assert_true(e->end >= e->start && e->start >= trace->origin);
		x.kind[e->kind] += e->end - e->start;
		x.count[e->kind]++;
		x.steps[e->kind] += e->t1 - e->t0;
		if (e->kind == NEAP__EVENT_TRANSFER) {
			assert_true(e->queued <= e->start && e->tier == 1);
			*(e->flags & NEAP__EVENT_PUT ? &x.written : &x.read) += e->bytes;
		}
	}
	return x;
}

/* Any two events of the computation are apart or one within the other. */
static void check_nesting(const struct neap_trace *trace)
{
	for (int64_t i = 0; i < neap_trace_events(trace); i++)
		for (int64_t j = 0; j < i; j++) {
			const struct neap__event *a = &trace->ring[i], *b = &trace->ring[j];
			if (a->kind >= NEAP__EVENT_TRANSFER || b->kind >= NEAP__EVENT_TRANSFER)
				continue;
			int apart = a->end <= b->start || b->end <= a->start;
			int within = (a->start >= b->start && a->end <= b->end) ||
				     (b->start >= a->start && b->end <= a->end);
			assert_true(apart || within);
		}
}

static void check(const struct neap_trace *trace, const struct neap_sweep_stats *s)
{
	struct sums x = sums_of(trace);
	double waits = 0;
	assert_int_equal(neap_trace_dropped(trace), 0);
	assert_true(same(x.kind[NEAP__EVENT_ADVANCE], s->advance));
	assert_true(same(x.kind[NEAP__EVENT_RECORD], s->record));
	assert_true(same(x.kind[NEAP__EVENT_BACKWARD] + x.kind[NEAP__EVENT_TURN], s->backward));
	assert_true(same(x.kind[NEAP__EVENT_COPY], s->copies));
	assert_int_equal(x.steps[NEAP__EVENT_ADVANCE], s->advance_steps);
	assert_int_equal(x.steps[NEAP__EVENT_RECORD], s->record_steps);
	assert_int_equal(x.steps[NEAP__EVENT_BACKWARD], s->backward_steps);
	assert_int_equal(x.count[NEAP__EVENT_TURN], 1);
	assert_int_equal(x.count[NEAP__EVENT_OVERFLOW], s->overflows);
	assert_int_equal(x.count[NEAP__EVENT_LOST], s->recoveries);
	for (int i = 0; i < NEAP_STALLS; i++) {
		assert_true(same(x.kind[NEAP__EVENT_WAIT + i], s->stalls[i]));
		waits += s->stalls[i];
	}
	assert_true(same(waits, s->stall));
	assert_true(s->compute + s->copies + s->stall <= s->seconds * (1 + 1e-9));
	check_nesting(trace);
}

static void sums(void **state)
{
	static const char *const strategies[] = {
		"remote", "hierarchical", "double", "stream", "auto"};
	(void)state;
	for (int vary = 0; vary < 2; vary++)
		for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
			struct neap_trace *trace;
			struct neap_tier *tier;
			struct model m;
			model_init(&m, STEPS, 5);
			m.extra_most = vary ? 40 : 0;
			m.extra = waves;
			assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
			assert_int_equal(neap_trace_create(&trace, strategies[i], 0), 0);
			struct neap_sweep_stats s = swept(&m, tier, 20000, strategies[i], trace);
			check(trace, &s);
			struct sums x = sums_of(trace);
			assert_int_equal(x.written, s.written[0]);
			assert_int_equal(x.read, s.read[0]);
			assert_true(x.count[NEAP__EVENT_TRANSFER] > 0);
			neap_trace_free(trace);
			neap_tier_close(tier);
			model_fini(&m);
		}
}

/* A tier that loses records: they are marked, and what it costs is around it. */
static void losses(void **state)
{
	(void)state;
	struct neap_trace *trace;
	struct neap_tier *tier, *inner;
	struct model m;
	model_init(&m, STEPS, 6);
	assert_int_equal(neap_tier_open_memory(&inner, NEAP_INFINITE), 0);
	struct neap__faults faults = {.fail_get = 3, .row = 2};
	assert_int_equal(neap__fault_open(&tier, inner, &faults), 0);
	assert_int_equal(neap_trace_create(&trace, "losses", 0), 0);
	struct neap_sweep_stats s = swept(&m, tier, 20000, "remote", trace);
	check(trace, &s);
	struct sums x = sums_of(trace);
	assert_true(s.recoveries > 0 && x.count[NEAP__EVENT_RECOVER] > 0);
	neap_trace_free(trace);
	neap_tier_close(tier);
	model_fini(&m);
}

static void small_ring(void **state)
{
	(void)state;
	struct neap_trace *trace;
	struct model m;
	size_t bytes;
	char *text;
	model_init(&m, STEPS, 7);
	assert_int_equal(neap_trace_create(&trace, "a \"name\"\\\n", 16), 0);
	for (int i = 0; i < 2; i++) {
		(void)swept(&m, NULL, 20000, "revolve", trace);
		assert_int_equal(neap_trace_events(trace), 16);
		assert_true(neap_trace_dropped(trace) > 16);
	}
	assert_int_equal(neap_trace_write("test_trace.json", &trace, 1), 0);
	assert_int_equal(neap__read_file(&text, &bytes, "test_trace.json", 1 << 20), 0);
	assert_non_null(strstr(text, "\"a _name___\""));
	assert_non_null(strstr(text, "\"events\":16,"));
	free(text);
	remove("test_trace.json");
	assert_true(neap_trace_write("no/such/folder/trace.json", &trace, 1) < 0);
	neap_trace_free(trace);
	assert_true(neap_trace_create(&trace, "x", -1) < 0);
	neap_trace_free(NULL);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums),
		cmocka_unit_test(losses),
		cmocka_unit_test(small_ring),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

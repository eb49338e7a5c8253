/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the headers say of threads and lifetimes: sweeps, planners and schedules of different
 * threads do not meet, a sweep goes from one thread to another, structs that were passed may go
 * once the call is over, and the detail line is each thread's own.
 */
#include "chainmodel.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS 12

struct worker {
	pthread_t thread;
	int number;
	char wrong[200];
};

static void complain(struct worker *w, const char *what)
{
	if (!w->wrong[0])
		snprintf(w->wrong, sizeof w->wrong, "%s: %s", what, neap_detail());
}

/* Everything that a sweep was made of is gone, but what the header says that it borrows. */
static struct neap_sweep *made(struct worker *w, struct model *m, struct neap_tier *tier, int round)
{
	static const char *const strategies[] = {"auto", "revolve", "async", "h-revolve"};
	struct neap_step_ops ops = model_ops(m, 0);
	char *strategy = strdup(strategies[(w->number + round) % 4]);
	struct neap_tier **list = malloc(sizeof *list);
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = m->steps,
		.memory = 4000 + 500 * (uint64_t)round,
		.strategy = strategy,
		.params = {.effort = 10},
		.tiers = list, /* without costs: the first run plans anew */
		.ntiers = 1};
	struct neap_sweep *sweep = NULL;
	list[0] = tier;
	if (neap_sweep_create(&sweep, &ops, m, &o) < 0)
		complain(w, "create");
	memset(&ops, 0xee, sizeof ops);
	memset(&o, 0xee, sizeof o);
	memset(strategy, 'x', strlen(strategy));
	free(strategy);
	free(list);
	return sweep;
}

static void own_detail(struct worker *w)
{
	char mine[40];
	snprintf(mine, sizeof mine, "line of thread %d", w->number);
	neap_detail_set(mine);
	for (int i = 0; i < 1000; i++)
		if (strcmp(neap_detail(), mine) != 0)
			complain(w, "another thread's detail");
}

static void *work(void *user)
{
	struct worker *w = user;
	for (int round = 0; round < ROUNDS; round++) {
		struct neap_tier *tier;
		struct gradient got;
		struct model m;
		model_init(&m, 100 + 10 * round, (uint64_t)(w->number + 1));
		struct gradient want = reference(&m);
		if (neap_tier_open_memory(&tier, 1 << 20) < 0)
			complain(w, "open");
		struct neap_sweep *sweep = made(w, &m, tier, round);
		if (sweep && (run_model(sweep, &m, &got, NULL) < 0 || m.broken[0]))
			complain(w, "run");
		if (sweep && memcmp(&got, &want, sizeof got) != 0)
			complain(w, "gradient");
		neap_sweep_free(sweep);
		neap_tier_close(tier);
		model_fini(&m);
		own_detail(w);
	}
	return NULL;
}

static void side_by_side(void **state)
{
	struct worker workers[THREADS] = {0};
	(void)state;
	for (int i = 0; i < THREADS; i++) {
		workers[i].number = i;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		assert_string_equal(workers[i].wrong, "");
	}
}

struct errand {
	struct neap_sweep *sweep;
	struct model *m;
	struct gradient got;
	int rc;
};

static void *run_it(void *user)
{
	struct errand *e = user;
	e->rc = run_model(e->sweep, e->m, &e->got, NULL);
	return NULL;
}

static void from_thread_to_thread(void **state)
{
	struct worker w = {0};
	struct neap_tier *tier;
	struct model m;
	(void)state;
	model_init(&m, 300, 5);
	struct gradient want = reference(&m);
	assert_int_equal(neap_tier_open_memory(&tier, 1 << 20), 0);
	struct errand e = {.sweep = made(&w, &m, tier, 2), .m = &m};
	assert_non_null(e.sweep);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&w.thread, NULL, run_it, &e), 0);
		assert_int_equal(pthread_join(w.thread, NULL), 0);
		assert_int_equal(e.rc, 0);
		assert_memory_equal(&e.got, &want, sizeof want);
	}
	neap_sweep_free(e.sweep);
	neap_tier_close(tier);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(side_by_side),
		cmocka_unit_test(from_thread_to_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

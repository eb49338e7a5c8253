/* SPDX-License-Identifier: Apache-2.0 */
/* Every strategy, budget and tier against the gradient by storing everything. */
#include "chainmodel.h"
#include "guard_memory.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/checked.h"
#include "store/fault_tier.h"
#include "sweep/sweep_state.h"
#include "sweep/sweep.h"

static struct neap_sweep_options options_of(
	int64_t steps, uint64_t memory, const char *strategy, struct neap_tier **tiers, int ntiers)
{
	return (struct neap_sweep_options){
		.size = sizeof(struct neap_sweep_options),
		FIXED_COSTS,
		.steps = steps,
		.memory = memory,
		.strategy = strategy,
		.tiers = tiers,
		.ntiers = ntiers,
	};
}

/* The least budget a strategy works with; 0 if none does. */
static uint64_t least_of(struct model *m, const struct neap_step_ops *ops, const char *strategy,
	struct neap_tier **tiers, int ntiers)
{
	struct neap_sweep *sweep;
	struct neap_sweep_options o = options_of(m->steps, 0, strategy, tiers, ntiers);
	if (neap_sweep_create(&sweep, ops, m, &o) < 0)
		return 0;
	struct neap_problem p = *neap_sweep_problem(sweep);
	neap_sweep_free(sweep);
	uint64_t low = 0, high = UINT64_C(1) << 30;
	while (low + 64 < high) {
		struct neap_plan plan = {.size = sizeof plan};
		p.memory = (low + high) / 2;
		assert_int_equal(neap_plan_make(&plan, &p, strategy, NULL), 0);
		if (plan.feasible)
			high = p.memory;
		else
			low = p.memory;
	}
	return high;
}

static void check_one(struct model *m, const struct neap_step_ops *ops, const struct gradient *want,
	const struct neap_sweep_options *o, int runs)
{
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	int rc = neap_sweep_create(&sweep, ops, m, o);
	if (rc == NEAP_EINFEASIBLE)
		return;
	assert_int_equal(rc, 0);
	neap__sweep_poison(sweep, 1);
	for (int i = 0; i < runs; i++) {
		rc = run_model(sweep, m, &got, &stats);
		if (rc < 0 || m->broken[0] || memcmp(&got, want, sizeof got) != 0)
			fail_msg("%s T=%lld memory=%llu: %d %s; %s", o->strategy,
				(long long)o->steps, (unsigned long long)o->memory, rc,
				rc < 0 ? neap_detail() : "gradient", m->broken);
		const struct neap_plan *plan = neap_sweep_plan(sweep);
		if (o->steps > 0 && stats.peak_measured != plan->peak_bytes)
			fail_msg("%s T=%lld memory=%llu: peak %llu, planned %llu", o->strategy,
				(long long)o->steps, (unsigned long long)o->memory,
				(unsigned long long)stats.peak_measured,
				(unsigned long long)plan->peak_bytes);
		assert_true(stats.arena_bytes <= o->memory || !o->memory);
		assert_int_equal(stats.overflows, 0);
		assert_int_equal(stats.recoveries, 0);
		assert_int_equal(stats.recomputed, 0);
		assert_int_equal(stats.backward_steps, o->steps);
		assert_int_equal(stats.advance_steps, plan->advance_steps);
		assert_int_equal(stats.record_steps, o->steps ? plan->record_steps : 0);
		for (int t = 0; t < o->ntiers; t++) {
			assert_int_equal(stats.written[t], plan->tiers[t].written);
			assert_int_equal(stats.read[t], plan->tiers[t].read);
		}
	}
	neap_sweep_free(sweep);
}

static void check_strategies(struct neap_tier **tiers, int ntiers)
{
	static const int64_t lengths[] = {0, 1, 2, 3, 63, 64, 65, 200, 1000};
	for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
		struct model m;
		model_init(&m, lengths[l], 7 + l);
		struct gradient want = reference(&m);
		struct neap_step_ops ops = model_ops(&m, 0);
		for (int i = 0; neap_strategy_name(i); i++) {
			const char *name = neap_strategy_name(i);
			uint64_t least = lengths[l] ? least_of(&m, &ops, name, tiers, ntiers) : 100;
			if (!least)
				continue;
			for (int k = 0; k < 7; k++) {
				uint64_t memory = k == 6 ? 0 : least + (least / 3) * (k * k);
				struct neap_sweep_options o =
					options_of(lengths[l], memory, name, tiers, ntiers);
				check_one(&m, &ops, &want, &o, k == 1 ? 2 : 1);
			}
		}
		model_fini(&m);
	}
}

static void without_tiers(void **state)
{
	(void)state;
	check_strategies(NULL, 0);
}

static void over_memory(void **state)
{
	struct neap_tier *tier;
	(void)state;
	assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
	check_strategies(&tier, 1);
	neap_tier_close(tier);
}

static void over_file(void **state)
{
	struct neap_tier *tier;
	(void)state;
	if (neap_tier_open_file(&tier, "/var/tmp", NULL) < 0) {
		print_message("# no O_DIRECT in /var/tmp: %s\n", neap_detail());
		skip();
	}
	check_strategies(&tier, 1);
	neap_tier_close(tier);
}

/* A schedule of one's own: the slots are dropped in the wrong order and pack. */
static const struct neap_action own[] = {
	{.kind = NEAP_SAVE, .slot = 0, .t0 = 0},
	{.kind = NEAP_ADVANCE, .t0 = 0, .t1 = 10},
	{.kind = NEAP_SAVE, .slot = 1, .t0 = 10},
	{.kind = NEAP_ADVANCE, .t0 = 10, .t1 = 20},
	{.kind = NEAP_SAVE, .slot = 2, .t0 = 20},
	{.kind = NEAP_PUT, .tier = 1, .slot = 2, .t0 = 20, .place = 1, .ticket = 9},
	{.kind = NEAP_DROP, .slot = 1, .t0 = 10},
	{.kind = NEAP_RECORD, .t0 = 20, .t1 = 22},
	{.kind = NEAP_TURN, .t0 = 22},
	{.kind = NEAP_WAIT, .ticket = 9},
	{.kind = NEAP_BACKWARD, .t0 = 20, .t1 = 22},
	{.kind = NEAP_DROP, .slot = 2, .t0 = 20},
	{.kind = NEAP_LOAD, .slot = 0, .t0 = 0},
	{.kind = NEAP_GET, .tier = 1, .slot = 1, .t0 = 20, .place = 1, .ticket = 3},
	{.kind = NEAP_ADVANCE, .t0 = 0, .t1 = 18},
	{.kind = NEAP_WAIT, .ticket = 3},
	{.kind = NEAP_FORGET, .tier = 1, .t0 = 20, .place = 1},
	{.kind = NEAP_DROP, .slot = 1, .t0 = 20},
	{.kind = NEAP_RECORD, .t0 = 18, .t1 = 20},
	{.kind = NEAP_BACKWARD, .t0 = 18, .t1 = 20},
	{.kind = NEAP_LOAD, .slot = 0, .t0 = 0},
	{.kind = NEAP_RECORD, .t0 = 0, .t1 = 18},
	{.kind = NEAP_BACKWARD, .t0 = 0, .t1 = 18},
	{.kind = NEAP_DROP, .slot = 0, .t0 = 0},
};

struct list {
	const struct neap_action *actions;
	size_t count, at;
};

static int list_next(void *user, struct neap_action *action)
{
	struct list *list = user;
	if (list->at == list->count)
		return 0;
	*action = list->actions[list->at++];
	return 1;
}

static int list_open(void *user, struct neap_schedule **schedule)
{
	struct list *list = user;
	list->at = 0;
	return neap_schedule_wrap(schedule, list_next, NULL, list);
}

/* With faults: its one GET, into a slot, is waited for while the live state is needed. */
static void check_own(struct neap__faults faults)
{
	struct neap_tier *tier, *inner;
	struct model m;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	struct list list = {own, sizeof own / sizeof own[0], 0};
	assert_int_equal(neap_tier_open_memory(&inner, NEAP_INFINITE), 0);
	assert_int_equal(neap__fault_open(&tier, inner, &faults), 0);
	model_init(&m, 22, 3);
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, 0);
	struct neap_sweep_options o = options_of(22, 0, NULL, &tier, 1);
	assert_int_equal(neap__sweep_create_over(&sweep, &ops, &m, &o, list_open, &list), 0);
	neap__sweep_poison(sweep, 1);
	assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
	assert_string_equal(m.broken, "");
	assert_memory_equal(&got, &want, sizeof got);
	assert_true(stats.peak_measured <= neap_sweep_plan(sweep)->peak_bytes);
	assert_int_equal(stats.recoveries, faults.fail_get || faults.fail_put || faults.lose_put);
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	model_fini(&m);
}

static void own_schedule(void **state)
{
	(void)state;
	check_own((struct neap__faults){0});
	check_own((struct neap__faults){.fail_get = 1});
	check_own((struct neap__faults){.fail_put = 1});
	check_own((struct neap__faults){.lose_put = 1});
}

/* Whatever action is left out of a schedule, the sweep says so or is right. */
static void illegal_schedules(void **state)
{
	enum { COUNT = sizeof own / sizeof own[0] };
	struct neap_tier *tier;
	struct model m;
	int refused = 0;
	(void)state;
	assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
	model_init(&m, 22, 3);
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, 0);
	struct neap_sweep_options o = options_of(22, 0, NULL, &tier, 1);
	for (int left_out = 0; left_out < COUNT; left_out++) {
		struct neap_action actions[COUNT];
		struct list full = {own, COUNT, 0}, list = {actions, COUNT - 1, 0};
		struct neap_sweep *sweep;
		struct gradient got;
		for (int i = 0, n = 0; i < COUNT; i++)
			if (i != left_out)
				actions[n++] = own[i];
		assert_int_equal(
			neap__sweep_create_over(&sweep, &ops, &m, &o, list_open, &full), 0);
		sweep->open_user = &list; /* the run meets what nobody has verified */
		neap__sweep_poison(sweep, 1);
		int rc = run_model(sweep, &m, &got, NULL);
		refused += rc == NEAP_EILLEGAL;
		if (rc != NEAP_EILLEGAL) {
			assert_int_equal(rc, 0);
			assert_memory_equal(&got, &want, sizeof got);
		}
		neap_sweep_free(sweep);
	}
	assert_true(refused >= COUNT - 6);
	neap_tier_close(tier);
	model_fini(&m);
}

/* Each callback fails in turn; the sweep answers its code and can run again. */
static void failing_model(void **state)
{
	struct neap_tier *tier;
	struct model m;
	(void)state;
	assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
	model_init(&m, 150, 5);
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, 0);
	for (int i = 0; neap_strategy_name(i); i++) {
		struct neap_sweep *sweep;
		struct gradient got;
		const char *name = neap_strategy_name(i);
		uint64_t least = least_of(&m, &ops, name, &tier, 1);
		struct neap_sweep_options o = options_of(150, least, name, &tier, 1);
		if (!least)
			continue;
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
		m.fail_at = 0;
		assert_int_equal(run_model(sweep, &m, &got, NULL), 0);
		int64_t calls = m.calls, stride = calls / 60 + 1;
		for (int64_t n = 1; n <= calls; n += stride) {
			m.fail_at = n;
			neap_detail_set("of a failure long ago");
			assert_int_equal(run_model(sweep, &m, &got, NULL), -EDOM);
			assert_non_null(strstr(neap_detail(), "the model's "));
		}
		m.fail_at = 0;
		assert_int_equal(run_model(sweep, &m, &got, NULL), 0);
		assert_memory_equal(&got, &want, sizeof got);
		neap_sweep_free(sweep);
	}
	neap_tier_close(tier);
	model_fini(&m);
}

static int count_down(void *user)
{
	int *left = user;
	return (*left)-- <= 0;
}

static void interrupted(void **state)
{
	struct neap_tier *tier;
	struct neap_sweep *sweep;
	struct model m;
	struct gradient got;
	int left = 0, rc, interruptions = 0;
	(void)state;
	assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
	model_init(&m, 400, 5);
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, 0);
	struct neap_sweep_options o = options_of(400, 20000, "double", &tier, 1);
	o.interrupted = count_down;
	o.interrupted_user = &left;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	for (int n = 0;; n++) {
		left = n;
		rc = run_model(sweep, &m, &got, NULL);
		if (rc == 0)
			break;
		assert_int_equal(rc, NEAP_EINTERRUPTED);
		interruptions++;
	}
	assert_true(interruptions > 20);
	assert_memory_equal(&got, &want, sizeof got);
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	model_fini(&m);
}

static void replanned(void **state)
{
	struct neap_tier *tier;
	struct neap_sweep *sweep = NULL;
	(void)state;
	assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
	static const struct {
		int64_t steps;
		uint64_t memory;
		const char *strategy;
	} rows[] = {{300, 20000, "remote"}, {900, 30000, "double"}, {50, 20000, "revolve"},
		{50, 9000, "standard"}, {1000, 12000, "hierarchical"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		static struct model m; /* one address: the sweep keeps it */
		struct gradient got;
		struct neap_sweep_stats stats = {.size = sizeof stats};
		model_init(&m, rows[i].steps, i);
		struct gradient want = reference(&m);
		struct neap_step_ops ops = model_ops(&m, 0);
		struct neap_sweep_options o =
			options_of(rows[i].steps, rows[i].memory, rows[i].strategy, &tier, 1);
		if (i == 0)
			assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
		else
			assert_int_equal(neap_sweep_replan(sweep, &ops, &o), 0);
		assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
		assert_memory_equal(&got, &want, sizeof got);
		assert_true(stats.arena_bytes <= rows[i].memory);
		assert_true(sweep->arena.mapped <= neap__round_up(rows[i].memory, 4096));
		o.memory = 64; /* refused, and the old plan stands */
		assert_int_equal(neap_sweep_replan(sweep, &ops, &o), NEAP_EINFEASIBLE);
		assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
		assert_memory_equal(&got, &want, sizeof got);
		model_fini(&m);
	}
	neap_sweep_free(sweep);
	neap_tier_close(tier);
}

static void bad_arguments(void **state)
{
	struct model m;
	struct neap_sweep *sweep;
	(void)state;
	model_init(&m, 10, 1);
	struct neap_step_ops good = model_ops(&m, 0), ops;
	struct neap_sweep_options fine = options_of(10, 0, NULL, NULL, 0), o;
#define REFUSED(code, change)                                                                      \
	do {                                                                                       \
		ops = good;                                                                        \
		o = fine;                                                                          \
		change;                                                                            \
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), code);                   \
		assert_true(neap_detail()[0] != '\0');                                             \
	} while (0)
	REFUSED(NEAP_EUSAGE, ops.size = 0);
	REFUSED(NEAP_EUSAGE, ops.size = 10000);
	REFUSED(NEAP_EUSAGE, o.size = 2);
	REFUSED(NEAP_EUSAGE, ops.advance = NULL);
	REFUSED(NEAP_EUSAGE, ops.backward = NULL);
	REFUSED(NEAP_EUSAGE, ops.state_bytes = 0);
	REFUSED(NEAP_EUSAGE, ops.tape_max_bytes = 1);
	REFUSED(NEAP_EUSAGE, ops.live_bytes = 8);
	REFUSED(NEAP_EUSAGE, o.steps = -1);
	REFUSED(NEAP_EUSAGE, o.ntiers = 1);
	REFUSED(NEAP_EUSAGE, o.ntiers = 100);
	REFUSED(NEAP_EUSAGE, o.strategy = "nonesuch");
	REFUSED(NEAP_EUSAGE, o.advance = INFINITY);
	REFUSED(NEAP_EUSAGE, o.advance = NAN);
	assert_non_null(strstr(neap_detail(), "advance is nan"));
	REFUSED(NEAP_EUSAGE, o.record = NAN);
	REFUSED(NEAP_EUSAGE, o.backward = -1);
	REFUSED(NEAP_EUSAGE, o.replay = NAN);
	REFUSED(NEAP_EUSAGE, o.call = NAN);
	REFUSED(NEAP_EUSAGE, o.slot_read = -INFINITY);
	REFUSED(NEAP_EUSAGE, o.patience = NAN);
	REFUSED(NEAP_EUSAGE, o.journal_seconds = NAN);
	REFUSED(NEAP_EUSAGE, ops.size = sizeof ops + 8);
	assert_non_null(strstr(neap_detail(), "older than the header"));
	REFUSED(NEAP_EUSAGE, ops.record_steps = -64);
	REFUSED(NEAP_EUSAGE, ops.record_steps = 100);
	assert_non_null(strstr(neap_detail(), "a multiple of 64"));
	const struct neap_memory_ops memory = {.size = sizeof memory};
	REFUSED(NEAP_EUSAGE, ops.memory = &memory);
	assert_non_null(
		strstr(neap_detail(), "map, unmap, move, fill, read and write are required"));
	REFUSED(NEAP_EUSAGE, ops.state_bytes = SIZE_MAX);
	REFUSED(NEAP_EINFEASIBLE, o.memory = 64);
	/* Unlimited memory is a budget of any size, but not an arena that the machine cannot hold;
	 * memory of another kind has sizes of its own. */
	if (!memory_is_guarded()) {
		REFUSED(NEAP_EINFEASIBLE, (ops.state_bytes = (size_t)1 << 50, o.memory = 0));
		assert_non_null(strstr(neap_detail(), "an arena of 112589990684"));
		assert_non_null(strstr(neap_detail(), "but this machine has "));
	}
	/* No tape at all is fine. */
	for (int i = 0; neap_strategy_name(i); i++) {
		ops = good;
		o = fine;
		ops.tape_bytes = 0;
		o.strategy = neap_strategy_name(i);
		int rc = neap_sweep_create(&sweep, &ops, &m, &o);
		assert_true(rc == 0 || rc == NEAP_EINFEASIBLE);
		if (rc == 0)
			neap_sweep_free(sweep);
	}
	model_fini(&m);
}

/* A state that is elsewhere takes no room of the arena but for the token; x_0 must be given. */
static void token(void **state)
{
	struct neap_sweep *plain, *with_token;
	struct gradient got;
	struct model m;
	(void)state;
	model_init(&m, 30, 5);
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, 0);
	struct neap_sweep_options o = options_of(30, 1500, "revolve", NULL, 0);
	assert_int_equal(neap_sweep_create(&plain, &ops, &m, &o), 0);
	use_token(&ops);
	assert_int_equal(neap_sweep_create(&with_token, &ops, &m, &o), 0);
	assert_int_equal(neap_sweep_problem(plain)->chain.live, 128);
	assert_int_equal(neap_sweep_problem(with_token)->chain.live, 64);
	assert_int_equal(neap_sweep_run(with_token, NULL, NULL, NULL, NULL), NEAP_EUSAGE);
	assert_int_equal(run_model(with_token, &m, &got, NULL), 0);
	assert_string_equal(m.broken, "");
	assert_memory_equal(&got, &want, sizeof got);
	neap_sweep_free(plain);
	neap_sweep_free(with_token);
	model_fini(&m);
}

static int64_t longest;

static int measured_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	longest = t1 - t0 > longest ? t1 - t0 : longest;
	return model_ops(user, 0).record(user, state, t0, t1, first, tape, room, used, t_done);
}

/* A model may ask for longer calls of record. */
static void record_steps(void **state)
{
	const int64_t asked[] = {0, 64, 256, 1 << 20}, found[] = {64, 64, 256, 1000};
	struct gradient got;
	struct model m;
	(void)state;
	model_init(&m, 1000, 5);
	struct gradient want = reference(&m);
	for (int i = 0; i < 4; i++) {
		struct neap_sweep *sweep;
		struct neap_step_ops ops = model_ops(&m, 0);
		struct neap_sweep_options o = options_of(1000, 0, "bptt", NULL, 0);
		ops.record = measured_record;
		ops.record_steps = asked[i];
		longest = 0;
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
		assert_int_equal(run_model(sweep, &m, &got, NULL), 0);
		assert_memory_equal(&got, &want, sizeof got);
		assert_int_equal(longest, found[i]);
		neap_sweep_free(sweep);
	}
	model_fini(&m);
}

/* What the other tests rely on in guarded memory. */
static void guard_is_there(void **state)
{
	struct neap_sweep *sweep;
	struct gradient got;
	struct model m;
	(void)state;
	if (!memory_is_guarded())
		skip();
	model_init(&m, 30, 5);
	struct neap_step_ops ops = model_ops(&m, 0);
	struct neap_sweep_options o = options_of(30, 1500, "revolve", NULL, 0);
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	assert_int_equal(run_model(sweep, &m, &got, NULL), 0);
	pid_t child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(sweep->arena.base[0]);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	neap_sweep_free(sweep);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_tiers),
		cmocka_unit_test(over_memory),
		cmocka_unit_test(over_file),
		cmocka_unit_test(own_schedule),
		cmocka_unit_test(illegal_schedules),
		cmocka_unit_test(failing_model),
		cmocka_unit_test(token),
		cmocka_unit_test(interrupted),
		cmocka_unit_test(replanned),
		cmocka_unit_test(bad_arguments),
		cmocka_unit_test(record_steps),
		cmocka_unit_test(guard_is_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

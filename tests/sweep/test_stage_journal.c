/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps of stages that are killed and go on: gradient, loss and adjoint of one that was not, on
 * every kind of tier, while records are lost and the plan is given up, too. With a number as
 * argument: so many kills, at random.
 */
#include "journalled.h"
#include "random_stages.h"
#include "sweep/stages/stage_sweep.h"

struct stage_job {
	const char *strategy;
	uint64_t draw; /* of the model */
	int64_t stages;
	uint64_t sixteenths; /* of what keeps everything: the budget */
	enum tiers tiers;
	double every;
};

struct stage_answer {
	int rc;
	struct stagegradient gradient;
	struct neap_sweep_stats stats;
	int64_t calls;
	int fell; /* the plan was given up */
	char line[400];
};

static int gather(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	struct stagemodel *m = user;
	int rc = write(to, m->dw, sizeof m->dw);
	return rc < 0 ? rc : write(to, m->passed, sizeof m->passed);
}

static int scatter(void *user, int (*read)(void *, void *, size_t), void *from)
{
	struct stagemodel *m = user;
	int rc = read(from, m->dw, sizeof m->dw);
	return rc < 0 ? rc : read(from, m->passed, sizeof m->passed);
}

static int counted(int rc, const struct stagemodel *m)
{
	if (dies_at && m->calls >= dies_at)
		kill(getpid(), SIGKILL);
	return rc;
}

static int advance(void *user, int64_t i, const void *x, void *y, void *tmp, int first)
{
	return counted(stagemodel_advance(user, i, x, y, tmp, first), user);
}

static int record(void *user, int64_t i, const void *x, void *y, void *tape, void *tmp, int first)
{
	return counted(stagemodel_record(user, i, x, y, tape, tmp, first), user);
}

static int backward(
	void *user, int64_t i, const void *x, const void *tape, void *dy, void *dx, void *tmp)
{
	return counted(stagemodel_backward(user, i, x, tape, dy, dx, tmp), user);
}

static struct neap_stage_ops mortal_ops(const struct stagemodel *m)
{
	struct neap_stage_ops ops = stagemodel_ops(m);
	ops.advance = advance;
	ops.record = record;
	ops.backward = backward;
	ops.grad_save = gather;
	ops.grad_load = scatter;
	return ops;
}

static void job_stages(struct stagemodel *m, const struct stage_job *job)
{
	struct random r = {job->draw, 0};
	random_model(m, &r, job->stages, 40);
}

static uint64_t job_memory(const struct stagemodel *m, const struct stage_job *job)
{
	uint64_t all = 4096;
	for (int64_t i = 0; i < m->n; i++)
		all += m->tape[i] + m->state[i] + 128;
	int staged = job->tiers != NO_TIER && job->tiers != MEMORY_TIER;
	return (all + 2 * m->adjoint_bytes) * job->sixteenths / 16 + (staged ? 8192 : 0);
}

/* One process' part: starts or goes on, to the end or to its death. */
static void stage_session(void *to, const void *what)
{
	static struct stagemodel m;
	struct stage_answer *answer = to;
	const struct stage_job *job = what;
	struct neap_tier *tiers[2];
	struct neap_stage_sweep *sweep = NULL;
	int ntiers;
	job_stages(&m, job);
	struct neap_stage_ops ops = mortal_ops(&m);
	memset(answer, 0, sizeof *answer);
	answer->rc = open_tiers(tiers, &ntiers, job->tiers);
	for (int i = 0; i < ntiers; i++)
		neap_tier_set_rates(tiers[i], 60, 60, 0);
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = job->stages,
		.memory = job_memory(&m, job),
		.strategy = job->strategy,
		.params = {.effort = 20},
		.tiers = tiers,
		.ntiers = ntiers,
		.journal = folder,
		.journal_seconds = job->every,
		.journal_key = job->draw,
		.journal_in_memory = in_memory};
	if (answer->rc == 0)
		answer->rc = neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o);
	if (answer->rc == 0) {
		neap__stage_sweep_poison(sweep, 1);
		answer->rc = stagemodel_run(sweep, &m, &answer->gradient, &answer->stats);
		answer->fell = sweep->mapping == NULL;
	}
	snprintf(answer->line, sizeof answer->line, "%s",
		m.broken[0]	 ? m.broken
		: answer->rc < 0 ? neap_detail()
				 : "");
	answer->calls = m.calls;
	neap_stage_sweep_free(sweep);
	while (ntiers > 0)
		neap_tier_close(tiers[--ntiers]);
}

static void check_stages(const struct stage_answer *answer, const struct stage_job *job)
{
	static struct stagemodel m;
	struct stagegradient want;
	job_stages(&m, job);
	stagemodel_reference(&m, &want);
	if (answer->rc == 0 && !answer->line[0] &&
		memcmp(&answer->gradient, &want, sizeof want) == 0)
		return;
	fail_msg("%s, %lld stages of draw %llu, %llu sixteenths, tiers %d, every %g: %d %s",
		job->strategy, (long long)job->stages, (unsigned long long)job->draw,
		(unsigned long long)job->sixteenths, job->tiers, job->every, answer->rc,
		answer->line[0] ? answer->line : "gradient");
}

static int64_t kills, resumed, spared, lost, fell;

/* One job until it ends, killed up to `most` times on its way. 0: it does not fit. */
static int stages_killed(const struct stage_job *job, int most)
{
	struct stage_answer answer, whole;
	stage_session(&whole, job);
	if (whole.rc == NEAP_EINFEASIBLE) {
		empty_folder();
		return 0;
	}
	check_stages(&whole, job);
	assert_false(there("neap.journal") || there("neap.slow"));
	double seconds = whole.stats.seconds;
	for (int n = 0;; n++) {
		int by_time = draw(3) == 0;
		int64_t dies = n < most && !by_time ? 1 + draw(whole.calls / 2 + 1) : 0;
		int64_t after = n < most && by_time ? 1 + draw((int64_t)(1e6 * seconds) + 3000) : 0;
		if (run_apart(stage_session, &answer, sizeof answer, job, dies, after))
			break;
		kills++;
		if (n + 1 < most)
			damage();
	}
	/* Records that are lost where there is no room to go on without them. */
	if (answer.rc == NEAP_EINFEASIBLE && strstr(answer.line, "slow memory lost")) {
		empty_folder();
		return 0;
	}
	check_stages(&answer, job);
	assert_false(there("neap.journal") || there("neap.slow"));
	resumed += answer.stats.spared > 0;
	spared += answer.stats.spared;
	lost += answer.stats.recoveries;
	fell += answer.fell && answer.stats.spared > 0;
	return 1;
}

static struct stage_job draw_stage_job(void)
{
	static const char *const names[] = {"auto", "pofo", "chain"};
	return (struct stage_job){
		.strategy = names[draw(8) < 6 ? draw(2) : 2],
		.draw = (uint64_t)draw(1000000),
		.stages = 2 + draw(30),
		.sixteenths = 1 + (uint64_t)draw(12),
		.tiers = draw(3) ? (enum tiers)draw(TIER_KINDS) : LOST_TIER,
		.every = draw(3) ? -1 : 0.0003 * (double)draw(20),
	};
}

static void kill_many(int64_t runs, int64_t many)
{
	for (int64_t done = 0; done < runs || kills < many;) {
		struct stage_job job = draw_stage_job();
		done += stages_killed(&job, 1 + (int)draw(6));
	}
	print_message("# %lld kills, %lld sweeps went on, %lld stages spared, %lld records lost, "
		      "%lld went on without tiers\n",
		(long long)kills, (long long)resumed, (long long)spared, (long long)lost,
		(long long)fell);
	assert_true(resumed > 0 && (lost > 0 || TEST_SANITIZED));
}

static void killed_at_random(void **state)
{
	(void)state;
	make_folder(0);
	kill_many(TEST_SANITIZED ? 25 : 100, 0);
	remove_folder();
}

/* Killed in the middle of the backward pass: nothing is done twice but since the commit. */
static void what_was_done_is_spared(void **state)
{
	(void)state;
	make_folder(0);
	for (int i = 0; i < (TEST_SANITIZED ? 4 : 12); i++) {
		struct stage_job job = {.strategy = i % 2 ? "pofo" : "auto",
			.draw = 40 + (uint64_t)i,
			.stages = 30,
			.sixteenths = 3,
			.tiers = FILE_TIER,
			.every = -1};
		struct stage_answer whole, answer;
		stage_session(&whole, &job);
		check_stages(&whole, &job);
		for (int n = 0;
			!run_apart(stage_session, &answer, sizeof answer, &job, whole.calls / 5, 0);
			n++)
			assert_true(n < 40);
		check_stages(&answer, &job);
		assert_true(answer.stats.spared > 0);
		assert_int_equal(answer.stats.advance_steps, whole.stats.advance_steps);
		assert_int_equal(answer.stats.record_steps, whole.stats.record_steps);
		assert_int_equal(answer.stats.backward_steps, whole.stats.backward_steps);
		assert_int_equal(answer.stats.recoveries, 0);
	}
	remove_folder();
}

static void refused(const struct stage_job *job, const char *word)
{
	struct stage_answer answer;
	stage_session(&answer, job);
	if (answer.rc != NEAP_EUSAGE || !strstr(answer.line, word) || strchr(answer.line, '\n'))
		fail_msg("%d, '%s' lacks '%s'", answer.rc, answer.line, word);
}

static void of_another_sweep(void **state)
{
	struct stage_job job = {.strategy = "pofo",
				 .draw = 41,
				 .stages = 30,
				 .sixteenths = 2,
				 .tiers = FILE_TIER,
				 .every = -1},
			 other;
	struct stage_answer answer;
	(void)state;
	make_folder(0);
	assert_int_equal(run_apart(stage_session, &answer, sizeof answer, &job, 20, 0), 0);
	assert_true(there("neap.journal"));
	other = job, other.stages = 29, refused(&other, "number of stages is 30 there, 29 here");
	other = job, other.draw = 42, refused(&other, "the stages' bytes");
	other = job, other.strategy = "auto", refused(&other, "pofo, not auto");
	other = job, other.tiers = NO_TIER, refused(&other, "slow tiers is 1 there, 0 here");
	/* The budget is that of the plan that is there. */
	other = job, other.sixteenths = 5;
	stage_session(&answer, &other);
	check_stages(&answer, &other);
	assert_true(answer.stats.spared > 0);
	struct stagemodel m;
	job_stages(&m, &job);
	assert_true(answer.stats.arena_bytes <= job_memory(&m, &job));

	struct neap_stage_ops ops = stagemodel_ops(&m);
	struct neap_sweep_options o = {.size = sizeof o, .steps = m.n, .journal = folder};
	struct neap_stage_sweep *sweep;
	assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "grad_save"));
	remove_folder();
}

static int asked, stop_at;

static int stop(void *user)
{
	(void)user;
	return stop_at && ++asked >= stop_at;
}

/* Interrupted takes a last commit; the same sweep and a new one go on from there. */
static void interrupted(void **state)
{
	static struct stagemodel m;
	struct stagegradient want, got;
	struct random r = {7, 0};
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_stage_sweep *sweep;
	(void)state;
	make_folder(0);
	random_model(&m, &r, 25, 40);
	stagemodel_reference(&m, &want);
	struct neap_stage_ops ops = mortal_ops(&m);
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = m.n,
		.memory = 6000,
		.journal = folder,
		.journal_seconds = 1000,
		.journal_in_memory = in_memory,
		.interrupted = stop};
	for (int again = 0; again < 2; again++) {
		assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), 0);
		asked = 0, stop_at = 40;
		assert_int_equal(stagemodel_run(sweep, &m, &got, &stats), NEAP_EINTERRUPTED);
		assert_int_equal(stats.commits, 1);
		if (again) {
			neap_stage_sweep_free(sweep);
			assert_int_equal(neap_journal_there(folder, NULL, in_memory), 1);
			assert_int_equal(
				neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), 0);
		}
		stop_at = 0;
		assert_int_equal(stagemodel_run(sweep, &m, &got, &stats), 0);
		assert_string_equal(m.broken, "");
		assert_memory_equal(&got, &want, sizeof got);
		assert_true(stats.spared >= 30);
		/* A run that ended leaves nothing to resume. */
		assert_int_equal(stagemodel_run(sweep, &m, &got, &stats), 0);
		assert_memory_equal(&got, &want, sizeof got);
		assert_int_equal(stats.spared, 0);
		neap_stage_sweep_free(sweep);
		assert_false(there("neap.journal"));
	}
	remove_folder();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_random),
		cmocka_unit_test(what_was_done_is_spared),
		cmocka_unit_test(of_another_sweep),
		cmocka_unit_test(interrupted),
	};
	kill_seed = test_seed(20261124);
	if (argc > 1) {
		make_folder(0);
		kill_many(0, strtoll(argv[1], NULL, 10));
		remove_folder();
		printf("1..1\nok 1 - %lld kills, %lld went on\n", (long long)kills,
			(long long)resumed);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

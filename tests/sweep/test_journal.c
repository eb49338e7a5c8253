/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps that are killed and go on: gradient, loss and adjoint of one that was not. With
 * a number as argument: so many kills, at random; with "torn", a journal torn everywhere.
 */
#include "guard_memory.h"
#include "journalled.h"

#include <neap/neap.h>

static const char *const strategies[] = {"bptt", "revolve", "mixed", "double", "hierarchical",
	"multistage", "h-revolve", "disk-revolve", "async", "stream", "auto"};
#define STRATEGIES (sizeof strategies / sizeof strategies[0])

static int thorough; /* every byte, not only those that matter most */

static struct job draw_job(void)
{
	struct job job = {
		.strategy = strategies[draw(STRATEGIES)],
		.tiers = (enum tiers)draw(TIER_KINDS),
		.steps = 40 + draw(200),
		.seed = (uint64_t)draw(1000000),
		.every = draw(3) ? -1 : 0.0003 * (double)draw(20),
	};
	if (draw(3) == 0) {
		job.extra_most = 27;
		job.mean = 200 + (size_t)draw(100);
	}
	job.memory = 1500 + (uint64_t)draw(12) * 700;
	if (draw(6) == 0 || strcmp(job.strategy, "bptt") == 0)
		job.memory = 150000;
	job.unknown = draw(5) == 0;
	if (job.unknown) {
		job.strategy = "online";
		job.memory += 4096 * (uint64_t)draw(8);
	}
	return job;
}

static int64_t kills, resumed, spared, recoveries;

/* One job until it ends, killed up to `most` times on its way. 0: it does not fit. */
static int killed_and_ended(const struct job *job, int most)
{
	struct answer answer, whole;
	struct gradient want = want_of(job);
	session(&whole, job);
	if (whole.rc == NEAP_EINFEASIBLE)
		return 0;
	check_answer(&whole, job, &want);
	assert_false(there("neap.journal") || there("neap.slow"));
	double seconds = whole.stats.seconds;
	int n = 0;
	for (;; n++) {
		int by_time = draw(3) == 0;
		int64_t dies = n < most && !by_time ? 1 + draw(whole.calls / 2 + 1) : 0;
		int64_t after = n < most && by_time ? 1 + draw((int64_t)(1e6 * seconds) + 3000) : 0;
		if (session_apart(&answer, job, dies, after))
			break;
		kills++;
		if (n + 1 < most)
			damage();
	}
	check_answer(&answer, job, &want);
	assert_false(there("neap.journal") || there("neap.slow"));
	resumed += answer.stats.spared > 0;
	spared += answer.stats.spared;
	recoveries += answer.stats.recoveries;
	return 1;
}

static void killed_at_random(void **state)
{
	(void)state;
	make_folder(0);
	for (int runs = 0; runs < 75;) {
		struct job job = draw_job();
		runs += killed_and_ended(&job, 1 + (int)draw(6));
	}
	remove_folder();
	fprintf(stderr,
		"# %lld kills, %lld of 75 sweeps went on, %lld steps spared, %lld records "
		"recovered\n",
		(long long)kills, (long long)resumed, (long long)spared, (long long)recoveries);
	assert_true(kills > 75 && resumed > 30 && spared > 500 && recoveries > 0);
}

/* The kill is in the middle of the backward pass: nothing is done twice but since the commit. */
static void what_was_done_is_spared(void **state)
{
	(void)state;
	make_folder(0);
	for (size_t i = 0; i < STRATEGIES + 3; i++) {
		int unknown = i >= STRATEGIES;
		struct job job = {.strategy = unknown ? "online" : strategies[i],
			.tiers = i > 2 ? FILE_TIER : NO_TIER,
			.steps = 500,
			.seed = 3 + 2 * i,
			.memory = unknown ? 20000
				  : i	  ? 6000
					  : 500000,
			.every = -1,
			.unknown = unknown,
			.same_plan = 1};
		struct answer whole, answer;
		struct gradient want = want_of(&job);
		session(&whole, &job);
		check_answer(&whole, &job, &want);
		for (int n = 0; !session_apart(&answer, &job, whole.calls / 7, 0); n++)
			assert_true(n < 40);
		check_answer(&answer, &job, &want);
		assert_true(answer.stats.spared > 0);
		/* Planned with seconds a step, which its steps do not take. */
		assert_true(answer.stats.foreseen <= answer.stats.predicted / 10);
		/* What went on counts from its beginning: not one step more in all. */
		assert_int_equal(answer.stats.advance_steps, whole.stats.advance_steps);
		assert_int_equal(answer.stats.record_steps, whole.stats.record_steps);
		assert_int_equal(answer.stats.backward_steps, whole.stats.backward_steps);
		assert_int_equal(answer.stats.recomputed, 0);
		assert_int_equal(answer.stats.recoveries, 0);
	}
	remove_folder();
}

static struct job small_job(void)
{
	return (struct job){.strategy = "h-revolve",
		.tiers = FILE_TIER,
		.steps = 60,
		.seed = 5,
		.memory = 2500,
		.every = -1};
}

static void killed(const struct job *job, int64_t calls)
{
	struct answer answer;
	empty_folder();
	assert_int_equal(session_apart(&answer, job, calls, 0), 0);
	assert_true(there("neap.journal"));
}

static char *read_whole(const char *name, size_t *bytes)
{
	struct stat st;
	int fd = open(inside(name), O_RDONLY);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	char *all = malloc((size_t)st.st_size);
	*bytes = (size_t)st.st_size;
	assert_int_equal(read(fd, all, *bytes), (ssize_t)*bytes);
	close(fd);
	return all;
}

static void write_whole(const char *name, const char *all, size_t bytes)
{
	int fd = open(inside(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, all, bytes), (ssize_t)bytes);
	close(fd);
}

/* The journal ends at every byte, and loses one at every place; then the slow file does. */
static void torn_anywhere(void **state)
{
	struct job job = small_job();
	struct gradient want = want_of(&job);
	struct answer answer;
	size_t bytes, slow;
	int64_t from_commit = 0, times = 0;
	(void)state;
	make_folder(0);
	killed(&job, 70);
	char *journal = read_whole("neap.journal", &bytes),
	     *records = read_whole("neap.slow", &slow);
	session(&answer, &job);
	check_answer(&answer, &job, &want);
	int64_t most = answer.stats.spared;
	assert_true(most > 0);
	for (size_t at = 4096; at < bytes; at += at % 4096 < 64 || thorough ? 1 : 211)
		for (int cuts = 0; cuts < 2; cuts++, times++) {
			char old = journal[at];
			write_whole("neap.slow", records, slow);
			journal[at] = cuts ? old : (char)~old;
			write_whole("neap.journal", journal, cuts ? at : bytes);
			journal[at] = old;
			session(&answer, &job);
			check_answer(&answer, &job, &want);
			assert_true(answer.stats.spared <= most);
			from_commit += answer.stats.spared > 0;
		}
	for (size_t at = 4096; at < slow; at += 409) {
		char old = records[at];
		records[at] = (char)~old;
		write_whole("neap.slow", records, at % 2 ? slow : at);
		records[at] = old;
		write_whole("neap.journal", journal, bytes);
		session(&answer, &job);
		check_answer(&answer, &job, &want);
		assert_int_equal(answer.stats.spared, most);
	}
	fprintf(stderr, "# %lld of %lld damaged journals held a commit\n", (long long)from_commit,
		(long long)times);
	assert_true(from_commit > times / 4 && from_commit < times);
	free(journal);
	free(records);
	remove_folder();
}

static void refused(const struct job *job, const char *word)
{
	struct answer answer;
	session(&answer, job);
	if (answer.rc != NEAP_EUSAGE || !strstr(answer.line, word) || strchr(answer.line, '\n'))
		fail_msg("%d, '%s' lacks '%s'", answer.rc, answer.line, word);
}

static void of_another_sweep(void **state)
{
	struct job job = small_job(), other;
	struct gradient want = want_of(&job);
	struct answer answer;
	(void)state;
	make_folder(0);
	killed(&job, 70);
	other = job, other.steps = 61, refused(&other, "number of steps is 60 there, 61 here");
	other = job, other.seed = 6, refused(&other, "key is 5 there, 6 here");
	other = job, other.strategy = "async", refused(&other, "h-revolve, not async");
	other = job, other.tiers = NO_TIER, refused(&other, "slow tiers is 1 there, 0 here");
	other = job, other.extra_most = 3, refused(&other, "tape");
	/* The budget and what was measured are those of the plan that is there. */
	other = job, other.memory = 3500;
	session(&answer, &other);
	check_answer(&answer, &other, &want);
	assert_true(answer.stats.spared > 0 && answer.stats.arena_bytes <= 2500);
	remove_folder();
}

/* x_0 is known when it runs. */
static void from_another_state(void **state)
{
	struct job job = small_job();
	struct neap_tier *tiers[2];
	struct neap_sweep *sweep;
	struct model m;
	int ntiers;
	double loss;
	_Alignas(64) double x[WIDTH], dx[WIDTH];
	(void)state;
	make_folder(0);
	killed(&job, 70);
	job_model(&m, &job);
	struct neap_step_ops ops = job_ops(&m, &job);
	assert_int_equal(open_tiers(tiers, &ntiers, job.tiers), 0);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = job.steps,
		.memory = job.memory,
		.strategy = job.strategy,
		.tiers = tiers,
		.ntiers = ntiers,
		.journal = folder,
		.journal_key = job.seed,
		.journal_in_memory = in_memory};
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	model_start(x);
	x[3] += 1e-9;
	assert_int_equal(neap_sweep_run(sweep, x, dx, &loss, NULL), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "x_0"));
	/* Two processes, and two sweeps of one, do not meet. */
	struct neap_sweep *second;
	o.tiers = NULL;
	o.ntiers = 0;
	assert_int_equal(neap_sweep_create(&second, &ops, &m, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "in use"));
	neap_sweep_free(sweep);
	neap_tier_close(tiers[0]);
	assert_true(there("neap.journal") && there("neap.slow"));

	ops.grad_load = NULL;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "grad_load"));
	model_fini(&m);
	remove_folder();
}

static void not_ours(void **state)
{
	struct job job = small_job();
	(void)state;
	make_folder(0);
	write_whole("neap.journal", "a letter", 8);
	refused(&job, "was not written by neap");
	unlink(inside("neap.journal"));
	write_whole("other", "", 0);
	assert_int_equal(symlink("other", inside("neap.journal")), 0);
	refused(&job, "symbolic link");
	unlink(inside("other"));
	if (in_memory) {
		empty_folder();
		in_memory = 0;
		job.tiers = NO_TIER;
		refused(&job, "in memory");
		in_memory = 1;
	}
	remove_folder();
}

struct stopping {
	int64_t asked, at;
};

static int stop(void *user)
{
	struct stopping *s = user;
	return s->at && ++s->asked >= s->at;
}

/* Politely interrupted, the last commit is of that moment; the same sweep can go on. */
static void interrupted(void **state)
{
	(void)state;
	make_folder(0);
	for (int64_t at = 1; at < 400; at += 13) {
		struct job job = small_job();
		struct gradient want = want_of(&job), got;
		struct neap_tier *tiers[2];
		struct neap_sweep *sweep;
		struct neap_sweep_stats stats = {.size = sizeof stats};
		struct stopping stopping = {0, at};
		struct model m;
		int ntiers;
		job_model(&m, &job);
		struct neap_step_ops ops = job_ops(&m, &job);
		assert_int_equal(open_tiers(tiers, &ntiers, job.tiers), 0);
		struct neap_sweep_options o = {.size = sizeof o,
			FIXED_COSTS,
			.steps = job.steps,
			.memory = job.memory,
			.strategy = job.strategy,
			.tiers = tiers,
			.ntiers = ntiers,
			.interrupted = stop,
			.interrupted_user = &stopping,
			.journal = folder,
			.journal_in_memory = in_memory};
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
		int rc = run_model(sweep, &m, &got, &stats);
		int64_t done = stats.advance_steps + stats.record_steps + stats.backward_steps;
		if (rc < 0) {
			assert_int_equal(rc, NEAP_EINTERRUPTED);
			assert_int_equal(stats.commits, 1);
			stopping.at = 0;
			rc = run_model(sweep, &m, &got, &stats);
			assert_int_equal(stats.spared, done);
		}
		assert_int_equal(rc, 0);
		assert_string_equal(m.broken, "");
		assert_memory_equal(&got, &want, sizeof got);
		/* And again from the start, since that run came to its end. */
		assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
		assert_int_equal(stats.spared, 0);
		assert_memory_equal(&got, &want, sizeof got);
		assert_true(there("neap.journal"));
		neap_sweep_free(sweep);
		assert_false(there("neap.journal"));
		neap_tier_close(tiers[0]);
		model_fini(&m);
	}
	remove_folder();
}

static void switch_memory(void)
{
	if (memory_is_guarded())
		unsetenv("NEAP_TEST_MEMORY");
	else
		setenv("NEAP_TEST_MEMORY", "1", 1);
}

/*
 * A commit of an arena in ordinary memory is read into one in other memory, and vice versa unless
 * the plan lacks the staging that tiers have in an ordinary arena.
 */
static void resumes_in_other_memory(void **state)
{
	(void)state;
	make_folder(0);
	for (size_t i = 0; i < 2 * STRATEGIES; i++) {
		struct job job = {.strategy = strategies[i / 2],
			.tiers = i / 2 > 2 ? FILE_TIER : NO_TIER,
			.steps = 300,
			.seed = 3 + i,
			.memory = i / 2 ? 6000 : 500000,
			.every = -1,
			.same_plan = 1};
		struct answer whole, answer;
		struct gradient want = want_of(&job);
		session(&whole, &job);
		check_answer(&whole, &job, &want);
		killed(&job, whole.calls / 2);
		switch_memory();
		session(&answer, &job);
		if (job.tiers == FILE_TIER && !memory_is_guarded()) {
			assert_int_equal(answer.rc, NEAP_EUSAGE);
			assert_non_null(strstr(neap_detail(), "staging is 0 there"));
			empty_folder();
			continue;
		}
		check_answer(&answer, &job, &want);
		assert_true(answer.stats.spared > 0);
	}
	remove_folder();
}

/* On a disk, past the page cache. */
static void on_a_disk(void **state)
{
	(void)state;
	make_folder(1);
	for (int i = 0; i < 4; i++) {
		struct job job = small_job();
		job.every = i ? 0.02 : -1;
		job.strategy = strategies[STRATEGIES - 1 - i % 4];
		job.steps = 150;
		job.memory = 6000;
		assert_int_equal(killed_and_ended(&job, 4), 1);
	}
	remove_folder();
}

/* As many kills as are asked for, on the disk every tenth time. */
static int campaign(int64_t many)
{
	time_t start = time(NULL);
	int64_t sweeps = 0;
	while (kills < many) {
		make_folder(sweeps % 10 == 9);
		for (int done = 0; !done;) {
			struct job job = draw_job();
			job.steps = 100 + draw(900);
			done = killed_and_ended(&job, 12);
		}
		remove_folder();
		sweeps++;
	}
	printf("1..1\nok 1 - %lld kills of %lld sweeps, %lld of them went on, %lld steps spared, "
	       "%lld records recovered, %lld s\n",
		(long long)kills, (long long)sweeps, (long long)resumed, (long long)spared,
		(long long)recoveries, (long long)(time(NULL) - start));
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_random),
		cmocka_unit_test(what_was_done_is_spared),
		cmocka_unit_test(torn_anywhere),
		cmocka_unit_test(of_another_sweep),
		cmocka_unit_test(from_another_state),
		cmocka_unit_test(not_ours),
		cmocka_unit_test(interrupted),
		cmocka_unit_test(resumes_in_other_memory),
		cmocka_unit_test(on_a_disk),
	};
	const struct CMUnitTest every_byte[] = {cmocka_unit_test(torn_anywhere)};
	kill_seed = test_seed(20260801);
	thorough = argc > 1 && strcmp(argv[1], "torn") == 0;
	if (thorough)
		return cmocka_run_group_tests(every_byte, NULL, NULL);
	if (argc > 1)
		return campaign(strtoll(argv[1], NULL, 10));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

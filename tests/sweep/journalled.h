/* SPDX-License-Identifier: Apache-2.0 */
/* journalled.h: sweeps with a journal in processes of their own, which are killed and begin again.
 */
#ifndef NEAP_TEST_JOURNALLED_H
#define NEAP_TEST_JOURNALLED_H

#include "chainmodel.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <linux/magic.h>
#include <time.h>
#include "store/tier_state.h"

enum tiers { NO_TIER, FILE_TIER, MEMORY_TIER, BOTH_TIERS, LOST_TIER, TIER_KINDS };

struct job {
	const char *strategy;
	uint64_t memory, seed;
	enum tiers tiers;
	int64_t steps;
	uint32_t extra_most; /* tapes vary */
	size_t mean;
	double every;  /* journal_seconds */
	int unknown;   /* the model tells the length; costs and rates are drawn from the seed */
	int same_plan; /* whatever is measured */
};

struct answer {
	int rc;
	struct gradient gradient;
	struct neap_sweep_stats stats;
	int64_t calls; /* of the model, in this process */
	char line[400];
};

static int64_t dies_at; /* calls of the model; 0: never */
static char folder[64]; /* of the journal and the slow file */
static int in_memory;

/* In memory where there is some: a kill leaves the same there as on a disk, sooner. */
static inline void make_folder(int on_disk)
{
	struct statfs fs;
	in_memory = !on_disk && statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS_MAGIC;
	snprintf(folder, sizeof folder, "%s/neap-journal-XXXXXX",
		in_memory ? "/dev/shm" : "/var/tmp");
	assert_non_null(mkdtemp(folder));
}

static inline const char *inside(const char *name)
{
	static char paths[4][96];
	static int next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static inline int there(const char *name)
{
	return access(inside(name), F_OK) == 0;
}

static inline void empty_folder(void)
{
	unlink(inside("neap.journal"));
	unlink(inside("neap.slow"));
}

static inline void remove_folder(void)
{
	empty_folder();
	if (rmdir(folder) < 0)
		fail_msg("something is left in %s", folder);
}

static uint64_t kill_seed, drawn;

static inline int64_t draw(int64_t below)
{
	return (int64_t)neap__random_below(
		kill_seed, NEAP__STREAM_TEST, 77, drawn++, (uint32_t)below);
}

static inline void flip(const char *name, off_t from)
{
	struct stat st;
	unsigned char byte;
	int fd = open(inside(name), O_RDWR);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= from) {
		close(fd);
		return;
	}
	for (int i = 0; i < 8; i++) {
		off_t at = from + draw((int64_t)(st.st_size - from));
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= (unsigned char)(1 << draw(8));
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
}

static inline void cut(const char *name, off_t from)
{
	struct stat st;
	if (stat(inside(name), &st) == 0 && st.st_size > from)
		assert_int_equal(
			truncate(inside(name), from + draw((int64_t)(st.st_size - from))), 0);
}

/* What may happen to files while nobody runs. */
static inline void damage(void)
{
	switch (draw(9)) {
	case 0:
		flip("neap.slow", 4096);
		break;
	case 1:
		cut("neap.slow", 4096);
		break;
	case 2:
		unlink(inside("neap.slow"));
		break;
	case 3:
		flip("neap.journal", 4096);
		break;
	case 4:
		cut("neap.journal", 4096);
		break;
	default:
		break;
	}
}

static inline uint32_t wild(const struct model *m, int64_t t)
{
	return (uint32_t)neap__random_below(m->seed, NEAP__STREAM_TEST, 1, (uint64_t)t / 9, 3) * 9;
}

static inline int gather_save(
	void *user, int (*write)(void *to, const void *from, size_t bytes), void *to)
{
	struct model *m = user;
	int rc = write(to, m->dw, sizeof m->dw);
	if (rc == 0)
		rc = write(to, &m->gathered, sizeof m->gathered);
	return rc < 0 ? rc : write(to, m->passed, (size_t)m->steps * sizeof *m->passed);
}

static inline int gather_load(
	void *user, int (*read)(void *from, void *to, size_t bytes), void *from)
{
	struct model *m = user;
	int rc = read(from, m->dw, sizeof m->dw);
	if (rc == 0)
		rc = read(from, &m->gathered, sizeof m->gathered);
	return rc < 0 ? rc : read(from, m->passed, (size_t)m->steps * sizeof *m->passed);
}

static inline int count_call(int rc, const struct model *m)
{
	if (dies_at && m->calls >= dies_at)
		kill(getpid(), SIGKILL);
	return rc;
}

static inline int mortal_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	return count_call(model_advance(user, state, t0, t1, first), user);
}

static inline int mortal_record(void *user, void *state, int64_t t0, int64_t t1, int first,
	void *tape, size_t room, size_t *used, int64_t *t_done)
{
	return count_call(model_record(user, state, t0, t1, first, tape, room, used, t_done), user);
}

static inline int mortal_backward(
	void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	return count_call(model_backward(user, adjoint, t1, t0, tape), user);
}

static inline void job_model(struct model *m, const struct job *job)
{
	model_init(m, job->steps, job->seed);
	m->extra_most = job->extra_most;
	m->extra = wild;
}

static inline struct neap_step_ops job_ops(const struct model *m, const struct job *job)
{
	struct neap_step_ops ops = model_ops(m, job->mean);
	ops.advance = mortal_advance;
	ops.record = mortal_record;
	ops.backward = mortal_backward;
	ops.grad_save = gather_save;
	ops.grad_load = gather_load;
	return ops;
}

static inline int open_tiers(struct neap_tier **tiers, int *n, enum tiers kind)
{
	struct neap_file_options o = {.size = sizeof o,
		.keep = kind != LOST_TIER,
		.page_cache = (uint32_t)in_memory,
		.in_memory = (uint32_t)in_memory};
	int rc = 0;
	*n = 0;
	if (kind == MEMORY_TIER || kind == BOTH_TIERS)
		rc = neap_tier_open_memory(&tiers[(*n)++], kind == BOTH_TIERS ? 3000 : 1 << 20);
	if (rc == 0 && kind != NO_TIER && kind != MEMORY_TIER)
		rc = neap_tier_open_file(&tiers[(*n)++], folder, &o);
	if (rc < 0)
		(*n)--;
	return rc;
}

static inline int mortal_token_advance(void *user, void *token, int64_t t0, int64_t t1, int first)
{
	return count_call(token_advance(user, token, t0, t1, first), user);
}

static inline int mortal_token_record(void *user, void *token, int64_t t0, int64_t t1, int first,
	void *tape, size_t room, size_t *used, int64_t *t_done)
{
	return count_call(token_record(user, token, t0, t1, first, tape, room, used, t_done), user);
}

/* The state lies elsewhere, and dies with the process. */
static inline void use_token_mortally(struct neap_step_ops *ops)
{
	use_token(ops);
	ops->advance = mortal_token_advance;
	ops->record = mortal_token_record;
}

static inline int told_the_end(void *user, const void *state, int64_t t)
{
	const struct model *m = user;
	(void)state;
	return t == m->steps ? NEAP_ENDED : NEAP_GO_ON;
}

/* States, and sometimes tapes, leave while the length is not known. */
static inline void make_unknown(
	struct neap_step_ops *ops, struct neap_sweep_options *o, const struct job *job)
{
	double state = (double)(1 << job->seed % 8) / 4; /* in which one is written, in steps */
	ops->ended = told_the_end;
	o->steps = 0;
	o->advance = o->record = o->backward = 1e-6;
	for (int i = 0; i < o->ntiers; i++)
		neap_tier_set_rates(o->tiers[i], 128e6 / state, 128e6 / state, 0);
}

/* One process' part: starts or goes on, to the end or to its death. */
static inline void session(struct answer *answer, const struct job *job)
{
	struct model m;
	struct neap_tier *tiers[2];
	struct neap_sweep *sweep = NULL;
	int ntiers;
	job_model(&m, job);
	struct neap_step_ops ops = job_ops(&m, job);
	memset(answer, 0, sizeof *answer);
	answer->rc = open_tiers(tiers, &ntiers, job->tiers);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = job->steps,
		.memory = job->memory,
		.strategy = job->strategy,
		.params = {.effort = 10},
		.tiers = tiers,
		.ntiers = ntiers,
		.journal = folder,
		.journal_seconds = job->every,
		.journal_key = job->seed,
		.journal_in_memory = in_memory,
		.no_replan = job->same_plan};
	if (job->seed % 7 == 3 && !job->same_plan) /* the first steps tell */
		o.advance = o.record = o.backward = 0;
	if (job->seed % 5 == 4 && ops.advance == mortal_advance)
		use_token_mortally(&ops);
	if (answer->rc == 0 && job->unknown)
		make_unknown(&ops, &o, job);
	if (answer->rc == 0)
		answer->rc = neap_sweep_create(&sweep, &ops, &m, &o);
	if (answer->rc == 0)
		answer->rc = run_model(sweep, &m, &answer->gradient, &answer->stats);
	snprintf(answer->line, sizeof answer->line, "%s",
		m.broken[0]	 ? m.broken
		: answer->rc < 0 ? neap_detail()
				 : "");
	answer->calls = m.calls;
	neap_sweep_free(sweep);
	while (ntiers > 0)
		neap_tier_close(tiers[--ntiers]);
	model_fini(&m);
}

/*
 * Runs run(answer, job) in a process that dies at a call of the model (0: never) or after so many
 * microseconds (0: never). 1 when it came to its end, 0 when it was killed.
 */
static inline int run_apart(void (*run)(void *answer, const void *job), void *answer, size_t bytes,
	const void *job, int64_t calls, int64_t microseconds)
{
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(ends[0]);
		dies_at = calls;
		run(answer, job);
		ssize_t n = write(ends[1], answer, bytes);
		_exit(n == (ssize_t)bytes ? 0 : 1);
	}
	close(ends[1]);
	if (microseconds) {
		struct timespec nap = {microseconds / 1000000, microseconds % 1000000 * 1000};
		nanosleep(&nap, NULL);
		kill(child, SIGKILL);
	}
	ssize_t n = read(ends[0], answer, bytes);
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (n == (ssize_t)bytes)
		return 1;
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail_msg("a session ended with status %x", (unsigned)status);
	return 0;
}

static inline void run_session(void *answer, const void *job)
{
	session(answer, job);
}

static inline int session_apart(
	struct answer *answer, const struct job *job, int64_t calls, int64_t microseconds)
{
	return run_apart(run_session, answer, sizeof *answer, job, calls, microseconds);
}

static inline void check_answer(
	const struct answer *answer, const struct job *job, const struct gradient *want)
{
	if (answer->rc == 0 && !answer->line[0] &&
		memcmp(&answer->gradient, want, sizeof *want) == 0)
		return;
	fail_msg("%s%s, %llu bytes, tiers %d, %lld steps, extra %u, every %g, seed %llu: %d %s",
		job->strategy, job->unknown ? ", unknown length" : "",
		(unsigned long long)job->memory, job->tiers, (long long)job->steps, job->extra_most,
		job->every, (unsigned long long)job->seed, answer->rc,
		answer->line[0] ? answer->line : "gradient");
}

static inline struct gradient want_of(const struct job *job)
{
	struct model m;
	job_model(&m, job);
	struct gradient want = reference(&m);
	model_fini(&m);
	return want;
}

#endif

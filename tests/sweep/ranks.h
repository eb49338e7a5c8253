/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.h: ranks of a collective sweep as processes of one test, and what they meet through: memory
 * that they share. A hook that takes the least over ranks, and an exchange for models. A rank that
 * is killed, or leaves, ends the others: their next meeting answers -EIO.
 */
#ifndef NEAP_TESTS_SWEEP_RANKS_H
#define NEAP_TESTS_SWEEP_RANKS_H

#include "../test.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* Within a rank, where cmocka's checks would go on with the test in a process of their own. */
#define RANK_NEEDS(condition)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition);          \
			_exit(8);                                                                  \
		}                                                                                  \
	} while (0)

#define RANKS_MOST 4
#define MESSAGE 320	 /* bytes of a rank's part of a meeting */
#define RANK_SECONDS 120 /* that a start may take, sanitizers and a busy machine included */

/* One way to meet. A message stays until all have read it: two of them in turns are enough. */
struct meeting {
	atomic_int ended;
	struct {
		atomic_int count; /* meetings that the rank has come to */
		char bytes[2][MESSAGE];
	} of[RANKS_MOST];
};

/* What all ranks of a start share. */
struct world {
	int ranks;
	struct meeting agreements, model;
	atomic_int left; /* ranks that called leave */
	char results[RANKS_MOST][16384];
};

struct rank {
	struct world *world;
	int rank;
	int64_t agreements;	    /* that this rank came to */
	int64_t die_at, die_after;  /* agreements before or after which the rank is killed */
	int64_t fail_at, tamper_at; /* agreements at which the hook fails, or changes the stamp */
};

static inline struct world *make_world(int ranks)
{
	void *at = mmap(NULL, sizeof(struct world), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(at != MAP_FAILED);
	struct world *w = at;
	w->ranks = ranks;
	return w;
}

static inline void free_world(struct world *w)
{
	munmap(w, sizeof *w);
}

static inline void wake(atomic_int *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void end_meetings(struct world *w)
{
	atomic_store(&w->agreements.ended, 1);
	atomic_store(&w->model.ended, 1);
	for (int i = 0; i < w->ranks; i++) {
		wake(&w->agreements.of[i].count);
		wake(&w->model.of[i].count);
	}
}

/* Waits until a rank has come to `count` meetings. 0 or -EIO. */
static inline int await_rank(struct meeting *m, int rank, int count)
{
	const struct timespec nap = {0, 20 * 1000 * 1000};
	for (;;) {
		int now = atomic_load(&m->of[rank].count);
		if (now - count >= 0)
			return 0;
		if (atomic_load(&m->ended))
			return -EIO;
		(void)syscall(SYS_futex, &m->of[rank].count, FUTEX_WAIT, now, &nap, NULL, 0);
	}
}

/* Gives `bytes` of this rank to all; `all` gets those of every rank, in their order. */
static inline int meet(
	const struct rank *r, struct meeting *m, const void *own, size_t bytes, void *all)
{
	int count = atomic_load(&m->of[r->rank].count);
	RANK_NEEDS(bytes <= MESSAGE);
	memcpy(m->of[r->rank].bytes[count % 2], own, bytes);
	atomic_store(&m->of[r->rank].count, count + 1);
	wake(&m->of[r->rank].count);
	for (int i = 0; i < r->world->ranks; i++) {
		if (await_rank(m, i, count + 1) < 0)
			return -EIO;
		memcpy((char *)all + (size_t)i * bytes, m->of[i].bytes[count % 2], bytes);
	}
	return 0;
}

/* neap_sweep_options.agree; user is the rank. */
static inline int rank_agree(void *user, int64_t *values, int count)
{
	struct rank *r = user;
	int64_t all[RANKS_MOST * MESSAGE / sizeof(int64_t)];
	r->agreements++;
	if (r->agreements == r->die_at)
		kill(getpid(), SIGKILL);
	if (r->agreements == r->fail_at)
		return -EIO;
	if (r->agreements == r->tamper_at) {
		values[0] += 256;
		values[1] -= 256;
	}
	if (meet(r, &r->world->agreements, values, (size_t)count * sizeof *values, all) < 0)
		return -EIO;
	for (int i = 0; i < r->world->ranks; i++)
		for (int k = 0; k < count; k++)
			values[k] = all[i * count + k] < values[k] ? all[i * count + k] : values[k];
	if (r->agreements == r->die_after)
		kill(getpid(), SIGKILL);
	return 0;
}

/* neap_sweep_options.leave */
static inline void rank_leave(void *user, int code)
{
	struct rank *r = user;
	(void)code;
	atomic_fetch_add(&r->world->left, 1);
	end_meetings(r->world);
}

/* Takes the hook into options. */
#define RANK_HOOK(r, options)                                                                      \
	((options)->agree = rank_agree, (options)->leave = rank_leave, (options)->agree_user = (r))

static struct world *rank_world; /* of a rank's process */

/* Says where all ranks are: the same counts tell a slow machine from a hang. */
static inline void rank_hangs(int signal)
{
	char text[200];
	int n = snprintf(text, sizeof text, "# a rank is late; agreements, meetings of models:");
	(void)signal;
	for (int i = 0; i < rank_world->ranks; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, " %d %d,",
			atomic_load(&rank_world->agreements.of[i].count),
			atomic_load(&rank_world->model.of[i].count));
	(void)!write(2, text, (size_t)n);
	(void)!write(2, "\n", 1);
	_exit(9);
}

/*
 * Runs run(rank, user) on every rank, each in a process, and waits for all. 0, or how the first of
 * them ended that did not exit with 0: a signal, or 256 and its code.
 */
static inline int start_ranks(
	struct world *w, void (*run)(struct rank *rank, void *user), void *user)
{
	pid_t children[RANKS_MOST];
	int first = 0;
	atomic_store(&w->agreements.ended, 0);
	atomic_store(&w->model.ended, 0);
	fflush(NULL);
	for (int i = 0; i < w->ranks; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			struct rank r = {.world = w, .rank = i};
			rank_world = w;
			signal(SIGALRM, rank_hangs);
			const char *seconds = getenv("NEAP_RANK_SECONDS");
			alarm(seconds ? (unsigned)atoi(seconds) : RANK_SECONDS);
			run(&r, user);
			_exit(0);
		}
	}
	for (int left = w->ranks; left > 0; left--) {
		int status;
		pid_t child = wait(&status);
		assert_true(child > 0);
		int how = WIFSIGNALED(status)	? WTERMSIG(status)
			  : WEXITSTATUS(status) ? 256 + WEXITSTATUS(status)
						: 0;
		first = first ? first : how;
		if (how)
			end_meetings(w);
	}
	for (int i = 0; i < w->ranks; i++) {
		atomic_store(&w->agreements.of[i].count, 0);
		atomic_store(&w->model.of[i].count, 0);
	}
	(void)children;
	return first;
}

#endif

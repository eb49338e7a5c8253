/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_shared.h: what journals of both executors share, of chains and of stages: the file from
 * create to free, how a run begins and ends with it, when a commit is taken, how a journal begins,
 * and the line that refuses one of another sweep.
 */
#ifndef NEAP_SWEEP_JOURNAL_JOURNAL_SHARED_H
#define NEAP_SWEEP_JOURNAL_JOURNAL_SHARED_H

#include <neap/sweep.h>
#include "store/journal_file.h"
#include "sweep/agree.h"
#include "sys/scratch.h"

/* Of a sweep from create to free. */
struct neap__journal_base {
	char *directory;	       /* NULL: the sweep has no journal */
	char name[NEAP__SCRATCH_NAME]; /* of the file in it */
	struct neap__journal *file;    /* open from create to the end of a run; may be NULL then */
	struct neap_saved *plan;       /* that of the journal, where one was there */
	int resumes;		       /* a journal was there: the identity is its */
	int finished;		       /* the last run ended: nobody needs the journal */
	double began_at, due_at; /* seconds of sys/clock.h: of this process; the next commit */
	double seconds_before;	 /* that the run took in earlier processes */
};

/* What a journal touches of its sweep. */
struct neap__journal_owner {
	struct neap__journal_base *journal;
	const struct neap_sweep_options *options;
	struct neap__agree_state *agreement;
	struct neap_sweep_stats *stats;
	struct neap_tier *const *tiers;
	int ntiers;
};

/* 0, or NEAP_EUSAGE: the model does not have grad_save and grad_load. */
int neap__journal_needs(int saves);

/*
 * At create: opens the journal that the options ask for. saves: the model has grad_save and
 * grad_load. 0, NEAP_EUSAGE or a code of the file system, the same on all ranks.
 */
int neap__journal_open_first(const struct neap__journal_owner *o, int saves);
/* Removes the journal, and lets the tiers drop their records. */
void neap__journal_drop(const struct neap__journal_owner *o);
/* At free: removes the journal if the last run ended, else leaves it. */
void neap__journal_let_go(const struct neap__journal_owner *o);
/* A run begins. 1: the file is at the commit to resume from; 0: there is none; or a code. */
int neap__journal_begin_run(const struct neap__journal_owner *o);
/* After begin_run, once the run has its state: sets the clock. */
void neap__journal_run_began(const struct neap__journal_owner *o);
/* Records on the tiers are those of `epoch` from now on, or of none where it is 0. */
void neap__journal_adopt(const struct neap__journal_owner *o, uint64_t epoch);
/* The numbers of a run that resumes are read: what was done before counts as spared. */
void neap__journal_resumed(const struct neap__journal_owner *o);
/* A run ended with the answer rc. */
void neap__journal_end_run(const struct neap__journal_owner *o, int rc);
/*
 * Takes a commit, after transfers have ended: the tiers flush their records, then write(run). One
 * that fails cannot be resumed from; the run goes on.
 */
void neap__journal_take_commit(
	const struct neap__journal_owner *o, int (*write)(void *run), void *run);
/* 1 where the time for a commit has come on this rank. */
int neap__journal_is_due(const struct neap__journal_base *journal);

typedef int neap__grad_save(
	void *user, int (*write)(void *to, const void *bytes, size_t count), void *to);
typedef int neap__grad_load(
	void *user, int (*read)(void *from, void *bytes, size_t count), void *from);
/* Bytes that the model gathered, into *bytes; its answer. */
int neap__journal_count(neap__grad_save *save, void *user, uint64_t *bytes);
/* What the model gathered, into the journal and out of it; its answer. */
int neap__journal_save(struct neap__journal *file, neap__grad_save *save, void *user);
int neap__journal_load(struct neap__journal *file, neap__grad_load *load, void *user);

/* Moves bytes into a commit or out of it: neap__journal_write_out, neap__journal_read_in. */
typedef int neap__journal_mover(struct neap__journal *file, void *bytes, size_t count);
neap__journal_mover neap__journal_write_out, neap__journal_read_in;

struct neap__journal_field {
	void *at;
	size_t bytes;
};

#define NEAP__JOURNAL_FIELD(x)                                                                     \
	{                                                                                          \
		&(x), sizeof(x)                                                                    \
	}

int neap__journal_move(struct neap__journal *file, const struct neap__journal_field *fields,
	size_t count, neap__journal_mover *move);

/* NEAP_EUSAGE, with the line. */
int neap__journal_differs(
	const struct neap__journal_base *journal, const char *what, uint64_t there, uint64_t here);
/* 0 where the strategies are the same, else NEAP_EUSAGE, with the line. */
int neap__journal_same_strategy(
	const struct neap__journal_base *journal, const char *there, const char *here);
/* NEAP_EFORMAT: numbers of a commit that index tables are out of them. */
int neap__journal_senseless(const struct neap__journal_base *journal);

/*
 * Starts the journal anew. Its subject is the identity, `bytes` long, and behind it the plan as
 * text, whose length goes to *plan_bytes, a field of the identity; 0 where it cannot be written,
 * or where plan is NULL. Commits have `most` bytes at most. number: of the run, 0: any.
 */
int neap__journal_write_subject(struct neap__journal *file, uint64_t number, void *identity,
	size_t bytes, uint64_t *plan_bytes, const struct neap_plan *plan,
	const struct neap_problem *problem, uint64_t most);

/* Seconds between commits, where the options say `option` and the last one took `took`. */
double neap__journal_every(double option, double took);

/* Write and read pages of an arena, as neap__memory_show and neap__memory_take need it; file: a
 * journal. */
int neap__commit_write_pages(void *file, const unsigned char *bytes, uint64_t from, uint64_t count);
int neap__commit_read_pages(void *file, unsigned char *bytes, uint64_t count);

#endif

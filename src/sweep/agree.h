/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.h: agreements of the ranks of a collective sweep (neap_sweep_options.agree). What a sweep
 * decides by and is not a function of its plan goes through here before it is looked at: then all
 * ranks decide alike, and come to the same agreements and the same calls of the model. Without a
 * hook every function answers what it was given, after one test of a pointer.
 */
#ifndef NEAP_SWEEP_AGREE_H
#define NEAP_SWEEP_AGREE_H

#include <neap/sweep.h>

#define NEAP__AGREE_VALUES 34 /* values of an agreement; two more hold the stamp */

/* What an agreement is about, and its name in lines. */
#define NEAP__AGREE_SITES                                                                          \
	NEAP__AGREE_SITE(OPTIONS, "options")                                                       \
	NEAP__AGREE_SITE(PROBLEM, "problem")                                                       \
	NEAP__AGREE_SITE(LEADER, "leader")                                                         \
	NEAP__AGREE_SITE(PLAN, "plan")                                                             \
	NEAP__AGREE_SITE(PLACES, "places")                                                         \
	NEAP__AGREE_SITE(CREATED, "created")                                                       \
	NEAP__AGREE_SITE(COST, "cost")                                                             \
	NEAP__AGREE_SITE(START, "start")                                                           \
	NEAP__AGREE_SITE(JOURNAL, "journal")                                                       \
	NEAP__AGREE_SITE(POLL, "poll")                                                             \
	NEAP__AGREE_SITE(RECORD, "record")                                                         \
	NEAP__AGREE_SITE(WAIT, "wait")                                                             \
	NEAP__AGREE_SITE(COMMIT, "commit")                                                         \
	NEAP__AGREE_SITE(FALLBACK, "fallback")                                                     \
	NEAP__AGREE_SITE(END, "end")

enum neap__agree_site {
#define NEAP__AGREE_SITE(name, text) NEAP__AGREE_##name,
	NEAP__AGREE_SITES
#undef NEAP__AGREE_SITE
		NEAP__AGREE_SITE_COUNT
};

/* Of a sweep: the hook, and where its agreements are. All zero: the sweep is alone. */
struct neap__agree_state {
	int (*agree)(void *user, int64_t *values, int count);
	void (*leave)(void *user, int code);
	void *user;
	int64_t number;	  /* of the next agreement */
	int broken;	  /* 0, or the code of the agreement that failed: there are no more */
	int over;	  /* 1: the run has ended, or failed on this rank; nothing is agreed on */
	int known;	  /* the last negative code that all ranks agreed on */
	char line[200];	  /* of `broken` */
	int started_over; /* a journal that not all ranks have was passed over, at create or after
			   */
	/* Polls: see neap__agree_poll. Work is steps and calls, which all ranks count alike. */
	int64_t work, stretch; /* at the last poll; until the next */
	double polled_at;      /* seconds of sys/clock.h */
	int asked;	       /* this rank was interrupted */
	int interrupted, due;  /* agreed */
};

/* For tests: the hook of sweeps whose options have none; NULL, as at first: they are alone. */
extern int (*neap__agree_always)(void *user, int64_t *values, int count);

/* Takes the hook of the options. */
void neap__agree_take(struct neap__agree_state *a, const struct neap_sweep_options *options);
/* Before a run: how the last one ended is forgotten; all ranks begin to count anew. */
void neap__agree_begin_run(struct neap__agree_state *a);

static inline int neap__agrees(const struct neap__agree_state *a)
{
	return a->agree != NULL;
}

/*
 * Replaces each value by the least over all ranks; count is at most NEAP__AGREE_VALUES. 0, or a
 * negative code: the hook's, or NEAP_EILLEGAL on all ranks where another one is elsewhere.
 */
int neap__agree(
	struct neap__agree_state *a, enum neap__agree_site site, int64_t *values, int count);
/* The least of the answers of all ranks, of which 0 and above are as good; rc where that is. */
int neap__agree_code(struct neap__agree_state *a, enum neap__agree_site site, int rc);
/* The same of a transfer: what an agreement that fails answers is not a transfer's answer. */
int neap__agree_answer(struct neap__agree_state *a, int answer);
/*
 * After a callback that wrote tapes or logs that vary: *used becomes the most over all ranks.
 * NEAP_EMODEL where they came to different steps.
 */
int neap__agree_used(struct neap__agree_state *a, const char *name, size_t *used, int64_t done);
/* Replaces seconds, 0 or more, by the most over all ranks. */
int neap__agree_seconds(struct neap__agree_state *a, double *seconds);

/* A number that must be the same on all ranks; NEAP_EUSAGE names the first that is not. */
struct neap__agree_row {
	const char *name;
	uint64_t value;
};
int neap__agree_same(struct neap__agree_state *a, enum neap__agree_site site, int rc,
	const struct neap__agree_row *rows, int count);

/* Hashes for rows; of a name: NULL is one, too. */
uint64_t neap__agree_hash(const void *bytes, size_t count);
uint64_t neap__agree_hash_name(const char *name);

/*
 * Makes a problem the same on all ranks: seconds, latencies and staging are the largest, rates,
 * capacities and memory the least. rc: whether it could be described.
 */
int neap__agree_problem(struct neap__agree_state *a, int rc, struct neap_problem *problem);
/* Replaces n seconds by the largest of each, as those of stages. */
int neap__agree_list(struct neap__agree_state *a, double *seconds, int64_t n);

/*
 * One rank plans: make(user, plan) answers 0 where the plan is feasible. All read its text and own
 * *saved; or fail with its code and its line. The problem is the same on all ranks.
 */
int neap__agree_plan(struct neap__agree_state *a, const struct neap_problem *problem,
	int (*make)(void *user, struct neap_plan *plan), void *user, struct neap_saved **saved);
/* A hash of a plan's text; 0: it has none. */
uint64_t neap__agree_plan_hash(const struct neap_plan *plan, const struct neap_problem *problem);

/*
 * Before a call of the model, after `work` of the run was done: about ten times a second sets
 * `interrupted` and `due` where any rank was interrupted (a->asked), or has a commit that is due.
 * often: before every call.
 */
int neap__agree_poll(struct neap__agree_state *a, int64_t work, int due, int often);

/*
 * A run ends with rc, which is answered; afterwards nothing is agreed on. An error that other ranks
 * may not know of goes to `leave`; without that, to a last agreement, which tells them.
 */
int neap__agree_end(struct neap__agree_state *a, int rc);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_calls.c: with NEAP_TEST_LATE=1 the calls of every sweep's model are queued, as on a device:
 * they are done when the queue is full, at a call that cannot wait, or at the latest in `fence`. A
 * sweep that reads or passes on bytes without a fence has stale ones, or ends the test. A call
 * whose result depends on its work, such as record if tapes vary, waits for the calls before it.
 */
#include "late_calls.h"
#include <neap/neap.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE 16

enum kind {
	ADVANCE,
	RECORD,
	BACKWARD,
	ADVANCE_LOG,
	REPLAY,
	SAVE,
	LOAD,
	STAGE_FORWARD,
	STAGE_TAPED,
	STAGE_BACK
};

/* A call with its arguments. */
struct job {
	enum kind kind;
	int first, branch;
	int64_t t0, t1, log_t0;
	void *at[6];
	size_t room;
};

struct late {
	struct neap_step_ops ops;
	struct neap_stage_ops stages;
	struct neap_join_ops joins;
	void *user;
	struct job jobs[QUEUE];
	int count, most, drains;
	int failed;
	char line[256];
	struct late *next;
};

static struct late *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct late *current;

int calls_are_late(void)
{
	return getenv("NEAP_TEST_LATE") != NULL;
}

static void stop(const char *what)
{
	fprintf(stderr, "late_calls.c: %s: calls of the model are not done\n", what);
	abort();
}

static int do_stage(struct late *x, const struct job *j)
{
	void *const *at = j->at;
	const int join = x->joins.size != 0, b = j->branch;
	if (j->kind == STAGE_FORWARD)
		return join ? x->joins.advance(x->user, b, j->t0, at[0], at[1], at[2], j->first)
			    : x->stages.advance(x->user, j->t0, at[0], at[1], at[2], j->first);
	if (j->kind == STAGE_TAPED)
		return join ? x->joins.record(
				      x->user, b, j->t0, at[0], at[1], at[2], at[3], j->first)
			    : x->stages.record(
				      x->user, j->t0, at[0], at[1], at[2], at[3], j->first);
	return join ? x->joins.backward(x->user, b, j->t0, at[0], at[1], at[2], at[3], at[4])
		    : x->stages.backward(x->user, j->t0, at[0], at[1], at[2], at[3], at[4]);
}

static int do_job(struct late *x, const struct job *j)
{
	const struct neap_step_ops *o = &x->ops;
	size_t used;
	int64_t done;
	switch (j->kind) {
	case ADVANCE:
		return o->advance(x->user, j->at[0], j->t0, j->t1, j->first);
	case RECORD:
		return o->record(
			x->user, j->at[0], j->t0, j->t1, j->first, j->at[1], j->room, &used, &done);
	case BACKWARD:
		return o->backward(x->user, j->at[0], j->t1, j->t0, j->at[1]);
	case ADVANCE_LOG:
		return o->advance_log(
			x->user, j->at[0], j->t0, j->t1, j->first, j->at[1], j->room, &used, &done);
	case REPLAY:
		return o->replay(x->user, j->at[0], j->t0, j->t1, j->at[1], j->log_t0, j->at[2],
			j->room, &used, &done);
	case SAVE:
		return o->save(x->user, j->at[0], j->at[1]);
	case LOAD:
		return o->load(x->user, j->at[0], j->at[1]);
	default:
		return do_stage(x, j);
	}
}

/* Calls behind one that failed are not done. */
static void drain(struct late *x)
{
	int count = x->count;
	x->count = 0;
	for (int i = 0; i < count && !x->failed; i++) {
		const struct job j = x->jobs[i];
		neap_detail_set(NULL);
		x->failed = do_job(x, &j);
		if (x->failed)
			snprintf(x->line, sizeof x->line, "%s", neap_detail());
	}
	x->most = 1 + x->drains++ * 5 % QUEUE; /* the queue's length varies */
}

void late_drain(void)
{
	if (current)
		drain(current);
}

int late_queued(void)
{
	return current ? current->count : 0;
}

void late_expect_none(const char *what)
{
	if (current && current->count)
		stop(what);
}

static int queue(struct late *x, const struct job *j)
{
	current = x;
	if (x->count >= x->most)
		drain(x);
	x->jobs[x->count++] = *j;
	return 0;
}

static int fence(void *user)
{
	struct late *x = user;
	current = x;
	drain(x);
	int rc = x->failed;
	x->failed = 0;
	neap_detail_set(rc && x->line[0] ? x->line : NULL);
	return rc;
}

/* Before a call that is not queued: what it needs is done, or it fails as the one before it. */
static int settled(struct late *x)
{
	current = x;
	drain(x);
	int rc = x->failed;
	x->failed = 0;
	if (rc)
		neap_detail_set(x->line[0] ? x->line : NULL);
	return rc;
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	return queue(user,
		&(struct job){.kind = ADVANCE, .t0 = t0, .t1 = t1, .first = first, .at = {state}});
}

/* 1 if the bytes that a call uses are known; sets its answers. */
static int is_known(
	size_t bytes, size_t most, int64_t t0, int64_t t1, size_t room, size_t *used, int64_t *done)
{
	*used = (size_t)(t1 - t0) * bytes;
	*done = t1;
	return bytes && (!most || most == bytes) && *used <= room;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *done)
{
	struct late *x = user;
	const struct job j = {.kind = RECORD,
		.t0 = t0,
		.t1 = t1,
		.first = first,
		.at = {state, tape},
		.room = room};
	if (is_known(x->ops.tape_bytes, x->ops.tape_max_bytes, t0, t1, room, used, done))
		return queue(x, &j);
	int rc = settled(x);
	return rc ? rc : x->ops.record(x->user, state, t0, t1, first, tape, room, used, done);
}

static int advance_log(void *user, void *state, int64_t t0, int64_t t1, int first, void *log,
	size_t room, size_t *used, int64_t *done)
{
	struct late *x = user;
	const struct job j = {.kind = ADVANCE_LOG,
		.t0 = t0,
		.t1 = t1,
		.first = first,
		.at = {state, log},
		.room = room};
	if (is_known(x->ops.log_bytes, x->ops.log_max_bytes, t0, t1, room, used, done))
		return queue(x, &j);
	int rc = settled(x);
	return rc ? rc : x->ops.advance_log(x->user, state, t0, t1, first, log, room, used, done);
}

static int replay(void *user, void *state, int64_t t0, int64_t t1, const void *log, int64_t log_t0,
	void *tape, size_t room, size_t *used, int64_t *done)
{
	struct late *x = user;
	const struct job j = {.kind = REPLAY,
		.t0 = t0,
		.t1 = t1,
		.log_t0 = log_t0,
		.at = {state, (void *)(uintptr_t)log, tape},
		.room = room};
	if (is_known(x->ops.tape_bytes, x->ops.tape_max_bytes, t0, t1, room, used, done))
		return queue(x, &j);
	int rc = settled(x);
	return rc ? rc : x->ops.replay(x->user, state, t0, t1, log, log_t0, tape, room, used, done);
}

static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	struct late *x = user;
	current = x;
	late_expect_none("turn");
	return x->ops.turn(x->user, state, adjoint, loss);
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	return queue(user, &(struct job){.kind = BACKWARD,
				   .t0 = t0,
				   .t1 = t1,
				   .at = {adjoint, (void *)(uintptr_t)tape}});
}

static int save(void *user, void *to, const void *state)
{
	return queue(user, &(struct job){.kind = SAVE, .at = {to, (void *)(uintptr_t)state}});
}

static int load(void *user, void *state, const void *from)
{
	return queue(user, &(struct job){.kind = LOAD, .at = {state, (void *)(uintptr_t)from}});
}

static void will_touch(void *user, int64_t t0, int64_t t1)
{
	const struct late *x = user;
	x->ops.will_touch(x->user, t0, t1);
}

static int ended(void *user, const void *state, int64_t t)
{
	struct late *x = user;
	int rc = settled(x);
	return rc ? rc : x->ops.ended(x->user, state, t);
}

static int grad_save(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	struct late *x = user;
	current = x;
	late_expect_none("grad_save");
	return (x->ops.size	? x->ops.grad_save
		: x->joins.size ? x->joins.grad_save
				: x->stages.grad_save)(x->user, write, to);
}

static int grad_load(void *user, int (*read)(void *, void *, size_t), void *from)
{
	struct late *x = user;
	current = x;
	late_expect_none("grad_load");
	return (x->ops.size	? x->ops.grad_load
		: x->joins.size ? x->joins.grad_load
				: x->stages.grad_load)(x->user, read, from);
}

/* It stays until the end of the test, as its sweep may. */
static struct late *make(void **user)
{
	struct late *x = calloc(1, sizeof *x);
	if (!x)
		abort();
	x->user = *user;
	x->most = 3;
	*user = x;
	pthread_mutex_lock(&lock);
	x->next = all;
	all = x;
	pthread_mutex_unlock(&lock);
	return x;
}

#define LATE(o, name) (o)->name = (o)->name ? name : NULL

struct neap_step_ops late_steps_again(const struct neap_step_ops *ops, void *late)
{
	struct late *x = late;
	memset(&x->ops, 0, sizeof x->ops);
	memcpy(&x->ops, ops, ops->size);
	struct neap_step_ops o = x->ops;
	LATE(&o, advance);
	LATE(&o, record);
	LATE(&o, turn);
	LATE(&o, backward);
	LATE(&o, save);
	LATE(&o, load);
	LATE(&o, will_touch);
	LATE(&o, ended);
	LATE(&o, grad_save);
	LATE(&o, grad_load);
	LATE(&o, advance_log);
	LATE(&o, replay);
	o.size = sizeof o;
	o.fence = fence;
	return o;
}

struct neap_step_ops late_ops(const void *late)
{
	const struct late *x = late;
	return x->ops;
}

struct neap_step_ops late_steps(const struct neap_step_ops *ops, void **user)
{
	return late_steps_again(ops, make(user));
}

static int stage_advance(void *user, int64_t i, const void *a, void *y, void *tmp, int first)
{
	return queue(user, &(struct job){.kind = STAGE_FORWARD,
				   .t0 = i,
				   .first = first,
				   .at = {(void *)(uintptr_t)a, y, tmp}});
}

static int stage_record(
	void *user, int64_t i, const void *a, void *y, void *tape, void *tmp, int first)
{
	return queue(user, &(struct job){.kind = STAGE_TAPED,
				   .t0 = i,
				   .first = first,
				   .at = {(void *)(uintptr_t)a, y, tape, tmp}});
}

static int stage_turn(void *user, const void *a, void *dx, void *tmp, double *loss)
{
	struct late *x = user;
	current = x;
	late_expect_none("turn");
	return x->stages.turn(x->user, a, dx, tmp, loss);
}

static int stage_backward(
	void *user, int64_t i, const void *a, const void *tape, void *dy, void *dx, void *tmp)
{
	return queue(
		user, &(struct job){.kind = STAGE_BACK,
			      .t0 = i,
			      .at = {(void *)(uintptr_t)a, (void *)(uintptr_t)tape, dy, dx, tmp}});
}

struct neap_stage_ops late_stages(const struct neap_stage_ops *ops, void **user)
{
	struct late *x = make(user);
	memcpy(&x->stages, ops, ops->size);
	struct neap_stage_ops o = x->stages;
	o.advance = o.advance ? stage_advance : NULL;
	o.record = o.record ? stage_record : NULL;
	o.turn = o.turn ? stage_turn : NULL;
	o.backward = o.backward ? stage_backward : NULL;
	LATE(&o, grad_save);
	LATE(&o, grad_load);
	o.size = sizeof o;
	o.fence = fence;
	return o;
}

static int join_advance(
	void *user, int branch, int64_t i, const void *a, void *y, void *tmp, int first)
{
	return queue(user, &(struct job){.kind = STAGE_FORWARD,
				   .branch = branch,
				   .t0 = i,
				   .first = first,
				   .at = {(void *)(uintptr_t)a, y, tmp}});
}

static int join_record(
	void *user, int branch, int64_t i, const void *a, void *y, void *tape, void *tmp, int first)
{
	return queue(user, &(struct job){.kind = STAGE_TAPED,
				   .branch = branch,
				   .t0 = i,
				   .first = first,
				   .at = {(void *)(uintptr_t)a, y, tape, tmp}});
}

static int join_turn(void *user, const void *const *a, void *const *dx, void *tmp, double *loss)
{
	struct late *x = user;
	current = x;
	late_expect_none("turn");
	return x->joins.turn(x->user, a, dx, tmp, loss);
}

static int join_backward(void *user, int branch, int64_t i, const void *a, const void *tape,
	void *dy, void *dx, void *tmp)
{
	return queue(
		user, &(struct job){.kind = STAGE_BACK,
			      .branch = branch,
			      .t0 = i,
			      .at = {(void *)(uintptr_t)a, (void *)(uintptr_t)tape, dy, dx, tmp}});
}

struct neap_join_ops late_joins(const struct neap_join_ops *ops, void **user)
{
	struct late *x = make(user);
	memcpy(&x->joins, ops, ops->size);
	struct neap_join_ops o = x->joins;
	o.advance = o.advance ? join_advance : NULL;
	o.record = o.record ? join_record : NULL;
	o.turn = o.turn ? join_turn : NULL;
	o.backward = o.backward ? join_backward : NULL;
	LATE(&o, grad_save);
	LATE(&o, grad_load);
	o.size = sizeof o;
	o.fence = fence;
	return o;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_memory.c: with NEAP_TEST_MEMORY=1 the arena of every sweep of the test lies in memory that
 * nobody may touch: its addresses are mapped without access. Callbacks of the model, tiers and the
 * functions of neap_memory_ops get addresses of the same bytes elsewhere. An access of the library
 * through an address of the arena ends the test with SIGSEGV, in any thread. Linked with --wrap for
 * each function that makes a sweep. Calls of the model may be late (late_calls.c).
 */
#include "guard_memory.h"
#include "late_calls.h"
#include <neap/neap.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAPPINGS 256

/* Bytes at `real` that the library knows as `shown`. */
struct mapping {
	unsigned char *shown, *real;
	uint64_t bytes;
};

static struct mapping mappings[MAPPINGS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int memory_is_guarded(void)
{
	return getenv("NEAP_TEST_MEMORY") != NULL;
}

static void stop(const char *why)
{
	fprintf(stderr, "guard_memory.c: %s\n", why);
	abort();
}

/* The address of the bytes; one outside of all arenas stays as it is. */
void *guarded_address(const void *at)
{
	const unsigned char *p = at;
	void *found = (void *)(uintptr_t)at;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAPPINGS; i++) {
		const struct mapping *m = &mappings[i];
		if (m->bytes && p >= m->shown && p <= m->shown + m->bytes)
			found = m->real + (p - m->shown);
		if (m->bytes && p >= m->shown && p < m->shown + m->bytes)
			break;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void *map(void *user, uint64_t bytes)
{
	(void)user;
	void *shown =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *bytes_at =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (shown == MAP_FAILED || bytes_at == MAP_FAILED)
		return NULL;
	memset(bytes_at, 0x37, bytes); /* not zero, as a device's memory is not */
	pthread_mutex_lock(&lock);
	int i = 0;
	while (i < MAPPINGS && mappings[i].bytes)
		i++;
	if (i == MAPPINGS)
		stop("too many arenas");
	mappings[i] = (struct mapping){shown, bytes_at, bytes};
	pthread_mutex_unlock(&lock);
	return shown;
}

static void unmap(void *user, void *at, uint64_t bytes)
{
	(void)user;
	struct mapping m = {0};
	late_expect_none("unmap");
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAPPINGS; i++)
		if (mappings[i].bytes == bytes && mappings[i].shown == at) {
			m = mappings[i];
			mappings[i].bytes = 0;
		}
	pthread_mutex_unlock(&lock);
	if (!m.bytes)
		stop("unmap of what was not mapped");
	munmap(m.shown, bytes);
	munmap(m.real, bytes);
}

static int move(void *user, void *to, const void *from, uint64_t bytes)
{
	(void)user;
	late_drain();
	if (guarded_address(to) == to || guarded_address(from) == from)
		stop("move is not within the memory");
	memmove(guarded_address(to), guarded_address(from), bytes);
	return 0;
}

static int fill(void *user, void *at, int byte, uint64_t bytes)
{
	(void)user;
	late_drain();
	if (guarded_address(at) == at)
		stop("fill is not within the memory");
	memset(guarded_address(at), byte, bytes);
	return 0;
}

static int read_out(void *user, void *host, const void *at, uint64_t bytes)
{
	(void)user;
	late_expect_none("read");
	if (guarded_address(host) != host || guarded_address(at) == at)
		stop("read is not from the memory to the host");
	memcpy(host, guarded_address(at), bytes);
	return 0;
}

static int write_in(void *user, void *at, const void *host, uint64_t bytes)
{
	(void)user;
	late_expect_none("write");
	if (guarded_address(host) != host || guarded_address(at) == at)
		stop("write is not from the host to the memory");
	memcpy(guarded_address(at), host, bytes);
	return 0;
}

static const struct neap_memory_ops memory = {.size = sizeof memory,
	.map = map,
	.unmap = unmap,
	.move = move,
	.fill = fill,
	.read = read_out,
	.write = write_in};

/* A model of equal steps. It stays until the end of the test, as its sweep may. */
struct steps {
	struct neap_step_ops ops;
	void *user;
	struct neap_sweep *sweep;
	int late; /* 1: `user` is of late_calls.c */
	struct steps *next;
};
static struct steps *all_steps;

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	const struct steps *x = user;
	return x->ops.advance(x->user, guarded_address(state), t0, t1, first);
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	const struct steps *x = user;
	return x->ops.record(x->user, guarded_address(state), t0, t1, first, guarded_address(tape),
		room, used, t_done);
}

static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	const struct steps *x = user;
	return x->ops.turn(x->user, guarded_address(state), guarded_address(adjoint), loss);
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	const struct steps *x = user;
	return x->ops.backward(x->user, guarded_address(adjoint), t1, t0, guarded_address(tape));
}

static int save(void *user, void *to, const void *state)
{
	const struct steps *x = user;
	return x->ops.save(x->user, guarded_address(to), guarded_address(state));
}

static int load(void *user, void *state, const void *from)
{
	const struct steps *x = user;
	return x->ops.load(x->user, guarded_address(state), guarded_address(from));
}

static void will_touch(void *user, int64_t t0, int64_t t1)
{
	const struct steps *x = user;
	x->ops.will_touch(x->user, t0, t1);
}

static int grad_save(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	const struct steps *x = user;
	return x->ops.grad_save(x->user, write, to);
}

static int grad_load(void *user, int (*read)(void *, void *, size_t), void *from)
{
	const struct steps *x = user;
	return x->ops.grad_load(x->user, read, from);
}

static int ended(void *user, const void *state, int64_t t)
{
	const struct steps *x = user;
	return x->ops.ended(x->user, guarded_address(state), t);
}

static int advance_log(void *user, void *state, int64_t t0, int64_t t1, int first, void *log,
	size_t room, size_t *used, int64_t *t_done)
{
	const struct steps *x = user;
	return x->ops.advance_log(x->user, guarded_address(state), t0, t1, first,
		guarded_address(log), room, used, t_done);
}

static int replay(void *user, void *state, int64_t t0, int64_t t1, const void *log, int64_t log_t0,
	void *tape, size_t room, size_t *used, int64_t *t_done)
{
	const struct steps *x = user;
	return x->ops.replay(x->user, guarded_address(state), t0, t1, guarded_address(log), log_t0,
		guarded_address(tape), room, used, t_done);
}

static int fence(void *user)
{
	const struct steps *x = user;
	return x->ops.fence(x->user);
}

/* The model's callbacks behind ones that translate addresses. */
static struct neap_step_ops guard_steps(const struct steps *x)
{
	struct neap_step_ops o = x->ops;
#define GUARD(name) o.name = o.name ? name : NULL
	GUARD(advance);
	GUARD(record);
	GUARD(turn);
	GUARD(backward);
	GUARD(save);
	GUARD(load);
	GUARD(will_touch);
	GUARD(grad_save);
	GUARD(grad_load);
	GUARD(ended);
	GUARD(advance_log);
	GUARD(replay);
	GUARD(fence);
#undef GUARD
	o.size = sizeof o;
	o.memory = memory_is_guarded() ? &memory : NULL;
	return o;
}

static struct steps *new_steps(const struct neap_step_ops *ops, void *user)
{
	struct steps *x = calloc(1, sizeof *x);
	if (!x)
		stop("no memory");
	memcpy(&x->ops, ops, ops->size);
	x->user = user;
	x->late = calls_are_late();
	if (x->late)
		x->ops = late_steps(&x->ops, &x->user);
	pthread_mutex_lock(&lock);
	x->next = all_steps;
	all_steps = x;
	pthread_mutex_unlock(&lock);
	return x;
}

static int wraps(void)
{
	return memory_is_guarded() || calls_are_late();
}

static int is_plain(const struct neap_step_ops *ops, const struct neap_sweep_options *options)
{
	struct neap_step_ops o = {0};
	if (!wraps() || !ops || !options || ops->size < 8 || ops->size > sizeof o ||
		options->size < 8)
		return 0;
	memcpy(&o, ops, ops->size);
	return !o.memory && !o.fence;
}

int __real_neap_sweep_create(struct neap_sweep **sweep, const struct neap_step_ops *ops, void *user,
	const struct neap_sweep_options *options);
int __wrap_neap_sweep_create(struct neap_sweep **sweep, const struct neap_step_ops *ops, void *user,
	const struct neap_sweep_options *options);
int __wrap_neap_sweep_create(struct neap_sweep **sweep, const struct neap_step_ops *ops, void *user,
	const struct neap_sweep_options *options)
{
	if (!sweep || !is_plain(ops, options))
		return __real_neap_sweep_create(sweep, ops, user, options);
	struct steps *x = new_steps(ops, user);
	const struct neap_step_ops o = guard_steps(x);
	guard_tiers(options);
	int rc = __real_neap_sweep_create(sweep, &o, x, options);
	x->sweep = rc == 0 ? *sweep : NULL;
	return rc;
}

typedef int open_schedule(void *user, struct neap_schedule **schedule);
int __real_neap__sweep_create_over(struct neap_sweep **sweep, const struct neap_step_ops *ops,
	void *user, const struct neap_sweep_options *options, open_schedule *open, void *open_user);
int __wrap_neap__sweep_create_over(struct neap_sweep **sweep, const struct neap_step_ops *ops,
	void *user, const struct neap_sweep_options *options, open_schedule *open, void *open_user);
int __wrap_neap__sweep_create_over(struct neap_sweep **sweep, const struct neap_step_ops *ops,
	void *user, const struct neap_sweep_options *options, open_schedule *open, void *open_user)
{
	if (!is_plain(ops, options))
		return __real_neap__sweep_create_over(sweep, ops, user, options, open, open_user);
	struct steps *x = new_steps(ops, user);
	const struct neap_step_ops o = guard_steps(x);
	guard_tiers(options);
	int rc = __real_neap__sweep_create_over(sweep, &o, x, options, open, open_user);
	x->sweep = rc == 0 ? *sweep : NULL;
	return rc;
}

int __real_neap_sweep_replan(struct neap_sweep *sweep, const struct neap_step_ops *ops,
	const struct neap_sweep_options *options);
int __wrap_neap_sweep_replan(struct neap_sweep *sweep, const struct neap_step_ops *ops,
	const struct neap_sweep_options *options);
int __wrap_neap_sweep_replan(struct neap_sweep *sweep, const struct neap_step_ops *ops,
	const struct neap_sweep_options *options)
{
	struct steps *x = NULL;
	if (!sweep || !is_plain(ops, options))
		return __real_neap_sweep_replan(sweep, ops, options);
	pthread_mutex_lock(&lock);
	for (x = all_steps; x && x->sweep != sweep; x = x->next)
		continue;
	pthread_mutex_unlock(&lock);
	if (!x)
		return __real_neap_sweep_replan(sweep, ops, options);
	struct steps fresh = *x;
	memset(&fresh.ops, 0, sizeof fresh.ops);
	memcpy(&fresh.ops, ops, ops->size);
	struct neap_step_ops before = {0};
	if (x->late) {
		before = late_ops(x->user);
		fresh.ops = late_steps_again(&fresh.ops, x->user);
	}
	const struct neap_step_ops o = guard_steps(&fresh);
	guard_tiers(options);
	int rc = __real_neap_sweep_replan(sweep, &o, options);
	if (rc == 0)
		x->ops = fresh.ops;
	else if (x->late)
		late_steps_again(&before, x->user);
	return rc;
}

/* A model of stages, or of the branches of a join. */
struct stages {
	struct neap_stage_ops ops;
	struct neap_join_ops join;
	void *user;
	struct stages *next;
};
static struct stages *all_stages;

static struct stages *new_stages(void *user)
{
	struct stages *x = calloc(1, sizeof *x);
	if (!x)
		stop("no memory");
	x->user = user;
	pthread_mutex_lock(&lock);
	x->next = all_stages;
	all_stages = x;
	pthread_mutex_unlock(&lock);
	return x;
}

static int stage_advance(void *user, int64_t i, const void *a, void *y, void *tmp, int first)
{
	const struct stages *x = user;
	return x->ops.advance(
		x->user, i, guarded_address(a), guarded_address(y), guarded_address(tmp), first);
}

static int stage_record(
	void *user, int64_t i, const void *a, void *y, void *tape, void *tmp, int first)
{
	const struct stages *x = user;
	return x->ops.record(x->user, i, guarded_address(a), guarded_address(y),
		guarded_address(tape), guarded_address(tmp), first);
}

static int stage_turn(void *user, const void *a, void *dx, void *tmp, double *loss)
{
	const struct stages *x = user;
	return x->ops.turn(
		x->user, guarded_address(a), guarded_address(dx), guarded_address(tmp), loss);
}

static int stage_backward(
	void *user, int64_t i, const void *a, const void *tape, void *dy, void *dx, void *tmp)
{
	const struct stages *x = user;
	return x->ops.backward(x->user, i, guarded_address(a), guarded_address(tape),
		guarded_address(dy), guarded_address(dx), guarded_address(tmp));
}

static int stage_save(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	const struct stages *x = user;
	return (x->ops.grad_save ? x->ops.grad_save : x->join.grad_save)(x->user, write, to);
}

static int stage_load(void *user, int (*read)(void *, void *, size_t), void *from)
{
	const struct stages *x = user;
	return (x->ops.grad_load ? x->ops.grad_load : x->join.grad_load)(x->user, read, from);
}

static int stage_fence(void *user)
{
	const struct stages *x = user;
	return (x->ops.fence ? x->ops.fence : x->join.fence)(x->user);
}

static int stages_are_plain(const void *ops, size_t most, const struct neap_sweep_options *options)
{
	uint32_t size = 0;
	if (wraps() && ops)
		memcpy(&size, ops, sizeof size);
	return size >= 8 && size <= most && options && options->size >= 8;
}

static struct neap_stage_ops guard_stages(struct stages *x, const struct neap_stage_ops *ops)
{
	memcpy(&x->ops, ops, ops->size);
	if (calls_are_late())
		x->ops = late_stages(&x->ops, &x->user);
	struct neap_stage_ops o = x->ops;
	o.size = sizeof o;
	o.advance = o.advance ? stage_advance : NULL;
	o.record = o.record ? stage_record : NULL;
	o.turn = o.turn ? stage_turn : NULL;
	o.backward = o.backward ? stage_backward : NULL;
	o.grad_save = o.grad_save ? stage_save : NULL;
	o.grad_load = o.grad_load ? stage_load : NULL;
	o.fence = o.fence ? stage_fence : NULL;
	o.memory = memory_is_guarded() ? &memory : NULL;
	return o;
}

#define WRAP_STAGES(name)                                                                          \
	int __real_##name(struct neap_stage_sweep **sweep, const struct neap_stage_ops *ops,       \
		void *user, const struct neap_stages *stages,                                      \
		const struct neap_sweep_options *options);                                         \
	int __wrap_##name(struct neap_stage_sweep **sweep, const struct neap_stage_ops *ops,       \
		void *user, const struct neap_stages *stages,                                      \
		const struct neap_sweep_options *options);                                         \
	int __wrap_##name(struct neap_stage_sweep **sweep, const struct neap_stage_ops *ops,       \
		void *user, const struct neap_stages *stages,                                      \
		const struct neap_sweep_options *options)                                          \
	{                                                                                          \
		if (!stages_are_plain(ops, sizeof *ops, options))                                  \
			return __real_##name(sweep, ops, user, stages, options);                   \
		struct stages *x = new_stages(user);                                               \
		const struct neap_stage_ops o = guard_stages(x, ops);                              \
		guard_tiers(options);                                                              \
		return __real_##name(sweep, &o, x, stages, options);                               \
	}
WRAP_STAGES(neap_stage_sweep_create)
WRAP_STAGES(neap__stage_sweep_create_moving)

static int join_advance(
	void *user, int branch, int64_t i, const void *a, void *y, void *tmp, int first)
{
	const struct stages *x = user;
	return x->join.advance(x->user, branch, i, guarded_address(a), guarded_address(y),
		guarded_address(tmp), first);
}

static int join_record(
	void *user, int branch, int64_t i, const void *a, void *y, void *tape, void *tmp, int first)
{
	const struct stages *x = user;
	return x->join.record(x->user, branch, i, guarded_address(a), guarded_address(y),
		guarded_address(tape), guarded_address(tmp), first);
}

static int join_turn(void *user, const void *const *a, void *const *dx, void *tmp, double *loss)
{
	const struct stages *x = user;
	const void *ends[NEAP_BRANCHES_MAX];
	void *gradients[NEAP_BRANCHES_MAX];
	for (int i = 0; i < NEAP_BRANCHES_MAX; i++) {
		ends[i] = guarded_address(a[i]);
		gradients[i] = guarded_address(dx[i]);
	}
	return x->join.turn(x->user, ends, gradients, guarded_address(tmp), loss);
}

static int join_backward(void *user, int branch, int64_t i, const void *a, const void *tape,
	void *dy, void *dx, void *tmp)
{
	const struct stages *x = user;
	return x->join.backward(x->user, branch, i, guarded_address(a), guarded_address(tape),
		guarded_address(dy), guarded_address(dx), guarded_address(tmp));
}

int __real_neap_join_sweep_create(struct neap_join_sweep **sweep, const struct neap_join_ops *ops,
	void *user, const struct neap_branch *branches, int count,
	const struct neap_sweep_options *options);
int __wrap_neap_join_sweep_create(struct neap_join_sweep **sweep, const struct neap_join_ops *ops,
	void *user, const struct neap_branch *branches, int count,
	const struct neap_sweep_options *options);
int __wrap_neap_join_sweep_create(struct neap_join_sweep **sweep, const struct neap_join_ops *ops,
	void *user, const struct neap_branch *branches, int count,
	const struct neap_sweep_options *options)
{
	if (!stages_are_plain(ops, sizeof *ops, options))
		return __real_neap_join_sweep_create(sweep, ops, user, branches, count, options);
	struct stages *x = new_stages(user);
	memcpy(&x->join, ops, ops->size);
	if (calls_are_late())
		x->join = late_joins(&x->join, &x->user);
	struct neap_join_ops o = x->join;
	o.size = sizeof o;
	o.advance = o.advance ? join_advance : NULL;
	o.record = o.record ? join_record : NULL;
	o.turn = o.turn ? join_turn : NULL;
	o.backward = o.backward ? join_backward : NULL;
	o.grad_save = o.grad_save ? stage_save : NULL;
	o.grad_load = o.grad_load ? stage_load : NULL;
	o.fence = o.fence ? stage_fence : NULL;
	o.memory = memory_is_guarded() ? &memory : NULL;
	guard_tiers(options);
	return __real_neap_join_sweep_create(sweep, &o, x, branches, count, options);
}

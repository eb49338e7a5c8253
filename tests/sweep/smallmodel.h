/* SPDX-License-Identifier: Apache-2.0 */
/*
 * smallmodel.h: a linear chain for all three executors (steps, stages, branches), whose gradient is
 * known; with mistakes that a model may make, and a hook that every callback calls.
 */
#ifndef NEAP_TEST_SMALLMODEL_H
#define NEAP_TEST_SMALLMODEL_H

#include <neap/sweep.h>
#include "../test.h"

#define NUMBERS 8
#define STATE (NUMBERS * sizeof(double))
#define FACTOR 0.96875 /* 31 / 32 */
#define SMALL_STAGES 40

struct small {
	double loss;	       /* added to the sum of the last state */
	int64_t infinite_from; /* 1 + the step whose adjoint is infinite; -1: turn's is nan */
	size_t reported;       /* fewer bytes of tape than there are */
	int counts;	       /* 1: what a step computes depends on how often it is called */
	int64_t calls;
	/* Called in every callback of the model, and in `interrupted`. */
	void (*inside)(struct small *m);
	void *inside_user;
	/* Of stages: tables that struct neap_stages points to. */
	double seconds[SMALL_STAGES + 1];
	uint64_t bytes[SMALL_STAGES + 1];
	struct neap_stages stages;
};

static inline void small_inside(struct small *m)
{
	m->calls++;
	if (m->inside)
		m->inside(m);
}

static inline void small_step(const struct small *m, const double *x, double *y)
{
	for (int i = 0; i < NUMBERS; i++)
		y[i] = FACTOR * x[i] + (m->counts ? 1e-3 * (double)m->calls : 0);
}

static inline void small_back(const struct small *m, int64_t t, const double *dy, double *dx)
{
	for (int i = 0; i < NUMBERS; i++)
		dx[i] = m->infinite_from == t + 1 && i == 3 ? INFINITY : FACTOR * dy[i];
}

static inline int small_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct small *m = user;
	(void)first;
	small_inside(m);
	for (int64_t t = t0; t < t1; t++)
		small_step(m, state, state);
	return 0;
}

static inline int small_record(void *user, void *state, int64_t t0, int64_t t1, int first,
	void *tape, size_t room, size_t *used, int64_t *t_done)
{
	struct small *m = user;
	char *at = tape;
	int64_t t = t0;
	(void)first;
	small_inside(m);
	for (; t < t1 && (size_t)(at - (char *)tape) + STATE <= room; t++, at += STATE) {
		memcpy(at, state, STATE);
		small_step(m, state, state);
	}
	*used = (size_t)(at - (char *)tape) - m->reported;
	*t_done = t;
	return 0;
}

static inline int small_turn(void *user, const void *state, void *adjoint, double *loss)
{
	struct small *m = user;
	const double *x = state;
	double *dx = adjoint;
	small_inside(m);
	*loss = m->loss;
	for (int i = 0; i < NUMBERS; i++) {
		*loss += x[i];
		dx[i] = m->infinite_from < 0 && i == 3 ? NAN : 1;
	}
	return 0;
}

static inline int small_backward(
	void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct small *m = user;
	(void)tape;
	small_inside(m);
	for (int64_t t = t1 - 1; t >= t0; t--)
		small_back(m, t, adjoint, adjoint);
	return 0;
}

static inline int small_interrupted(void *user)
{
	small_inside(user);
	return 0;
}

static inline struct neap_step_ops small_ops(void)
{
	return (struct neap_step_ops){.size = sizeof(struct neap_step_ops),
		.advance = small_advance,
		.record = small_record,
		.turn = small_turn,
		.backward = small_backward,
		.state_bytes = STATE,
		.adjoint_bytes = STATE,
		.tape_bytes = STATE,
		.adjoint_real = sizeof(double)};
}

static inline int stage_small_advance(
	void *user, int64_t i, const void *x, void *y, void *tmp, int first)
{
	struct small *m = user;
	(void)i, (void)tmp, (void)first;
	small_inside(m);
	small_step(m, x, y);
	return 0;
}

static inline int stage_small_record(
	void *user, int64_t i, const void *x, void *y, void *tape, void *tmp, int first)
{
	memcpy(tape, x, STATE);
	return stage_small_advance(user, i, x, y, tmp, first);
}

static inline int stage_small_turn(void *user, const void *x, void *dx, void *tmp, double *loss)
{
	(void)tmp;
	return small_turn(user, x, dx, loss);
}

static inline int stage_small_backward(
	void *user, int64_t i, const void *x, const void *tape, void *dy, void *dx, void *tmp)
{
	struct small *m = user;
	(void)x, (void)tape, (void)tmp;
	small_inside(m);
	small_back(m, i, dy, dx);
	return 0;
}

static inline int join_small_advance(
	void *user, int branch, int64_t i, const void *x, void *y, void *tmp, int first)
{
	(void)branch;
	return stage_small_advance(user, i, x, y, tmp, first);
}

static inline int join_small_record(
	void *user, int branch, int64_t i, const void *x, void *y, void *tape, void *tmp, int first)
{
	(void)branch;
	return stage_small_record(user, i, x, y, tape, tmp, first);
}

static inline int join_small_turn(
	void *user, const void *const *x, void *const *dx, void *tmp, double *loss)
{
	double other = 0;
	(void)tmp;
	int rc = small_turn(user, x[0], dx[0], loss);
	if (rc == 0)
		rc = small_turn(user, x[1], dx[1], &other);
	*loss += other;
	return rc;
}

static inline int join_small_backward(void *user, int branch, int64_t i, const void *x,
	const void *tape, void *dy, void *dx, void *tmp)
{
	(void)branch;
	return stage_small_backward(user, i, x, tape, dy, dx, tmp);
}

static inline struct neap_stage_ops small_stage_ops(void)
{
	return (struct neap_stage_ops){.size = sizeof(struct neap_stage_ops),
		.advance = stage_small_advance,
		.record = stage_small_record,
		.turn = stage_small_turn,
		.backward = stage_small_backward,
		.adjoint_real = sizeof(double)};
}

static inline struct neap_join_ops small_join_ops(void)
{
	return (struct neap_join_ops){.size = sizeof(struct neap_join_ops),
		.advance = join_small_advance,
		.record = join_small_record,
		.turn = join_small_turn,
		.backward = join_small_backward,
		.adjoint_real = sizeof(double)};
}

static inline void small_init(struct small *m)
{
	*m = (struct small){.loss = 0};
	for (int i = 0; i <= SMALL_STAGES; i++) {
		m->seconds[i] = 1;
		m->bytes[i] = STATE;
	}
	m->stages = (struct neap_stages){.advance = m->seconds,
		.record = m->seconds,
		.backward = m->seconds,
		.state = m->bytes,
		.tape = m->bytes};
}

/* What the adjoint at step 0 of so many steps must be, each number of it. */
static inline double small_gradient(int64_t steps)
{
	double dx = 1;
	while (steps-- > 0)
		dx *= FACTOR;
	return dx;
}

/* The three executors behind one face. */
enum { SMALL_STEPS, SMALL_ONLINE, SMALL_CHAIN, SMALL_JOIN, SMALL_KINDS };

struct small_sweep {
	int kind;
	struct neap_sweep *steps;
	struct neap_stage_sweep *chain;
	struct neap_join_sweep *join;
};

static inline int small_ended(void *user, const void *state, int64_t t)
{
	(void)state;
	small_inside(user);
	return t == SMALL_STAGES ? NEAP_ENDED : NEAP_GO_ON;
}

static inline int small_create(
	struct small_sweep *s, int kind, struct small *m, const struct neap_sweep_options *options)
{
	struct neap_step_ops ops = small_ops();
	const struct neap_stage_ops stage_ops = small_stage_ops();
	const struct neap_join_ops join_ops = small_join_ops();
	const struct neap_branch branches[] = {
		{SMALL_STAGES / 2, &m->stages}, {SMALL_STAGES / 4, &m->stages}};
	struct neap_sweep_options o = *options;
	*s = (struct small_sweep){.kind = kind};
	o.steps = SMALL_STAGES;
	o.interrupted = small_interrupted;
	o.interrupted_user = m;
	if (kind == SMALL_CHAIN)
		return neap_stage_sweep_create(&s->chain, &stage_ops, m, &m->stages, &o);
	if (kind == SMALL_JOIN)
		return neap_join_sweep_create(&s->join, &join_ops, m, branches, 2, &o);
	if (kind == SMALL_ONLINE)
		ops.ended = small_ended;
	return neap_sweep_create(&s->steps, &ops, m, &o);
}

/* dx: 2 * NUMBERS. */
static inline int small_run(const struct small_sweep *s, double *dx, double *loss)
{
	static const double x0[NUMBERS] = {1, 2, 3, 4, 5, 6, 7, 8};
	if (s->kind == SMALL_CHAIN)
		return neap_stage_sweep_run(s->chain, x0, dx, loss, NULL);
	if (s->kind == SMALL_JOIN)
		return neap_join_sweep_run(s->join, (const void *[]){x0, x0},
			(void *[]){dx, dx + NUMBERS}, loss, NULL);
	return neap_sweep_run(s->steps, x0, dx, loss, NULL);
}

static inline void small_free(const struct small_sweep *s)
{
	neap_stage_sweep_free(s->chain);
	neap_join_sweep_free(s->join);
	neap_sweep_free(s->steps);
}

/* 1 where dx is what a finished run gives. */
static inline int small_right(const struct small_sweep *s, const double *dx)
{
	int64_t steps = s->kind == SMALL_JOIN ? SMALL_STAGES / 2 : SMALL_STAGES;
	int right = 1;
	for (int i = 0; i < NUMBERS; i++)
		right = right && dx[i] == small_gradient(steps);
	for (int i = NUMBERS; i < 2 * NUMBERS && s->kind == SMALL_JOIN; i++)
		right = right && dx[i] == small_gradient(SMALL_STAGES / 4);
	return right;
}

#endif

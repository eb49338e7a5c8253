/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chainmodel.h: a nonlinear chain with an exact adjoint, parameters and tapes of
 * fixed or varying size, which checks everything a sweep promises a model; and
 * its gradient by storing everything, without a sweep.
 */
#ifndef NEAP_TEST_CHAINMODEL_H
#define NEAP_TEST_CHAINMODEL_H

#include <neap/sweep.h>
#include <errno.h>
#include "base/philox.h"
#include "../test.h"

/* Of sweep options: the same plan each time. */
#define FIXED_COSTS .advance = 1, .record = 1, .backward = 2

#define WIDTH 12 /* doubles in a state: 96 bytes, so that rounding to 64 shows */

struct tape {
	int64_t t, t0, t1; /* the step, and the record call it came from */
	double x[WIDTH];
};

struct model {
	int64_t steps;
	uint32_t extra_most; /* most junk of a tape, in doubles; 0: fixed size */
	/* Junk of step t, in doubles. */
	uint32_t (*extra)(const struct model *m, int64_t t);
	uint64_t seed;
	double w[WIDTH], dw[WIDTH];
	double gathered; /* over first passes */
	int64_t *passed; /* first passes of each step */
	int64_t fail_at; /* callbacks until one fails; 0: never */
	int64_t calls;
	const void *state_seen;
	_Alignas(64) double elsewhere[WIDTH]; /* the state, where the sweep has a token */
	char broken[160];		      /* what a sweep did wrong, first */
};

#define EXPECT(m, condition)                                                                       \
	do {                                                                                       \
		if (!(condition) && !(m)->broken[0])                                               \
			snprintf((m)->broken, sizeof(m)->broken, "line %d: %s", __LINE__,          \
				#condition);                                                       \
	} while (0)

static inline uint32_t extra_of(const struct model *m, int64_t t)
{
	uint32_t n = m->extra ? m->extra(m, t) : 0;
	return n < m->extra_most ? n : m->extra_most;
}

static inline size_t tape_size(const struct model *m, int64_t t)
{
	return sizeof(struct tape) + sizeof(double) * extra_of(m, t);
}

static inline double junk(int64_t t, uint32_t i)
{
	return (double)(t * 1000003 + i * 7919 + 1);
}

static inline double force(const struct model *m, int64_t t, int i)
{
	return neap__random_uniform(m->seed, NEAP__STREAM_TEST, (uint32_t)i, (uint64_t)t) - 0.5;
}

/* x_i' = x_i + 0.1 (w_i x_j (1 - x_i^2) + u): rational, so the same everywhere. */
static inline void step(const struct model *m, double *x, int64_t t)
{
	double old[WIDTH];
	memcpy(old, x, sizeof old);
	for (int i = 0; i < WIDTH; i++) {
		double y = old[(i + 1) % WIDTH];
		double v = 0.9 * old[i] + 0.1 * m->w[i] * y / (1 + old[i] * old[i]) +
			   0.1 * force(m, t, i);
		x[i] = v;
	}
}

static inline void unstep(struct model *m, double *dx, const double *x)
{
	double d[WIDTH];
	for (int i = 0; i < WIDTH; i++)
		d[i] = 0.9 * dx[i];
	for (int i = 0; i < WIDTH; i++) {
		double y = x[(i + 1) % WIDTH], q = 1 + x[i] * x[i];
		d[i] -= dx[i] * 0.1 * m->w[i] * y * 2 * x[i] / (q * q);
		d[(i + 1) % WIDTH] += dx[i] * 0.1 * m->w[i] / q;
		m->dw[i] += dx[i] * 0.1 * y / q;
	}
	memcpy(dx, d, sizeof d);
}

static inline int tick(struct model *m)
{
	m->calls++;
	return m->fail_at && m->calls == m->fail_at ? -EDOM : 0;
}

static inline void pass(struct model *m, const double *x, int64_t t, int first)
{
	EXPECT(m, first == (m->passed[t] == 0));
	if (first) {
		m->passed[t]++;
		m->gathered = m->gathered * 0.999 + x[t % WIDTH];
	}
}

static inline int model_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct model *m = user;
	EXPECT(m, (uintptr_t)state % 64 == 0 && t0 < t1 && t0 >= 0 && t1 <= m->steps);
	for (int64_t t = t0; t < t1; t++) {
		pass(m, state, t, first);
		step(m, state, t);
	}
	return tick(m);
}

static inline int model_record(void *user, void *state, int64_t t0, int64_t t1, int first,
	void *tape, size_t room, size_t *used, int64_t *t_done)
{
	struct model *m = user;
	size_t most = sizeof(struct tape) + sizeof(double) * m->extra_most, at = 0;
	int64_t t = t0;
	EXPECT(m, (uintptr_t)tape % 64 == 0 && (uintptr_t)state % 64 == 0);
	EXPECT(m, t0 < t1 && t0 >= 0 && t1 <= m->steps && t0 / 64 == (t1 - 1) / 64);
	for (; t < t1 && room - at >= most; t++) {
		struct tape row = {.t = t};
		memcpy(row.x, state, sizeof row.x);
		memcpy((char *)tape + at, &row, sizeof row);
		for (uint32_t i = 0; i < extra_of(m, t); i++) {
			double v = junk(t, i);
			memcpy((char *)tape + at + sizeof row + i * sizeof v, &v, sizeof v);
		}
		at += tape_size(m, t);
		pass(m, state, t, first);
		step(m, state, t);
	}
	*used = at;
	*t_done = t;
	at = 0;
	for (int64_t s = t0; s < t; s++) {
		const int64_t call[2] = {t0, t};
		memcpy((char *)tape + at + sizeof(int64_t), call, sizeof call);
		at += tape_size(m, s);
	}
	return tick(m);
}

static inline int model_turn(void *user, const void *state, void *adjoint, double *loss)
{
	struct model *m = user;
	double x[WIDTH], dx[WIDTH], sum = m->gathered;
	memcpy(x, state, sizeof x);
	for (int i = 0; i < WIDTH; i++) {
		sum += 0.5 * x[i] * x[i] * (i + 1);
		dx[i] = x[i] * (i + 1);
	}
	memcpy(adjoint, dx, sizeof dx);
	*loss = sum;
	return tick(m);
}

static inline int model_backward(
	void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct model *m = user;
	size_t at = 0;
	EXPECT(m, t0 < t1 && t1 - t0 <= 64);
	for (int64_t t = t0; t < t1; t++)
		at += tape_size(m, t);
	for (int64_t t = t1 - 1; t >= t0; t--) {
		struct tape row;
		at -= tape_size(m, t);
		memcpy(&row, (const char *)tape + at, sizeof row);
		EXPECT(m, row.t == t && row.t0 == t0 && row.t1 == t1);
		for (uint32_t i = 0; i < extra_of(m, t); i++) {
			double v;
			memcpy(&v, (const char *)tape + at + sizeof row + i * sizeof v, sizeof v);
			EXPECT(m, v == junk(t, i));
		}
		unstep(m, adjoint, row.x);
	}
	return tick(m);
}

/* The state lies in the model, the token is a word that stays the same. */
#define TOKEN UINT64_C(0x7061656e)

static inline void see_token(struct model *m, const void *token)
{
	uint64_t word;
	memcpy(&word, token, sizeof word);
	EXPECT(m, word == TOKEN && (uintptr_t)token % 64 == 0);
}

static inline int token_advance(void *user, void *token, int64_t t0, int64_t t1, int first)
{
	struct model *m = user;
	see_token(m, token);
	return model_advance(user, m->elsewhere, t0, t1, first);
}

static inline int token_record(void *user, void *token, int64_t t0, int64_t t1, int first,
	void *tape, size_t room, size_t *used, int64_t *t_done)
{
	struct model *m = user;
	see_token(m, token);
	return model_record(user, m->elsewhere, t0, t1, first, tape, room, used, t_done);
}

static inline int token_turn(void *user, const void *token, void *adjoint, double *loss)
{
	struct model *m = user;
	see_token(m, token);
	return model_turn(user, m->elsewhere, adjoint, loss);
}

static inline int token_save(void *user, void *to, const void *token)
{
	struct model *m = user;
	see_token(m, token);
	EXPECT(m, to != token);
	memcpy(to, m->elsewhere, sizeof m->elsewhere);
	return 0;
}

static inline int token_load(void *user, void *token, const void *from)
{
	struct model *m = user;
	const uint64_t word = TOKEN;
	EXPECT(m, from != token);
	memcpy(m->elsewhere, from, sizeof m->elsewhere);
	memcpy(token, &word, sizeof word);
	return 0;
}

static inline void use_token(struct neap_step_ops *ops)
{
	ops->advance = token_advance;
	ops->record = token_record;
	ops->turn = token_turn;
	ops->save = token_save;
	ops->load = token_load;
	ops->live_bytes = sizeof(uint64_t);
}

static inline struct neap_step_ops model_ops(const struct model *m, size_t mean)
{
	size_t most = sizeof(struct tape) + sizeof(double) * m->extra_most;
	return (struct neap_step_ops){
		.size = sizeof(struct neap_step_ops),
		.advance = model_advance,
		.record = model_record,
		.turn = model_turn,
		.backward = model_backward,
		.state_bytes = WIDTH * sizeof(double),
		.adjoint_bytes = WIDTH * sizeof(double),
		.tape_bytes = mean ? mean : most,
		.tape_max_bytes = m->extra_most ? most : 0,
	};
}

static inline void model_init(struct model *m, int64_t steps, uint64_t seed)
{
	*m = (struct model){.steps = steps, .seed = seed};
	m->passed = calloc((size_t)steps + 1, sizeof *m->passed);
	for (int i = 0; i < WIDTH; i++)
		m->w[i] = 4 * neap__random_uniform(seed, NEAP__STREAM_TEST, 1000, (uint64_t)i) - 2;
}

static inline void model_restart(struct model *m)
{
	memset(m->passed, 0, ((size_t)m->steps + 1) * sizeof *m->passed);
	memset(m->dw, 0, sizeof m->dw);
	m->gathered = 0;
	m->calls = 0;
	m->broken[0] = '\0';
}

static inline void model_fini(struct model *m)
{
	free(m->passed);
}

struct gradient {
	double loss, dx[WIDTH], dw[WIDTH];
};

static inline void model_start(double *x)
{
	for (int i = 0; i < WIDTH; i++)
		x[i] = 0.3 - 0.05 * i;
}

/* Everything stored, no sweep: what every sweep must give, to the bit. */
static inline struct gradient reference(struct model *m)
{
	struct gradient g;
	double x[WIDTH], *all = malloc(((size_t)m->steps + 1) * sizeof x);
	model_restart(m);
	model_start(x);
	for (int64_t t = 0; t < m->steps; t++) {
		memcpy(all + t * WIDTH, x, sizeof x);
		pass(m, x, t, 1);
		step(m, x, t);
	}
	model_turn(m, x, g.dx, &g.loss);
	for (int64_t t = m->steps - 1; t >= 0; t--)
		unstep(m, g.dx, all + t * WIDTH);
	memcpy(g.dw, m->dw, sizeof g.dw);
	free(all);
	return g;
}

/* One run; checks all but the numbers. */
static inline int run_model(struct neap_sweep *sweep, struct model *m, struct gradient *g,
	struct neap_sweep_stats *stats)
{
	_Alignas(64) double x[WIDTH];
	model_restart(m);
	model_start(x);
	memset(g, 0xee, sizeof *g);
	if (stats)
		stats->size = sizeof *stats;
	int rc = neap_sweep_run(sweep, x, g->dx, &g->loss, stats);
	memcpy(g->dw, m->dw, sizeof g->dw);
	for (int64_t t = 0; rc == 0 && t < m->steps; t++)
		EXPECT(m, m->passed[t] == 1);
	return rc;
}

#endif

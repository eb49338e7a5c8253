/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stagemodel.h: a nonlinear chain of stages of any sizes with an exact adjoint, which
 * checks everything a sweep of stages promises a model; and its gradient by storing
 * everything, without a sweep.
 */
#ifndef NEAP_TEST_STAGEMODEL_H
#define NEAP_TEST_STAGEMODEL_H

#include <neap/sweep.h>
#include <errno.h>
#include "base/philox.h"
#include "../test.h"

#define STAGES_MOST 64

struct stagemodel {
	int64_t n;
	int64_t width[STAGES_MOST + 1]; /* doubles of x_i */
	int64_t junk[STAGES_MOST];	/* doubles of a tape that only fill it */
	double w[STAGES_MOST], dw[STAGES_MOST];
	double advance[STAGES_MOST], record[STAGES_MOST], backward[STAGES_MOST + 1];
	uint64_t state[STAGES_MOST + 1], tape[STAGES_MOST], advance_tmp[STAGES_MOST],
		record_tmp[STAGES_MOST], backward_tmp[STAGES_MOST + 1];
	struct neap_stages stages;
	size_t adjoint_bytes;
	int64_t passed[STAGES_MOST];
	int64_t calls, fail_at;
	int fail_with;
	unsigned char *stray; /* where the first record writes and should not */
	char broken[160];
};

#define EXPECT(m, condition)                                                                       \
	do {                                                                                       \
		if (!(condition) && !(m)->broken[0])                                               \
			snprintf((m)->broken, sizeof(m)->broken, "line %d: %s", __LINE__,          \
				#condition);                                                       \
	} while (0)

static inline int holds(const struct stagemodel *m)
{
	return (m->stages.flags & NEAP_STAGES_TAPE_HOLDS_OUTPUT) != 0;
}

static inline int needs(const struct stagemodel *m)
{
	return (m->stages.flags & NEAP_STAGES_BACKWARD_NEEDS_INPUT) != 0;
}

/* The output, where tapes hold it; the input, where backward is not given it; junk. */
static inline uint64_t tape_doubles(const struct stagemodel *m, int64_t i)
{
	return (uint64_t)((holds(m) ? m->width[i + 1] : 0) + (needs(m) ? 0 : m->width[i]) +
			  m->junk[i]);
}

/* After widths, junk, temporaries, seconds and stages.flags are set. */
static inline void stagemodel_wire(struct stagemodel *m)
{
	for (int64_t i = 0; i <= m->n; i++)
		m->state[i] = (uint64_t)m->width[i] * 8;
	for (int64_t i = 0; i < m->n; i++)
		m->tape[i] = tape_doubles(m, i) * 8;
	m->stages.advance = m->advance;
	m->stages.record = m->record;
	m->stages.backward = m->backward;
	m->stages.state = m->state;
	m->stages.tape = m->tape;
	m->stages.advance_tmp = m->advance_tmp;
	m->stages.record_tmp = m->record_tmp;
	m->stages.backward_tmp = m->backward_tmp;
}

static inline void stage_forward(const struct stagemodel *m, int64_t i, const double *x, double *y)
{
	int64_t from = m->width[i], to = m->width[i + 1];
	for (int64_t k = 0; k < to; k++) {
		double v = from ? x[k % from] : 0.3, u = from ? x[(3 * k + 1) % from] : 0.2;
		y[k] = 0.8 * v + m->w[i] * u / (1 + v * v) + 0.01 * (double)(k + i);
	}
}

static inline void stage_backward(
	struct stagemodel *m, int64_t i, const double *x, const double *dy, double *dx)
{
	int64_t from = m->width[i], to = m->width[i + 1];
	for (int64_t k = 0; k < from; k++)
		dx[k] = 0;
	for (int64_t k = 0; k < to; k++) {
		double v = from ? x[k % from] : 0.3, u = from ? x[(3 * k + 1) % from] : 0.2;
		double q = 1 + v * v;
		m->dw[i] += dy[k] * u / q;
		if (!from)
			continue;
		dx[k % from] += dy[k] * (0.8 - m->w[i] * u * 2 * v / (q * q));
		dx[(3 * k + 1) % from] += dy[k] * m->w[i] / q;
	}
}

static inline double stage_loss(const struct stagemodel *m, const double *x, double *dx)
{
	double sum = 0.5;
	for (int64_t k = 0; k < m->width[m->n]; k++) {
		sum += 0.5 * x[k] * x[k] * (double)(k + 1);
		dx[k] = x[k] * (double)(k + 1);
	}
	return sum;
}

static inline double stage_junk(int64_t i, int64_t k)
{
	return (double)(i * 1009 + k * 7 + 1);
}

/* Writes all of a temporary, and everything else must be as it was. */
static inline void use_tmp(
	struct stagemodel *m, void *tmp, uint64_t bytes, const double *x, int64_t width)
{
	double before = 0, after = 0;
	EXPECT(m, (tmp != NULL) == (bytes > 0));
	for (int64_t k = 0; k < width; k++)
		before += x[k] * (double)(k + 1);
	if (tmp)
		memset(tmp, 0x5b, bytes);
	for (int64_t k = 0; k < width; k++)
		after += x[k] * (double)(k + 1);
	EXPECT(m, before == after);
}

static inline int stage_tick(struct stagemodel *m)
{
	m->calls++;
	return m->fail_at && m->calls == m->fail_at ? m->fail_with : 0;
}

static inline void stage_pass(struct stagemodel *m, int64_t i, int first)
{
	EXPECT(m, first == (m->passed[i] == 0));
	m->passed[i]++;
}

static inline int aligned(const void *p)
{
	return (uintptr_t)p % 64 == 0;
}

static inline int stagemodel_advance(
	void *user, int64_t i, const void *x, void *y, void *tmp, int first)
{
	struct stagemodel *m = user;
	EXPECT(m, aligned(x) && aligned(y) && aligned(tmp) && x && y);
	stage_pass(m, i, first);
	stage_forward(m, i, x, y);
	use_tmp(m, tmp, m->advance_tmp[i], y, m->width[i + 1]);
	return stage_tick(m);
}

static inline int stagemodel_record(
	void *user, int64_t i, const void *x, void *y, void *tape, void *tmp, int first)
{
	struct stagemodel *m = user;
	double *row = tape;
	EXPECT(m, aligned(x) && aligned(y) && aligned(tape) && aligned(tmp) && x && y && tape);
	EXPECT(m, holds(m) == (y == tape) || m->tape[i] == 0 || m->state[i + 1] == 0);
	stage_pass(m, i, first);
	stage_forward(m, i, x, y);
	row += holds(m) ? m->width[i + 1] : 0;
	if (!needs(m)) {
		memcpy(row, x, m->state[i]);
		row += m->width[i];
	}
	for (int64_t k = 0; k < m->junk[i]; k++)
		row[k] = stage_junk(i, k);
	if (m->stray && m->calls == 0)
		*m->stray ^= 1;
	use_tmp(m, tmp, m->record_tmp[i], y, m->width[i + 1]);
	return stage_tick(m);
}

static inline int stagemodel_turn(void *user, const void *x, void *dx, void *tmp, double *loss)
{
	struct stagemodel *m = user;
	EXPECT(m, aligned(x) && aligned(dx) && aligned(tmp) && x && dx);
	*loss = stage_loss(m, x, dx);
	use_tmp(m, tmp, m->backward_tmp[m->n], dx, m->width[m->n]);
	return stage_tick(m);
}

static inline int stagemodel_backward(
	void *user, int64_t i, const void *x, const void *tape, void *dy, void *dx, void *tmp)
{
	struct stagemodel *m = user;
	const double *row = tape;
	double *made = NULL;
	EXPECT(m, aligned(x) && aligned(tape) && aligned(dy) && aligned(dx) && aligned(tmp));
	EXPECT(m, (x != NULL) == needs(m));
	if (holds(m)) { /* the output that the tape holds is that of this input */
		row += m->width[i + 1];
		made = malloc(m->state[i + 1] + 8);
		stage_forward(m, i, needs(m) ? x : row, made);
		EXPECT(m, memcmp(made, tape, m->state[i + 1]) == 0);
		free(made);
	}
	const double *input = needs(m) ? x : row;
	row += needs(m) ? 0 : m->width[i];
	for (int64_t k = 0; k < m->junk[i]; k++)
		EXPECT(m, row[k] == stage_junk(i, k));
	stage_backward(m, i, input, dy, dx);
	use_tmp(m, tmp, m->backward_tmp[i], dx, m->width[i]);
	memset(dy, 0x3c, m->adjoint_bytes ? m->adjoint_bytes : m->state[i + 1]);
	return stage_tick(m);
}

static inline struct neap_stage_ops stagemodel_ops(const struct stagemodel *m)
{
	return (struct neap_stage_ops){.size = sizeof(struct neap_stage_ops),
		.advance = stagemodel_advance,
		.record = stagemodel_record,
		.turn = stagemodel_turn,
		.backward = stagemodel_backward,
		.adjoint_bytes = m->adjoint_bytes};
}

struct stagegradient {
	double loss, dw[STAGES_MOST], dx[512];
};

static inline void stagemodel_start(const struct stagemodel *m, double *x)
{
	for (int64_t k = 0; k < m->width[0]; k++)
		x[k] = 0.4 - 0.07 * (double)(k % 11);
}

static inline void stagemodel_restart(struct stagemodel *m)
{
	memset(m->dw, 0, sizeof m->dw);
	memset(m->passed, 0, sizeof m->passed);
	m->calls = 0;
	m->broken[0] = '\0';
}

/* Everything stored, no sweep: what every sweep must give, to the bit. */
static inline void stagemodel_reference(struct stagemodel *m, struct stagegradient *g)
{
	double *x[STAGES_MOST + 1] = {0}, *dx[STAGES_MOST + 1] = {0};
	memset(g, 0, sizeof *g);
	stagemodel_restart(m);
	for (int64_t i = 0; i <= m->n; i++) {
		x[i] = calloc(2 * (size_t)m->width[i] + 1, sizeof(double));
		dx[i] = x[i] + m->width[i];
	}
	stagemodel_start(m, x[0]);
	for (int64_t i = 0; i < m->n; i++)
		stage_forward(m, i, x[i], x[i + 1]);
	g->loss = stage_loss(m, x[m->n], dx[m->n]);
	for (int64_t i = m->n - 1; i >= 0; i--)
		stage_backward(m, i, x[i], dx[i + 1], dx[i]);
	memcpy(g->dw, m->dw, sizeof g->dw);
	memcpy(g->dx, dx[0], m->state[0]);
	for (int64_t i = 0; i <= m->n; i++)
		free(x[i]);
}

/* One run; all but the numbers is checked. */
static inline int stagemodel_run(struct neap_stage_sweep *sweep, struct stagemodel *m,
	struct stagegradient *g, struct neap_sweep_stats *stats)
{
	double x[512], dx[1024]; /* dx: adjoint_bytes, which may be more than x_0's */
	stagemodel_restart(m);
	stagemodel_start(m, x);
	memset(g, 0, sizeof *g);
	if (stats)
		stats->size = sizeof *stats;
	int rc = neap_stage_sweep_run(sweep, x, dx, &g->loss, stats);
	memcpy(g->dw, m->dw, sizeof g->dw);
	memcpy(g->dx, dx, m->state[0]);
	for (int64_t i = 0; rc == 0 && i < m->n; i++)
		EXPECT(m, m->passed[i] >= 1);
	return rc;
}

#endif

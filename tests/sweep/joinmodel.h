/* SPDX-License-Identifier: Apache-2.0 */
/*
 * joinmodel.h: branches of stages (stagemodel.h) that meet in one loss, drawn at random, and their
 * gradients by storing everything, without a sweep.
 */
#ifndef NEAP_TEST_JOINMODEL_H
#define NEAP_TEST_JOINMODEL_H

#include "random_stages.h"

#define BRANCHES 4

struct joined {
	int count;
	struct stagemodel model[BRANCHES];
	struct neap_branch branches[BRANCHES];
	size_t adjoint_bytes;
	char broken[160];
};

struct joined_gradient {
	double loss;
	struct stagegradient branch[BRANCHES];
};

static inline int joined_advance(
	void *user, int k, int64_t i, const void *x, void *y, void *tmp, int first)
{
	struct joined *j = user;
	return stagemodel_advance(&j->model[k], i, x, y, tmp, first);
}

static inline int joined_record(
	void *user, int k, int64_t i, const void *x, void *y, void *tape, void *tmp, int first)
{
	struct joined *j = user;
	return stagemodel_record(&j->model[k], i, x, y, tape, tmp, first);
}

static inline int joined_backward(void *user, int k, int64_t i, const void *x, const void *tape,
	void *dy, void *dx, void *tmp)
{
	struct joined *j = user;
	return stagemodel_backward(&j->model[k], i, x, tape, dy, dx, tmp);
}

/* The square of a sum over branches: each gradient depends on all ends. */
static inline double joined_loss(struct joined *j, const double *const *x, double *const *dx)
{
	double sum = 0.5;
	for (int k = 0; k < j->count; k++)
		sum += stage_loss(&j->model[k], x[k], dx[k]);
	for (int k = 0; k < j->count; k++)
		for (int64_t i = 0; i < j->model[k].width[j->model[k].n]; i++)
			dx[k][i] *= sum;
	return sum * sum / 2;
}

static inline int joined_turn(
	void *user, const void *const *x, void *const *dx, void *tmp, double *loss)
{
	struct joined *j = user;
	struct stagemodel *m = &j->model[0];
	*loss = joined_loss(j, (const double *const *)x, (double *const *)dx);
	use_tmp(m, tmp, m->backward_tmp[m->n], dx[0], m->width[m->n]);
	return 0;
}

static inline int joined_gather(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	struct joined *j = user;
	int rc = 0;
	for (int k = 0; k < j->count && rc == 0; k++) {
		rc = write(to, j->model[k].dw, sizeof j->model[k].dw);
		if (rc == 0)
			rc = write(to, j->model[k].passed, sizeof j->model[k].passed);
	}
	return rc;
}

static inline int joined_scatter(void *user, int (*read)(void *, void *, size_t), void *from)
{
	struct joined *j = user;
	int rc = 0;
	for (int k = 0; k < j->count && rc == 0; k++) {
		rc = read(from, j->model[k].dw, sizeof j->model[k].dw);
		if (rc == 0)
			rc = read(from, j->model[k].passed, sizeof j->model[k].passed);
	}
	return rc;
}

static inline struct neap_join_ops joined_ops(const struct joined *j)
{
	return (struct neap_join_ops){.size = sizeof(struct neap_join_ops),
		.advance = joined_advance,
		.record = joined_record,
		.turn = joined_turn,
		.backward = joined_backward,
		.adjoint_bytes = j->adjoint_bytes,
		.grad_save = joined_gather,
		.grad_load = joined_scatter};
}

static inline void random_branches(struct joined *j, struct random *r, int count, int64_t most)
{
	memset(j, 0, sizeof *j);
	j->count = count;
	int taken = chance(r, 30);
	for (int k = 0; k < count; k++) {
		struct stagemodel *m = &j->model[k];
		random_model(m, r, chance(r, 8) ? 0 : 1 + below(r, most), 40);
		m->stages.flags = k ? j->model[0].stages.flags : m->stages.flags;
		m->adjoint_bytes = 0;
		stagemodel_wire(m);
		for (int64_t i = 0; taken && i <= m->n; i++)
			j->adjoint_bytes =
				m->state[i] > j->adjoint_bytes ? m->state[i] : j->adjoint_bytes;
		j->branches[k] = (struct neap_branch){m->n, &m->stages};
	}
	for (int k = 0; k < count; k++)
		j->model[k].adjoint_bytes = j->adjoint_bytes;
}

/* Everything stored, no sweep. */
static inline void joined_reference(struct joined *j, struct joined_gradient *g)
{
	static double x[BRANCHES][STAGES_MOST + 1][64], dx[BRANCHES][STAGES_MOST + 1][64];
	const double *ends[BRANCHES];
	double *gradients[BRANCHES];
	memset(g, 0, sizeof *g);
	for (int k = 0; k < j->count; k++) {
		struct stagemodel *m = &j->model[k];
		stagemodel_restart(m);
		stagemodel_start(m, x[k][0]);
		for (int64_t i = 0; i < m->n; i++)
			stage_forward(m, i, x[k][i], x[k][i + 1]);
		ends[k] = x[k][m->n];
		gradients[k] = dx[k][m->n];
	}
	g->loss = joined_loss(j, ends, gradients);
	for (int k = 0; k < j->count; k++) {
		struct stagemodel *m = &j->model[k];
		for (int64_t i = m->n - 1; i >= 0; i--)
			stage_backward(m, i, x[k][i], dx[k][i + 1], dx[k][i]);
		memcpy(g->branch[k].dw, m->dw, sizeof m->dw);
		memcpy(g->branch[k].dx, dx[k][0], m->state[0]);
	}
}

static inline void joined_restart(struct joined *j)
{
	for (int k = 0; k < j->count; k++)
		stagemodel_restart(&j->model[k]);
}

static inline int joined_run(struct neap_join_sweep *sweep, struct joined *j,
	struct joined_gradient *g, struct neap_sweep_stats *stats)
{
	double x[BRANCHES][64], dx[BRANCHES][512];
	const void *x0[BRANCHES];
	void *dx0[BRANCHES];
	memset(g, 0, sizeof *g);
	for (int k = 0; k < j->count; k++) {
		stagemodel_start(&j->model[k], x[k]);
		x0[k] = x[k];
		dx0[k] = dx[k];
	}
	stats->size = sizeof *stats;
	int rc = neap_join_sweep_run(sweep, x0, dx0, &g->loss, stats);
	for (int k = 0; k < j->count; k++) {
		const struct stagemodel *m = &j->model[k];
		memcpy(g->branch[k].dw, m->dw, sizeof m->dw);
		memcpy(g->branch[k].dx, dx[k], m->state[0]);
		if (m->broken[0] && !j->broken[0])
			snprintf(j->broken, sizeof j->broken, "branch %d: %.140s", k, m->broken);
	}
	return rc;
}

static inline uint64_t joined_bytes(const struct joined *j)
{
	uint64_t bytes = 512;
	for (int k = 0; k < j->count; k++) {
		const struct stagemodel *m = &j->model[k];
		bytes += 2 * m->adjoint_bytes + 3 * (m->state[m->n] + m->backward_tmp[m->n]);
		for (int64_t i = 0; i < m->n; i++)
			bytes += m->tape[i] + m->state[i] + 128;
	}
	return bytes;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spreadmodel.h: a nonlinear chain with an exact adjoint whose state is spread over ranks. Every
 * step takes a number of the next rank's part, and gives back its adjoint; tapes vary from rank to
 * rank. In every callback all ranks compare which call it is. And the gradient of the whole by
 * storing everything, without a sweep.
 */
#ifndef NEAP_TESTS_SWEEP_SPREADMODEL_H
#define NEAP_TESTS_SWEEP_SPREADMODEL_H

#include <neap/sweep.h>
#include "base/philox.h"
#include "ranks.h"

#define PART 10 /* doubles of a rank */

struct spread {
	struct rank *rank;
	int64_t steps;
	uint64_t seed;
	int varies; /* tapes do */
	int alone;  /* the next rank's part is this rank's: nothing is exchanged */
	double w[PART], dw[PART], gathered;
	int64_t *passed;
	int64_t calls, fail_at, die_at, interrupt_at;
	int interrupts; /* once: interrupt_at came */
	uint64_t hash;	/* of all calls */
	char broken[160];
};

enum spread_call { SPREAD_ADVANCE = 1, SPREAD_RECORD, SPREAD_TURN, SPREAD_BACKWARD, SPREAD_LOG };

/* What a rank says in a callback, or in a step of one. */
struct spread_message {
	int64_t call, t0, t1;
	int64_t fits;
	double x;
};

struct spread_tape {
	int64_t t, extra;
	double x[PART], next;
};

#define SPREAD_EXPECT(m, condition)                                                                \
	do {                                                                                       \
		if (!(condition) && !(m)->broken[0])                                               \
			snprintf((m)->broken, sizeof(m)->broken, "line %d: %s", __LINE__,          \
				#condition);                                                       \
	} while (0)

static inline double spread_weight(uint64_t seed, int64_t i)
{
	return 4 * neap__random_uniform(seed, NEAP__STREAM_TEST, 1000, (uint64_t)i) - 2;
}

static inline double spread_force(uint64_t seed, int64_t t, int64_t i)
{
	return neap__random_uniform(seed, NEAP__STREAM_TEST, (uint32_t)i, (uint64_t)t) - 0.5;
}

static inline double spread_next(double x, double y, double w, double force)
{
	return 0.9 * x + 0.1 * w * y / (1 + x * x) + 0.1 * force;
}

/* Doubles that a tape has beside its numbers. */
static inline int64_t spread_extra(const struct spread *m, int64_t t)
{
	if (!m->varies)
		return 0;
	return (int64_t)neap__random_below(
		m->seed, NEAP__STREAM_TEST, 5 + (uint32_t)m->rank->rank, (uint64_t)t / 7, 9);
}

static inline size_t spread_tape_bytes(const struct spread *m, int64_t extra)
{
	(void)m;
	return sizeof(struct spread_tape) + 8 * (size_t)extra;
}

/* All ranks make this call now; the message of the next rank. */
static inline int spread_meet(
	struct spread *m, struct spread_message own, struct spread_message *next, int64_t *fits)
{
	struct spread_message all[RANKS_MOST];
	int n = m->rank->world->ranks;
	*next = own;
	*fits = own.fits;
	if (m->alone)
		return 0;
	if (meet(m->rank, &m->rank->world->model, &own, sizeof own, all) < 0)
		return -EIO;
	*next = all[(m->rank->rank + 1) % n];
	for (int i = 0; i < n; i++) {
		*fits = all[i].fits < *fits ? all[i].fits : *fits;
		if (all[i].call == own.call && all[i].t0 == own.t0 && all[i].t1 == own.t1)
			continue;
		if (!m->broken[0])
			snprintf(m->broken, sizeof m->broken,
				"rank %d: call %d of [%lld, %lld), rank %d: %d of [%lld, %lld)",
				m->rank->rank, (int)own.call, (long long)own.t0, (long long)own.t1,
				i, (int)all[i].call, (long long)all[i].t0, (long long)all[i].t1);
		return -EPROTO;
	}
	return 0;
}

static inline int spread_begin(struct spread *m, int call, int64_t t0, int64_t t1)
{
	struct spread_message next;
	int64_t fits;
	const int64_t row[] = {call, t0, t1};
	for (size_t i = 0; i < 3; i++)
		m->hash = (m->hash ^ (uint64_t)row[i]) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	m->calls++;
	if (m->die_at && m->calls >= m->die_at)
		kill(getpid(), SIGKILL);
	if (m->fail_at && m->calls == m->fail_at)
		return -EDOM;
	return spread_meet(m, (struct spread_message){call, t0, t1, 1, 0}, &next, &fits);
}

/* One step; *next gets what it took of the next rank. Not done where a tape does not fit. */
static inline int spread_step(struct spread *m, double *x, int64_t t, int64_t *fits, double *next)
{
	struct spread_message other;
	double old[PART];
	int rc = spread_meet(m, (struct spread_message){0, t, t, *fits, x[0]}, &other, fits);
	if (rc < 0 || !*fits)
		return rc;
	*next = other.x;
	memcpy(old, x, sizeof old);
	for (int i = 0; i < PART; i++)
		x[i] = spread_next(old[i], i + 1 < PART ? old[i + 1] : *next, m->w[i],
			spread_force(m->seed, t, m->rank->rank * PART + i));
	return 0;
}

static inline void spread_pass(struct spread *m, const double *x, int64_t t, int first)
{
	SPREAD_EXPECT(m, first == (m->passed[t] == 0));
	if (first) {
		m->passed[t]++;
		m->gathered = m->gathered * 0.999 + x[t % PART];
	}
}

static inline int spread_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct spread *m = user;
	int rc = spread_begin(m, SPREAD_ADVANCE, t0, t1);
	for (int64_t t = t0, fits = 1; rc == 0 && t < t1; t++) {
		double next;
		spread_pass(m, state, t, first);
		rc = spread_step(m, state, t, &fits, &next);
	}
	return rc;
}

static inline int spread_record(void *user, void *state, int64_t t0, int64_t t1, int first,
	void *tape, size_t room, size_t *used, int64_t *t_done)
{
	struct spread *m = user;
	size_t most = spread_tape_bytes(m, m->varies ? 8 : 0), at = 0;
	int64_t t = t0;
	int rc = spread_begin(m, SPREAD_RECORD, t0, t1);
	for (; rc == 0 && t < t1; t++) {
		struct spread_tape row = {.t = t, .extra = spread_extra(m, t)};
		int64_t fits = room - at >= most;
		memcpy(row.x, state, sizeof row.x);
		rc = spread_step(m, state, t, &fits, &row.next);
		if (rc < 0 || !fits)
			break;
		spread_pass(m, row.x, t, first);
		memcpy((char *)tape + at, &row, sizeof row);
		memset((char *)tape + at + sizeof row, 0x77, 8 * (size_t)row.extra);
		at += spread_tape_bytes(m, row.extra);
	}
	*used = at;
	*t_done = t;
	return rc;
}

static inline double spread_loss(const double *x, double *dx, int64_t from)
{
	double sum = 0;
	for (int i = 0; i < PART; i++) {
		sum += 0.5 * x[i] * x[i] * (double)(from + i + 1);
		dx[i] = x[i] * (double)(from + i + 1);
	}
	return sum;
}

static inline int spread_turn(void *user, const void *state, void *adjoint, double *loss)
{
	struct spread *m = user;
	int rc = spread_begin(m, SPREAD_TURN, m->steps, m->steps);
	*loss = m->gathered + spread_loss(state, adjoint, (int64_t)m->rank->rank * PART);
	return rc;
}

/* d of a part, but for what comes from the rank before; that for the next rank is answered. */
static inline double spread_unstep(
	double *dx, const double *x, double next, const double *w, double *dw)
{
	double d[PART], out = 0;
	for (int i = 0; i < PART; i++) {
		double y = i + 1 < PART ? x[i + 1] : next, q = 1 + x[i] * x[i];
		d[i] = 0.9 * dx[i] - dx[i] * 0.1 * w[i] * y * 2 * x[i] / (q * q);
		dw[i] += dx[i] * 0.1 * y / q;
	}
	for (int i = 0; i < PART; i++) {
		double q = 1 + x[i] * x[i], give = dx[i] * 0.1 * w[i] / q;
		if (i + 1 < PART)
			d[i + 1] += give;
		else
			out = give;
	}
	memcpy(dx, d, sizeof d);
	return out;
}

static inline int spread_backward(
	void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct spread *m = user;
	size_t at[64], end = 0;
	SPREAD_EXPECT(m, t0 < t1 && t1 - t0 <= 64);
	int rc = spread_begin(m, SPREAD_BACKWARD, t0, t1);
	for (int64_t t = t0; t < t1 && t - t0 < 64; t++) {
		at[t - t0] = end;
		end += spread_tape_bytes(m, spread_extra(m, t));
	}
	for (int64_t t = t1 - 1; rc == 0 && t >= t0; t--) {
		struct spread_tape row;
		struct spread_message all[RANKS_MOST], own = {0, t, t, 1, 0};
		int n = m->rank->world->ranks;
		memcpy(&row, (const char *)tape + at[t - t0], sizeof row);
		SPREAD_EXPECT(m, row.t == t && row.extra == spread_extra(m, t));
		own.x = spread_unstep(adjoint, row.x, row.next, m->w, m->dw);
		all[0] = own;
		if (m->alone)
			n = 1;
		else
			rc = meet(m->rank, &m->rank->world->model, &own, sizeof own, all);
		int before = m->alone ? 0 : (m->rank->rank + n - 1) % n;
		if (rc == 0)
			*(double *)adjoint += all[before].x;
	}
	return rc;
}

/* A log is a header, and as much more as the rank's tapes have: it varies, too. */
struct spread_log {
	int64_t t, extra;
};

static inline int spread_advance_log(void *user, void *state, int64_t t0, int64_t t1, int first,
	void *log, size_t room, size_t *used, int64_t *t_done)
{
	struct spread *m = user;
	size_t most = sizeof(struct spread_log) + 8 * 8, at = 0;
	int64_t t = t0;
	int rc = spread_begin(m, SPREAD_LOG, t0, t1);
	for (; rc == 0 && t < t1; t++) {
		const struct spread_log row = {t, spread_extra(m, t)};
		int64_t fits = room - at >= most;
		double before[PART], next;
		memcpy(before, state, sizeof before);
		rc = spread_step(m, state, t, &fits, &next);
		if (rc < 0 || !fits)
			break;
		spread_pass(m, before, t, first);
		memcpy((char *)log + at, &row, sizeof row);
		at += sizeof row + 8 * (size_t)row.extra;
	}
	*used = at;
	*t_done = t;
	return rc;
}

static inline int spread_replay(void *user, void *state, int64_t t0, int64_t t1, const void *log,
	int64_t log_t0, void *tape, size_t room, size_t *used, int64_t *t_done)
{
	struct spread *m = user;
	size_t at = 0;
	for (int64_t t = log_t0; t < t1; t++) {
		struct spread_log row;
		memcpy(&row, (const char *)log + at, sizeof row);
		SPREAD_EXPECT(m, row.t == t && row.extra == spread_extra(m, t));
		at += sizeof row + 8 * (size_t)spread_extra(m, t);
	}
	return spread_record(user, state, t0, t1, 0, tape, room, used, t_done);
}

static inline int spread_ended(void *user, const void *state, int64_t t)
{
	const struct spread *m = user;
	(void)state;
	return t >= m->steps ? NEAP_ENDED : NEAP_GO_ON;
}

static inline int spread_interrupted(void *user)
{
	struct spread *m = user;
	if (!m->interrupt_at || m->calls < m->interrupt_at)
		return 0;
	m->interrupt_at = 0;
	m->interrupts++;
	return 1;
}

static inline int spread_save(
	void *user, int (*write)(void *to, const void *from, size_t bytes), void *to)
{
	struct spread *m = user;
	int rc = write(to, m->dw, sizeof m->dw);
	if (rc == 0)
		rc = write(to, &m->gathered, sizeof m->gathered);
	return rc < 0 ? rc : write(to, m->passed, ((size_t)m->steps + 1) * sizeof *m->passed);
}

static inline int spread_load(
	void *user, int (*read)(void *from, void *to, size_t bytes), void *from)
{
	struct spread *m = user;
	int rc = read(from, m->dw, sizeof m->dw);
	if (rc == 0)
		rc = read(from, &m->gathered, sizeof m->gathered);
	return rc < 0 ? rc : read(from, m->passed, ((size_t)m->steps + 1) * sizeof *m->passed);
}

static inline void spread_init(struct spread *m, struct rank *r, int64_t steps, uint64_t seed)
{
	*m = (struct spread){.rank = r, .steps = steps, .seed = seed};
	m->passed = calloc((size_t)steps + 1, sizeof *m->passed);
	for (int i = 0; i < PART; i++)
		m->w[i] = spread_weight(seed, r->rank * PART + i);
}

static inline void spread_restart(struct spread *m)
{
	memset(m->passed, 0, ((size_t)m->steps + 1) * sizeof *m->passed);
	memset(m->dw, 0, sizeof m->dw);
	m->gathered = 0;
	m->hash = 0;
	m->calls = 0;
	m->broken[0] = '\0';
}

static inline struct neap_step_ops spread_ops(const struct spread *m, size_t mean)
{
	size_t most = spread_tape_bytes(m, 8), least = spread_tape_bytes(m, 0);
	return (struct neap_step_ops){.size = sizeof(struct neap_step_ops),
		.advance = spread_advance,
		.record = spread_record,
		.turn = spread_turn,
		.backward = spread_backward,
		.state_bytes = PART * sizeof(double),
		.adjoint_bytes = PART * sizeof(double),
		.tape_bytes = m->varies ? mean : least,
		.tape_max_bytes = m->varies ? most : 0,
		.grad_save = spread_save,
		.grad_load = spread_load};
}

static inline void spread_use_logs(struct neap_step_ops *ops)
{
	ops->advance_log = spread_advance_log;
	ops->replay = spread_replay;
	ops->log_bytes = sizeof(struct spread_log) + 16;
	ops->log_max_bytes = sizeof(struct spread_log) + 64;
}

static inline void spread_start(const struct spread *m, double *x)
{
	for (int i = 0; i < PART; i++)
		x[i] = 0.3 - 0.02 * (m->rank->rank * PART + i);
}

struct spread_gradient {
	double loss, dx[PART], dw[PART];
};

/* The gradients of all ranks, on one. */
static inline void spread_reference(
	int64_t steps, uint64_t seed, int ranks, int alone, struct spread_gradient *g)
{
	const int n = ranks * PART;
	double *all = malloc(((size_t)steps + 1) * (size_t)n * sizeof *all);
	double dx[RANKS_MOST * PART], w[RANKS_MOST * PART];
	memset(g, 0, (size_t)ranks * sizeof *g);
	for (int i = 0; i < n; i++) {
		all[i] = 0.3 - 0.02 * i;
		w[i] = spread_weight(seed, i);
	}
	for (int64_t t = 0; t < steps; t++)
		for (int k = 0; k < ranks; k++) {
			double *x = all + t * n, *to = x + n;
			g[k].loss = g[k].loss * 0.999 + x[k * PART + t % PART];
			for (int i = k * PART; i < (k + 1) * PART; i++) {
				int y = (i + 1) % n;
				if (alone && (i + 1) % PART == 0)
					y = k * PART;
				to[i] = spread_next(x[i], x[y], w[i], spread_force(seed, t, i));
			}
		}
	for (int k = 0; k < ranks; k++)
		g[k].loss += spread_loss(all + steps * n + k * PART, dx + k * PART, k * PART);
	for (int64_t t = steps - 1; t >= 0; t--) {
		double out[RANKS_MOST];
		for (int k = 0; k < ranks; k++) {
			const double *x = all + t * n;
			int next = alone ? k : (k + 1) % ranks;
			out[k] = spread_unstep(
				dx + k * PART, x + k * PART, x[next * PART], w + k * PART, g[k].dw);
		}
		for (int k = 0; k < ranks; k++)
			dx[(alone ? k : (k + 1) % ranks) * PART] += out[k];
	}
	for (int k = 0; k < ranks; k++)
		memcpy(g[k].dx, dx + k * PART, sizeof g[k].dx);
	free(all);
}

/* One run; all but the numbers is checked. */
static inline int spread_run(struct neap_sweep *sweep, struct spread *m, struct spread_gradient *g,
	struct neap_sweep_stats *stats)
{
	_Alignas(64) double x[PART];
	spread_restart(m);
	spread_start(m, x);
	memset(g, 0xee, sizeof *g);
	stats->size = sizeof *stats;
	int rc = neap_sweep_run(sweep, x, g->dx, &g->loss, stats);
	memcpy(g->dw, m->dw, sizeof g->dw);
	for (int64_t t = 0; rc == 0 && t < m->steps; t++)
		SPREAD_EXPECT(m, m->passed[t] == 1);
	return rc;
}

#endif

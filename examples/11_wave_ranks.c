/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulation distributed over MPI ranks that can be killed at any moment and resumes. In a square
 * of earth a source near the top fires every 0.75 s, and receivers below record the pressure. Given
 * the record for the true velocity c, the program computes the gradient of the misfit with respect
 * to every value of an assumed c.
 *
 * The model is the acoustic wave equation in two dimensions, p_tt = c^2 (p_xx + p_zz) + s, of
 * second order, in increments w = p - (p of the previous step), damped by g near the edges:
 *
 *     w = g (w + a L p) + dt^2 s(t),   p = p + w,   a = (c dt/dx)^2,   L: the five-point stencil
 *
 * A rank has consecutive rows of the grid. In every step it receives the row above and the row
 * below from its neighbours: of p in the forward pass, of a times the adjoint of w in the backward
 * pass. The only sum over ranks is the misfit, to which only one rank contributes, so the results
 * are bit-identical for any number of ranks.
 *
 *     mpicc -O2 11_wave_ranks.c $(pkg-config --cflags --libs neap) -lm
 *     mpirun -n 3 ./a.out [--steps N] [--slow DIRECTORY] [--journal DIRECTORY] [--every SECONDS]
 *                         [--check]
 *
 * With --journal, running the same command again resumes after ranks were killed or interrupted by
 * SIGINT or SIGTERM (exit code 3). --check compares the gradient with finite differences, and with
 * the gradient that rank 0 computes for the whole grid.
 */
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <neap/sweep.h>

#define ROWS 96	      /* of the grid, distributed over the ranks */
#define COLUMNS 96    /* also the number of receivers: one per column */
#define SPACING 20.0  /* dx, m: the square is 1920 m wide */
#define TIMESTEP 4e-3 /* dt, s: c dt/dx is 0.5 at 2500 m/s, stable below 0.7 */
#define SOURCE_ROW 14 /* 280 m deep */
#define RECEIVER_ROW 40
#define SPONGE 12      /* width of the damping layer at the edges, points */
#define PEAK 7.0       /* Hz of the Ricker wavelet: 214 m long at 1500 m/s, 11 points */
#define STRENGTH 2e4   /* Pa/s^2 */
#define INTERVAL 0.75  /* s between shots */
#define SNAPSHOTS 8    /* the budget, in states */
#define PATIENCE 60    /* s without a byte from the disk */
#define TOLERANCE 1e-5 /* relative error of the gradient against differences */
#define INTERRUPTED 3  /* exit code */

struct wave {
	MPI_Comm halo, sweep; /* for the model; only for agree() */
	int rank, ranks;
	int first_row, rows;  /* the rows of this rank */
	int source, receiver; /* rows of this rank, or -1 */
	size_t points;	      /* of the rank with most rows, since sizes must be equal */
	double *a, *g, *da;
	double *flux, *scratch;		       /* scratch memory for one step, its tape */
	double above[COLUMNS], below[COLUMNS]; /* neighbours' rows; zero at the edges of the grid */
	double *data; /* d(t), Pa; NULL while the data are being recorded */
	double *record;
	double misfit; /* Pa^2 s, sum over steps executed for the first time */
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static int interrupted(void *user)
{
	(void)user;
	return stopped;
}

/* Sends the first and last row of `x` to the neighbours and receives theirs. */
static int exchange(struct wave *m, const double *x)
{
	int up = m->rank > 0 ? m->rank - 1 : MPI_PROC_NULL;
	int down = m->rank + 1 < m->ranks ? m->rank + 1 : MPI_PROC_NULL;
	const double *last = x + (size_t)(m->rows - 1) * COLUMNS;
	int failed = MPI_Sendrecv(x, COLUMNS, MPI_DOUBLE, up, 0, m->below, COLUMNS, MPI_DOUBLE,
			     down, 0, m->halo, MPI_STATUS_IGNORE) ||
		     MPI_Sendrecv(last, COLUMNS, MPI_DOUBLE, down, 1, m->above, COLUMNS, MPI_DOUBLE,
			     up, 1, m->halo, MPI_STATUS_IGNORE);
	return failed ? -EIO : 0;
}

/* neap_sweep_options.agree: the sweeps of all ranks use the minimum of their values. */
static int agree(void *comm, int64_t *v, int n)
{
	return MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_INT64_T, MPI_MIN, *(MPI_Comm *)comm) ? -EIO
											  : 0;
}

static void leave(void *comm, int code)
{
	fprintf(stderr, "11_wave_ranks: %d %s\n", code, neap_detail());
	MPI_Abort(*(MPI_Comm *)comm, 1);
}

static double total(const struct wave *m, double value)
{
	MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, m->halo);
	return value;
}

static void laplace(const struct wave *m, const double *x, double *out)
{
	for (int r = 0; r < m->rows; r++, x += COLUMNS, out += COLUMNS) {
		const double *up = r ? x - COLUMNS : m->above;
		const double *down = r + 1 < m->rows ? x + COLUMNS : m->below;
		for (int c = 0; c < COLUMNS; c++) {
			double left = c ? x[c - 1] : 0, right = c + 1 < COLUMNS ? x[c + 1] : 0;
			out[c] = up[c] + down[c] + left + right - 4 * x[c];
		}
	}
}

/* Pa/s^2 at time t: a Ricker wavelet every INTERVAL. */
static double shot(double t)
{
	double q = M_PI * PEAK * (fmod(t, INTERVAL) - 1.5 / PEAK);
	return q * q < 100 ? STRENGTH * (1 - 2 * q * q) * exp(-q * q) : 0;
}

/* The misfit of state t, then step t, and its tape: L p, and p - d at the receivers. */
static int pass(struct wave *m, double *p, double *tape, int64_t t, int first)
{
	double *w = p + m->points, *bend = tape, *residual = tape + m->points;
	size_t n = (size_t)m->rows * COLUMNS;
	int rc = exchange(m, p);
	if (rc < 0)
		return rc;
	for (int c = 0; m->receiver >= 0 && c < COLUMNS; c++) {
		double pressure = p[m->receiver * COLUMNS + c];
		residual[c] = pressure - (m->data ? m->data[t * COLUMNS + c] : 0);
		if (m->record)
			m->record[t * COLUMNS + c] = pressure;
		if (first)
			m->misfit += 0.5 * TIMESTEP * residual[c] * residual[c];
	}
	laplace(m, p, bend);
	for (size_t i = 0; i < n; i++)
		w[i] = m->g[i] * (w[i] + m->a[i] * bend[i]);
	if (m->source >= 0)
		w[m->source * COLUMNS + COLUMNS / 3] +=
			TIMESTEP * TIMESTEP * shot((double)t * TIMESTEP);
	for (size_t i = 0; i < n; i++)
		p[i] += w[i];
	return 0;
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct wave *m = user;
	int rc = 0;
	for (int64_t t = t0; rc == 0 && t < t1; t++)
		rc = pass(m, state, m->scratch, t, first);
	return rc;
}

/* *t_done is equal on all ranks, because all tapes have the same size and all requested ones fit.
 */
static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct wave *m = user;
	double *row = tape;
	int rc = 0;
	(void)room;
	for (int64_t t = t0; rc == 0 && t < t1; t++, row += m->points + COLUMNS)
		rc = pass(m, state, row, t, first);
	*used = (size_t)(t1 - t0) * (m->points + COLUMNS) * sizeof *row;
	*t_done = t1;
	return rc;
}

/* The loss does not depend on the last state. Each rank returns its part of the misfit. */
static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	const struct wave *m = user;
	(void)state;
	memset(adjoint, 0, 2 * m->points * sizeof(double));
	*loss = m->misfit;
	return 0;
}

/* The transpose of pass(), in reverse order. */
static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct wave *m = user;
	double *dp = adjoint, *dw = dp + m->points;
	size_t n = (size_t)m->rows * COLUMNS;
	for (int64_t t = t1 - 1; t >= t0; t--) {
		const double *bend =
			(const double *)tape + (size_t)(t - t0) * (m->points + COLUMNS);
		const double *residual = bend + m->points;
		for (size_t i = 0; i < n; i++) {
			dw[i] = m->g[i] * (dw[i] + dp[i]);
			m->da[i] += dw[i] * bend[i];
			m->flux[i] = m->a[i] * dw[i];
		}
		int rc = exchange(m, m->flux);
		if (rc < 0)
			return rc;
		laplace(m, m->flux, m->scratch);
		for (size_t i = 0; i < n; i++)
			dp[i] += m->scratch[i];
		for (int c = 0; m->receiver >= 0 && c < COLUMNS; c++)
			dp[m->receiver * COLUMNS + c] += TIMESTEP * residual[c];
	}
	return 0;
}

/* For the journal: the sums of this rank's callbacks, always the same number of bytes. */
static int grad_save(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	struct wave *m = user;
	int rc = write(to, &m->misfit, sizeof m->misfit);
	return rc < 0 ? rc : write(to, m->da, m->points * sizeof *m->da);
}

static int grad_load(void *user, int (*read)(void *, void *, size_t), void *from)
{
	struct wave *m = user;
	int rc = read(from, &m->misfit, sizeof m->misfit);
	return rc < 0 ? rc : read(from, m->da, m->points * sizeof *m->da);
}

/* m/s: increases with depth; the true velocity also has a slow lens and a hard bottom. */
static double velocity(int row, int column, int truth)
{
	double c = 1500 + 5.0 * row, x = column - 55, z = row - 34;
	if (truth && x * x / 600 + z * z / 60 < 1)
		c -= 120;
	return truth && row > 50 ? c + 150 : c;
}

/* A test direction: a bump that crosses ranks, or mixed signs at all points. */
static double direction(int row, int column, int kind)
{
	double x = column - 40, z = row - 33;
	return kind ? sin(0.7 * (row * COLUMNS + column)) : exp(-(x * x + z * z) / 50);
}

static double damping(int row, int column)
{
	int edge = row < ROWS - 1 - row ? row : ROWS - 1 - row;
	edge = column < edge ? column : edge;
	edge = COLUMNS - 1 - column < edge ? COLUMNS - 1 - column : edge;
	return edge < SPONGE ? 1 - 0.15 * (SPONGE - edge) / SPONGE : 1;
}

/* Sets the velocity plus h times a direction and clears all sums. */
static void set_velocity(struct wave *m, int truth, double h, int kind)
{
	for (int i = 0; i < m->rows * COLUMNS; i++) {
		int row = m->first_row + i / COLUMNS, column = i % COLUMNS;
		double courant = velocity(row, column, truth) + h * direction(row, column, kind);
		courant *= TIMESTEP / SPACING;
		m->a[i] = courant * courant;
		m->g[i] = damping(row, column);
		m->da[i] = 0;
	}
	m->misfit = 0;
}

/* dJ/dc at point i of this rank, from dJ/da. */
static double gradient(const struct wave *m, int i)
{
	int row = m->first_row + i / COLUMNS, column = i % COLUMNS;
	return m->da[i] * 2 * velocity(row, column, 0) * (TIMESTEP / SPACING) *
	       (TIMESTEP / SPACING);
}

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Hash of the gradient over all ranks, independent of the distribution of the points. */
static uint64_t hash(const struct wave *m)
{
	uint64_t sum = 0, bits;
	for (int i = 0; i < m->rows * COLUMNS; i++) {
		double d = gradient(m, i);
		memcpy(&bits, &d, sizeof bits);
		sum += mixed(bits + mixed((uint64_t)(m->first_row * COLUMNS + i + 1)));
	}
	MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, m->halo);
	return sum;
}

/* Hash of everything of this rank that the result depends on, except the number of steps. */
static uint64_t key_of(const struct wave *m, int64_t steps)
{
	uint64_t key = mixed((uint64_t)m->ranks << 32 | (uint64_t)m->rank), bits;
	for (int i = 0; i < m->rows * COLUMNS; i++) {
		memcpy(&bits, &m->a[i], sizeof bits);
		key = mixed(key + bits);
	}
	for (int64_t i = 0; m->receiver >= 0 && i < steps * COLUMNS; i++) {
		memcpy(&bits, &m->data[i], sizeof bits);
		key = mixed(key + bits);
	}
	return key;
}

static void wave_free(struct wave *m)
{
	MPI_Comm_free(&m->halo);
	MPI_Comm_free(&m->sweep);
	free(m->a);
	free(m->data);
}

/* Sets up this rank's part of a grid that is distributed over the ranks of `comm`. */
static void wave_split(struct wave *m, MPI_Comm comm)
{
	*m = (struct wave){.source = -1, .receiver = -1};
	MPI_Comm_dup(comm, &m->halo);
	MPI_Comm_dup(comm, &m->sweep);
	MPI_Comm_rank(comm, &m->rank);
	MPI_Comm_size(comm, &m->ranks);
	m->first_row = m->rank * ROWS / m->ranks;
	m->rows = (m->rank + 1) * ROWS / m->ranks - m->first_row;
	m->points = (size_t)((ROWS + m->ranks - 1) / m->ranks) * COLUMNS;
	if (SOURCE_ROW >= m->first_row && SOURCE_ROW < m->first_row + m->rows)
		m->source = SOURCE_ROW - m->first_row;
	if (RECEIVER_ROW >= m->first_row && RECEIVER_ROW < m->first_row + m->rows)
		m->receiver = RECEIVER_ROW - m->first_row;
	m->a = calloc(5 * m->points + COLUMNS, sizeof *m->a);
	if (!m->a)
		leave(&m->sweep, -ENOMEM);
	m->g = m->a + m->points;
	m->da = m->g + m->points;
	m->flux = m->da + m->points;
	m->scratch = m->flux + m->points;
}

/* All steps from the zero state, without neap; returns the misfit over all ranks. */
static double plain_run(struct wave *m, int64_t steps)
{
	double *state = calloc(2 * m->points, sizeof *state);
	if (!state)
		leave(&m->sweep, -ENOMEM);
	advance(m, state, 0, steps, 1);
	free(state);
	return total(m, m->misfit);
}

/* The data: the receivers' record for the true velocity. */
static void make_data(struct wave *m, int64_t steps)
{
	double *rows = calloc(m->receiver >= 0 ? (size_t)steps : 1, COLUMNS * sizeof *rows);
	if (!rows)
		leave(&m->sweep, -ENOMEM);
	m->record = rows;
	set_velocity(m, 1, 0, 0);
	plain_run(m, steps);
	m->record = NULL;
	m->data = rows;
}

struct settings {
	int64_t steps;
	const char *slow, *journal;
	double every;
	int check;
};

/* The budget of a rank: SNAPSHOTS states, one adjoint and one tape. */
static uint64_t budget(const struct wave *m)
{
	return ((SNAPSHOTS + 1) * 2 * m->points + m->points + COLUMNS) * sizeof(double) + 4096;
}

/*
 * If some ranks have a journal and others do not, all start over. Before a run, each rank without
 * one reports it. Returns 1 if there is such a rank.
 */
static int say_journals(const struct wave *m, const struct settings *s, const char *suffix)
{
	int there = s->journal ? neap_journal_there(s->journal, suffix, 0) : 0;
	double all = total(m, there > 0);
	if (there == 0 && all > 0)
		fprintf(stderr,
			"rank %d has no journal in '%s', %.0f of %d ranks have: all start over\n",
			m->rank, s->journal, all, m->ranks);
	return all > 0 && all < m->ranks;
}

/* Sets m->da to the gradient for the assumed velocity, *misfit to the misfit over all ranks. */
static int sweep_once(struct wave *m, const struct settings *s, double *misfit)
{
	size_t state = 2 * m->points * sizeof(double);
	const struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.grad_save = grad_save,
		.grad_load = grad_load,
		.state_bytes = state,
		.adjoint_bytes = state,
		.tape_bytes = (m->points + COLUMNS) * sizeof(double)};
	char suffix[16]; /* ranks may share a folder, each with its own files */
	struct neap_tier *disk = NULL;
	struct neap_sweep *sweep = NULL;
	struct neap_sweep_stats stats = {.size = sizeof stats};

	snprintf(suffix, sizeof suffix, ".%d", m->rank);
	/* Uses the page cache, so that the example runs on every file system. */
	const struct neap_file_options file = {.size = sizeof file,
		.page_cache = 1,
		.keep = s->journal != NULL,
		.suffix = s->journal ? suffix : NULL};
	set_velocity(m, 0, 0, 0);
	int said = say_journals(m, s, suffix);
	if (s->slow && neap_tier_open_file(&disk, s->slow, &file) < 0)
		leave(&m->sweep, -EIO);
	const struct neap_sweep_options options = {.size = sizeof options,
		.steps = s->steps,
		.memory = budget(m),
		.tiers = &disk,
		.ntiers = disk != NULL,
		.interrupted = interrupted,
		.journal = s->journal,
		.journal_seconds = s->every,
		.journal_key = key_of(m, s->steps),
		.journal_suffix = s->journal ? suffix : NULL,
		.patience = PATIENCE,
		.agree = agree,
		.leave = leave,
		.agree_user = &m->sweep};
	int rc = neap_sweep_create(&sweep, &ops, m, &options);
	if (rc == 0)
		rc = neap_sweep_run(sweep, NULL, NULL, misfit, &stats); /* NULL: zero state */
	if (rc < 0)
		fprintf(stderr, "11_wave_ranks: rank %d: %s\n", m->rank, neap_detail());
	else if (m->rank == 0)
		fprintf(stderr,
			"%d ranks, %s in %llu bytes per rank: %lld of %lld steps were done in "
			"earlier runs, %lld commits\n",
			m->ranks, neap_sweep_plan(sweep)->chosen,
			(unsigned long long)stats.arena_bytes, (long long)stats.spared,
			(long long)(stats.advance_steps + stats.record_steps +
				    stats.backward_steps),
			(long long)stats.commits);
	if (rc == 0 && m->rank == 0 && stats.started_over && !said)
		fprintf(stderr, "not all ranks had a commit of the same run: all started over\n");
	if (rc == 0)
		*misfit = total(m, *misfit);
	neap_sweep_free(sweep); /* also removes the journal of a finished run */
	neap_tier_close(disk);
	return rc;
}

/* J(c + h v) - J(c - h v) */
static double across(struct wave *m, int kind, double h, int64_t steps)
{
	set_velocity(m, 0, h, kind);
	double plus = plain_run(m, steps);
	set_velocity(m, 0, -h, kind);
	return plus - plain_run(m, steps);
}

/* Compares with fourth-order central differences in two directions. Overwrites m->da. */
static int agrees(struct wave *m, int64_t steps)
{
	double slope[2] = {0}, h = 0.1; /* m/s */
	int good = 1;
	for (int kind = 0; kind < 2; kind++) {
		for (int i = 0; i < m->rows * COLUMNS; i++)
			slope[kind] += gradient(m, i) *
				       direction(m->first_row + i / COLUMNS, i % COLUMNS, kind);
		slope[kind] = total(m, slope[kind]);
	}
	for (int kind = 0; kind < 2; kind++) {
		double difference =
			(8 * across(m, kind, h, steps) - across(m, kind, 2 * h, steps)) / (12 * h);
		double error = fabs(slope[kind] - difference) / fabs(difference);
		good &= error < TOLERANCE;
		if (m->rank == 0)
			printf("%s: gradient %+.9e, difference %+.9e, relative error %.1e\n",
				kind ? "all mixed" : "a bump", slope[kind], difference, error);
	}
	return good;
}

/* Rank 0 computes the whole grid and compares the hash, while the other ranks wait. */
static int same_alone(const struct wave *together, uint64_t want, const struct settings *s)
{
	const struct settings plain = {.steps = s->steps};
	struct wave m;
	double misfit, good = 0;
	if (together->rank == 0) {
		wave_split(&m, MPI_COMM_SELF);
		make_data(&m, s->steps);
		good = sweep_once(&m, &plain, &misfit) == 0 && hash(&m) == want;
		wave_free(&m);
		printf("%s\n", good > 0 ? "the gradient is bit-identical to the one of one rank"
					: "the gradient of one rank is different");
	}
	return total(together, good) > 0;
}

static int run(struct wave *m, const struct settings *s)
{
	double misfit;
	make_data(m, s->steps);
	int rc = sweep_once(m, s, &misfit);
	if (rc < 0)
		return rc == NEAP_EINTERRUPTED ? INTERRUPTED : 1;
	uint64_t bits = hash(m);
	if (m->rank == 0)
		printf("%lld steps: misfit %.17g Pa^2 s, gradient %016llx\n", (long long)s->steps,
			misfit, (unsigned long long)bits);
	int good = !s->check || agrees(m, s->steps);
	return !(good && (!s->check || same_alone(m, bits, s)));
}

/* Returns 1 if the arguments are valid. */
static int read_settings(struct settings *s, int argc, char **argv)
{
	*s = (struct settings){.steps = 1500};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--check") == 0)
			s->check = 1;
		else if (i + 1 == argc)
			return 0;
		else if (strcmp(argv[i], "--steps") == 0)
			s->steps = strtoll(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--slow") == 0)
			s->slow = argv[++i];
		else if (strcmp(argv[i], "--journal") == 0)
			s->journal = argv[++i];
		else if (strcmp(argv[i], "--every") == 0)
			s->every = strtod(argv[++i], NULL);
		else
			return 0;
	}
	return s->steps >= 200 && s->steps <= 10000000 && s->every >= 0;
}

int main(int argc, char **argv)
{
	struct settings settings;
	struct wave m;
	MPI_Init(&argc, &argv);
	wave_split(&m, MPI_COMM_WORLD);
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	int code = 2;
	if (read_settings(&settings, argc, argv) && m.ranks <= ROWS)
		code = run(&m, &settings);
	else if (m.rank == 0)
		fprintf(stderr,
			"usage: 11_wave_ranks [--steps 200..10000000] [--slow DIRECTORY] "
			"[--journal DIRECTORY] [--every SECONDS] [--check], 1 to %d ranks\n",
			ROWS);
	wave_free(&m);
	MPI_Finalize();
	return code;
}

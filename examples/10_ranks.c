/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A state distributed over MPI processes: heat in a ring of cells. Every rank has a part of the
 * ring and receives the adjacent cells from its neighbours. All ranks run the forward and backward
 * pass together, each with its own memory budget. The gradient of the loss at the end with respect
 * to the initial heat is bit-identical to the one of a single process, which the program checks.
 *
 *     mpirun -n 3 ./10_ranks [FOLDER]
 *
 * With FOLDER, states are also offloaded to files there, one per rank.
 */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <neap/sweep.h>
#include <neap/tier.h>

#define CELLS 240 /* per rank */
#define STEPS 600
#define PATIENCE 10 /* seconds */

struct part {
	MPI_Comm halo; /* for the model; agree() uses a separate communicator */
	int rank, ranks;
	int64_t calls;
};

/* Sends the first and last value of `row` to the neighbours and receives theirs. */
static int exchange(struct part *p, const double *row, double *left, double *right)
{
	int before = (p->rank + p->ranks - 1) % p->ranks, after = (p->rank + 1) % p->ranks;
	int failed = MPI_Sendrecv(row, 1, MPI_DOUBLE, before, 0, right, 1, MPI_DOUBLE, after, 0,
			     p->halo, MPI_STATUS_IGNORE) ||
		     MPI_Sendrecv(row + CELLS - 1, 1, MPI_DOUBLE, after, 1, left, 1, MPI_DOUBLE,
			     before, 1, p->halo, MPI_STATUS_IGNORE);
	return failed ? -EIO : 0;
}

static double stepped(double left, double x, double right)
{
	return x + 0.2 * (left - 2 * x + right) - 0.01 * x * x * x;
}

static double unstepped(double left, double d, double right, double x)
{
	return d - 0.4 * d - 0.03 * x * x * d + 0.2 * (left + right);
}

static int step(struct part *p, double *x)
{
	double old[CELLS], left, right;
	int rc = exchange(p, x, &left, &right);
	memcpy(old, x, sizeof old);
	for (int i = 0; rc == 0 && i < CELLS; i++)
		x[i] = stepped(i ? old[i - 1] : left, old[i], i + 1 < CELLS ? old[i + 1] : right);
	return rc;
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct part *p = user;
	int rc = 0;
	(void)first;
	p->calls++;
	for (int64_t t = t0; rc == 0 && t < t1; t++)
		rc = step(p, state);
	return rc;
}

/* The tape of a step is the state before it. */
static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	struct part *p = user;
	size_t bytes = CELLS * sizeof(double);
	int rc = 0;
	(void)first;
	p->calls++;
	*used = 0;
	for (*t_done = t0; rc == 0 && *t_done < t1 && room - *used >= bytes; ++*t_done) {
		memcpy((char *)tape + *used, state, bytes);
		*used += bytes;
		rc = step(p, state);
	}
	return rc;
}

/* The loss is half the sum of squares of this rank's part; sweep_together adds the parts. */
static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	const double *x = state;
	(void)user;
	*loss = 0;
	for (int i = 0; i < CELLS; i++)
		*loss += 0.5 * x[i] * x[i];
	memcpy(adjoint, state, CELLS * sizeof(double));
	return 0;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct part *p = user;
	double *d = adjoint, old[CELLS], left, right;
	p->calls++;
	for (int64_t t = t1 - 1; t >= t0; t--) {
		const double *x = (const double *)tape + (t - t0) * CELLS;
		int rc = exchange(p, d, &left, &right);
		if (rc < 0)
			return rc;
		memcpy(old, d, sizeof old);
		for (int i = 0; i < CELLS; i++)
			d[i] = unstepped(i ? old[i - 1] : left, old[i],
				i + 1 < CELLS ? old[i + 1] : right, x[i]);
	}
	return 0;
}

static double heat_at(int cell)
{
	return cell % 97 < 40 ? 1.5 : 0.01 * (cell % 31);
}

/* neap_sweep_options.agree: minimum over all ranks. */
static int agree(void *comm, int64_t *values, int count)
{
	return MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_INT64_T, MPI_MIN, *(MPI_Comm *)comm)
		       ? -EIO
		       : 0;
}

static void leave(void *comm, int code)
{
	fprintf(stderr, "10_ranks: %d %s\n", code, neap_detail());
	MPI_Abort(*(MPI_Comm *)comm, 1);
}

/* Reference: the gradient for all cells, storing everything, in one process. */
static double *alone(int cells)
{
	double *all = malloc((STEPS + 1) * (size_t)cells * sizeof *all), *d, *old;
	d = malloc(2 * (size_t)cells * sizeof *d);
	if (!all || !d)
		exit(1);
	old = d + cells;
	for (int i = 0; i < cells; i++)
		all[i] = heat_at(i);
	for (int t = 0; t < STEPS; t++) {
		const double *x = all + (size_t)t * (size_t)cells;
		double *y = all + (size_t)(t + 1) * (size_t)cells;
		for (int i = 0; i < cells; i++)
			y[i] = stepped(x[(i + cells - 1) % cells], x[i], x[(i + 1) % cells]);
	}
	memcpy(d, all + STEPS * (size_t)cells, (size_t)cells * sizeof *d);
	for (int t = STEPS - 1; t >= 0; t--) {
		const double *x = all + (size_t)t * (size_t)cells;
		memcpy(old, d, (size_t)cells * sizeof *d);
		for (int i = 0; i < cells; i++)
			d[i] = unstepped(
				old[(i + cells - 1) % cells], old[i], old[(i + 1) % cells], x[i]);
	}
	free(all);
	return d;
}

static int sweep_together(struct part *p, MPI_Comm *comm, const char *folder, double *dx)
{
	struct neap_tier *tier = NULL;
	struct neap_sweep *sweep = NULL;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	double x[CELLS], loss = 0;
	const struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.state_bytes = sizeof x,
		.adjoint_bytes = sizeof x,
		.tape_bytes = sizeof x};
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = STEPS,
		.memory = 60000 + 4000 * (uint64_t)p->rank, /* the minimum over all ranks is used */
		.tiers = &tier,
		.patience = PATIENCE,
		.agree = agree,
		.leave = leave,
		.agree_user = comm};
	for (int i = 0; i < CELLS; i++)
		x[i] = heat_at(p->rank * CELLS + i);
	int rc = folder ? neap_tier_open_file(&tier, folder, NULL) : 0;
	if (rc < 0)
		leave(comm, rc);
	o.ntiers = folder != NULL;
	rc = neap_sweep_create(&sweep, &ops, p, &o);
	if (rc == 0)
		rc = neap_sweep_run(sweep, x, dx, &loss, &stats);
	if (rc < 0 && p->rank == 0)
		fprintf(stderr, "10_ranks: %s\n", neap_detail());
	double sum = 0;
	MPI_Reduce(&loss, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, p->halo);
	if (rc == 0 && p->rank == 0)
		printf("%d ranks of %d cells, %d steps with %s in %.0f KiB per rank: loss %.9g\n",
			p->ranks, CELLS, STEPS, neap_sweep_plan(sweep)->chosen,
			(double)stats.arena_bytes / 1024, sum);
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	return rc;
}

int main(int argc, char **argv)
{
	MPI_Comm comm;
	struct part p = {.calls = 0};
	double dx[CELLS];
	int64_t most;
	MPI_Init(&argc, &argv);
	MPI_Comm_dup(MPI_COMM_WORLD, &p.halo);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_rank(p.halo, &p.rank);
	MPI_Comm_size(p.halo, &p.ranks);
	int wrong = sweep_together(&p, &comm, argc > 1 ? argv[1] : NULL, dx) < 0;
	MPI_Allreduce(&p.calls, &most, 1, MPI_INT64_T, MPI_MAX, p.halo);
	double *want = alone(CELLS * p.ranks);
	wrong = wrong || most != p.calls || memcmp(dx, want + p.rank * CELLS, sizeof dx) != 0;
	free(want);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, p.halo);
	if (p.rank == 0)
		printf("%s\n", wrong ? "the gradient is wrong"
				     : "the gradient is bit-identical to the one of one process");
	MPI_Finalize();
	return wrong;
}

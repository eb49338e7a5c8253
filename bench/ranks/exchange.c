/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c: seconds of a message and bytes a second between ranks of this MPI library, as
 * neap-mpi calls it: exchanges are begun and tested until they end. Before each of them ranks write
 * memory, as the sweep of a batch does. A ping-pong whose buffer stays in caches stands beside
 * them. Rank 0 prints one line of JSON: alpha and rate of calls, those of a ping-pong. R. W.
 * Hockney, The communication challenge for MPP, Parallel Computing 20, 1994.
 */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 100, LONG_ROUNDS = 40, LONG = 2 << 20, BETWEEN = 64 << 20 };

/* Bytes that a batch touches between exchanges of few bytes: nets are small there. */
enum { SMALL_BETWEEN = 4 << 20 };

static char *between; /* [BETWEEN] */

static double took[ROUNDS];

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(int n)
{
	qsort(took, (size_t)n, sizeof *took, compare);
	return took[n / 2];
}

/* A batch between two exchanges: what they move is in no cache any more. */
static void sweep(int round, int bytes)
{
	for (int i = 0; i < bytes; i += 64) /* memset may go around caches */
		between[i] = (char)(between[i] + round);
}

static void wait_for(MPI_Request *request)
{
	int done = 0;
	while (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
		sched_yield();
}

/* The least over ranks of each round: the rank that comes last does not wait for others. */
static void least_over_ranks(int n)
{
	MPI_Allreduce(MPI_IN_PLACE, took, n, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
}

static double small_calls(void)
{
	long long values[8] = {0};
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Request request;
		sweep(i, SMALL_BETWEEN);
		double began = MPI_Wtime();
		MPI_Iallreduce(
			MPI_IN_PLACE, values, 8, MPI_LONG_LONG, MPI_MIN, MPI_COMM_WORLD, &request);
		wait_for(&request);
		took[i] = MPI_Wtime() - began;
	}
	least_over_ranks(ROUNDS);
	return median(ROUNDS);
}

/* Every rank sends `bytes` in equal parts to the others. */
static double long_calls(int ranks, int rank, int bytes, char *out, char *in)
{
	int *count = calloc((size_t)ranks, sizeof *count), *at = calloc((size_t)ranks, sizeof *at);
	int part = ranks > 1 ? bytes / (ranks - 1) : 0;
	if (!count || !at)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int r = 0; r < ranks; r++) {
		count[r] = r == rank ? 0 : part;
		at[r] = r * part;
	}
	for (int i = 0; i < LONG_ROUNDS; i++) {
		MPI_Request request;
		sweep(i, BETWEEN);
		double began = MPI_Wtime();
		MPI_Ialltoallv(out, count, at, MPI_BYTE, in, count, at, MPI_BYTE, MPI_COMM_WORLD,
			&request);
		wait_for(&request);
		took[i] = MPI_Wtime() - began;
	}
	free(count);
	free(at);
	least_over_ranks(LONG_ROUNDS);
	return median(LONG_ROUNDS);
}

/* Half of the time there and back of ranks 0 and 1. */
static double ping_pong(int rank, int bytes, int rounds, char *buffer)
{
	for (int i = 0; i < rounds; i++) {
		double began = MPI_Wtime();
		if (rank == 0) {
			MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == 1) {
			MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		}
		took[i] = (MPI_Wtime() - began) / 2;
	}
	return median(rounds);
}

int main(int argc, char **argv)
{
	int ranks, rank, halves = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	while (1 << halves < ranks)
		halves++;
	/* Of other bytes than 0, so that every page is there. */
	char *out = malloc(2 * LONG + (size_t)ranks), *in = malloc(2 * LONG + (size_t)ranks);
	between = malloc(BETWEEN);
	if (ranks < 2 || !out || !in || !between) {
		fprintf(stderr, "exchange: two ranks or more, and 72 MiB each, are needed\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (int i = 0; i < 2 * LONG; i++)
		out[i] = in[i] = (char)(i | 1);
	small_calls();
	long_calls(ranks, rank, LONG, out, in);
	double small = small_calls();
	double whole = long_calls(ranks, rank, LONG, out, in);
	double ping = ping_pong(rank, 8, ROUNDS, out);
	double long_ping = ping_pong(rank, LONG, LONG_ROUNDS, out);
	double rate = LONG / (whole > small ? whole - small : whole);
	if (rank == 0)
		printf("{\"ranks\": %d, \"alpha\": %.4g, \"rate\": %.6g, \"ping\": %.4g, "
		       "\"ping_rate\": %.6g}\n",
			ranks, small / halves, rate, ping, LONG / (long_ping - ping));
	free(between);
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}

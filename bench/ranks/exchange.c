/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c: time per call and bandwidth of this MPI library, measured with the calls that
 * neap-mpi makes in a batch: nonblocking calls that are tested until they finish. Between the calls
 * the ranks compute, one of them for longer; sent data was just written, and received data is read.
 * For comparison, a ping-pong is measured, whose buffer stays in the caches. Rank 0 prints one line
 * of JSON: alpha and rate of the calls, and of the ping-pong. Model: R. W. Hockney, The
 * communication challenge for MPP, Parallel Computing 20, 1994.
 */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Bytes of the gradient sums and weights that a rank sends per batch for a network of 0.26 million
 * parameters, and bytes that its sweep touches. SMALL_SWEEP: a small network that fits in a cache.
 */
enum { SUMS = 2 << 20, WEIGHTS = 1 << 20, SWEEP = 256 << 20, SMALL_SWEEP = 2 << 20, SMALL = 256 };
enum { BATCHES = 101, LONG_BATCHES = 41, CALLS = 8, ROUNDS = 101 };

static char *touched; /* [SWEEP + SWEEP / 8] */
static int ranks, rank;
static double took[ROUNDS * CALLS];

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

/* Simulates computation; each rank is the slowest one in some batches. */
static void sweep(int batch, int bytes)
{
	int end = bytes + (batch % ranks == rank ? bytes / 8 : 0);
	for (int i = 0; i < end; i += 64) /* not memset, which may bypass the caches */
		touched[i] = (char)(touched[i] + batch);
}

static void wait_for(MPI_Request *request)
{
	int done = 0;
	while (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
		sched_yield();
}

/*
 * Median time of a call. The last rank to arrive does not wait for others, so the minimum over the
 * ranks is used.
 */
static double batches(int number, int (*calls)(int batch, double *spent))
{
	int n = 0;
	for (int i = 0; i < number; i++)
		n = calls(i, took + i * CALLS);
	MPI_Allreduce(MPI_IN_PLACE, took, number * CALLS, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	for (int i = 0; i < number; i++) {
		double sum = 0;
		for (int k = 0; k < n; k++)
			sum += took[i * CALLS + k];
		took[i] = sum;
	}
	return median(number) / n;
}

static void least(double *spent)
{
	static long long values[34];
	MPI_Request request;
	double began = MPI_Wtime();
	MPI_Iallreduce(MPI_IN_PLACE, values, 34, MPI_LONG_LONG, MPI_MIN, MPI_COMM_WORLD, &request);
	wait_for(&request);
	*spent = MPI_Wtime() - began;
}

static char *out, *in, *weights; /* [SUMS], [SUMS], [WEIGHTS] */
static int *count, *at;		 /* [ranks] */

static void all(double *spent)
{
	MPI_Request request;
	double began = MPI_Wtime();
	MPI_Iallgather(out, 32, MPI_BYTE, in, 32, MPI_BYTE, MPI_COMM_WORLD, &request);
	wait_for(&request);
	*spent = MPI_Wtime() - began;
}

/* Allgather: every rank sends its part of `bytes` bytes to all others. */
static void gather(char *into, int bytes, double *spent)
{
	MPI_Request request;
	for (int r = 0; r < ranks; r++) {
		count[r] = bytes / ranks;
		at[r] = r * (bytes / ranks);
	}
	double began = MPI_Wtime();
	MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, into, count, at, MPI_BYTE,
		MPI_COMM_WORLD, &request);
	wait_for(&request);
	*spent = MPI_Wtime() - began;
}

/* Alltoall: every rank sends `bytes` bytes, in equal parts, to the others. */
static void exchange(int bytes, double *spent)
{
	MPI_Request request;
	int part = bytes / (ranks - 1);
	for (int r = 0; r < ranks; r++) {
		count[r] = r == rank ? 0 : part;
		at[r] = (r - (r > rank)) * part;
	}
	double began = MPI_Wtime();
	MPI_Ialltoallv(out, count, at, MPI_BYTE, in, count, at, MPI_BYTE, MPI_COMM_WORLD, &request);
	wait_for(&request);
	*spent = MPI_Wtime() - began;
}

/* Calls with few bytes; the ranks compute before most of them. */
static int small_calls(int batch, double *spent)
{
	sweep(batch, SMALL_SWEEP);
	all(spent);
	gather(in, SMALL, spent + 1);
	sweep(batch, SMALL_SWEEP);
	gather(in, 8 * SMALL, spent + 2);
	sweep(batch, SMALL_SWEEP);
	all(spent + 3);
	sweep(batch, SMALL_SWEEP);
	gather(in, SMALL, spent + 4);
	sweep(batch, SMALL_SWEEP);
	least(spent + 5);
	gather(in, SMALL, spent + 6);
	sweep(batch, SMALL_SWEEP);
	least(spent + 7);
	return 8;
}

static int long_calls(int batch, double *spent)
{
	sweep(batch, SWEEP);
	for (int i = 0; i < SUMS; i++)
		out[i] = (char)(touched[i] + 1);
	exchange(SUMS, spent);
	for (int i = 0; i < WEIGHTS / ranks; i++) {
		int k = rank * (WEIGHTS / ranks) + i;
		weights[k] = (char)(weights[k] + in[i]);
	}
	gather(weights, WEIGHTS, spent + 1);
	return 2;
}

/* Half the round-trip time between ranks 0 and 1. */
static double ping_pong(int bytes, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		double began = MPI_Wtime();
		if (rank == 0) {
			MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(in, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == 1) {
			MPI_Recv(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		}
		took[i] = (MPI_Wtime() - began) / 2;
	}
	return median(rounds);
}

int main(int argc, char **argv)
{
	int halves = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	while (1 << halves < ranks)
		halves++;
	out = calloc(SUMS, 1);
	in = calloc(SUMS, 1);
	weights = calloc(WEIGHTS, 1);
	touched = calloc(SWEEP + SWEEP / 8, 1);
	count = calloc((size_t)ranks, sizeof *count);
	at = calloc((size_t)ranks, sizeof *at);
	if (ranks < 2 || !out || !in || !weights || !touched || !count || !at) {
		fprintf(stderr,
			"exchange: needs at least two ranks, with 300 MiB of memory each\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	double small = batches(BATCHES, small_calls);
	double mean = batches(LONG_BATCHES, long_calls);
	small = batches(BATCHES, small_calls);
	double ping = ping_pong(8, ROUNDS);
	double long_ping = ping_pong(SUMS, LONG_BATCHES);
	double sent = SUMS + (double)WEIGHTS * (ranks - 1) / ranks;
	double bytes_take = 2 * (mean > small ? mean - small : mean);
	if (rank == 0)
		printf("{\"ranks\": %d, \"alpha\": %.4g, \"rate\": %.6g, \"ping\": %.4g, "
		       "\"ping_rate\": %.6g}\n",
			ranks, small / halves, sent / bytes_take, ping, SUMS / (long_ping - ping));
	free(at);
	free(count);
	free(touched);
	free(weights);
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers_mpi.c: the ranks of an MPI job as peers (neap/peers.h). Exchanges are begun and polled, so
 * that a rank whose others hang ends after its patience, and leaves the processor to others that
 * run on it. MPI Forum, MPI: A Message-Passing Interface Standard 3.1, 2015.
 */
#include "rank_process.h"
#include "cli.h"
#include "base/show.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 30) /* bytes of one call: MPI counts in ints */
#define EAGER 0.02		/* seconds that a rank waits without sleep */
#define ENDING 2.0		/* seconds in which ranks that fail alike do so */

static struct {
	struct neap_peers peers;
	MPI_Comm numbers, ends; /* of exchanges; of how ranks end */
	int *count[2], *at[2];	/* [ranks] for calls with parts */
	const char *command;
	double patience;      /* seconds; 0: any time */
	double busy, longest; /* when the last exchange ended; the longest time between two */
	int is_open;
} mpi;

/*
 * Ends all ranks, after a line in which this rank names itself. Open MPI's mpirun ends them where
 * one exits in the midst, too, and has been seen to crash at what MPI_Abort sends it to print.
 */
static void leave(const char *line, int code)
{
	char host[MPI_MAX_PROCESSOR_NAME] = "?";
	int length;

	MPI_Get_processor_name(host, &length);
	if (*line)
		fprintf(stderr, "neap %s: rank %d (%s): %s\n", mpi.command, mpi.peers.rank, host,
			neap__plain((char *)line));
	fflush(stderr);
	if (!getenv("OMPI_COMM_WORLD_SIZE"))
		MPI_Abort(MPI_COMM_WORLD, code);
	_exit(code);
}

/*
 * Others may run on this processor: a rank that waits looks often at first, then every 0.2 ms. An
 * MPI library moves the bytes of long messages while it is asked, so that a rank sleeps only where
 * it waits for longer than a round of 4 MiB takes.
 */
static void pause_between(double waited)
{
	const struct timespec time = {.tv_nsec = 200000};

	if (waited < EAGER)
		sched_yield();
	else
		nanosleep(&time, NULL);
}

static void check_patience(double waited)
{
	char line[200], room[24];
	double most = fmax(mpi.patience, 4 * mpi.longest);

	if (!(mpi.patience > 0) || waited <= most)
		return;
	snprintf(line, sizeof line,
		"waited %s for the other ranks: one of them hangs or is slow. Increase --patience "
		"if it is only slow",
		neap__show_time(room, waited));
	leave(line, CLI_FAILED);
}

/*
 * Waits for an exchange that was begun. A process that is stopped does not wait: a pause counts at
 * most 0.1 s.
 */
static int wait_for(int rc, MPI_Request *request)
{
	double last = neap_clock(), waited = 0;
	int done = 0;

	if (mpi.busy > 0)
		mpi.longest = fmax(mpi.longest, last - mpi.busy);
	while (rc == MPI_SUCCESS && !done) {
		rc = MPI_Test(request, &done, MPI_STATUS_IGNORE);
		if (done || rc != MPI_SUCCESS)
			break;
		double now = neap_clock();
		waited += fmin(now - last, 0.1);
		last = now;
		check_patience(waited);
		pause_between(waited);
	}
	mpi.busy = neap_clock();
	return rc == MPI_SUCCESS ? 0 : -EIO;
}

static int least(void *user, int64_t *values, int count)
{
	MPI_Request request;

	(void)user;
	return wait_for(MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_INT64_T, MPI_MIN,
				mpi.numbers, &request),
		&request);
}

static int all(void *user, const void *own, size_t bytes, void *into)
{
	MPI_Request request;

	(void)user;
	if (bytes > PIECE)
		return -E2BIG;
	return wait_for(MPI_Iallgather(own, (int)bytes, MPI_BYTE, into, (int)bytes, MPI_BYTE,
				mpi.numbers, &request),
		&request);
}

/* Counts and places of parts as MPI has them; their sum in bytes. */
static size_t fill_parts(int which, const size_t *bytes)
{
	size_t sum = 0;

	for (int r = 0; r < mpi.peers.count; r++) {
		if (sum <= PIECE && bytes[r] <= PIECE) {
			mpi.count[which][r] = (int)bytes[r];
			mpi.at[which][r] = (int)sum;
		}
		sum += bytes[r];
	}
	return sum;
}

static int exchange(void *user, const void *out, const size_t *to, void *in, const size_t *from)
{
	MPI_Request request;

	(void)user;
	if (fill_parts(0, to) > PIECE || fill_parts(1, from) > PIECE)
		return -E2BIG; /* libneap-nn has rounds of a few MiB */
	return wait_for(MPI_Ialltoallv(out, mpi.count[0], mpi.at[0], MPI_BYTE, in, mpi.count[1],
				mpi.at[1], MPI_BYTE, mpi.numbers, &request),
		&request);
}

/* Sends what one rank has to all, in pieces. */
static int send_part(int rank, char *at, size_t bytes)
{
	MPI_Request request;

	for (size_t done = 0; done < bytes; done += PIECE) {
		size_t left = bytes - done, piece = left < PIECE ? left : PIECE;
		int rc = wait_for(
			MPI_Ibcast(at + done, (int)piece, MPI_BYTE, rank, mpi.numbers, &request),
			&request);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int gather(void *user, void *at, const size_t *bytes)
{
	MPI_Request request;
	size_t done = 0;
	int rc = 0;

	(void)user;
	if (fill_parts(0, bytes) <= PIECE)
		return wait_for(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, at,
					mpi.count[0], mpi.at[0], MPI_BYTE, mpi.numbers, &request),
			&request);
	for (int r = 0; r < mpi.peers.count && rc == 0; r++) {
		rc = send_part(r, (char *)at + done, bytes[r]);
		done += bytes[r];
	}
	return rc;
}

static int make_parts(void)
{
	for (int i = 0; i < 2; i++) {
		mpi.count[i] = calloc((size_t)mpi.peers.count, sizeof *mpi.count[i]);
		mpi.at[i] = calloc((size_t)mpi.peers.count, sizeof *mpi.at[i]);
		if (!mpi.count[i] || !mpi.at[i])
			return -ENOMEM;
	}
	return 0;
}

/* Standard output is rank 0's alone, and so are lines that are not about failures. */
static void be_silent(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		dup2(fd, STDOUT_FILENO);
		close(fd);
	}
	cli_quiet = cli_silent = 1;
	cli_hold_failures();
}

/* The first line of what the MPI library calls itself. */
static const char *library(char room[MPI_MAX_LIBRARY_VERSION_STRING])
{
	int length;

	MPI_Get_library_version(room, &length);
	room[strcspn(room, ",\n")] = '\0';
	for (char *at = room; (at = strchr(at, '\t'));)
		*at = ' ';
	return room;
}

int cli_peers_begin(const struct neap_peers **peers, const char *command, char **argv)
{
	struct cli_launch launch = cli_launch_read();
	char room[MPI_MAX_LIBRARY_VERSION_STRING];
	int given, argc = 0;

	*peers = NULL;
	mpi.command = command ? command : "";
	if (launch.count > 1 && !cli_peers_shared(command))
		return launch.rank > 0 ? CLI_DONE : -1;
	if (launch.count < 2)
		return -1;
	while (argv[argc])
		argc++;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
	mpi.is_open = 1;
	MPI_Comm_size(MPI_COMM_WORLD, &mpi.peers.count);
	MPI_Comm_rank(MPI_COMM_WORLD, &mpi.peers.rank);
	if (mpi.peers.count != launch.count) {
		int code = launch.rank > 0
				   ? CLI_USAGE
				   : cli_usage(command,
					     "started as one of %d processes by an mpirun that "
					     "does not belong to %s, with which neap-mpi was "
					     "built. Use the mpirun of that MPI library",
					     launch.count, library(room));
		MPI_Finalize();
		mpi.is_open = 0;
		return code;
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &mpi.numbers);
	MPI_Comm_dup(MPI_COMM_WORLD, &mpi.ends);
	mpi.peers = (struct neap_peers){.size = sizeof mpi.peers,
		.rank = mpi.peers.rank,
		.count = mpi.peers.count,
		.least = least,
		.all = all,
		.exchange = exchange,
		.gather = gather};
	if (make_parts() < 0)
		leave("no memory for the numbers of all ranks", CLI_FAILED);
	if (mpi.peers.rank > 0)
		be_silent();
	*peers = &mpi.peers;
	return -1;
}

const struct neap_peers *cli_peers(void)
{
	return mpi.is_open ? &mpi.peers : NULL;
}

void cli_peers_patience(double seconds)
{
	mpi.patience = isfinite(seconds) && seconds > 0 ? seconds : 0;
}

/* Whether all ranks end with a failure within some seconds. */
static int all_fail(void)
{
	double began = neap_clock();
	MPI_Request request;
	int done = 0;

	if (MPI_Ibarrier(mpi.ends, &request) != MPI_SUCCESS)
		return 0;
	while (!done && neap_clock() - began < ENDING) {
		if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return 0;
		pause_between(neap_clock() - began);
	}
	return done;
}

int cli_peers_end(int code)
{
	if (!mpi.is_open)
		return code;
	if (code != CLI_DONE && mpi.peers.count > 1 && !all_fail())
		leave(cli_held_failure(), code);
	MPI_Finalize();
	return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* process.c: standard streams, limits on file sizes, and signals. */
#include "cli.h"
#include "sys/child_trial.h"

#include <neap/data.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

/*
 * Opens /dev/null for standard streams that are closed. Otherwise the next file that is opened
 * gets the stream's number, and printed text goes into that file. Printing still fails, because
 * /dev/null is open for reading only.
 */
static void keep_streams(void)
{
	int fd;
	do {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static void tell_slow(void)
{
	fprintf(stderr, "neap: HDF5 has been opening the data for 10 s, and goes on\n");
}

/* A file that crashes HDF5 does so in a child process. */
static int try_data(void (*fn)(void *arg), void *arg)
{
	return neap__child_trial(fn, arg, 10, tell_slow);
}

#define LARGE_BLOCK (256 << 10) /* bytes */

void cli_begin(void)
{
	keep_streams();
#ifdef __GLIBC__
	/* Large blocks go back to the system when they are freed, so that the process stays small.
	 */
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
#endif
	/* A write beyond the limit on file sizes then fails with an error, as on a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	neap_data_set_trial(try_data);
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

void cli_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, old;
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* A closed terminal interrupts, unless nohup made the process ignore it. */
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

int cli_interrupted(void)
{
	return interrupted;
}

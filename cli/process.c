/* SPDX-License-Identifier: Apache-2.0 */
/* process.c: standard streams, limits on file sizes, and signals. */
#include "cli.h"
#include "sys/child_trial.h"

#include <neap/data.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
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
	fprintf(stderr, "neap: opening the data with HDF5 takes longer than 10 s; the file may be "
			"very large or damaged\n");
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
static char first_line[160], second_line[160]; /* "": nothing is said */

static void say(const char *line)
{
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		return; /* nobody hears it */
}

/* Calls what is async-signal-safe alone. */
static void on_signal(int number)
{
	(void)number;
	int error = errno;
	if (interrupted && *second_line) {
		say(second_line);
		_exit(CLI_FAILED);
	}
	interrupted = 1;
	say(first_line);
	errno = error;
}

static void catch_signals(int flags)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags}, old;
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* A closed terminal interrupts, unless nohup made the process ignore it. */
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

void cli_catch_signals(void)
{
	catch_signals((int)SA_RESETHAND);
}

void cli_catch_signals_aloud(const char *command, const char *after)
{
	/* A bar may stand on the line. */
	const char *begin = isatty(STDERR_FILENO) ? "\r\033[K" : "";

	snprintf(first_line, sizeof first_line,
		"%sneap %s: stopping after %s; interrupt again to stop immediately\n", begin,
		command, after);
	snprintf(second_line, sizeof second_line, "%sneap %s: stopped\n", begin, command);
	catch_signals(0);
}

int cli_interrupted(void)
{
	return interrupted;
}

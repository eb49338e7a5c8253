/* SPDX-License-Identifier: Apache-2.0 */
/* process.c: what the process is given by whoever starts it: streams, limits, signals. */
#include "cli.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/*
 * Where a standard stream is closed the next file that is opened takes its number, and
 * what is printed would go into that file. Reading and writing still fail.
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

void cli_begin(void)
{
	keep_streams();
	/* Beyond a limit on file sizes writes fail, as on a full disk, and say so. */
	signal(SIGXFSZ, SIG_IGN);
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
	/* The terminal is gone; nohup asks to stay. */
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

int cli_interrupted(void)
{
	return interrupted;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* child_trial.c: forks, with default signal handlers and no core file. */
#include "sys/child_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_child(void (*fn)(void *arg), void *arg)
{
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT, SIGTERM};
	const struct rlimit none = {0, 0};
	sigset_t all;

	for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
		signal(fatal[i], SIG_DFL);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setrlimit(RLIMIT_CORE, &none);
	fn(arg);
	_Exit(0);
}

/* The child holds the other end, until it ends. */
static void wait_for_end(int end, double seconds, void (*slow)(void))
{
	struct pollfd watched = {.fd = end};
	if (slow && poll(&watched, 1, (int)(seconds * 1000)) == 0)
		slow();
}

int neap__child_trial(void (*fn)(void *arg), void *arg, double seconds, void (*slow)(void))
{
	int status = 0, ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return 0;
	pid_t child = fork();
	if (child == 0)
		run_child(fn, arg);
	close(ends[1]);
	if (child > 0)
		wait_for_end(ends[0], seconds, slow);
	close(ends[0]);
	if (child < 0)
		return 0;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

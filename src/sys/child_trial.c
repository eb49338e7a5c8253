/* SPDX-License-Identifier: Apache-2.0 */
/* child_trial.c: forks, with default signal handlers, no core file and an alarm. */
#include "sys/child_trial.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_child(void (*fn)(void *arg), void *arg, unsigned seconds)
{
	static const int fatal[] = {
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGINT, SIGTERM};
	const struct rlimit none = {0, 0};
	sigset_t all;

	for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
		signal(fatal[i], SIG_DFL);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setrlimit(RLIMIT_CORE, &none);
	alarm(seconds);
	fn(arg);
	_Exit(0);
}

int neap__child_trial(void (*fn)(void *arg), void *arg, unsigned seconds)
{
	int status = 0;
	pid_t child = fork();

	if (child < 0)
		return 0;
	if (child == 0)
		run_child(fn, arg, seconds);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

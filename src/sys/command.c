/* SPDX-License-Identifier: Apache-2.0 */
/* command.c: a child process with a pipe to its output. */
#include "sys/command.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Reads to the end; what does not fit is dropped. */
static void drain(int fd, char *out, size_t size)
{
	char rest[4096];
	size_t at = 0;
	for (;;) {
		int full = at + 1 >= size;
		ssize_t n = read(fd, full ? rest : out + at, full ? sizeof rest : size - 1 - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += full ? 0 : (size_t)n;
	}
	out[at] = '\0';
}

int neap__command(const char *const *argv, int with_errors, char *out, size_t size)
{
	posix_spawn_file_actions_t actions;
	int ends[2], status = 0;
	pid_t child;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	int err = posix_spawn_file_actions_init(&actions);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	if (!err && with_errors)
		err = posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
	if (!err)
		err = posix_spawnp(
			&child, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (!err)
		drain(ends[0], out, size);
	close(ends[0]);
	if (err)
		return -err;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers_none.c: a process alone. Where mpirun started several, those of a command that ranks share
 * become neap-mpi, which lies beside this program.
 */
#include "rank_process.h"
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "neap-mpi"

/* Becomes neap-mpi; comes back where there is none. */
static int become(char **argv)
{
	char path[PATH_MAX + sizeof PROGRAM];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	if (n <= 0)
		return -ENOENT;
	path[n] = '\0';
	char *slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, PROGRAM);
	execv(path, argv);
	return -errno;
}

int cli_peers_begin(const struct neap_peers **peers, const char *command, char **argv)
{
	struct cli_launch launch = cli_launch_read();

	*peers = NULL;
	if (launch.count < 2)
		return -1;
	if (!cli_peers_shared(command))
		return launch.rank > 0 ? CLI_DONE : -1;
	int rc = become(argv);
	if (launch.rank > 0)
		return CLI_USAGE;
	return cli_usage(command,
		rc == -ENOENT ? "started as one of %d processes, but neap-mpi is not installed: "
				"build with -Dmpi=enabled, or start one process"
			      : "started as one of %d processes, but neap-mpi cannot be run: %s",
		launch.count, strerror(-rc));
}

const struct neap_peers *cli_peers(void)
{
	return NULL;
}

void cli_peers_patience(double seconds)
{
	(void)seconds;
}

int cli_peers_end(int code)
{
	return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* rank_launch.c: what the environment says of a start by mpirun, and which commands ranks share. */
#include "rank_process.h"

#include <stdlib.h>
#include <string.h>

static int number_of(const char *name, int otherwise)
{
	const char *text = getenv(name);
	char *end;
	long value = text && *text ? strtol(text, &end, 10) : otherwise;

	if (text && *text && (*end || value < 0 || value > 1 << 24))
		return otherwise;
	return (int)value;
}

struct cli_launch cli_launch_read(void)
{
	/* Open MPI; MPICH and its kin. What a batch system says of its jobs proves nothing. */
	static const char *const names[][2] = {
		{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, {"PMI_SIZE", "PMI_RANK"}};
	struct cli_launch launch = {1, 0};

	for (size_t i = 0; i < sizeof names / sizeof names[0] && launch.count < 2; i++)
		launch = (struct cli_launch){number_of(names[i][0], 1), number_of(names[i][1], 0)};
	if (launch.count < 2)
		launch = (struct cli_launch){1, 0};
	return launch;
}

int cli_peers_shared(const char *command)
{
	static const char *const shared[] = {"train", "eval", "encode"};

	for (size_t i = 0; command && i < sizeof shared / sizeof shared[0]; i++)
		if (strcmp(command, shared[i]) == 0)
			return 1;
	return 0;
}

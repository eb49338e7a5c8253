/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: finds the subcommand that is asked for (CLI_COMMAND_TABLE) and runs it. */
#include "cli.h"
#include "device/cuda_devices.h"
#include "rank_process.h"

#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about;
} commands[] = {
#define CLI_X(name, about) {#name, cli_##name, about},
	CLI_COMMAND_TABLE(CLI_X)
#undef CLI_X
};

/* Commands as other programs name them. */
static const struct {
	const char *name, *instead;
} foreign[] = {
	{"test", "use 'neap eval RUN DATA'"},
	{"evaluate", "use 'neap eval RUN DATA'"},
	{"validate", "use 'neap eval RUN DATA'"},
	{"fit", "use 'neap train DATA --out RUN'"},
	{"inference", "use 'neap predict RUN DATA'"},
	{"infer", "use 'neap predict RUN DATA'"},
	{"generate", "generating text is not supported; 'neap predict RUN text:FILE' prints the "
		     "scores of the next character at each step"},
	{"run", "use 'neap train DATA --out RUN' to train, or 'neap predict RUN DATA'"},
	{"neap", "'neap' is typed twice. Leave out one of them"},
	{"version", "use 'neap --version'"},
	{"resume", "use 'neap train --resume --out RUN'"},
	{"info", "use 'neap plot RUN' for its epochs, 'neap eval RUN DATA' for its results"},
	{"show", "use 'neap plot RUN' for its epochs, 'neap eval RUN DATA' for its results"},
	{"sample", "generating text is not supported; 'neap predict RUN text:FILE' prints the "
		   "scores of the next character at each step"},
};

static void help(FILE *to)
{
	fprintf(to,
		"neap " NEAP_VERSION ": trains recurrent and spiking networks on sequences of any "
		"length\nin a fixed amount of fast memory.\n\nusage: neap COMMAND [options]\n\n");
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		fprintf(to, "  %-9s %s\n", commands[i].name, commands[i].about);
	fprintf(to, "\n'neap COMMAND --help' has the options and examples. 'mpirun -n P neap "
		    "COMMAND' runs "
		    "train,\neval and encode as P processes, on one machine or many.\n");
}

static int run(int argc, char **argv)
{
	neap__cuda_devices_use();
	if (argc < 2) {
		fprintf(stderr, "neap: a command is missing; 'neap --help' lists them\n");
		return CLI_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		(strcmp(argv[1], "help") == 0 && argc == 2)) {
		help(stdout);
		return cli_finish("--help");
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 ||
		strcmp(argv[1], "-v") == 0) {
		printf("neap " NEAP_VERSION "\n");
		return cli_finish("--version");
	}
	if (strcmp(argv[1], "help") == 0) { /* neap help plan */
		argv[1] = argv[2];
		argv[2] = "--help";
		argc = 3;
	}
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
		if (strcmp(argv[1], foreign[i].name) == 0)
			return cli_usage(argv[1], "unknown command; %s", foreign[i].instead);
	struct neap__suggestion meant = {.text = argv[1], .length = strlen(argv[1])};
	char room[80];
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		neap__suggest(&meant, commands[i].name);
	if (access(argv[1], F_OK) == 0) {
		const char *dot = strrchr(argv[1], '.');
		int is_read = dot && (strcmp(dot, ".h5") == 0 || strcmp(dot, ".npz") == 0);
		return cli_usage(argv[1],
			"unknown command, but there is such a file or folder. If it is your data: "
			"neap "
			"%s '%s'%s",
			is_read ? "train" : "encode", argv[1], is_read ? "" : " --out FILE.h5");
	}
	neap__did_you_mean(room, &meant, "");
	return cli_usage(
		argv[1], "unknown command%s%s 'neap --help' lists them", room, room[0] ? "" : ";");
}

int main(int argc, char **argv)
{
	const struct neap_peers *peers;

	cli_begin();
	int code = cli_peers_begin(&peers, argc > 1 ? argv[1] : NULL, argv);
	if (code < 0)
		code = cli_peers_end(run(argc, argv));
	return code;
}

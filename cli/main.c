/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: finds the subcommand that is asked for (CLI_COMMAND_TABLE) and runs it. */
#include "cli.h"
#include "device/cuda_devices.h"
#include "rank_process.h"
#include "base/quote.h"

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

#define EVALUATE "use: neap eval RUN DATA"
#define TRAIN "use: neap train DATA --out NEW"
#define PREDICT "use: neap predict RUN DATA"
#define TUNE                                                                                       \
	"to continue from the weights of a run on other data: neap train DATA --from RUN --out "   \
	"NEW"
#define GENERATE                                                                                   \
	"generating text is not supported. The scores of the next character at each step: neap "   \
	"predict RUN DATA"
#define SHOW "use 'neap plot RUN' for its epochs, 'neap eval RUN DATA' for its results"

/* Commands as other programs name them; RUN and DATA are replaced by what is given. */
static const struct {
	const char *name, *instead;
} foreign[] = {
	{"test", EVALUATE},
	{"evaluate", EVALUATE},
	{"validate", EVALUATE},
	{"score", EVALUATE},
	{"fit", TRAIN},
	{"learn", TRAIN},
	{"start", TRAIN},
	{"finetune", TUNE},
	{"fine-tune", TUNE},
	{"transfer", TUNE},
	{"retrain", TUNE},
	{"tune", TUNE},
	{"adapt", TUNE},
	{"inference", PREDICT},
	{"infer", PREDICT},
	{"classify", PREDICT},
	{"forward", PREDICT},
	{"generate", GENERATE},
	{"sample", GENERATE},
	{"run", "use 'neap train DATA --out RUN' to train, or 'neap predict RUN DATA'"},
	{"neap", "'neap' is typed twice. Leave out one of them"},
	{"version", "use 'neap --version'"},
	{"resume", "use: neap train --out RUN --resume"},
	{"continue", "use: neap train --out RUN --resume"},
	{"info", SHOW},
	{"show", SHOW},
	{"convert", "to convert recordings, events or tables: neap encode DATA --out FILE.h5; to "
		    "write a network as a NIR graph: neap export RUN --nir net.nir"},
	{"preprocess", "use: neap encode DATA --out FILE.h5"},
	{"prepare", "use: neap encode DATA --out FILE.h5"},
	{"draw", "use: neap plot RUN"},
	{"benchmark", "to compare strategies on your data: neap compare DATA --net SPEC; for the "
		      "benchmarks of neap: neap bench"},
};

/* Writes the advice with the first run and the first other argument that are given, if they are. */
static const char *fill_in(char room[1200], const char *instead, int argc, char **argv)
{
	const char *run = NULL, *data = NULL;
	size_t n = 0;

	for (int i = 2; i < argc && argv[i][0] != '-'; i++) {
		const char **is = cli_is_run(argv[i]) ? &run : &data;
		*is = *is ? *is : argv[i];
	}
	while (*instead && n < 1000) {
		const char *word = strncmp(instead, "RUN", 3) == 0 && run     ? run
				   : strncmp(instead, "DATA", 4) == 0 && data ? data
									      : NULL;
		/* A quoted command does not take a quoted word. */
		if (word && !strchr(instead, '\'')) {
			n += (size_t)snprintf(room + n, 1200 - n, "%.400s", neap__quoted(word));
			instead += word == run ? 3 : 4;
		} else {
			room[n++] = *instead++;
		}
	}
	room[n] = '\0';
	return room;
}

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

/* The line about a first word that is no command. */
static int unknown(int argc, char **argv)
{
	char advice[1200];
	for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
		if (strcmp(argv[1], foreign[i].name) == 0)
			return cli_usage(argv[1], "unknown command; %s",
				fill_in(advice, foreign[i].instead, argc, argv));
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
	return unknown(argc, argv);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* export.c: `neap export`: a trained net in a format that other tools read. */
#include "cli.h"
#include "figure_file.h"

#include <string.h>
#include <unistd.h>

#include <neap/train.h>

static const char examples[] = "  neap export run --nir net.nir\n"
			       "  neap export run --nir net.nir --metadata\n";

static void on_line(void *user, const char *line)
{
	char room[NEAP__PLAIN_TEXT];
	(void)user;
	fprintf(stderr,
		"note: only neap reads the following resets; other programs reset to v_reset at "
		"once: %s\n",
		neap__plain_text(room, line));
}

/* CLI_DONE, or one line if the graph cannot be written to `path`. */
static int check_nir(const char *path)
{
	static const char *const others[] = {
		".onnx", ".pt", ".pth", ".tflite", ".pb", ".safetensors"};
	const char *folder;
	char room[4096];

	if (!path)
		return cli_usage("export",
			"--nir FILE is missing: the NIR graph to write, such as --nir net.nir");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (cli_ends_in(path, others[i]))
			return cli_usage("export",
				"--nir: '%s' has the extension of another format, but export "
				"writes "
				"NIR graphs only. Use .nir; the weights are in "
				"RUN/model.safetensors, which PyTorch's package safetensors reads",
				path);
	folder = strrchr(path, '/');
	snprintf(room, sizeof room, "%.*s", folder ? (int)(folder - path) : 0, path);
	if (*room && access(room, F_OK) < 0)
		return cli_usage("export",
			"--nir: cannot write '%s': its folder does not exist. Create the folder, "
			"or choose another file",
			path);
	return CLI_DONE;
}

int cli_export(int argc, char **argv)
{
	struct neap_export_options o = {.size = sizeof o, .say = on_line};
	const char *named[1];
	/* clang-format off */
	const struct cli_option options[] = {
		CLI_GROUP("Output"),
		{.name = "nir", .kind = CLI_TEXT, .into = &o.nir, .argument = "FILE",
			.help = "NIR graph (HDF5) to write; required"},
		{.name = "metadata", .kind = CLI_FLAG, .into = &o.metadata,
			.help = "write resets that NIR cannot express as metadata, which only neap reads "
				"(default: refuse them)"},
		{0},
	};
	/* clang-format on */
	const struct cli_command command = {.name = "export",
		.arguments = "RUN",
		.about = "exports a network of lif or cubalif layers, trained with --reset hard, "
			 "as a NIR graph",
		.examples = examples,
		.options = options,
		.least = 1,
		.most = 1};
	int parsed = cli_parse(&command, argc, argv, named);

	if (parsed < 0)
		return CLI_ENDED(parsed);
	if (check_nir(o.nir) != CLI_DONE)
		return CLI_USAGE;
	o.model = named[0];
	cli_catch_signals(); /* the graph is whole, or not there */
	int rc = neap_export(&o);
	if (rc < 0)
		return cli_fail("export", rc);
	char plain[NEAP__PLAIN_TEXT];
	if (!cli_quiet)
		printf("%s\n", neap__plain_text(plain, o.nir));
	return cli_finish("export");
}

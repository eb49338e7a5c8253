/* SPDX-License-Identifier: Apache-2.0 */
/* study.c: `neap study`: runs experiments and draws their figures and report (apps/study). */
#include "cli.h"

#include "study/run_study.h"

#define NAMES_MOST 16

static const char examples[] = "  neap study --out study\n"
			       "  neap study schedules asymptotics --out study --png\n"
			       "  neap study --full --slow /scratch --out study-full\n"
			       "  neap study --device cuda --out study-device\n";

static int on_progress(void *user, const char *point, int done, int total)
{
	struct cli_progress *bar = user;
	if (point && total > 0)
		cli_progress_show(bar, done, total, point);
	else
		cli_progress_clear(bar);
	return cli_interrupted();
}

static void on_line(void *user, const char *line)
{
	cli_progress_clear(user);
	char room[NEAP__PLAIN_TEXT];
	fprintf(stderr, "%s\n", neap__plain_text(room, line));
}

/* The names of the experiments of the processor, or of devices, in quotes, for --help. */
static const char *all_names(char *room, size_t size, int on_device)
{
	size_t n = 0;
	room[0] = '\0';
	for (int i = 0; neap_study_name(i) && n < size; i++)
		if (neap_study_on_device(neap_study_name(i)) == on_device)
			n += (size_t)snprintf(
				room + n, size - n, "%s'%s'", n ? ", " : "", neap_study_name(i));
	return room;
}

/* The command line, which the options fill. */
static struct {
	struct neap_study_options o;
	int quick, full, tiny;
} given = {.o = {.size = sizeof given.o}};

/* clang-format off */
static const struct cli_option options[] = {
	CLI_GROUP("Output and size"),
	{.name = "out", .letter = 'o', .kind = CLI_TEXT, .into = &given.o.out, .argument = "DIR",
		.help = "folder for points, figures and report; an interrupted study in it is "
			"continued; required"},
	{.name = "quick", .kind = CLI_FLAG, .into = &given.quick,
		.help = "run the version that takes minutes (default)"},
	{.name = "full", .kind = CLI_FLAG, .into = &given.full, .help = "run the version that takes about "
		"three hours"},
	{.name = "tiny", .kind = CLI_FLAG, .into = &given.tiny,
		.help = "run the version that takes seconds, as a check that everything works"},
	{.name = "slow", .kind = CLI_TEXT, .into = &given.o.slow, .argument = "DIR",
		.help = "directory for slow memory (default /var/tmp); with --device a list of tiers, "
			"as of train (default pinned:4G)"},
	{.name = "device", .kind = CLI_TEXT, .into = &given.o.device, .argument = "NAME",
		.help = "device whose time, memory and energy are measured, such as cuda or cuda:1"},
	{.name = "png", .kind = CLI_FLAG, .into = &given.o.png,
		.help = "also write each figure as PNG (requires rsvg-convert)"},
	{0},
};
/* clang-format on */

/* What the table of options cannot check. CLI_DONE or one line. */
static int check_options(const char *const *names, int count)
{
	if (!given.o.out)
		return cli_usage("study",
			"--out is missing: the folder for points and figures, such as --out study");
	if (given.quick + given.full + given.tiny > 1)
		return cli_usage(
			"study", "--quick, --full and --tiny cannot be combined; choose one");
	for (int i = 0; i < count; i++)
		if (!neap_study_about(names[i]))
			return cli_unknown_name("study", "", names[i], neap_study_name);
	return CLI_DONE;
}

int cli_study(int argc, char **argv)
{
	struct neap_study_options *o = &given.o;
	struct cli_progress bar;
	char all[512], others[128], about[800];
	const char *names[NAMES_MOST];

	snprintf(about, sizeof about,
		"measures what the strategies cost and plots it; experiments "
		"(default: all): %s; with --device: %s",
		all_names(all, sizeof all, 0), all_names(others, sizeof others, 1));
	const struct cli_command command = {.name = "study",
		.arguments = "[EXPERIMENT...]",
		.about = about,
		.examples = examples,
		.options = options,
		.least = 0,
		.most = NAMES_MOST};
	int count = cli_parse(&command, argc, argv, names);
	if (count < 0)
		return CLI_ENDED(count);
	if (check_options(names, count) != CLI_DONE)
		return CLI_USAGE;
	o->scale = given.full ? NEAP_STUDY_FULL : given.tiny ? NEAP_STUDY_TINY : NEAP_STUDY_QUICK;
	o->progress = on_progress;
	o->say = on_line;
	o->user = &bar;
	cli_catch_signals();
	cli_progress_start(&bar, "study", "points");
	int rc = neap_study_run(o, names, count);
	cli_progress_clear(&bar);
	return rc < 0 ? cli_fail("study", rc) : CLI_DONE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tiers.c: the options of `neap plan` with their sizes, times and tiers, and
 * the lists of `--slow`; one argument a line.
 */
#include "problem_options.h"
#include "fuzz.h"

#include <string.h>

#define ARGUMENTS 40

/* --slow LIST, where it names memory only: a fuzzer opens no files. */
static void open_tiers(const char *list)
{
	struct neap_tier *tiers[NEAP_TIERS_MAX];
	struct neap_file_options options = {.size = sizeof options};
	int count = 0;
	for (const char *item = list; item; item = strchr(item, ',')) {
		item += *item == ',';
		if (strncmp(item, "mem:", 4) != 0 && *item != ',' && *item != '\0')
			return;
	}
	int rc = neap_tiers_open(tiers, &count, list, &options);
	FUZZ_CHECK(rc == 0 || (neap_detail()[0] && count == 0), "%d, %d tiers", rc, count);
	for (int i = 0; i < count; i++) {
		struct neap_tier_spec spec;
		neap_tier_describe(tiers[i], 4096, &spec);
		neap_tier_close(tiers[i]);
	}
}

#define CLI_PARAMS q.params

static int ask(int argc, char **argv, uint64_t seed)
{
	struct cli_question q = CLI_QUESTION_INIT;
	const struct cli_option options[] = {CLI_QUESTION_OPTIONS(q), {0}};
	const struct cli_command command = {
		.name = "plan", .arguments = "", .about = "", .examples = "", .options = options};
	int parsed = cli_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return CLI_ENDED(parsed);
	int rc = q.file ? CLI_DONE : cli_question_complete(&q);
	if (rc == CLI_DONE && !q.file)
		fuzz_plan(&q.problem, &q.params, seed);
	cli_question_free(&q);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *argv[ARGUMENTS + 1] = {(char[]){"plan"}}, *next;
	int argc = 1;
	for (char *line = text; line && argc < ARGUMENTS; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (strncmp(line, "--slow=", 7) == 0)
			open_tiers(line + 7);
		else if (strcmp(line, "--help") != 0 && strcmp(line, "-h") != 0)
			argv[argc++] = line;
	}
	fuzz_refused(ask(argc, argv, fuzz_seed(data, size)));
	free(text);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help.c: the help of a command from its table of options: under headings, 80 columns wide. The
 * same table as lines with tabs, from which tools/completion.py makes the completions of shells.
 */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

#define WIDTH 80 /* columns of a page */
#define LEFT 28	 /* columns before the meaning of an option */

/*
 * The default, which stands where the option goes; nothing where the help says it itself. Zeros of
 * counts and times mean that there is none.
 */
static void add_default(struct neap__text *text, const struct cli_option *o)
{
	char room[24];

	if (strstr(o->help, "default") || strstr(o->help, "0: ") || strchr(o->help, '['))
		return;
	if (o->kind == CLI_CHOICE)
		neap__text_add(text, " (default %s)", o->choices[*(const int *)o->into]);
	else if (o->kind == CLI_TEXT && *(const char *const *)o->into)
		neap__text_add(text, " (default %s)", *(const char *const *)o->into);
	else if (o->kind == CLI_NUMBER)
		neap__text_add(text, " (default %.15g)", *(const double *)o->into);
	else if (o->kind == CLI_RATE && *(const double *)o->into > 0)
		neap__text_add(text, " (default %gHz)", 1000 * *(const double *)o->into);
	else if (o->kind == CLI_TIME && *(const double *)o->into > 0)
		neap__text_add(
			text, " (default %s)", neap__show_time(room, *(const double *)o->into));
	else if (o->kind == CLI_SIZE && *(const uint64_t *)o->into)
		neap__text_add(
			text, " (default %s)", neap__show_size(room, *(const uint64_t *)o->into));
	else if (o->kind == CLI_COUNT && *(const int *)o->into > 0)
		neap__text_add(text, " (default %d)", *(const int *)o->into);
	else if (o->kind == CLI_INT && *(const int64_t *)o->into > 0)
		neap__text_add(text, " (default %" PRId64 ")", *(const int64_t *)o->into);
}

/* The names that the option takes, behind `before`. */
static void add_values(struct neap__text *text, const struct cli_option *o, const char *before)
{
	for (int i = 0; o->choices && o->choices[i]; i++)
		neap__text_add(text, "%s%s", i ? ", " : before, o->choices[i]);
	for (int i = 0; o->names && o->names(i); i++)
		neap__text_add(text, "%s%s", i ? ", " : before, o->names(i));
}

/* Prints words from column `at` on; further lines begin in column `indent`. */
static void print_wrapped(const char *text, int at, int indent)
{
	for (; *text; text += strspn(text, " \n")) {
		int n = (int)strcspn(text, " \n");
		if (at > indent && at + 1 + n > WIDTH) {
			printf("\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			printf(" ");
			at++;
		}
		printf("%.*s", n, text);
		at += n;
		text += n;
	}
	printf("\n");
}

static void print_row(const char *left, const char *meaning)
{
	int n = (int)strlen(left);
	printf("%s", left);
	if (n > LEFT - 2)
		printf("\n%*s", LEFT, "");
	else
		printf("%*s", LEFT - n, "");
	print_wrapped(meaning, LEFT, LEFT);
}

static void print_option(const struct cli_option *o)
{
	struct neap__text meaning = {0};
	char left[80], letter[8] = "";

	if (o->letter)
		snprintf(letter, sizeof letter, "-%c, ", o->letter);
	snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name, o->argument ? " " : "",
		o->argument ? o->argument : "");
	neap__text_add(&meaning, "%s", o->help);
	add_values(&meaning, o, ": ");
	for (const struct cli_also *also = o->also; also && also->name; also++)
		neap__text_add(&meaning, "; %s is %s", also->name, o->choices[also->choice]);
	add_default(&meaning, o);
	if (o->alias)
		neap__text_add(&meaning, "; also --%s", o->alias);
	print_row(left, meaning.error ? o->help : meaning.data);
	neap__text_free(&meaning);
}

static void print_units(const struct cli_command *command)
{
	int sizes = 0, times = 0;
	for (const struct cli_option *o = command->options; o->name; o++) {
		sizes |= o->kind == CLI_SIZE;
		times |= o->kind == CLI_TIME || o->kind == CLI_LIMIT;
	}
	if (sizes || times)
		printf("\nUnits:\n");
	if (sizes)
		print_row("  BYTES",
			"a number, with K, M, G, T or P for powers of 1024: 4096, 16M, 1.5G");
	if (times)
		print_row("  TIME", "a number with ns, us, ms, s, min or h: 20ms, 0.5s");
}

void cli_help(const struct cli_command *command)
{
	struct neap__text about = {0}, usage = {0};

	neap__text_add(&about, "neap %s: %s", command->name, command->about);
	print_wrapped(about.error ? command->about : about.data, 0, 0);
	neap__text_add(&usage, "usage: neap %s %s [options]", command->name, command->arguments);
	printf("\n");
	print_wrapped(usage.error ? "" : usage.data, 0, 0);
	neap__text_free(&about);
	neap__text_free(&usage);
	if (command->options->kind != CLI_HEADING)
		printf("\nOptions:\n");
	for (const struct cli_option *o = command->options; o->name; o++) {
		if (o->kind == CLI_HEADING)
			printf("\n%s:\n", o->name);
		else
			print_option(o);
	}
	printf("\nEverywhere:\n");
	for (const struct cli_option *o = cli_common_options; o->name; o++)
		print_option(o);
	print_row("  -h, --help", "print this help");
	print_units(command);
	printf("\nexamples:\n%s", command->examples);
}

/* An option a line: name, letter, argument, names that it takes (with commas), meaning. */
static void list_option(const struct cli_option *o)
{
	struct neap__text values = {0};
	char letter[2] = {o->letter, '\0'};

	add_values(&values, o, "");
	printf("%s\t%s\t%s\t%s\t%s\n", o->name, letter, o->argument ? o->argument : "",
		values.data && !values.error ? values.data : "", o->help);
	neap__text_free(&values);
}

void cli_list_options(const struct cli_command *command)
{
	for (const struct cli_option *o = command->options; o->name; o++)
		if (o->kind != CLI_HEADING)
			list_option(o);
	for (const struct cli_option *o = cli_common_options; o->name; o++)
		list_option(o);
	printf("help\th\t\t\tprint this help\n");
}

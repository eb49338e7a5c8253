/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: parses arguments by a table of options, and prints help from the same table. */
#include "cli.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define WHOLE_MOST 9e18 /* below 2^63, so that a double of it is an int64_t */

/*
 * The default, which stands where the option goes; nothing where the help says it itself. Zeros of
 * counts and times mean that there is none.
 */
static void print_default(const struct cli_option *o)
{
	char room[24];

	if (strstr(o->help, "default") || strstr(o->help, "0: ") || strchr(o->help, '['))
		return;
	if (o->kind == CLI_CHOICE)
		printf(" (default %s)", o->choices[*(const int *)o->into]);
	else if (o->kind == CLI_TEXT && *(const char *const *)o->into)
		printf(" (default %s)", *(const char *const *)o->into);
	else if (o->kind == CLI_NUMBER)
		printf(" (default %g)", *(const double *)o->into);
	else if (o->kind == CLI_RATE && *(const double *)o->into > 0)
		printf(" (default %gHz)", 1000 * *(const double *)o->into);
	else if (o->kind == CLI_TIME && *(const double *)o->into > 0)
		printf(" (default %s)", cli_show_time(room, *(const double *)o->into));
	else if (o->kind == CLI_SIZE && *(const uint64_t *)o->into)
		printf(" (default %s)", cli_show_size(room, *(const uint64_t *)o->into));
	else if (o->kind == CLI_COUNT && *(const int *)o->into > 0)
		printf(" (default %d)", *(const int *)o->into);
	else if (o->kind == CLI_INT && *(const int64_t *)o->into > 0)
		printf(" (default %" PRId64 ")", *(const int64_t *)o->into);
}

static void print_help(const struct cli_command *command)
{
	printf("neap %s: %s\n\nusage: neap %s%s%s [options]\n\n", command->name, command->about,
		command->name, command->arguments[0] ? " " : "", command->arguments);
	for (const struct cli_option *o = command->options; o->name; o++) {
		char left[64];
		snprintf(left, sizeof left, "--%s%s%s", o->name, o->argument ? " " : "",
			o->argument ? o->argument : "");
		printf("  %-26s %s", left, o->help);
		for (int i = 0; o->choices && o->choices[i]; i++)
			printf("%s%s", i ? ", " : ": ", o->choices[i]);
		for (int i = 0; o->names && o->names(i); i++)
			printf("%s%s", i ? ", " : ": ", o->names(i));
		print_default(o);
		printf("\n");
	}
	printf("  %-26s %s\n\nexamples:\n%s", "--help", "this text", command->examples);
}

static int out_of_range(const char *command, const struct cli_option *option, const char *text)
{
	if (option->kind == CLI_RATE)
		return cli_usage(command,
			"--%s: '%s' is out of range; %.15gHz to %.15gHz is accepted", option->name,
			text, 1000 * option->low, 1000 * option->high);
	if (option->high == 0 || option->high >= CLI_STEPS_MOST)
		return cli_usage(command, "--%s: '%s' is out of range; at least %.15g is accepted",
			option->name, text, option->low);
	return cli_usage(command, "--%s: '%s' is out of range; %.15g to %.15g is accepted",
		option->name, text, option->low, option->high);
}

static int bad_kind(const char *command, const struct cli_option *option, const char *text)
{
	static const char *const wants[] = {
		[CLI_INT] = "a whole number",
		[CLI_COUNT] = "a whole number",
		[CLI_SIZE] = "a size, such as 16M or 1.5G",
		[CLI_TIME] = "a time, such as 1ms, 20us or 0.5s",
		[CLI_LIMIT] = "a time, such as 30s or 5min, or inf",
		[CLI_NUMBER] = "a number",
		[CLI_RATE] = "a rate, such as 20Hz",
	};
	return cli_usage(command, "--%s: '%s' is not %s", option->name, text, wants[option->kind]);
}

static int set_choice(const char *command, const struct cli_option *option, const char *text)
{
	char all[512] = "";
	for (int i = 0; option->choices[i]; i++) {
		if (strcmp(option->choices[i], text) == 0) {
			*(int *)option->into = i;
			return CLI_DONE;
		}
		size_t n = strlen(all);
		snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", option->choices[i]);
	}
	return cli_usage(command, "--%s: '%s' is none of %s", option->name, text, all);
}

static int set_list(const char *command, const struct cli_option *option, const char *text)
{
	struct cli_list *list = option->into;
	if (list->count == CLI_LIST_MAX)
		return cli_usage(
			command, "--%s: given more than %d times", option->name, CLI_LIST_MAX);
	list->text[list->count++] = text;
	return CLI_DONE;
}

static int set_number(const char *command, const struct cli_option *option, const char *text)
{
	double value = 0;
	int64_t whole = 0;
	uint64_t bytes = 0;
	int bad = 0;

	switch (option->kind) {
	case CLI_INT:
	case CLI_COUNT:
		bad = neap__units_count(&whole, text);
		value = (double)whole;
		break;
	case CLI_SIZE:
		bad = neap__units_size(&bytes, text);
		value = (double)bytes;
		break;
	case CLI_LIMIT:
		if (strcmp(text, "inf") == 0) {
			*(double *)option->into = INFINITY;
			return CLI_DONE;
		}
		bad = neap__units_time(&value, text);
		break;
	case CLI_TIME:
		bad = neap__units_time(&value, text);
		break;
	case CLI_RATE:
		bad = neap__units_frequency(&value, text);
		value /= 1000;
		break;
	default:
		bad = neap__units_number(&value, text);
		break;
	}
	if (bad)
		return bad_kind(command, option, text);
	double low = option->low, high = option->high;
	if (high == 0)
		high = option->kind == CLI_COUNT ? INT_MAX : WHOLE_MOST;
	if (!(value >= low && value <= high))
		return out_of_range(command, option, text);
	if (option->kind == CLI_INT)
		*(int64_t *)option->into = whole;
	else if (option->kind == CLI_COUNT)
		*(int *)option->into = (int)whole;
	else if (option->kind == CLI_SIZE)
		*(uint64_t *)option->into = bytes;
	else
		*(double *)option->into = value;
	return CLI_DONE;
}

static int set_value(const char *command, const struct cli_option *option, const char *text)
{
	if (option->given)
		*option->given = 1;
	if (text[0] == '\0')
		return cli_usage(command, "--%s: an empty value", option->name);
	switch (option->kind) {
	case CLI_TEXT:
		*(const char **)option->into = text;
		return CLI_DONE;
	case CLI_CHOICE:
		return set_choice(command, option, text);
	case CLI_LIST:
		return set_list(command, option, text);
	default:
		return set_number(command, option, text);
	}
}

const char *cli_show_names(char *room, size_t size, const char *(*name)(int index))
{
	size_t n = 0;
	room[0] = '\0';
	for (int i = 0; name(i) && n < size; i++)
		n += (size_t)snprintf(room + n, size - n, "%s%s", i ? ", " : "", name(i));
	return room;
}

static const struct cli_option *find(const struct cli_option *options, const char *name, size_t n)
{
	for (; options->name; options++)
		if (strlen(options->name) == n && memcmp(options->name, name, n) == 0)
			return options;
	return NULL;
}

/* Sets one option from the argument *i; *i moves to the value where that is the next argument. */
static int take_option(const struct cli_command *command, int argc, char **argv, int *i)
{
	const char *text = argv[*i] + 2;
	size_t n = strcspn(text, "=");
	const char *value = text[n] == '=' ? text + n + 1 : NULL;
	const struct cli_option *option = find(command->options, text, n);

	if (!option)
		return cli_usage(command->name,
			"unknown option '--%.*s'; 'neap %s --help' lists them", (int)n, text,
			command->name);
	if (option->kind == CLI_FLAG) {
		if (value)
			return cli_usage(command->name, "--%s takes no value", option->name);
		*(int *)option->into = 1;
		if (option->given)
			*option->given = 1;
		return CLI_DONE;
	}
	if (!value) {
		if (*i + 1 >= argc)
			return cli_usage(command->name, "--%s: a value (%s) is missing",
				option->name, option->argument);
		value = argv[++*i];
	}
	return set_value(command->name, option, value);
}

int cli_parse(const struct cli_command *command, int argc, char **argv, const char **positional)
{
	int found = 0, only_positionals = 0;

	/* First, while the defaults stand where the options go. */
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_help(command);
			return -1 - cli_finish(command->name);
		}
	}
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		if (!only_positionals && strcmp(arg, "--") == 0) {
			only_positionals = 1;
		} else if (!only_positionals && strncmp(arg, "--", 2) == 0) {
			int rc = take_option(command, argc, argv, &i);
			if (rc != CLI_DONE)
				return -1 - rc;
		} else if (!only_positionals && arg[0] == '-' && arg[1] != '\0') {
			return -1 - cli_usage(command->name,
					    "unknown option '%s'; options begin with two dashes",
					    arg);
		} else if (found == command->most) {
			return -1 - cli_usage(command->name, "unexpected argument '%s'", arg);
		} else if (arg[0] == '\0') {
			return -1 - cli_usage(command->name, "an empty argument");
		} else {
			positional[found++] = arg;
		}
	}
	if (found < command->least)
		return -1 - cli_usage(command->name, "%s is missing; 'neap %s --help' has examples",
				    command->arguments, command->name);
	return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: parses arguments by a table of options. */
#include "cli.h"
#include "net_options.h"
#include "base/quote.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define OPTIONS_MOST 128
#define WHOLE_MOST 9e18 /* below 2^63, so that a double of it is an int64_t */

int cli_quiet, cli_silent;

const struct cli_option cli_common_options[] = {
	{.name = "quiet",
		.letter = 'q',
		.kind = CLI_FLAG,
		.into = &cli_quiet,
		.help = "print no progress and no notes on standard error; warnings and errors are "
			"still "
			"printed"},
	{0},
};

static int out_of_range(const char *command, const struct cli_option *option, const char *text)
{
	if (option->kind == CLI_RATE && text[strspn(text, "+.0123456789eE")] == '\0')
		return cli_usage(command,
			"--%s: '%s' has no unit and would mean %s spikes per ms. Did you mean "
			"%sHz?",
			option->name, text, text, text);
	if (option->kind == CLI_RATE)
		return cli_usage(command,
			"--%s: '%s' is out of range; it must be between %.15gHz and %.15gHz",
			option->name, text, 1000 * option->low, 1000 * option->high);
	if (option->high == 0 || option->high >= CLI_STEPS_MOST)
		return cli_usage(command, "--%s: '%s' is out of range; it must be at least %.15g",
			option->name, text, option->low);
	if (strcmp(option->name, "dt") == 0)
		return cli_usage(command,
			"--dt: '%s' is out of range; it must be between 1us and 10s. It applies to "
			"spikes and events; a row of a table is always one step, without --dt",
			text);
	const char *unit = option->kind == CLI_TIME || option->kind == CLI_LIMIT ? "s" : "";
	return cli_usage(command,
		"--%s: '%s' is out of range; it must be between %.15g%s and %.15g%s", option->name,
		text, option->low, unit, option->high, unit);
}

/* ". Did you mean N?" for a number with a decimal comma, or a whole number with a unit; else "". */
static const char *meant_number(char room[64], const struct cli_option *option, const char *text)
{
	char *end, copy[32];
	double number;

	room[0] = '\0';
	snprintf(copy, sizeof copy, "%s", text);
	char *comma = strchr(copy, ',');
	if (comma)
		*comma = '.';
	if (option->kind == CLI_NUMBER && comma && strlen(text) < sizeof copy &&
		neap__units_number(&number, copy) == 0)
		snprintf(room, 64, ". Did you mean %s?", copy);
	number = strtod(text, &end);
	if ((option->kind == CLI_INT || option->kind == CLI_COUNT) && end != text &&
		isalpha((unsigned char)*end) && number == floor(number) && number >= option->low &&
		(option->high == 0 || number <= option->high))
		snprintf(room, 64, ". Did you mean %.15g?", number);
	return room;
}

/* A number with a unit: a time in seconds is the number itself. */
static int has_unit(
	const char *command, const struct cli_option *option, const char *text, double number)
{
	double seconds;

	if (neap__units_time(&seconds, text) == 0)
		return cli_usage(command,
			"--%s: '%s' is not a number: it is written without a unit, such as %.6g",
			option->name, text, seconds);
	return cli_usage(command,
		"--%s: '%s' is not a number: it is written without a unit (%s). Did you mean "
		"%.15g?",
		option->name, text, option->argument, number);
}

static int bad_kind(const char *command, const struct cli_option *option, const char *text)
{
	const char *const wants[] = {
		[CLI_INT] = option->wrong ? "a whole number" : "a whole number, such as 3",
		[CLI_COUNT] = "a whole number",
		[CLI_SIZE] = "a size, such as 16M or 1.5G",
		[CLI_TIME] = "a time, such as 1ms, 20us or 0.5s",
		[CLI_LIMIT] = "a time, such as 30s or 5min, or inf",
		[CLI_NUMBER] = option->wrong ? "a number" : "a number, such as 0.5 or 1e-3",
		[CLI_RATE] = "a rate, such as 20Hz",
	};
	char one[24], mean[64], *end;
	double value;
	double number = strtod(text, &end);
	double times = *end == 'k' ? 1000 : 1;
	if (option->kind == CLI_NUMBER && end != text && isfinite(number) &&
		(*end == 'k' || isalpha((unsigned char)*end) || *end == ' '))
		return has_unit(command, option, text, number * times);
	if (option->kind == CLI_COUNT && !option->wrong && !option->zero && option->high > 0 &&
		option->high < CLI_STEPS_MOST)
		return cli_usage(command,
			"--%s: '%s' is not a whole number between %.15g and %.15g%s", option->name,
			text, option->low, option->high, meant_number(mean, option, text));
	snprintf(one, sizeof one, "1%.20s", text);
	if (option->kind == CLI_TIME && strlen(text) <= 20 && neap__units_time(&value, one) == 0)
		return cli_usage(command, "--%s: '%s' is a unit without a number. Did you mean %s?",
			option->name, text, one);
	return cli_usage(command, "--%s: '%s' is not %s%s%s%s%s", option->name, text,
		wants[option->kind], option->zero ? ", or " : "", option->zero ? option->zero : "",
		option->wrong ? ". " : "",
		option->wrong ? option->wrong : meant_number(mean, option, text));
}

/* A share that is given in percent: "10%", or 10. CLI_DONE: it is not. */
static int bad_fraction(const char *command, const struct cli_option *option, const char *text)
{
	char *end;
	double percent = strtod(text, &end);

	if (!option->fraction || end == text || strcmp(end, *end == '%' ? "%" : "") != 0 ||
		!(percent / 100 >= option->low && percent / 100 <= option->high))
		return CLI_DONE;
	return cli_usage(command,
		"--%s: '%s' is not a fraction between %.15g and %.15g. Did you mean %.15g (%.15g "
		"percent)?",
		option->name, text, option->low, option->high, percent / 100, percent);
}

static int set_choice(const char *command, const struct cli_option *option, const char *text)
{
	char all[512] = "", room[80];
	struct neap__suggestion meant = {.text = text, .length = strlen(text)};
	for (const struct cli_also *also = option->also; also && also->name; also++) {
		neap__suggest(&meant, also->name);
		if (strcmp(also->name, text) == 0) {
			*(int *)option->into = also->choice;
			return CLI_DONE;
		}
	}
	for (int i = 0; option->choices[i]; i++) {
		neap__suggest(&meant, option->choices[i]);
		if (strcmp(option->choices[i], text) == 0) {
			*(int *)option->into = i;
			return CLI_DONE;
		}
		size_t n = strlen(all);
		snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", option->choices[i]);
	}
	return cli_usage(command, "--%s: '%s' is not one of %s%s%s", option->name, text, all,
		option->differ ? ". " : neap__did_you_mean(room, &meant, ""),
		option->differ ? option->differ : "");
}

int cli_unknown_name(
	const char *command, const char *before, const char *text, const char *(*name)(int index))
{
	struct neap__suggestion meant = {.text = text, .length = strlen(text)};
	char all[512], room[80];

	for (int i = 0; name(i); i++)
		neap__suggest(&meant, name(i));
	return cli_usage(command, "%s'%s' is not one of %s%s", before, text,
		cli_show_names(all, sizeof all, name), neap__did_you_mean(room, &meant, ""));
}

/* CLI_DONE where the library's table, if the option has one, knows the name. */
static int check_name(const char *command, const struct cli_option *option, const char *text)
{
	char before[64];
	size_t length = option->keys ? strcspn(text, ":") : strlen(text);

	if (option->names && option->kind == CLI_LIST && !option->keys && strchr(text, ','))
		return cli_usage(command,
			"--%s: '%s' is a list. Pass the option once per name: --%s %.*s --%s ...",
			option->name, text, option->name, (int)strcspn(text, ","), text,
			option->name);
	for (int i = 0; option->names && option->names(i); i++)
		if (strlen(option->names(i)) == length &&
			strncmp(option->names(i), text, length) == 0)
			return CLI_DONE;
	size_t kind = strcspn(text, ",= ");
	for (int i = 0; option->names && option->keys && text[kind] && option->names(i); i++)
		if (strlen(option->names(i)) == kind && strncmp(option->names(i), text, kind) == 0)
			return cli_usage(command,
				"--%s: '%s' has no colon before its keys. Did you mean %.*s:%s?",
				option->name, text, (int)kind, text, text + kind + 1);
	if (option->names && option->kind == CLI_LIST && strcasecmp(text, "all") == 0)
		return cli_usage(command,
			"--%s: '%s' is not a name. Leave out --%s to run all; to run some, pass "
			"the "
			"option once per name: --%s %s --%s %s",
			option->name, text, option->name, option->name, option->names(0),
			option->name, option->names(1));
	for (int i = 0; option->names && strcasecmp(text, "all") == 0 && option->names(i); i++)
		if (strcmp(option->names(i), "auto") == 0)
			return cli_usage(command,
				"--%s: '%s' is not a name. Leave out --%s, or pass auto: it tries "
				"all and "
				"picks the fastest",
				option->name, text, option->name);
	snprintf(before, sizeof before, "--%s: ", option->name);
	return option->names ? cli_unknown_name(command, before, text, option->names) : CLI_DONE;
}

static int set_list(const char *command, const struct cli_option *option, const char *text)
{
	struct cli_list *list = option->into;
	if (list->count == CLI_LIST_MAX)
		return cli_usage(
			command, "--%s is given more than %d times", option->name, CLI_LIST_MAX);
	list->text[list->count++] = text;
	return check_name(command, option, text);
}

/* A number as an option's kind reads it. */
struct number {
	double value;
	int64_t whole;	/* CLI_INT, CLI_COUNT */
	uint64_t bytes; /* CLI_SIZE */
};

/* Nonzero: `text` is no number of the option's kind. */
static int read_number(struct number *n, const struct cli_option *option, const char *text)
{
	int bad;

	switch (option->kind) {
	case CLI_INT:
	case CLI_COUNT:
		bad = neap__units_count(&n->whole, text);
		n->value = (double)n->whole;
		return bad;
	case CLI_SIZE:
		bad = neap__units_size(&n->bytes, text);
		n->value = (double)n->bytes;
		return bad;
	case CLI_LIMIT:
		return neap__units_time(&n->value, text);
	case CLI_TIME:
		return option->zero && strcmp(text, option->zero) == 0
			       ? 0
			       : neap__units_time(&n->value, text);
	case CLI_RATE:
		bad = neap__units_frequency(&n->value, text);
		n->value /= 1000;
		return bad;
	default:
		return neap__units_number(&n->value, text);
	}
}

static void store_number(const struct cli_option *option, const struct number *n)
{
	if (option->kind == CLI_INT)
		*(int64_t *)option->into = n->whole;
	else if (option->kind == CLI_COUNT)
		*(int *)option->into = (int)n->whole;
	else if (option->kind == CLI_SIZE)
		*(uint64_t *)option->into = n->bytes;
	else
		*(double *)option->into = n->value;
}

static int set_number(const char *command, const struct cli_option *option, const char *text)
{
	struct number n = {0};

	if (option->kind == CLI_LIMIT && strcmp(text, "inf") == 0) {
		*(double *)option->into = INFINITY;
		return CLI_DONE;
	}
	if (option->minus_one && strcmp(text, option->minus_one) == 0) {
		*(double *)option->into = -1;
		return CLI_DONE;
	}
	int bad = read_number(&n, option, text), rc = CLI_DONE;
	double value = n.value;
	if (bad || (option->fraction && value > 1 && value < 100))
		rc = bad_fraction(command, option, text);
	if (rc != CLI_DONE)
		return rc;
	if (bad)
		return bad_kind(command, option, text);
	if (option->bare && value > 0 && text[strspn(text, "+-.0123456789eE")] == '\0')
		return cli_usage(
			command, "--%s: '%s' has no unit. %s", option->name, text, option->bare);
	if (option->unit && value > 0 && text[strspn(text, "+-.0123456789eE")] == '\0')
		return cli_usage(command, "--%s: '%s' has no unit. Did you mean %s%s or %s%s?",
			option->name, text, text, option->unit, text,
			strcmp(option->unit, "s") == 0 ? "ms" : "s");
	double low = option->low, high = option->high;
	if (high == 0)
		high = option->kind == CLI_COUNT ? INT_MAX : WHOLE_MOST;
	if (!(value >= low && value <= high))
		return out_of_range(command, option, text);
	store_number(option, &n);
	return CLI_DONE;
}

static int set_value(const char *command, const struct cli_option *option, const char *text)
{
	if (option->given)
		*option->given = 1;
	if (text[0] == '\0')
		return cli_usage(command, "--%s: the value is empty; expected %s", option->name,
			option->argument);
	switch (option->kind) {
	case CLI_TEXT:
		*(const char **)option->into = text;
		return check_name(command, option, text);
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

static int is(const char *name, const char *text, size_t n)
{
	return name && strlen(name) == n && memcmp(name, text, n) == 0;
}

/* By name or alias. */
static const struct cli_option *find_in(
	const struct cli_option *options, const char *name, size_t n)
{
	for (; options->name; options++)
		if (options->kind != CLI_HEADING &&
			(is(options->name, name, n) || is(options->alias, name, n)))
			return options;
	return NULL;
}

static const struct cli_option *find(const struct cli_command *command, const char *name, size_t n)
{
	const struct cli_option *option = find_in(command->options, name, n);
	return option ? option : find_in(cli_common_options, name, n);
}

static const struct cli_option *find_letter(const struct cli_command *command, char letter)
{
	const struct cli_option *o = command->options;
	for (; o->name; o++)
		if (o->letter == letter)
			return o;
	for (o = cli_common_options; o->name; o++)
		if (o->letter == letter)
			return o;
	return NULL;
}

/* Puts the number that is given into "text:steps=100:FILE", the advice about an unknown option. */
static void put_steps(char instead[256], const char *value)
{
	static const char example[] = "steps=100:";
	char *at = strstr(instead, example);
	size_t digits = value ? strspn(value, "0123456789") : 0;
	char rest[256];

	if (!at || digits == 0 || digits > 9 || value[digits])
		return;
	snprintf(rest, sizeof rest, "%s", at + strlen(example));
	snprintf(at, 256 - (size_t)(at - instead), "steps=%s:%s", value, rest);
}

static int unknown_option(
	const struct cli_command *command, const char *text, size_t n, const char *value)
{
	struct neap__suggestion meant = {.text = text, .length = n};
	char room[80], instead[256];

	/* Of other programs, how often the weights are written, or the states that are kept. */
	if (n == strlen("checkpoint") && strncmp(text, "checkpoint", n) == 0 && value &&
		value[0] >= '0' && value[0] <= '9' && find(command, "snapshot", 8))
		return cli_usage(command->name,
			"unknown option '--checkpoint'; use '--snapshot TIME' for the time between "
			"snapshots of the weights, such as 60s, or '--checkpoints %.*s' for the "
			"number of checkpoints of a forward pass. 'neap %s --help' lists all "
			"options",
			(int)strspn(value, "0123456789"), value, command->name);
	if (cli_foreign_name(instead, command, text, n)) {
		put_steps(instead, value);
		return cli_usage(command->name,
			"unknown option '--%.*s'%s 'neap %s --help' lists all options", (int)n,
			text, instead, command->name);
	}
	for (const struct cli_option *o = command->options; o->name; o++) {
		if (o->kind != CLI_HEADING)
			neap__suggest(&meant, o->name);
		if (o->alias)
			neap__suggest(&meant, o->alias);
	}
	for (const struct cli_option *o = cli_common_options; o->name; o++)
		neap__suggest(&meant, o->name);
	neap__suggest(&meant, "help");
	neap__did_you_mean(room, &meant, "--");
	return cli_usage(command->name, "unknown option '--%.*s'%s%s 'neap %s --help' lists them",
		(int)n, text, room, room[0] ? "" : ";", command->name);
}

/* Options with a value that one call of cli_parse has taken. */
static struct {
	const struct cli_option *option[OPTIONS_MOST];
	const char *value[OPTIONS_MOST];
	int count;
} taken;

static void take_note(const struct cli_option *option, const char *value)
{
	if (taken.count < OPTIONS_MOST) {
		taken.option[taken.count] = option;
		taken.value[taken.count++] = value;
	}
}

/* Refuses two options that set the same number: one of them would be ignored. */
static int check_pairs(const char *command, const struct cli_option *option, const char *value)
{
	static const char *const pairs[][2] = {{"tau", "beta"}, {"width", "slope"}};

	for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
		int second = strcmp(option->name, pairs[p][1]) == 0;
		if (!second && strcmp(option->name, pairs[p][0]) != 0)
			continue;
		for (int i = 0; i < taken.count; i++)
			if (strcmp(taken.option[i]->name, pairs[p][!second]) == 0)
				return cli_usage(command,
					"--%s %.100s and --%s %.100s set the same number. Pass "
					"only one of them",
					taken.option[i]->name, taken.value[i], option->name, value);
		take_note(option, value);
	}
	return CLI_DONE;
}

/*
 * Refuses an option for a list or a data set that is there twice, since both values were probably
 * meant. Of other options the last one wins, so that a script's options can be overridden.
 */
static int check_once(const char *command, const struct cli_option *option, const char *value)
{
	const char *lists = option->argument && (strcmp(option->argument, "LIST") == 0 ||
							strstr(option->argument, "[,"))
				    ? ", with a comma between the names of a list"
				    : "";

	if (option->kind == CLI_LIST ||
		!(*lists || strcmp(option->name, "test") == 0 || strcmp(option->name, "text") == 0))
		return check_pairs(command, option, value);
	for (int i = 0; i < taken.count; i++)
		if (taken.option[i] == option)
			return cli_usage(command,
				"--%s is given twice, '%.100s' and '%.100s'. "
				"Pass it once%s%s%.100s%s%.100s",
				option->name, taken.value[i], value, lists, *lists ? ": " : "",
				*lists ? taken.value[i] : "", *lists ? "," : "",
				*lists ? value : "");
	take_note(option, value);
	return CLI_DONE;
}

/* 1: the argument is an option of the command, and so hardly the value of the one before. */
static int is_option(const struct cli_command *command, const char *arg)
{
	if (arg[0] != '-' || arg[1] == '\0')
		return 0;
	return arg[1] == '-' ? find(command, arg + 2, strcspn(arg + 2, "=")) != NULL
			     : arg[2] == '\0' && find_letter(command, arg[1]) != NULL;
}

/* Sets `option` to `value`, or without one to the next argument, to which *i moves. */
static int take_value(const struct cli_command *command, const struct cli_option *option,
	const char *value, int argc, char **argv, int *i)
{
	if (option->kind == CLI_FLAG) {
		if (value)
			return cli_usage(command->name,
				"--%s takes no value, but '%s' is given. Pass only --%s",
				option->name, value, option->name);
		*(int *)option->into = 1;
		if (option->given)
			*option->given = 1;
		return CLI_DONE;
	}
	if (!value) {
		if (*i + 1 >= argc)
			return cli_usage(command->name,
				"--%s: the value (%s) is missing. Pass --%s %s", option->name,
				option->argument, option->name, option->argument);
		value = argv[++*i];
		if (is_option(command, value))
			return cli_usage(command->name,
				"--%s: the value (%s) is missing before '%s'. Pass --%s %s, or "
				"--%s='%s' if '%s' is the value",
				option->name, option->argument, value, option->name,
				option->argument, option->name, value, value);
	}
	int code = check_once(command->name, option, value);
	return code != CLI_DONE ? code : set_value(command->name, option, value);
}

/* --name value, --name=value */
static int take_option(const struct cli_command *command, int argc, char **argv, int *i)
{
	const char *text = argv[*i] + 2;
	size_t n = strcspn(text, "=");
	const struct cli_option *option = find(command, text, n);

	if (!option)
		return unknown_option(
			command, text, n, text[n] == '=' ? text + n + 1 : argv[*i + 1]);
	return take_value(command, option, text[n] == '=' ? text + n + 1 : NULL, argc, argv, i);
}

/* -o value, -ovalue, -qv */
static int take_letters(const struct cli_command *command, int argc, char **argv, int *i)
{
	const char *name = argv[*i] + 1;
	size_t n = strcspn(name, "=");

	if (n > 1 && find(command, name, n))
		return cli_usage(command->name,
			"unknown option '-%.*s'; did you mean '--%.*s'? 'neap %s --help' lists "
			"them",
			(int)n, name, (int)n, name, command->name);
	for (const char *at = argv[*i] + 1; *at; at++) {
		const struct cli_option *option = find_letter(command, *at);
		char instead[256];
		if (!option && cli_foreign_name(instead, command, at, 1))
			return cli_usage(command->name,
				"unknown option '-%c'%s 'neap %s --help' lists all options", *at,
				instead, command->name);
		if (!option)
			return cli_usage(command->name,
				"unknown option '-%c'; 'neap %s --help' lists them", *at,
				command->name);
		if (option->kind != CLI_FLAG)
			return take_value(command, option, at[1] ? at + 1 : NULL, argc, argv, i);
		int rc = take_value(command, option, NULL, argc, argv, i);
		if (rc != CLI_DONE)
			return rc;
	}
	return CLI_DONE;
}

/* 1: the unit of a value that a blank separates from its number: "--memory 64 MB". */
static int is_unit(const char *arg)
{
	static const char *const units[] = {"K", "M", "G", "T", "B", "KB", "MB", "GB", "TB", "KiB",
		"MiB", "GiB", "TiB", "ns", "us", "ms", "s", "min", "h", "Hz", "kHz", "%"};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strcasecmp(arg, units[i]) == 0)
			return access(arg, F_OK) < 0;
	return 0;
}

static int is_table(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot && (strcasecmp(dot, ".csv") == 0 || strcasecmp(dot, ".tsv") == 0);
}

/* 1, after one line: the argument and those behind it are texts, as the first ones are. */
static int are_texts(
	const struct cli_command *command, const char *first, int argc, char **argv, int at)
{
	enum { MOST = 4096 };
	const char **file = calloc(MOST, sizeof *file);
	int count = 0, found;

	if (!file || strcmp(command->name, "train") != 0) {
		free(file);
		return 0;
	}
	for (int i = 0; i < taken.count; i++)
		if (strcmp(taken.option[i]->name, "text") == 0)
			file[count++] = taken.value[i];
	file[count++] = first;
	for (; at < argc && argv[at][0] != '-' && count < MOST; at++)
		file[count++] = argv[at];
	for (int i = 0; i < count; i++)
		file[i] += strncmp(file[i], "text:", 5) == 0 ? 5 : 0;
	found = cli_several_texts(file, count);
	free(file);
	return found;
}

/* `unexpected` of train for a table behind the data set `last`. */
static int unexpected_table(const struct cli_command *command, const char *last, const char *arg)
{
	if (is_table(last))
		return cli_usage(command->name,
			"unexpected argument '%s'; one data set is trained on, and tables are "
			"encoded first: neap encode %s --out FILE.h5. If '%s' is a test set, "
			"encode it, "
			"too, and pass its file with --test; if it has the classes, encode it with "
			"the data: --labels %s",
			arg, neap__quoted(last), arg, neap__quoted(arg));
	return cli_usage(command->name,
		"unexpected argument '%s'. If '%s' has the classes, encode it with the data it "
		"belongs to: neap encode DATA --labels %s --out FILE.h5",
		arg, arg, neap__quoted(arg));
}

/* `unexpected` of train, eval and plan. */
static int unexpected_of_train(const struct cli_command *command, const char *last, const char *arg)
{
	const char *dot = strrchr(arg, '.');

	if (strcmp(last, "text") == 0)
		return cli_usage(command->name,
			"unexpected argument '%s'. To learn a text: neap train --text %s", arg,
			neap__quoted(arg));
	if (cli_is_run(last) || cli_is_run(arg)) {
		const char *run = cli_is_run(last) ? last : arg, *data = run == last ? arg : last;
		return cli_usage(command->name,
			"'%s' is a run, but train takes one data set. To start from the weights of "
			"the run, pass it with --from: neap train %s --from %s --out NEW",
			run, neap__quoted(data), neap__quoted(run));
	}
	if (dot && (strcmp(dot, ".wav") == 0 || strcmp(dot, ".flac") == 0))
		return cli_usage(command->name,
			"unexpected argument '%s'. Recordings are encoded first, in a folder: neap "
			"encode FOLDER --out FILE.h5",
			arg);
	if (access(arg, F_OK) < 0 && (strchr(arg, ':') || strcmp(arg, "li") == 0))
		return cli_usage(command->name,
			"unexpected argument '%s'. If it is a layer of the network, separate the "
			"layers by commas, without blanks: --net lif:64,li",
			arg);
	const struct cli_option *net = find(command, "net", 3);
	if (net && arg[strspn(arg, "0123456789")] == '\0' && *(const char *const *)net->into)
		return cli_usage(command->name,
			"unexpected argument '%s'. If it is the size of the layer, separate it by "
			"a colon, "
			"and end with the readout li: --net %s:%s,li",
			arg, *(const char *const *)net->into, arg);
	if (access(arg, F_OK) == 0 && is_table(arg))
		return unexpected_table(command, last, arg);
	return cli_usage(command->name,
		"unexpected argument '%s'; one data set is trained on. If '%s' is a test "
		"set: neap train %s --test %s",
		arg, arg, neap__quoted(last), neap__quoted(arg));
}

static int unexpected_of_eval(const struct cli_command *command, const char *run, const char *arg)
{
	const char *dot = strrchr(arg, '.');

	if (dot && access(arg, F_OK) < 0 && strncmp(dot, ".json", 5) == 0)
		return cli_usage(command->name,
			"unexpected argument '%s'. The report goes to standard output: neap eval "
			"RUN DATA --json > %s",
			arg, neap__quoted(arg));
	return cli_usage(command->name,
		"unexpected argument '%s'; one data set is evaluated. Evaluate the other "
		"one by another call: neap eval %s %s",
		arg, neap__quoted(run), neap__quoted(arg));
}

static int unexpected_of_plan(const struct cli_command *command, const char *arg)
{
	if (arg[strspn(arg, "0123456789")] == '\0')
		return cli_usage(command->name,
			"unexpected argument '%s'. If it is the number of steps: neap plan --steps "
			"%s",
			arg, arg);
	if (cli_is_run(arg))
		return cli_usage(command->name,
			"unexpected argument '%s'; plan needs sizes, not a run. To measure them on "
			"its data, with its --net: neap calibrate DATA --net SPEC --out "
			"chain.json, "
			"and then neap plan --chain chain.json --memory 64M",
			arg);
	return cli_usage(command->name,
		"unexpected argument '%s'; plan needs sizes, not data. To measure them: "
		"neap calibrate %s --out chain.json, and then neap plan --chain "
		"chain.json --memory 64M",
		arg, neap__quoted(arg));
}

/* One argument more than there can be; `last` is the one before, or NULL. */
static int unexpected(const struct cli_command *command, const char *const *positional, int found,
	const char *arg)
{
	const char *last = found ? positional[found - 1] : NULL;

	if (is_unit(arg))
		return cli_usage(command->name,
			"unexpected argument '%s'. A value and its unit are one word, without a "
			"blank, such as 64M or 20ms",
			arg);
	char settings[4096];
	snprintf(settings, sizeof settings, "%s/run.json", last ? last : "");
	if (last && strcmp(command->name, "compare") == 0 && cli_is_run(last) && cli_is_run(arg))
		return cli_usage(command->name,
			"'%s' and '%s' are runs, but compare measures strategies on a data set. To "
			"plot the runs: neap plot %s %s",
			last, arg, neap__quoted(last), neap__quoted(arg));
	if (last &&
		(strcmp(command->name, "compare") == 0 ||
			strcmp(command->name, "calibrate") == 0) &&
		access(settings, F_OK) == 0)
		return cli_usage(command->name,
			"'%s' is a run, but %s takes a data set and --net: neap %s %s --net SPEC",
			last, command->name, command->name, neap__quoted(arg));
	if (strcmp(command->name, "train") == 0 && last)
		return unexpected_of_train(command, last, arg);
	if (strcmp(command->name, "eval") == 0 && last)
		return unexpected_of_eval(command, positional[0], arg);
	if (strcmp(command->name, "export") == 0 && last)
		return cli_usage(command->name,
			"unexpected argument '%s'. The file to write is an option: neap export %s "
			"--nir %s",
			arg, neap__quoted(last), neap__quoted(arg));
	if (strcmp(command->name, "plan") == 0)
		return unexpected_of_plan(command, arg);
	return cli_usage(command->name, "unexpected argument '%s'; usage: neap %s %s%s[options]",
		arg, command->name, command->arguments, command->arguments[0] ? " " : "");
}

/* Help, and the list for completions. CLI_DONE: not asked for; else as cli_parse. */
static int answer_help(const struct cli_command *command, int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			cli_help(command);
			return -1 - cli_finish(command->name);
		}
		if (strcmp(argv[i], "--list-options") == 0) { /* for completions; in no help */
			cli_list_options(command);
			return -1 - cli_finish(command->name);
		}
	}
	return CLI_DONE;
}

/* Refuses a positional argument that is empty or too many. CLI_DONE or one line. */
static int check_positional(const struct cli_command *command, int argc, char **argv, int at,
	const char **positional, int found)
{
	if (found == command->most)
		return found && are_texts(command, positional[found - 1], argc, argv, at)
			       ? CLI_USAGE
			       : unexpected(command, positional, found, argv[at]);
	if (argv[at][0] == '\0')
		return cli_usage(command->name,
			"an argument is empty; 'neap %s --help' shows the usage", command->name);
	return CLI_DONE;
}

int cli_parse(const struct cli_command *command, int argc, char **argv, const char **positional)
{
	int found = 0, only_positionals = 0, rc;
	taken.count = 0;

	/* First, while the defaults stand where the options go. */
	rc = answer_help(command, argc, argv);
	if (rc != CLI_DONE)
		return rc;
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		if (!only_positionals && strcmp(arg, "--") == 0) {
			only_positionals = 1;
			continue;
		}
		if (!only_positionals && strncmp(arg, "--", 2) == 0)
			rc = take_option(command, argc, argv, &i);
		else if (!only_positionals && arg[0] == '-' && arg[1] != '\0')
			rc = take_letters(command, argc, argv, &i);
		else if ((rc = check_positional(command, argc, argv, i, positional, found)) ==
			 CLI_DONE)
			positional[found++] = arg;
		if (rc != CLI_DONE)
			return -1 - rc;
	}
	if (found < command->least)
		return -1 - cli_usage(command->name,
				    "%s is missing: neap %s %s; 'neap %s --help' has examples",
				    command->arguments, command->name, command->arguments,
				    command->name);
	return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeated_command.c: the whole command of `neap encode` with an option that an error message
 * proposes ("Pass --classes 2"), behind the message (cli.h). Readers of data know the option that
 * is missing, but not what else was given.
 */
#include "cli.h"
#include "base/quote.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Chosen: the largest options of encode are lists of files, of which few are given. */
enum { OPTIONS_MOST = 4, WORDS_MOST = 100 };

static struct {
	const struct cli_option *options; /* NULL: there is no command to repeat */
	const char *dir, *out;
	char *const *word; /* its arguments */
	int words;
} given;

/* An option that a message proposes. */
struct proposed {
	const struct cli_option *option;
	const char *value; /* in the message, or NULL for its argument as --help has it */
	int bytes;
};

void cli_repeat_encode(const struct cli_option *options, const char *dir, const char *out,
	int words, char *const *word)
{
	given.options = options;
	given.dir = dir;
	given.out = out;
	given.words = words;
	given.word = word;
}

/* The option `--NAME` that a text begins with; *end: behind it. NULL if encode has none. */
static const struct cli_option *option_at(const char *text, const char **end)
{
	size_t n = 2;
	if (strncmp(text, "--", 2) != 0)
		return NULL;
	while (islower((unsigned char)text[n]) || text[n] == '-')
		n++;
	*end = text + n;
	for (const struct cli_option *o = given.options; o->name; o++)
		if (o->kind != CLI_HEADING && strlen(o->name) == n - 2 &&
			strncmp(o->name, text + 2, n - 2) == 0)
			return o;
	return NULL;
}

/* The bytes of a word of a shell command, without the punctuation of a sentence at its end. */
static int word_bytes(const char *text)
{
	int n = 0, quoted = 0;
	while (text[n] && (quoted || text[n] != ' ')) {
		if (text[n] == '\\' && !quoted && text[n + 1])
			n++;
		else
			quoted ^= text[n] == '\'';
		n++;
	}
	/* "Pass --drop temp. to ignore it": the sentence goes on, so the point is of the name. */
	while (n > 0 && strchr(strncmp(text + n, " to ", 4) == 0 ? ",;" : ".,;:", text[n - 1]))
		n--;
	return n;
}

/* 1: the text goes on with a word of a sentence, so that the option has no value in it. */
static int is_sentence(const char *text)
{
	static const char *const words[] = {
		"with", "to", "instead", "for", "and", "or", "if", "which", "in", "as"};
	size_t n = strcspn(text, " .,;:");
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strlen(words[i]) == n && strncmp(text, words[i], n) == 0)
			return 1;
	return n == 0;
}

/* Reads "--NAME VALUE --NAME VALUE"; *end: behind it. How many there are, or 0. */
static int read_proposed(struct proposed all[OPTIONS_MOST], const char *text, const char **end)
{
	int count = 0;
	while (count < OPTIONS_MOST) {
		struct proposed *p = &all[count];
		p->option = option_at(text, &text);
		p->value = NULL;
		if (!p->option)
			break;
		count++;
		if (p->option->kind != CLI_FLAG && *text == ' ' && !is_sentence(text + 1)) {
			p->value = text + 1;
			p->bytes = word_bytes(p->value);
			text = p->value + p->bytes;
		}
		*end = text;
		if (strncmp(text, " --", 3) != 0)
			break;
		text++;
	}
	return count;
}

/* 1: the part of the line that ends at `at` begins with "if": "if 'x' is a column, pass". */
static int is_conditional(const char *line, const char *at)
{
	const char *begin = at;
	while (begin > line && !(begin[-1] == ' ' && begin > line + 1 && strchr(".;", begin[-2])))
		begin--;
	return strncasecmp(begin, "if ", 3) == 0;
}

/* The first proposal behind "pass", "Pass", "Pass it:" or "at least". 0: there is none that a
 * command can follow. */
static int find_proposed(struct proposed all[OPTIONS_MOST], const char *line, const char **end)
{
	for (const char *at = line; (at = strstr(at, " --")) != NULL; at++) {
		if (at < line + 8 ||
			(strncasecmp(at - 4, "pass", 4) != 0 && strncmp(at - 5, "least", 5) != 0 &&
				strncasecmp(at - 8, "pass it:", 8) != 0))
			continue;
		int count = read_proposed(all, at + 1, end);
		/* "... and the number of the column", "if it is the target, ...": more than the
		 * option has to change, or the user has to choose. */
		if (count)
			return strncmp(*end, " and ", 5) == 0 || strncmp(*end, " if ", 4) == 0 ||
					       is_conditional(line, at)
				       ? 0
				       : count;
	}
	return 0;
}

/* The option that an argument of the command is, NULL: it is another word. *value: what the
 * argument has behind it, as in --out=FILE and -oFILE; NULL: nothing. */
static const struct cli_option *given_option(const char *word, const char **value)
{
	const char *end = "";
	const struct cli_option *o = option_at(word, &end);
	*value = *end == '=' ? end + 1 : NULL;
	if (o || word[0] != '-' || !word[1])
		return *end == '\0' || *end == '=' ? o : NULL;
	for (o = given.options; o->name && o->letter != word[1]; o++)
		;
	if (!o->name || (word[2] && o->kind == CLI_FLAG))
		return NULL;
	*value = word[2] ? word + 2 : NULL;
	return o;
}

/* 1: the command is repeated without the option: it is proposed with another value, refused by the
 * line ("--classes: ..."), or named behind "instead of". A list of columns is passed with what it
 * has so far. */
static int is_replaced(const struct cli_option *o, const struct proposed *all, int count,
	const char *line, const char *rest)
{
	static const char instead[] = " instead of ";
	const char *end = "";
	if (option_at(line, &end) == o && *end == ':')
		return 1;
	for (int i = 0; i < count; i++)
		if (all[i].option == o)
			return 1;
	return strncmp(rest, instead, sizeof instead - 1) == 0 &&
	       option_at(rest + sizeof instead - 1, &end) == o;
}

/* Adds the arguments that stay; the value so far of a proposed list goes to *list. */
static void add_words(struct neap__text *to, const struct proposed *all, int count,
	const char *line, const char *rest, const char **list)
{
	for (int i = 1; i < given.words; i++) {
		const char *word = given.word[i], *value;
		const struct cli_option *o = given_option(word, &value);
		int has_value = o && o->kind != CLI_FLAG && !value && i + 1 < given.words;
		if (!o && strcmp(word, given.dir) == 0)
			continue;
		if (has_value)
			value = given.word[++i];
		if (o && (strcmp(o->name, "out") == 0 || strcmp(o->name, "json") == 0))
			continue;
		if (o && is_replaced(o, all, count, line, rest)) {
			*list = strcmp(o->name, "drop") == 0 ? value : *list;
			continue;
		}
		neap__text_add(to, " %s", neap__word(word));
		if (has_value)
			neap__text_add(to, " %s", neap__word(value));
	}
}

void cli_repeat_add(char *line, size_t size)
{
	struct proposed all[OPTIONS_MOST];
	struct neap__text command = {0};
	const char *rest = "", *list = NULL;
	size_t n = strlen(line);

	/* A command that ends the line already has to stay its end. */
	if (!given.options || given.words > WORDS_MOST || strstr(line, "neap encode ") ||
		strstr(line, "shell command") || given.dir[0] == '-')
		return;
	int count = find_proposed(all, line, &rest);
	/* A column whose name is a word of sentences, such as "to", is not found in the line. */
	if (!count || (strcmp(all[0].option->name, "drop") == 0 && !all[0].value))
		return;
	neap__text_add(&command, ". The whole command with --%s: neap encode %s --out %s",
		all[0].option->name, neap__quoted(given.dir), neap__quoted(given.out));
	add_words(&command, all, count, line, rest, &list);
	if (list && all[0].value && strncmp(all[0].value, list, strlen(list)) == 0 &&
		all[0].value[strlen(list)] == ',')
		list = NULL; /* the proposal has the list so far */
	for (int i = 0; i < count; i++) {
		const struct cli_option *o = all[i].option;
		neap__text_add(&command, " --%s", o->name);
		if (o->kind == CLI_FLAG)
			continue;
		neap__text_add(&command, " %s%s", list ? neap__word(list) : "", list ? "," : "");
		if (all[i].value)
			neap__text_add(&command, "%.*s", all[i].bytes, all[i].value);
		else
			neap__text_add(&command, "%s", o->argument);
	}
	if (command.data && !command.error && n + strlen(command.data) < size)
		memcpy(line + n, command.data, strlen(command.data) + 1);
	neap__text_free(&command);
}

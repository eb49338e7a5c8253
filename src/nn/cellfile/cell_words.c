/* SPDX-License-Identifier: Apache-2.0 */
/* cell_words.c: cuts a cell file into words (cell_words.h). */
#include "nn/cellfile/cell_words.h"
#include "base/fail.h"
#include "base/print.h"

#include <stdarg.h>
#include <string.h>

void neap__cell_words_begin(struct neap__cell_words *words, const char *text, const char *where)
{
	*words = (struct neap__cell_words){.where = where, .begin = text, .at = text};
	neap__cell_words_next(words);
}

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Moves behind a number and its unit: 20ms, 1e-3, .5; "0..1" is a number and what follows it. */
static const char *behind_number(const char *p)
{
	while (is_digit(*p))
		p++;
	if (*p == '.' && p[1] != '.')
		p++;
	while (is_digit(*p))
		p++;
	if ((*p == 'e' || *p == 'E') &&
		(is_digit(p[1]) || ((p[1] == '-' || p[1] == '+') && is_digit(p[2]))))
		p += 2;
	while (is_digit(*p) || is_letter(*p))
		p++;
	return p;
}

/* Skips blanks and comments, and within brackets the ends of lines. */
static const char *skip(const struct neap__cell_words *words, const char *p)
{
	for (;;) {
		if (*p == '#')
			p += strcspn(p, "\n");
		else if (*p == ' ' || *p == '\t' || *p == '\r' || (*p == '\n' && words->brackets))
			p++;
		else
			return p;
	}
}

void neap__cell_words_next(struct neap__cell_words *words)
{
	static const char *const pairs[] = {"..", ">=", "<="};
	const char *p = skip(words, words->at);

	words->word = p;
	words->kind = NEAP__CELL_SIGN;
	if (!*p) {
		words->kind = NEAP__CELL_END;
	} else if (*p == '\n' || (*p == ';' && !words->brackets)) {
		words->kind = NEAP__CELL_BREAK;
		p++;
	} else if (is_letter(*p)) {
		words->kind = NEAP__CELL_WORD;
		while (is_letter(*p) || is_digit(*p))
			p++;
	} else if (is_digit(*p) || (*p == '.' && is_digit(p[1]))) {
		words->kind = NEAP__CELL_NUMBER;
		p = behind_number(p);
	} else {
		int length = strchr("+-*/^()=<>,;", *p) ? 1 : 0;
		for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
			if (strncmp(p, pairs[i], 2) == 0)
				length = 2;
		if (!length)
			words->kind = NEAP__CELL_WRONG;
		words->brackets += *p == '(';
		words->brackets -= *p == ')' && words->brackets > 0;
		p += length ? length : 1;
	}
	words->length = (int)(p - words->word);
	words->at = p;
}

int neap__cell_word_is(const struct neap__cell_words *words, const char *text)
{
	return strlen(text) == (size_t)words->length &&
	       memcmp(words->word, text, (size_t)words->length) == 0;
}

int neap__cell_words_fail(
	const struct neap__cell_words *words, const char *word, const char *format, ...)
{
	char message[600];
	const char *line = words->begin;
	int number = 1;
	va_list args;

	for (const char *p = words->begin; p < word; p++)
		if (*p == '\n') {
			number++;
			line = p + 1;
		}
	va_start(args, format);
	neap__vprint(message, sizeof message, format, args);
	va_end(args);
	return neap__fail(NEAP_EUSAGE, "%.200s:%d:%d: %s", words->where, number,
		(int)(word - line) + 1, message);
}

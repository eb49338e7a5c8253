/* SPDX-License-Identifier: Apache-2.0 */
/* cell_words.h: the words of a cell file, and messages that say where they are. */
#ifndef NEAP_NN_CELLFILE_CELL_WORDS_H
#define NEAP_NN_CELLFILE_CELL_WORDS_H

#include <stddef.h>

enum neap__cell_word_kind {
	NEAP__CELL_END,	  /* of the text */
	NEAP__CELL_BREAK, /* of a statement */
	NEAP__CELL_WORD,
	NEAP__CELL_NUMBER,
	NEAP__CELL_SIGN, /* an operator, a bracket or a separator of arguments, as ',' */
	NEAP__CELL_WRONG /* a character that no word has */
};

/* Where a reader is: the word that follows, which it has not used yet. */
struct neap__cell_words {
	const char *where;	/* the name of the text */
	const char *begin, *at; /* the text, and what follows the word */
	enum neap__cell_word_kind kind;
	const char *word;
	int length, brackets; /* of the word; brackets that are open */
};

void neap__cell_words_begin(struct neap__cell_words *words, const char *text, const char *where);
/* Moves to the next word. */
void neap__cell_words_next(struct neap__cell_words *words);
/* 1: the word is this one. */
int neap__cell_word_is(const struct neap__cell_words *words, const char *text);
/* NEAP_EUSAGE with "WHERE:LINE:COLUMN: " before the message, the place being that of `word`. */
int neap__cell_words_fail(const struct neap__cell_words *words, const char *word,
	const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif

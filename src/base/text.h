/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: a growing string, for text that leaves through buffers. */
#ifndef NEAP_BASE_TEXT_H
#define NEAP_BASE_TEXT_H

#include <stddef.h>
#include <neap/status.h>

/* All zero to begin with; free with neap__text_free. */
struct neap__text {
	char *data; /* zero-terminated once anything was added */
	size_t length, room;
	int error; /* 0, or the first failure, -ENOMEM; nothing is added after it */
};

/* Adds text as printf would. 0, or text->error. */
int neap__text_add(struct neap__text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void neap__text_free(struct neap__text *text);

/* Bytes of the UTF-8 character that begins here: 1 to 4, 0 where none does. */
int neap__utf8_bytes(const char *text);
/* Is the character that begins here a control character, U+0000 to 1F or 7F to 9F? */
int neap__is_control(const char *text);
/*
 * Makes text fit for one line of a terminal, in place: a '?' stands for each control character and
 * each byte that is not UTF-8. Names of files and what files hold reach people through this.
 */
char *neap__plain(char *text);
/* The same for a copy, cut to fit. */
#define NEAP__PLAIN_TEXT 2560 /* more than a line of detail, since it may end in a command */
const char *neap__plain_text(char room[NEAP__PLAIN_TEXT], const char *text);
/*
 * The same with control characters and bytes that are not UTF-8 as \n, \t and \xNN, so that names
 * stay distinct; a backslash in a longer name is two. Cut to fit between characters.
 */
const char *neap__escaped_text(char room[NEAP__PLAIN_TEXT], const char *text);

/*
 * The command that converts a file from the encoding `code` to UTF-8; its output is named after the
 * file, so that no other file is overwritten.
 */
#define NEAP__ICONV_TEXT 1200
const char *neap__iconv_text(char room[NEAP__ICONV_TEXT], const char *path, const char *code);

/* The names of a table, "adam, adamw, sgd", for a line that says which are known; in `room`. */
#define NEAP__NAMES_TEXT 200
const char *neap__names_text(char room[NEAP__NAMES_TEXT], const char *(*name)(int index));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h: JSON texts with exact numbers. Texts are read with Jansson, which keeps integers of
 * 64 bits and depends on no locale; a key that stands twice in an object is refused. Texts are
 * written here, value by value: Jansson's writer has no unsigned 64-bit integers and prints 0.1 as
 * 0.10000000000000001. libneap-nn and the tool compile this file; libneap has no JSON.
 */
#ifndef NEAP_BASE_JSON_H
#define NEAP_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include "base/text.h"

#define NEAP__JSON_WHY 200 /* bytes of a line that says why a text was refused */

/*
 * Reads a whole text. Returns its value, which the caller frees with json_decref, or NULL
 * and one line in `why`: "line 3: not valid JSON: ..." or "line 3: the key is given twice: ...".
 */
json_t *neap__json_read(const char *text, size_t length, char why[NEAP__JSON_WHY]);

/* Reads a number as neap__json_exact writes it. 0, or -1 where `text` is no number. */
int neap__json_read_number(double *value, const char *text);

/* The shortest decimal text that reads back to the same finite double, in `room`. */
const char *neap__json_exact(char room[40], double value);

/*
 * A text in the making: {0} to begin with; `lines` set to 1 gives one key a line, for people,
 * else the text has no white space. `key` is NULL for the outermost value and in lists. Bytes
 * that are not UTF-8 are written as U+FFFD. A failure of memory stays in text.error (-ENOMEM).
 */
struct neap__json {
	struct neap__text text; /* zero-terminated */
	int lines, depth;
};

/* Opens an object ('{') or a list ('['); every one is closed by neap__json_end with '}' or ']'. */
void neap__json_begin(struct neap__json *json, const char *key, char bracket);
void neap__json_end(struct neap__json *json, char bracket);
void neap__json_int(struct neap__json *json, const char *key, int64_t value);
void neap__json_bytes(struct neap__json *json, const char *key, uint64_t value);
/* NaN and infinities become null. */
void neap__json_number(struct neap__json *json, const char *key, double value);
/* NULL becomes null. */
void neap__json_text(struct neap__json *json, const char *key, const char *value);
void neap__json_bool(struct neap__json *json, const char *key, int value);
void neap__json_null(struct neap__json *json, const char *key);
/* A whole value that was made apart; its failure of memory is this text's, too. */
void neap__json_value(struct neap__json *json, const char *key, const struct neap__json *value);
void neap__json_free(struct neap__json *json);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: reading through Jansson; the writer of values. */
#include "base/json.h"
#include "base/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *neap__json_read(const char *text, size_t length, char why[NEAP__JSON_WHY])
{
	json_error_t error;
	json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (root)
		return root;
	const char *says = error.text;
	if (json_error_code(&error) == json_error_duplicate_key) {
		const char *near = strstr(says, " near ");
		neap__print(why, NEAP__JSON_WHY, "line %d: the key is given twice:%s", error.line,
			near ? near + strlen(" near") : "");
	} else {
		neap__print(why, NEAP__JSON_WHY, "line %d: not valid JSON: %s", error.line, says);
	}
	neap__plain(why); /* it quotes the text */
	return NULL;
}

int neap__json_read_number(double *value, const char *text)
{
	json_t *number = json_loads(text, JSON_DECODE_ANY, NULL);
	int rc = json_is_number(number) ? 0 : -1;
	if (rc == 0)
		*value = json_number_value(number);
	json_decref(number);
	return rc;
}

const char *neap__json_exact(char room[40], double value)
{
	/* 15 digits are always kept by a double, 17 always suffice. */
	for (int digits = 15; digits <= 17; digits++) {
		neap__print(room, 40, "%.*g", digits, value);
		if (neap__read_double(room, NULL) == value)
			break;
	}
	return room;
}

static void put_string(struct neap__text *text, const char *value)
{
	static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	neap__text_add(text, "\"");
	for (const char *c = value; *c;) {
		const char *found = strchr(special, *c);
		int n = neap__utf8_bytes(c);
		if (found)
			neap__text_add(text, "\\%c", letters[found - special]);
		else if (neap__is_control(c))
			neap__text_add(text, "\\u%04x", (unsigned char)c[n - 1]);
		else if (n > 0)
			neap__text_add(text, "%.*s", n, c);
		else
			neap__text_add(text, "\xef\xbf\xbd");
		c += n ? n : 1;
	}
	neap__text_add(text, "\"");
}

static void new_line(struct neap__json *json)
{
	neap__text_add(&json->text, "\n");
	for (int i = 0; i < json->depth; i++)
		neap__text_add(&json->text, "\t");
}

/* What stands before a value: the comma after the one before, and the key. */
static void put_key(struct neap__json *json, const char *key)
{
	struct neap__text *text = &json->text;
	char last = text->length ? text->data[text->length - 1] : '[';
	if (last != '{' && last != '[')
		neap__text_add(text, !key && json->lines ? ", " : ",");
	if (!key)
		return;
	if (json->lines)
		new_line(json);
	put_string(text, key);
	neap__text_add(text, json->lines ? ":\t" : ":");
}

void neap__json_begin(struct neap__json *json, const char *key, char bracket)
{
	put_key(json, key);
	neap__text_add(&json->text, "%c", bracket);
	json->depth++;
}

void neap__json_end(struct neap__json *json, char bracket)
{
	json->depth--;
	if (bracket == '}' && json->lines)
		new_line(json);
	neap__text_add(&json->text, "%c", bracket);
}

void neap__json_int(struct neap__json *json, const char *key, int64_t value)
{
	put_key(json, key);
	neap__text_add(&json->text, "%" PRId64, value);
}

void neap__json_bytes(struct neap__json *json, const char *key, uint64_t value)
{
	put_key(json, key);
	neap__text_add(&json->text, "%" PRIu64, value);
}

void neap__json_number(struct neap__json *json, const char *key, double value)
{
	char room[40];
	put_key(json, key);
	neap__text_add(&json->text, "%s", isfinite(value) ? neap__json_exact(room, value) : "null");
}

void neap__json_text(struct neap__json *json, const char *key, const char *value)
{
	put_key(json, key);
	if (value)
		put_string(&json->text, value);
	else
		neap__text_add(&json->text, "null");
}

void neap__json_bool(struct neap__json *json, const char *key, int value)
{
	put_key(json, key);
	neap__text_add(&json->text, value ? "true" : "false");
}

void neap__json_null(struct neap__json *json, const char *key)
{
	neap__json_text(json, key, NULL);
}

void neap__json_value(struct neap__json *json, const char *key, const struct neap__json *value)
{
	put_key(json, key);
	if (value->text.error)
		json->text.error = value->text.error;
	neap__text_add(&json->text, "%s", value->text.error ? "null" : value->text.data);
}

void neap__json_free(struct neap__json *json)
{
	neap__text_free(&json->text);
}

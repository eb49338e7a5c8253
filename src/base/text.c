/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: adds formatted text to a string, which doubles when it is full. */
#include "base/print.h"
#include "base/quote.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int neap__text_add(struct neap__text *text, const char *format, ...)
{
	if (text->error)
		return text->error;
	for (;;) {
		size_t left = text->room - text->length;
		va_list args;
		va_start(args, format);
		int n = neap__vprint(
			text->data ? text->data + text->length : NULL, left, format, args);
		va_end(args);
		if (n < 0)
			return text->error = NEAP_EUSAGE;
		if ((size_t)n < left) {
			text->length += (size_t)n;
			return 0;
		}
		size_t room = text->room * 2 + (size_t)n + 256;
		char *data = realloc(text->data, room);
		if (!data)
			return text->error = -ENOMEM;
		text->data = data;
		text->room = room;
	}
}

void neap__text_free(struct neap__text *text)
{
	free(text->data);
	*text = (struct neap__text){0};
}

int neap__utf8_bytes(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	int n = s[0] < 0x80		       ? 1
		: s[0] >= 0xc2 && s[0] <= 0xdf ? 2
		: s[0] >= 0xe0 && s[0] <= 0xef ? 3
		: s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
					       : 0;
	for (int i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Not the shortest form, a surrogate, or above U+10FFFF. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
		(s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

int neap__is_control(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f);
}

char *neap__plain(char *text)
{
	char *to = text;
	for (const char *from = text; *from;) {
		int n = neap__utf8_bytes(from);
		if (n == 0 || neap__is_control(from)) {
			*to++ = '?';
			from += n ? n : 1;
			continue;
		}
		for (; n > 0; n--)
			*to++ = *from++;
	}
	*to = '\0';
	return text;
}

const char *neap__plain_text(char room[NEAP__PLAIN_TEXT], const char *text)
{
	neap__print(room, NEAP__PLAIN_TEXT, "%s", text);
	return neap__plain(room);
}

enum { ESCAPED = 9 }; /* room for the longest of escape: two bytes as \xNN */

/* Writes a character that is shown as an escape; its length. */
static size_t escape(char *room, const char *text, int bytes)
{
	const char *at = strchr("\nn\tt\\\\", *text);

	if (at)
		return (size_t)neap__print(room, ESCAPED, "\\%c", at[1]);
	size_t n = 0;
	for (int i = 0; i < bytes; i++)
		n += (size_t)neap__print(room + n, ESCAPED - n, "\\x%02x", (unsigned char)text[i]);
	return n;
}

const char *neap__escaped_text(char room[NEAP__PLAIN_TEXT], const char *text)
{
	size_t at = 0;
	int is_longer = text[0] && text[1];

	for (int bytes; *text && at + ESCAPED <= NEAP__PLAIN_TEXT; text += bytes) {
		int n = neap__utf8_bytes(text);
		bytes = n ? n : 1;
		if (n == 0 || neap__is_control(text) || (*text == '\\' && is_longer)) {
			at += escape(room + at, text, bytes);
			continue;
		}
		memcpy(room + at, text, (size_t)bytes);
		at += (size_t)bytes;
	}
	room[at] = '\0';
	return room;
}

const char *neap__names_text(char room[NEAP__NAMES_TEXT], const char *(*name)(int index))
{
	size_t n = 0;
	room[0] = '\0';
	for (int i = 0; name(i) && n < NEAP__NAMES_TEXT; i++)
		n += (size_t)neap__print(
			room + n, NEAP__NAMES_TEXT - n, "%s%s", i ? ", " : "", name(i));
	return room;
}

const char *neap__iconv_text(char room[NEAP__ICONV_TEXT], const char *path, const char *code)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	int stem = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
	char converted[280];
	neap__print(converted, sizeof converted, "%.*s-utf8%.20s", stem < 240 ? stem : 240, name,
		dot && dot > name ? dot : "");
	neap__print(room, NEAP__ICONV_TEXT,
		"Convert it, and use the new file in its place: iconv -f %s -t UTF-8 %s > %s", code,
		neap__quoted(path), neap__quoted(converted));
	return room;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: adds formatted text to a string, which doubles when it is full. */
#include "base/print.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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

const char *neap__names_text(char room[NEAP__NAMES_TEXT], const char *(*name)(int index))
{
	size_t n = 0;
	room[0] = '\0';
	for (int i = 0; name(i) && n < NEAP__NAMES_TEXT; i++)
		n += (size_t)neap__print(
			room + n, NEAP__NAMES_TEXT - n, "%s%s", i ? ", " : "", name(i));
	return room;
}

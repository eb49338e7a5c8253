/* SPDX-License-Identifier: Apache-2.0 */
/* quote.c: quotes for shells and Python (quote.h). */
#include "base/quote.h"
#include "base/print.h"

#include <ctype.h>
#include <string.h>

enum { ROOMS = 8, ROOM = 1024 };

/* `specials` are written as \xNN, or, for a shell, as a quote outside the quotes. */
static const char *quote(const char *text, const char *specials, int is_python)
{
	static _Thread_local char rooms[ROOMS][ROOM];
	static _Thread_local int next;
	char *room = rooms[next = (next + 1) % ROOMS];
	size_t n = 0;
	room[n++] = '\'';
	for (; *text && n + sizeof "'\\'''" < ROOM; text++)
		if (!strchr(specials, *text))
			room[n++] = *text;
		else if (is_python)
			n += (size_t)neap__print(room + n, ROOM - n, "\\x%02x", (unsigned)*text);
		else
			n += (size_t)neap__print(room + n, ROOM - n, "'\\''");
	room[n++] = '\'';
	room[n] = '\0';
	return room;
}

const char *neap__quoted(const char *text)
{
	return quote(text, "'", 0);
}

const char *neap__word(const char *text)
{
	const char *at = text;
	while (*at && (isalnum((unsigned char)*at) || (unsigned char)*at > 127 ||
			      strchr("_.,:/%+@=-", *at)))
		at++;
	return *text && !*at ? text : quote(text, "'", 0);
}

const char *neap__python_quoted(const char *text)
{
	return quote(text, "'\"$`\\!", 1);
}

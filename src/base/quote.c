/* SPDX-License-Identifier: Apache-2.0 */
/* quote.c: quotes for shells and Python (quote.h). */
#include "base/quote.h"
#include "base/print.h"

#include <ctype.h>
#include <string.h>

enum { ROOMS = 8, ROOM = NEAP__QUOTED_BYTES + 1 };

enum form { SHELL, BARE /* without quotes */, PYTHON };

/* `specials` are written as \xNN for Python, and for a shell as a quote outside the quotes. */
static const char *quote(const char *text, const char *specials, enum form form)
{
	static _Thread_local char rooms[ROOMS][ROOM];
	static _Thread_local int next;
	char *room = rooms[next = (next + 1) % ROOMS];
	const char *mark = form == BARE ? "" : "'";
	size_t n = (size_t)neap__print(room, ROOM, "%s", mark);
	for (; *text && n + sizeof "'\\'''" < ROOM; text++)
		if (!strchr(specials, *text))
			room[n++] = *text;
		else if (form == PYTHON)
			n += (size_t)neap__print(room + n, ROOM - n, "\\x%02x", (unsigned)*text);
		else
			n += (size_t)neap__print(room + n, ROOM - n, "'\\''");
	if (*text)
		neap__print(room, ROOM, form == PYTHON ? "'...'" : "...");
	else
		neap__print(room + n, ROOM - n, "%s", mark);
	return room;
}

const char *neap__quoted(const char *text)
{
	return quote(text, "'", SHELL);
}

const char *neap__word(const char *text)
{
	const char *at = text;
	while (*at && (isalnum((unsigned char)*at) || (unsigned char)*at > 127 ||
			      strchr("_.,:/%+@=-", *at)))
		at++;
	return quote(text, "'", *text && !*at ? BARE : SHELL);
}

const char *neap__python_quoted(const char *text)
{
	return quote(text, "'\"$`\\!", PYTHON);
}

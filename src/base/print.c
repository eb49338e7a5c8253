/* SPDX-License-Identifier: Apache-2.0 */
/* print.c: takes the C locale for the thread, and gives the old one back (print.h). */
#include "base/print.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct locales {
	locale_t plain,
		before; /* plain is 0 where there is no memory for it: the program's stays */
};

/* The C library has this locale ready, so that nothing is read or allocated. */
static struct locales enter(void)
{
	struct locales l = {.plain = newlocale(LC_ALL_MASK, "C", 0)};
	if (l.plain)
		l.before = uselocale(l.plain);
	return l;
}

static void leave(struct locales l)
{
	if (!l.plain)
		return;
	uselocale(l.before);
	freelocale(l.plain);
}

int neap__vprint(char *room, size_t size, const char *format, va_list args)
{
	struct locales l = enter();
	int n = vsnprintf(room, size, format, args);
	leave(l);
	return n;
}

int neap__print(char *room, size_t size, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = neap__vprint(room, size, format, args);
	va_end(args);
	return n;
}

double neap__read_double(const char *text, char **end)
{
	struct locales l = enter();
	double value = strtod(text, end);
	leave(l);
	return value;
}

const char *neap__error_text(int err)
{
	struct locales l = enter();
	const char *text = strerror(err);
	leave(l);
	return text;
}

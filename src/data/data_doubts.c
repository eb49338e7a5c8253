/* SPDX-License-Identifier: Apache-2.0 */
/* data_doubts.c: formats lines about probable mistakes (data_doubts.h). */
#include "data/data_doubts.h"
#include "base/fail.h"
#include "base/print.h"

#include <stdarg.h>
#include <string.h>

enum { NAMES_SHOWN = 3, LONGEST_NAME = 50 /* bytes */ };

void neap__doubt(void (*tell)(void *user, const char *line), void *user, const char *format, ...)
{
	char line[NEAP__DETAIL_BYTES];
	va_list args;
	if (!tell)
		return;
	va_start(args, format);
	neap__vprint(line, sizeof line, format, args);
	va_end(args);
	tell(user, line);
}

void neap__first_names_add(struct neap__first_names *names, const char *name)
{
	size_t n = strlen(names->text), bytes = strlen(name);
	const char *end = bytes > LONGEST_NAME ? name + bytes - LONGEST_NAME : name;
	if (names->count < NAMES_SHOWN)
		neap__print(names->text + n, sizeof names->text - n, "%s'%s%s'", n ? ", " : "",
			end > name ? "..." : "", end);
	else if (names->count == NAMES_SHOWN)
		neap__print(names->text + n, sizeof names->text - n, ", ...");
	names->count++;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* debug_log.c: lines about decisions, if NEAP_LOG asks for them. */
#include "base/debug_log.h"
#include "base/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not cached: a program may set it between two runs, and decisions are rare. */
int neap__debug_on(void)
{
	const char *level = getenv("NEAP_LOG");
	return level && strcmp(level, "debug") == 0;
}

void neap__debug(const char *format, ...)
{
	char line[1000];
	va_list args;

	if (!neap__debug_on())
		return;
	va_start(args, format);
	neap__vprint(line, sizeof line, format, args);
	va_end(args);
	fprintf(stderr, "neap debug: %s\n", line);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail.c: formats the detail line of a failure. The line itself is kept by status.c: that file is
 * in libneap alone, this one in every library of neap, so that all libraries set one line.
 */
#include "base/fail.h"
#include "base/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int neap__fail(int code, const char *format, ...)
{
	char line[NEAP__DETAIL_BYTES];
	va_list args;
	va_start(args, format);
	neap__vprint(line, sizeof line, format, args);
	va_end(args);
	neap_detail_set(line);
	return code;
}

int neap__fail_errno(int err, const char *format, ...)
{
	char line[NEAP__DETAIL_BYTES];
	va_list args;
	va_start(args, format);
	int n = neap__vprint(line, sizeof line, format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof line)
		neap__print(line + n, sizeof line - (size_t)n, ": %s", neap__error_text(err));
	neap_detail_set(line);
	return err > 0 ? -err : NEAP_EUSAGE;
}

int neap__fail_in(int code, const char *format, ...)
{
	char line[NEAP__DETAIL_BYTES];
	va_list args;
	va_start(args, format);
	int n = neap__vprint(line, sizeof line, format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof line)
		neap__print(line + n, sizeof line - (size_t)n, "%s", neap_detail());
	neap_detail_set(line);
	return code;
}

int neap__need(const char *function, const char *names, const void *const *pointers, int count)
{
	for (int i = 0; i < count; i++) {
		size_t n = strcspn(names, ",");
		if (!pointers[i])
			return neap__fail(NEAP_EUSAGE, "%s: %.*s is NULL", function, (int)n, names);
		names += names[n] ? n + 1 : n;
		names += strspn(names, " ");
	}
	return 0;
}

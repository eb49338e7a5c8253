/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char detail[512];

const char *neap_strerror(int code)
{
	static const struct {
		int code;
		const char *text;
	} table[] = {
#define NEAP_X(name, value, text) {value, text},
		NEAP_STATUS_TABLE(NEAP_X)
#undef NEAP_X
	};

	if (code >= 0)
		return "success";
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (table[i].code == code)
			return table[i].text;
	return strerror(-code);
}

const char *neap_detail(void)
{
	return detail;
}

/* One line: whatever a name from outside holds, no control character leaves. */
static void clean(void)
{
	for (char *c = detail; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

int neap__fail(int code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(detail, sizeof detail, format, args);
	va_end(args);
	clean();
	return code;
}

int neap__fail_errno(int err, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(detail, sizeof detail, format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof detail)
		snprintf(detail + n, sizeof detail - (size_t)n, ": %s", strerror(err));
	clean();
	return err > 0 ? -err : NEAP_EUSAGE;
}

int neap__fail_in(int code, const char *format, ...)
{
	char old[sizeof detail];
	va_list args;
	memcpy(old, detail, sizeof detail);
	va_start(args, format);
	int n = vsnprintf(detail, sizeof detail, format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof detail)
		snprintf(detail + n, sizeof detail - (size_t)n, "%s", old);
	clean();
	return code;
}

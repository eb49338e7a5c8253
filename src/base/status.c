/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.c: the texts of codes, and the detail line of each thread. A process has one line a
 * thread, so this file is in libneap alone; other libraries of neap call it.
 */
#include "base/fail.h"
#include "base/print.h"
#include "base/text.h"

#include <stddef.h>
#include <string.h>

static _Thread_local char detail[NEAP__DETAIL_BYTES];

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
	return neap__error_text(-code);
}

const char *neap_detail(void)
{
	return detail;
}

void neap_detail_set(const char *line)
{
	size_t n = line ? strnlen(line, sizeof detail - 1) : 0;
	if (n)
		memmove(detail, line, n); /* `line` may be a part of the present one */
	detail[n] = '\0';
	neap__plain(detail);
}

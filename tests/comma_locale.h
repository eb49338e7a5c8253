/* SPDX-License-Identifier: Apache-2.0 */
/* comma_locale.h: a locale with a decimal comma, made in a folder and taken by the process. */
#ifndef NEAP_TEST_COMMA_LOCALE_H
#define NEAP_TEST_COMMA_LOCALE_H

#include "test.h"
#include <locale.h>

/* Compiles the locale into the folder `in`, and takes it; setlocale(LC_ALL, "C") gives it back. */
static inline void take_comma_locale(const char *in)
{
	char path[200], command[600], room[16];
	snprintf(path, sizeof path, "%s/comma.src", in);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\n"
	      "END LC_NUMERIC\n",
		f);
	fclose(f);
	/* It warns about the other categories, which are those of the C locale. */
	snprintf(command, sizeof command,
		"localedef -c --no-archive -f ANSI_X3.4-1968 -i %s %s/comma >/dev/null 2>&1", path,
		in);
	(void)!system(command);
	setenv("LOCPATH", in, 1);
	assert_non_null(setlocale(LC_ALL, "comma"));
	snprintf(room, sizeof room, "%.1f", 1.5);
	assert_string_equal(room, "1,5");
}

#endif

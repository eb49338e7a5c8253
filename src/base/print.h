/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h: formatted text and numbers in the C locale, whatever the locale of the program is: a
 * decimal point in what is written, and in what is read. Nothing else in src/ calls snprintf,
 * strtod or strerror; tools/floors.py sees to it.
 */
#ifndef NEAP_BASE_PRINT_H
#define NEAP_BASE_PRINT_H

#include <stdarg.h>
#include <stddef.h>

/* As snprintf and vsnprintf. */
int neap__print(char *room, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int neap__vprint(char *room, size_t size, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

/* As strtod. */
double neap__read_double(const char *text, char **end);

/* As strerror, in English; valid until the thread's next call. */
const char *neap__error_text(int err);

#endif

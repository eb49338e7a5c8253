/* SPDX-License-Identifier: Apache-2.0 */
/* units.c: reads numbers with units (units.h). */
#include "base/units.h"
#include "base/print.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A plain decimal number at the start of text. */
static int leading_number(double *number, const char *text, const char **rest)
{
	char *end;
	size_t n = strspn(text, "+-.0123456789eE");

	if (n == 0 || text[strcspn(text, "0123456789")] == '\0')
		return -1;
	double value = neap__read_double(text, &end);
	if (end == text || end > text + n || !isfinite(value))
		return -1;
	*number = value;
	*rest = end;
	return 0;
}

int neap__units_number(double *number, const char *text)
{
	const char *rest;
	double value;

	if (leading_number(&value, text, &rest) < 0 || *rest != '\0')
		return -1;
	*number = value;
	return 0;
}

int neap__units_count(int64_t *number, const char *text)
{
	static const char units[] = "KMG";
	const char *rest, *unit;
	char *end;
	double real;

	/* Digits alone are exact beyond 2^53, too. */
	if (text[strspn(text, "-0123456789")] == '\0' && text[strcspn(text, "0123456789")]) {
		errno = 0;
		long long value = strtoll(text, &end, 10);
		if (errno != 0 || *end != '\0')
			return -1;
		*number = value;
		return 0;
	}
	if (leading_number(&real, text, &rest) < 0)
		return -1;
	unit = *rest ? strchr(units, toupper((unsigned char)*rest)) : NULL;
	if (unit) {
		real *= pow(1000, (double)(unit - units + 1));
		rest++;
	}
	if (*rest != '\0' || fabs(real) > 9e15 || real != floor(real))
		return -1;
	*number = (int64_t)real;
	return 0;
}

int neap__units_within(double *number, const char *text, int whole, double least, double most)
{
	double value;
	int64_t count;

	if (whole && neap__units_count(&count, text) == 0)
		value = (double)count;
	else if (whole || neap__units_number(&value, text) < 0)
		return -1;
	if (!(value >= least && value <= most))
		return -1;
	*number = value;
	return 0;
}

/* A size as a real number, before it is rounded down to bytes. */
static int read_bytes(double *bytes, const char *text)
{
	static const char units[] = "KMGTP";
	const char *rest, *unit;
	double number;

	if (leading_number(&number, text, &rest) < 0)
		return -1;
	unit = *rest ? strchr(units, toupper((unsigned char)*rest)) : NULL;
	if (unit) {
		number = ldexp(number, 10 * (int)(unit - units + 1));
		rest++;
		if (strcmp(rest, "iB") == 0 || strcmp(rest, "B") == 0)
			rest += strlen(rest);
	} else if (strcmp(rest, "B") == 0) {
		rest++;
	}
	if (*rest != '\0' || signbit(number) || !isfinite(number))
		return -1;
	*bytes = number;
	return 0;
}

int neap__units_size(uint64_t *bytes, const char *text)
{
	double number;
	char *end;

	/* Digits alone are exact beyond 2^53, too. */
	if (*text && text[strspn(text, "0123456789")] == '\0') {
		errno = 0;
		unsigned long long value = strtoull(text, &end, 10);
		if (errno != 0 || value > INT64_MAX)
			return -1;
		*bytes = value;
		return 0;
	}
	if (read_bytes(&number, text) < 0 || number >= 0x1p63)
		return -1;
	*bytes = (uint64_t)number;
	return 0;
}

int neap__units_time(double *seconds, const char *text)
{
	/* Parts of a second divide, so that 100us is the double nearest to 1e-4. */
	static const struct {
		const char *name;
		double times, parts;
	} units[] = {{"", 1, 1}, {"s", 1, 1}, {"ms", 1, 1e3}, {"us", 1, 1e6}, {"ns", 1, 1e9},
		{"min", 60, 1}, {"h", 3600, 1}};
	const char *rest;
	double number;

	if (leading_number(&number, text, &rest) < 0 || signbit(number))
		return -1;
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		if (strcmp(rest, units[i].name) == 0) {
			number = number * units[i].times / units[i].parts;
			if (!isfinite(number))
				return -1;
			*seconds = number;
			return 0;
		}
	}
	return -1;
}

int neap__units_frequency(double *hertz, const char *text)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = {{"Hz", 1}, {"kHz", 1e3}, {"/s", 1}, {"/ms", 1e3}, {"", 1e3}};
	const char *rest;
	double number;

	if (leading_number(&number, text, &rest) < 0 || signbit(number))
		return -1;
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (strcmp(rest, units[i].name) == 0 && isfinite(number * units[i].factor)) {
			*hertz = number * units[i].factor;
			return 0;
		}
	return -1;
}

int neap__units_rate(double *rate, const char *text)
{
	char copy[64];
	double number;
	size_t n = strlen(text);

	if (strcmp(text, "inf") == 0) {
		*rate = 0;
		return 0;
	}
	if (n >= sizeof copy)
		return -1;
	memcpy(copy, text, n + 1);
	if (n > 2 && strcmp(copy + n - 2, "/s") == 0)
		copy[n - 2] = '\0';
	if (read_bytes(&number, copy) < 0 || number <= 0)
		return -1;
	*rate = number;
	return 0;
}

double neap__units_tau(double decay, double dt, int euler)
{
	return euler ? dt / (1 - decay) : -dt / log(decay);
}

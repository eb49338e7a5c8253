/* SPDX-License-Identifier: Apache-2.0 */
/* units.c: numbers with units: read strictly, and written with three digits. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A plain decimal number at the start of text: no hex, no "nan", no blanks. */
static int leading_number(double *number, const char *text, const char **rest)
{
	char *end;
	size_t n = strspn(text, "+-.0123456789eE");

	if (n == 0 || text[strcspn(text, "0123456789")] == '\0')
		return -1;
	errno = 0;
	*number = strtod(text, &end);
	if (end == text || end > text + n || !isfinite(*number))
		return -1;
	*rest = end;
	return 0;
}

int cli_parse_number(double *number, const char *text)
{
	const char *rest;
	return leading_number(number, text, &rest) == 0 && *rest == '\0' ? 0 : -1;
}

int cli_parse_span(double *low, double *high, const char *text)
{
	const char *rest;
	double first;

	if (leading_number(&first, text, &rest) < 0)
		return -1;
	*low = *rest ? first : 1 - first;
	*high = 1 + first;
	if (*rest && (*rest != ':' || cli_parse_number(high, rest + 1) < 0))
		return -1;
	return *low > 0 && *low <= *high ? 0 : -1;
}

int cli_parse_int(int64_t *number, const char *text)
{
	char *end;
	if (!isdigit((unsigned char)text[0]) &&
		!(text[0] == '-' && isdigit((unsigned char)text[1])))
		return -1;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno == 0 && *end == '\0') {
		*number = value;
		return 0;
	}
	double real; /* 1e6 is a whole number, too */
	if (errno == ERANGE || cli_parse_number(&real, text) < 0 || fabs(real) > 9e15 ||
		real != floor(real))
		return -1;
	*number = (int64_t)real;
	return 0;
}

int cli_parse_size(uint64_t *bytes, const char *text)
{
	static const char units[] = "KMGTP";
	const char *rest, *unit;
	double number, scale = 1;

	if (leading_number(&number, text, &rest) < 0)
		return -1;
	unit = *rest ? strchr(units, toupper((unsigned char)*rest)) : NULL;
	if (unit && *unit) {
		scale = ldexp(1, 10 * (int)(unit - units + 1));
		rest++;
		if (strcmp(rest, "iB") == 0 || strcmp(rest, "B") == 0)
			rest += strlen(rest);
	} else if (strcmp(rest, "B") == 0) {
		rest++;
	}
	number *= scale;
	if (*rest != '\0' || number < 0 || number >= 0x1p63)
		return -1;
	*bytes = (uint64_t)number;
	return 0;
}

int cli_parse_time(double *seconds, const char *text)
{
	/* Parts of a second divide, so that 100us is the double nearest to 1e-4. */
	static const struct {
		const char *name;
		double times, parts;
	} units[] = {{"", 1, 1}, {"s", 1, 1}, {"ms", 1, 1e3}, {"us", 1, 1e6}, {"ns", 1, 1e9},
		{"min", 60, 1}, {"h", 3600, 1}};
	const char *rest;
	double number;

	if (leading_number(&number, text, &rest) < 0 || number < 0)
		return -1;
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		if (strcmp(rest, units[i].name) == 0) {
			*seconds = number * units[i].times / units[i].parts;
			return 0;
		}
	}
	return -1;
}

int cli_parse_rate(double *rate, const char *text)
{
	char copy[64];
	uint64_t bytes;
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
	if (cli_parse_size(&bytes, copy) < 0 || bytes == 0)
		return -1;
	*rate = (double)bytes;
	return 0;
}

const char *cli_show_size(char room[24], uint64_t bytes)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	int unit = 0;

	while (value >= 1024 && unit < 6) {
		value /= 1024;
		unit++;
	}
	snprintf(room, 24, unit == 0 || value >= 999.5 ? "%.0f %s" : "%.3g %s", value, names[unit]);
	return room;
}

const char *cli_show_time(char room[24], double seconds)
{
	if (!isfinite(seconds)) {
		snprintf(room, 24, "?");
	} else if (seconds >= 60) {
		double whole = floor(seconds + 0.5);
		double hours = floor(whole / 3600), minutes = floor(fmod(whole, 3600) / 60);
		if (hours > 0)
			snprintf(room, 24, "%.0f:%02.0f:%02.0f", hours, minutes, fmod(whole, 60));
		else
			snprintf(room, 24, "%.0f:%02.0f min", minutes, fmod(whole, 60));
	} else if (seconds >= 1 || seconds == 0) {
		snprintf(room, 24, "%.3g s", seconds);
	} else if (seconds >= 1e-3) {
		snprintf(room, 24, "%.3g ms", seconds * 1e3);
	} else if (seconds >= 1e-6) {
		snprintf(room, 24, "%.3g us", seconds * 1e6);
	} else {
		snprintf(room, 24, "%.3g ns", seconds * 1e9);
	}
	return room;
}

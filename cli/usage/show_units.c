/* SPDX-License-Identifier: Apache-2.0 */
/* show_units.c: sizes and times written for people, with three digits; spans. */
#include "cli.h"

#include <math.h>
#include <string.h>

int cli_parse_span(double *low, double *high, const char *text)
{
	char first[64];
	size_t n = strcspn(text, ":");
	double number;

	if (n >= sizeof first)
		return -1;
	memcpy(first, text, n);
	first[n] = '\0';
	if (neap__units_number(&number, first) < 0)
		return -1;
	*low = text[n] ? number : 1 - number;
	*high = 1 + number;
	if (text[n] && neap__units_number(high, text + n + 1) < 0)
		return -1;
	return *low > 0 && *low <= *high ? 0 : -1;
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

const char *cli_show_number(char room[24], double value)
{
	double size = fabs(value);
	/* Three digits; below a thousandth so many places as show one. */
	int places = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
	if (size > 0 && size < 1e-3)
		places = (int)fmin(15, 1 - floor(log10(size)));
	snprintf(room, 24, "%.*f", places, size >= 1e15 ? copysign(1e15, value) : value);
	if (strchr(room, '.')) { /* 2.50 is 2.5, 3.00 is 3 */
		size_t n = strlen(room);
		while (room[n - 1] == '0')
			room[--n] = '\0';
		if (room[n - 1] == '.')
			room[--n] = '\0';
	}
	if (strcmp(room, "-0") == 0)
		snprintf(room, 24, "0");
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
	} else {
		static const struct {
			const char *name;
			double times;
		} units[] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}};
		int unit = 0; /* the largest in which three digits are at least 1 */
		while (unit < 3 && seconds != 0 && seconds * units[unit].times < 0.9995)
			unit++;
		cli_show_number(room, seconds * units[unit].times);
		size_t n = strlen(room);
		snprintf(room + n, 24 - n, " %s", units[unit].name);
	}
	return room;
}

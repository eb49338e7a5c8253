/* SPDX-License-Identifier: Apache-2.0 */
/* show.c: sizes, numbers and times written for people (show.h). */
#include "base/show.h"
#include "base/print.h"

#include <math.h>
#include <string.h>

const char *neap__show_size(char room[24], uint64_t bytes)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	int unit = 0;

	while (value >= 1024 && unit < 6) {
		value /= 1024;
		unit++;
	}
	neap__print(
		room, 24, unit == 0 || value >= 999.5 ? "%.0f %s" : "%.3g %s", value, names[unit]);
	return room;
}

const char *neap__show_least(char room[24], uint64_t bytes)
{
	uint64_t unit = 1;

	while (bytes / unit >= 1024)
		unit *= 1024;
	/* Of the last of the three digits that neap__show_size writes. */
	double whole = (double)bytes / (double)unit, all = (double)unit;
	double step = whole >= 100 || unit == 1 ? all : whole >= 10 ? all / 10 : all / 100;
	double up = ceil((double)bytes / step) * step;
	return neap__show_size(room, up < 0x1p64 ? (uint64_t)up : bytes);
}

const char *neap__show_number(char room[24], double value)
{
	double size = fabs(value);
	/* Three digits; below a thousandth so many places as show one. */
	int places = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
	if (size > 0 && size < 1e-3)
		places = (int)fmin(15, 1 - floor(log10(size)));
	neap__print(room, 24, "%.*f", places, size >= 1e15 ? copysign(1e15, value) : value);
	if (strchr(room, '.')) { /* 2.50 is 2.5, 3.00 is 3 */
		size_t n = strlen(room);
		while (room[n - 1] == '0')
			room[--n] = '\0';
		if (room[n - 1] == '.')
			room[--n] = '\0';
	}
	if (strcmp(room, "-0") == 0)
		neap__print(room, 24, "0");
	return room;
}

const char *neap__show_time(char room[24], double seconds)
{
	if (!isfinite(seconds)) {
		neap__print(room, 24, "?");
	} else if (seconds >= 60) {
		double whole = floor(seconds + 0.5);
		double hours = floor(whole / 3600), minutes = floor(fmod(whole, 3600) / 60);
		if (hours > 0)
			neap__print(
				room, 24, "%.0f:%02.0f:%02.0f", hours, minutes, fmod(whole, 60));
		else
			neap__print(room, 24, "%.0f:%02.0f min", minutes, fmod(whole, 60));
	} else {
		static const struct {
			const char *name;
			double times;
		} units[] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}};
		int unit = 0; /* the largest in which three digits are at least 1 */
		while (unit < 3 && seconds != 0 && seconds * units[unit].times < 0.9995)
			unit++;
		neap__show_number(room, seconds * units[unit].times);
		size_t n = strlen(room);
		neap__print(room + n, 24 - n, " %s", units[unit].name);
	}
	return room;
}

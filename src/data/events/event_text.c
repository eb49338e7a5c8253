/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_text.c: reads a recording as text, one event per line: time, x, y and polarity (1, or 0 or
 * -1 for darker), separated by blanks, tabs or commas, as v2e, ESIM and the Event Camera Dataset
 * (Mueggler and others 2017) write it. Lines that begin with # or % and empty lines are passed
 * over. The first line may be the width and height of the sensor instead. Times are microseconds
 * where the first one is an integer, seconds where it is not.
 */
#include "data/events/event_source.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_LINE = 400, MOST_PIXEL = 65535, COLUMNS = 4, SHOWN = 60 };
enum { T, X, Y, P };

struct event_text {
	struct neap__raw_events *events;
	struct neap__event_file *file;
	int64_t line;
	double unit;   /* seconds; 0: in front of the first event */
	double origin; /* time of the first line, if times may count from elsewhere; else 0 */
};

/* Numbers of a line: how many, or -1 if there is something else or a fifth number. */
static int split(const char *line, double number[COLUMNS], int *is_real)
{
	static const char gaps[] = " \t\r\n,";
	int n = 0;
	for (const char *p = line + strspn(line, gaps); *p; p += strspn(p, gaps), n++) {
		char *end;
		if (n == COLUMNS)
			return -1;
		number[n] = neap__read_double(p, &end);
		if (end == p || !strchr(gaps, *end))
			return -1;
		if (n == T)
			*is_real = strcspn(p, ".eE") < (size_t)(end - p);
		p = end;
	}
	return n;
}

static int is_whole(double x, double least, double most)
{
	return x >= least && x <= most && x == floor(x);
}

static int wrong_time(const struct event_text *s, double t)
{
	if (!isfinite(t))
		return neap__fail(NEAP_EFORMAT,
			"'%s', line %lld: the time is not a finite number. Correct the line",
			s->file->path, (long long)s->line);
	return neap__fail(NEAP_EFORMAT,
		"'%s', line %lld: the time is %.17g, which is %g seconds; times count from %s, 0 "
		"to "
		"%g seconds. Pass %s",
		s->file->path, (long long)s->line, t, (t - s->origin) * s->unit,
		s->file->from_first ? "the first event" : "the beginning of the recording",
		NEAP__EVENTS_LONGEST,
		s->file->from_first ? "the unit with --time-unit"
				    : "--from-first-event to count them from the first event, or "
				      "the unit with --time-unit");
}

static int take_event(struct event_text *s, const double number[COLUMNS], int is_real)
{
	double by_type = is_real ? 1 : 1e-6;
	if (s->unit == 0) {
		s->unit = s->file->time_unit > 0 ? s->file->time_unit : by_type;
		s->file->reals = is_real;
		s->origin = s->file->from_first && isfinite(number[T]) ? number[T] : 0;
	} else if (is_real && !s->file->reals && !(s->file->time_unit > 0))
		return neap__fail(NEAP_EFORMAT,
			"'%s', line %lld: the time is not an integer, but the first time is, "
			"so the unit is not known. Pass it with --time-unit",
			s->file->path, (long long)s->line);
	double time = number[T] - s->origin;
	double t = s->unit == 1e-6 ? time / 1e6 : time * s->unit;
	/* Lines need not be sorted: some times may be earlier than the first one. */
	if (!(t >= (s->file->from_first ? -NEAP__EVENTS_LONGEST : 0) && t <= NEAP__EVENTS_LONGEST))
		return wrong_time(s, number[T]);
	return neap__raw_events_add(s->events, t, (int)number[X], (int)number[Y], number[P] == 1);
}

/* 1 if the line shows that the file has no size of a sensor in front of its events. */
static int take_line(struct event_text *s, const char *line, int *begun)
{
	double number[COLUMNS];
	int is_real = 0, n = split(line, number, &is_real), first = !*begun;
	if (n == 0)
		return 0;
	*begun = 1;
	if (first && n == 2 && is_whole(number[0], 1, MOST_PIXEL + 1) &&
		is_whole(number[1], 1, MOST_PIXEL + 1)) {
		s->file->width = (int)number[0];
		s->file->height = (int)number[1];
		return 0;
	}
	if (n != COLUMNS || !is_whole(number[X], 0, MOST_PIXEL) ||
		!is_whole(number[Y], 0, MOST_PIXEL) || !is_whole(number[P], -1, 1))
		return neap__fail(NEAP_EFORMAT,
			"'%s', line %lld: '%.*s' is not an event. A line must be its time, x and "
			"y (0 to %d) and polarity (1, 0 or -1), separated by blanks. Correct the "
			"line",
			s->file->path, (long long)s->line,
			(int)(strcspn(line, "\r\n") < SHOWN ? strcspn(line, "\r\n") : SHOWN), line,
			MOST_PIXEL);
	return s->events ? take_event(s, number, is_real) : 0;
}

int neap__event_text_read(struct neap__raw_events *events, struct neap__event_file *f)
{
	struct event_text state = {.events = events, .file = f};
	char line[LONGEST_LINE];
	int rc = 0, begun = 0;
	FILE *file = fopen(f->path, "re");
	if (!file)
		return neap__fail_errno(errno, "cannot read '%s'", f->path);
	while (rc == 0 && (events || !begun) && fgets(line, sizeof line, file)) {
		state.line++;
		if (!strchr(line, '\n') && !feof(file))
			rc = neap__fail(NEAP_EFORMAT,
				"'%s', line %lld is longer than %d bytes or has a zero byte. Save "
				"one event per line",
				f->path, (long long)state.line, LONGEST_LINE);
		else if (line[0] != '#' && line[0] != '%')
			rc = take_line(&state, line, &begun);
	}
	if (rc == 0 && ferror(file))
		rc = neap__fail_errno(EIO, "cannot read '%s'", f->path);
	else if (rc == 0 && !begun)
		rc = neap__fail(NEAP_EFORMAT, "'%s' has no events. Replace it with an intact copy",
			f->path);
	fclose(file);
	return rc;
}

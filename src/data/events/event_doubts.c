/* SPDX-License-Identifier: Apache-2.0 */
/* event_doubts.c: bounds for times of events, and what to do beyond them (event_doubts.h). */
#include "data/events/event_doubts.h"
#include "data/recordings.h"
#include "base/print.h"
#include "base/show.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/*
 * Chosen: recordings are shorter than an hour and longer than 10 steps of 1 ms; an event camera
 * has more than 20 events per second in recordings of more than 10 s; recordings begin within
 * 100 ms, or earlier than their own length.
 */
static const double LONG = 3600, SHORT = 0.01, SLOW_LENGTH = 10, SLOW_RATE = 20, LATE = 0.1;

void neap__event_doubts_see(
	struct neap__event_doubts *d, const struct neap_events *events, const char *name)
{
	if (events->count == 0) {
		neap__first_names_add(&d->empty, name);
		return;
	}
	double first = events->time[0], length = events->duration - first;
	d->events += events->count;
	d->before += first;
	d->within += length;
	if (first > d->latest) {
		d->latest = first;
		d->length = length;
		neap__print(d->late, sizeof d->late, "%s", name);
	}
}

const char *neap__event_shift(char room[NEAP__SHIFT_TEXT], const char *path, const char *folder,
	const char *time, int flat)
{
	char first[160];
	size_t n = strlen(path);
	room[0] = '\0';
	if (folder && !neap__recordings_folder(folder))
		folder = NULL; /* a file alone */
	if (n < 5 || strcasecmp(path + n - 4, ".npz") != 0 || strchr(time, '/') || !time[0])
		return room;
	neap__print(first, sizeof first,
		flat ? "numpy.repeat(d['%s'][d['offsets'][:-1].clip(max=len(d['%s']) - 1)], "
		       "numpy.diff(d['offsets']))"
		     : "d['%s'].min()",
		time, time);
	neap__print(room, NEAP__SHIFT_TEXT,
		": python3 -c \"import glob, numpy; [numpy.savez(f, **{**d, '%s': d['%s'] - %s}) "
		"for f in glob.glob('%.140s%s', recursive=True) for d in [dict(numpy.load(f))]]\"",
		time, time, first, folder ? folder : path, folder ? "/**/*.npz" : "");
	return room;
}

static void tell_late(const struct neap__event_doubts *d, const struct neap__event_source *source,
	const struct neap_event_options *o, const char *path)
{
	char first[24], lasts[24], code[NEAP__SHIFT_TEXT];
	const char *folder = source->files && neap__recordings_folder(path) ? path : NULL;
	neap__event_shift(code, folder ? d->late : path, folder, source->time_name, !source->files);
	neap__doubt(o->doubt, o->user,
		"'%s' begins %s after time 0 and its events last %s: the steps in front of them "
		"are "
		"empty. Subtract the first time (t - t[0]) of each recording%s",
		d->late, neap__show_time(first, d->latest), neap__show_time(lasts, d->length),
		code);
}

/* Lengths and rates from which the unit of the times is probably a different one. */
static void tell_unit(const struct neap__event_doubts *d, const struct neap__event_source *source,
	const struct neap_event_options *o, double longest)
{
	char lasts[24], given[24], why[80], fix[200];
	double unit = o->time_unit, rate = d->within > 0 ? (double)d->events / d->within : INFINITY;
	int is_slow = source->time_name[0] && longest > SLOW_LENGTH && rate < SLOW_RATE;
	if (!(longest > 0) || (longest >= SHORT && longest <= LONG && !is_slow))
		return;
	if (longest < SHORT)
		neap__print(why, sizeof why, "less than 10 time steps of 1 ms");
	else if (longest > LONG)
		neap__print(why, sizeof why, "more than an hour");
	else
		neap__print(why, sizeof why, "with only %.2g events per second", rate);
	if (unit > 0)
		neap__print(fix, sizeof fix,
			"unless --time-unit (now %s) specifies the unit. Check it, or remove it",
			neap__show_time(given, unit));
	else
		neap__print(fix, sizeof fix,
			"unless --time-unit specifies the unit. Pass it if it differs, such as "
			"--time-unit %s",
			longest < SHORT ? "1ms"
			: source->reals ? "1us"
					: "1ns");
	neap__doubt(o->doubt, o->user,
		"the longest sample lasts %s, %s. Times that are integers are read as microseconds "
		"and others as seconds, %s",
		neap__show_time(lasts, longest), why, fix);
}

void neap__event_doubts_tell(const struct neap__event_doubts *d,
	const struct neap__event_source *source, const struct neap_event_options *o,
	const struct neap_event_report *report, const char *path)
{
	const struct neap__first_names *e = &d->empty;
	const char *them = e->count == 1 ? "it" : "them";
	if (e->count)
		neap__doubt(o->doubt, o->user,
			"%lld of %lld samples ha%s no events%s: %s. A network cannot learn from "
			"%s. Remove %s from the data%s",
			(long long)e->count, (long long)report->samples, e->count == 1 ? "s" : "ve",
			report->outside ? " after --crop and --polarity" : "", e->text, them, them,
			neap__recordings_folder(path)
				? ", or pass --without FILE with one such path per line"
				: "");
	if (source->doubt[0])
		neap__doubt(o->doubt, o->user, "%s", source->doubt);
	else if (d->latest > LATE && d->before > d->within)
		tell_late(d, source, o, path);
	else
		tell_unit(d, source, o, report->longest);
}

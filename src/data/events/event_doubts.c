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
	d->belated += first > LATE && first > length;
	if (first > d->latest) {
		d->latest = first;
		d->length = length;
		neap__print(d->late, sizeof d->late, "%s", name);
	}
}

/* Python that saves the arrays of each file again, with the `items` of a dict; "" if it cannot. */
static const char *rewrite(char room[NEAP__FINITE_TEXT], const char *path, const char *folder,
	const char *time, const char *items)
{
	size_t n = strlen(path);
	room[0] = '\0';
	if (folder && !neap__recordings_folder(folder))
		folder = NULL; /* a file alone */
	if (n >= 5 && strcasecmp(path + n - 4, ".npz") == 0 && !strchr(time, '/') && time[0])
		neap__print(room, NEAP__FINITE_TEXT,
			": python3 -c \"import glob, numpy; [numpy.savez(f, **{%s}) for f in "
			"glob.glob('%.140s%s', recursive=True) for d in [dict(numpy.load(f))]]\"",
			items, folder ? folder : path, folder ? "/**/*.npz" : "");
	return room;
}

const char *neap__event_finite(
	char room[NEAP__FINITE_TEXT], const char *path, const char *folder, const char *time)
{
	char items[400];
	neap__print(items, sizeof items,
		"k: v[numpy.isfinite(d['%s'])] if v.shape == d['%s'].shape else v for k, v in "
		"d.items()",
		time, time);
	return rewrite(room, path, folder, time, items);
}

static void tell_late(
	const struct neap__event_doubts *d, const struct neap_event_options *o, int64_t samples)
{
	char first[24], lasts[24];
	neap__doubt(o->doubt, o->user,
		"'%s' begins %s after time 0 and its events last %s: the steps in front of them "
		"are empty (%lld of %lld recordings begin so late). %s",
		d->late, neap__show_time(first, d->latest), neap__show_time(lasts, d->length),
		(long long)d->belated, (long long)samples,
		o->from_first ? "--crop or --polarity left out the first events: remove these "
				"events from the files"
			      : "Pass --from-first-event to begin each recording at its first "
				"event, and repeat the command with --force");
}

/* 1: recordings last as long as real ones, and have as many events. */
static int is_plausible(const struct neap__event_doubts *d, const struct neap__event_source *source,
	double longest, double scale)
{
	double length = longest * scale, within = d->within * scale;
	double rate = within > 0 ? (double)d->events / within : INFINITY;
	return length >= SHORT && length <= LONG &&
	       !(source->time_name[0] && length > SLOW_LENGTH && rate < SLOW_RATE);
}

/* The coarsest plausible unit of times that were read in `unit` seconds; NULL: none is. */
static const char *plausible_unit(const struct neap__event_doubts *d,
	const struct neap__event_source *source, double longest, double unit)
{
	static const char *const names[] = {"1s", "1ms", "1us", "1ns"};
	double other = 1;
	for (int i = 0; i < 4; i++, other /= 1000)
		if (is_plausible(d, source, longest, other / unit))
			return names[i];
	return NULL;
}

/* Lengths and rates from which the unit of the times is probably a different one. */
static void tell_unit(const struct neap__event_doubts *d, const struct neap__event_source *source,
	const struct neap_event_options *o, double longest)
{
	char lasts[24], given[24] = "", why[80];
	double rate = d->within > 0 ? (double)d->events / d->within : INFINITY;
	double unit = o->time_unit > 0 ? o->time_unit : source->reals ? 1 : 1e-6;
	if (!(longest > 0) || is_plausible(d, source, longest, 1))
		return;
	if (longest < SHORT)
		neap__print(why, sizeof why, "less than 10 time steps of 1 ms");
	else if (longest > LONG)
		neap__print(why, sizeof why, "more than an hour");
	else
		neap__print(why, sizeof why, "with only %.2g events per second", rate);
	if (o->time_unit > 0)
		neap__print(given, sizeof given, " (now %s)",
			neap__show_time((char[24]){0}, o->time_unit));
	const char *other = plausible_unit(d, source, longest, unit);
	neap__doubt(o->doubt, o->user,
		"the longest sample lasts %s, %s. Times that are integers are read as microseconds "
		"and others as seconds, unless --time-unit%s specifies the unit. %s%s",
		neap__show_time(lasts, longest), why, given,
		other ? "They are probably in another one; pass --time-unit " : "Check it",
		other ? other : "");
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
	else if (d->events > report->samples && !(report->longest > d->latest) && d->within <= 0)
		neap__doubt(o->doubt, o->user,
			"all events of a sample have the same time, so there is one time step per "
			"sample. Save the times of the events in '%s'",
			source->time_name[0] ? source->time_name : "t");
	else if (d->latest > LATE && d->before > d->within)
		tell_late(d, o, report->samples);
	else
		tell_unit(d, source, o, report->longest);
}

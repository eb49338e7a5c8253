/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array_events.c: samples of events as arrays, in a .npz archive or an HDF5 file (columns.h):
 *     x, y, t, p      all events, sample after sample; or `events` with these fields
 *     units, times    the same of channels without a sensor
 *     offsets         (samples + 1) where each sample begins, and the end; without it and without
 *                     labels, all events are one recording, as in a .npy file of records
 *     0/x, 0/t, ...   or one group, or one array of records, for each sample, from 0 on
 *     labels          (samples) integers or text
 *     classes         text: names of the classes, which labels count from 0
 *     sensor_size     width, height, and maybe polarities, as in tonic
 *     inputs          one number: channels, where there is no sensor
 *     CD/events       records with these fields, as Metavision writes them to HDF5, with the size
 *                     of the sensor in the attribute `geometry` of the file
 * Times are microseconds where they are integers, seconds where they are not.
 */
#include "data/event_names.h"
#include "data/events/array_labels.h"
#include "data/events/columns.h"
#include "data/events/event_doubts.h"
#include "data/events/event_source.h"
#include "data/recordings.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { T = NEAP__EVENT_T, X, Y, P, COLUMNS = NEAP__EVENT_COLUMNS };
enum { PIECE = 4096, MOST_SAMPLES = NEAP__MOST_LABELS };

struct array_events {
	struct neap__event_source source;
	struct neap__columns *columns;
	char *path;
	const char *folder;		     /* borrowed; NULL: the file is alone */
	double unit;			     /* seconds of a number in t; 0: by its type */
	int from_first;			     /* 1: times count from the first of their sample */
	double origin;			     /* that time, in the unit of t; else 0 */
	int flat;			     /* 1: columns of all samples, and offsets */
	struct neap__column column[COLUMNS]; /* array NULL: not there */
	const char *name[COLUMNS];	     /* of those that are, as the file has them */
	double *offset, *label;
	int64_t at;	 /* sample to come */
	char where[32];	 /* its name */
	int strange;	 /* 1: the arrays are not those of events */
	int undivided;	 /* 1: there are no offsets */
	double last;	 /* time read last, 0 in front of the first one */
	int64_t returns; /* times that are less than half of the one in front of them */
	int64_t falls;	 /* times that are less than the one in front of them */
	char begins[80]; /* "60, 120, ": the indices of the first of these */
};

static void shut_columns(struct array_events *s)
{
	for (int c = 0; c < COLUMNS; c++)
		if (s->column[c].array)
			s->columns->shut(s->columns, &s->column[c]);
}

/* Finds a sample's columns behind `prefix`: 1, 0 where there are none, or a negative code. */
static int find_columns(struct array_events *s, const char *prefix)
{
	char name[64];
	for (int c = 0; c < COLUMNS; c++)
		for (const char *const *k = neap__event_names[c]; *k && !s->column[c].array; k++) {
			neap__print(name, sizeof name, "%s%s", prefix, *k);
			int there = s->columns->find(s->columns, name, &s->column[c]);
			s->strange |= there < 0 && !s->columns->unreadable;
			if (there < 0)
				return there;
			if (there && c == T)
				neap__print(s->source.time_name, sizeof s->source.time_name, "%s",
					name);
			if (there)
				s->name[c] = *k;
			if (there && s->column[c].text)
				return neap__fail(NEAP_EFORMAT,
					"'%s': '%s' contains text; events need numbers. Save it as "
					"an array of numbers",
					s->path, name);
			/* Channels have no pixels: `units` goes with `times`, x with y and p. */
			if (there && c == X)
				s->source.pixels = strcmp(*k, "units") != 0;
		}
	if (!s->column[T].array && !s->column[X].array)
		return 0;
	for (int c = 0; c < COLUMNS; c++) {
		s->strange |= !s->column[c].array && c <= X;
		if (s->strange)
			return NEAP_EFORMAT; /* neap__array_events_open has the line */
		if (s->column[c].array && s->column[c].count != s->column[T].count)
			return neap__fail(NEAP_EFORMAT,
				"'%s': '%s%s' has %lld entries, but '%s%s' has %lld. Each event "
				"needs an entry in both",
				s->path, prefix, s->name[c], (long long)s->column[c].count, prefix,
				s->name[T], (long long)s->column[T].count);
	}
	return 1;
}

static int read_size(struct array_events *s)
{
	double *size = NULL;
	int64_t n = 0;
	int rc = neap__column_all(s->columns, "sensor_size", 3, &size, &n);
	if (rc > 0 && (n < 2 || !(size[0] >= 1 && size[0] <= 65536) || size[0] != floor(size[0]) ||
			      !(size[1] >= 1 && size[1] <= 65536) || size[1] != floor(size[1])))
		rc = neap__fail(NEAP_EFORMAT,
			"'%s': 'sensor_size' must be the width and height of the sensor, 1 to "
			"65536 pixels each. Correct the array",
			s->path);
	if (rc > 0) {
		s->source.width = (int)size[0];
		s->source.height = (int)size[1];
	} else if (rc == 0) {
		s->source.width = s->columns->width;
		s->source.height = s->columns->height;
	}
	free(size);
	size = NULL;
	if (rc >= 0)
		rc = neap__column_all(s->columns, "inputs", 1, &size, &n);
	if (rc > 0 && (n != 1 || !(size[0] >= 1 && size[0] <= 65536) || size[0] != floor(size[0])))
		rc = neap__fail(NEAP_EFORMAT,
			"'%s': 'inputs' must be the number of channels, 1 to 65536. Correct the "
			"array",
			s->path);
	if (rc > 0)
		s->source.inputs = (int)size[0];
	free(size);
	return rc < 0 ? rc : 0;
}

enum { OFFSETS_TEXT = 700 };

/* Python that adds offsets where the times start again, behind `before`; "" if there is none. */
static const char *add_offsets(
	char room[OFFSETS_TEXT], const struct array_events *s, const char *before)
{
	const char *t = s->source.time_name, *dot = strrchr(s->path, '.');
	int is_npz = dot && strcasecmp(dot, ".npz") == 0;
	room[0] = '\0';
	if (!strchr(t, '/') && (!dot || strcasecmp(dot, ".npy") != 0))
		neap__print(room, OFFSETS_TEXT,
			"%s: python3 -c \"import %s(%.400s%s); t = d[%s][()]; o = numpy.r_[0, "
			"numpy.flatnonzero(t[1:] < t[:-1] / 2) + 1, len(t)]; %s\"",
			before, is_npz ? "numpy; d = numpy.load" : "h5py, numpy; d = h5py.File",
			neap__python_quoted(s->path), is_npz ? "" : ", 'a'", neap__python_quoted(t),
			is_npz ? "numpy.savez('neap.npz', **d, offsets=o)" : "d['offsets'] = o");
	return room;
}

/* Without offsets all events are one sample. */
static int take_one_sample(struct array_events *s)
{
	struct neap__column labels;
	int there = s->columns->find(s->columns, "labels", &labels);
	if (there < 0)
		return there;
	if (there)
		s->columns->shut(s->columns, &labels);
	char code[OFFSETS_TEXT];
	if (there && labels.count != 1)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has %lld 'labels', but no 'offsets'. Add offsets=numpy.cumsum([0] + "
			"[len(s) for s in samples]), the index in '%s' at which each sample "
			"begins, and the number of events%s",
			s->path, (long long)labels.count, s->source.time_name,
			add_offsets(code, s, "; if the times restart in each sample"));
	s->undivided = 1;
	s->offset = calloc(2, sizeof *s->offset);
	if (!s->offset)
		return neap__fail_errno(ENOMEM, "'%s'", s->path);
	s->offset[1] = (double)s->column[T].count;
	s->source.samples = 1;
	s->source.recording = !there;
	return 0;
}

static int read_offsets(struct array_events *s)
{
	int64_t n = 0, count = s->column[T].count;
	int rc = neap__column_all(s->columns, "offsets", MOST_SAMPLES, &s->offset, &n);
	if (rc <= 0)
		return rc < 0 ? rc : take_one_sample(s);
	for (int64_t i = 0; i < n; i++)
		if (!(s->offset[i] >= (i ? s->offset[i - 1] : 0) && s->offset[i] <= (double)count &&
			    s->offset[i] == floor(s->offset[i])))
			return neap__fail(NEAP_EFORMAT,
				"'%s': 'offsets'[%lld] is %.17g; offsets are whole numbers that "
				"ascend from 0 to the number of events, %lld. Save "
				"numpy.cumsum([0] + [len(s) for s in samples])",
				s->path, (long long)i, s->offset[i], (long long)count);
	if (n < 2 || s->offset[0] != 0 || s->offset[n - 1] != (double)count)
		return neap__fail(NEAP_EFORMAT,
			"'%s': 'offsets' must begin with 0 and end with the number of events, "
			"%lld. Save numpy.cumsum([0] + [len(s) for s in samples])",
			s->path, (long long)count);
	s->source.samples = n - 1;
	return 0;
}

/* Counts samples that have a group or an array of their own. */
static int count_samples(struct array_events *s)
{
	char name[48];
	struct neap__column column;
	for (int64_t n = 0; n < MOST_SAMPLES; n++) {
		int there = 0;
		for (const char *const *k = neap__event_names[T]; *k && there == 0; k++) {
			neap__print(name, sizeof name, "%lld/%s", (long long)n, *k);
			there = s->columns->find(s->columns, name, &column);
		}
		if (there < 0)
			return there;
		if (there == 0)
			return 0;
		s->columns->shut(s->columns, &column);
		s->source.samples = n + 1;
	}
	return 0;
}

/* A part of a column behind `done` events of a sample, as whole numbers from 0 to `most`. */
static int take_whole(struct array_events *s, int c, const double *piece, int64_t n, double most,
	struct neap__raw_events *events, int64_t done)
{
	for (int64_t i = 0; i < n; i++) {
		/* p may be -1 and 1, or 0 and 255, as some programs have it. */
		double value = piece[i];
		if (c == P)
			value = value == -1 ? 0 : value == 255 ? 1 : value;
		if (!(value >= 0 && value <= most) || value != floor(value))
			return neap__fail(NEAP_EFORMAT,
				"'%s': '%s' of sample %lld, event %lld is %g; it must be a whole "
				"number from 0 to %g. Correct the array%s",
				s->path, s->name[c], (long long)s->at, (long long)(done + i),
				piece[i], most,
				value < 0 && c != P ? ", such as by subtracting its minimum" : "");
		if (c == X)
			events->x[done + i] = (int32_t)value;
		else if (c == Y)
			events->y[done + i] = (int32_t)value;
		else
			events->p[done + i] = (uint8_t)value;
	}
	return 0;
}

/* How times that count from elsewhere are made to count from the first; a unit, only if it helps.
 */
static int wrong_time(const struct array_events *s, int64_t event, double value, double unit)
{
	char code[NEAP__FINITE_TEXT], other[64] = "";
	const char *time = s->flat ? s->source.time_name : "";
	if (!isfinite(value))
		return neap__fail(NEAP_EFORMAT,
			"'%s': '%s' of sample %lld, event %lld is %s, which is not a time. "
			"Correct the times, or leave out such events%s",
			s->path, s->name[T], (long long)s->at, (long long)event,
			isnan(value) ? "nan" : "infinite",
			s->undivided ? neap__event_finite(code, s->path, s->folder, time) : "");
	double finer = unit == 1 ? 1e-6 : 1e-9, late = value - s->origin;
	if (finer < unit && late >= 0 && late * finer <= 1e6)
		neap__print(other, sizeof other, "%s the unit, such as --time-unit %s",
			s->from_first ? "Pass" : ", or pass", unit == 1 ? "1us" : "1ns");
	else if (s->from_first)
		neap__print(other, sizeof other, "Correct the time, or the unit (--time-unit)");
	return neap__fail(NEAP_EFORMAT,
		"'%s': '%s' of sample %lld, event %lld is %.17g, which is %g seconds; times count "
		"from the %s of the sample, 0 to 1000000 seconds. %s%s",
		s->path, s->name[T], (long long)s->at, (long long)event, value,
		unit == 1e-6 ? late / 1e6 : late * unit,
		s->from_first ? "first event" : "beginning",
		s->from_first
			? ""
			: "Pass --from-first-event to count them from the first event of each "
			  "sample",
		other);
}

/* Takes note of a time that is much earlier than the one in front of it. */
static void see_time(struct array_events *s, int64_t event, double t)
{
	size_t n = strlen(s->begins);
	s->falls += t < s->last;
	if (t < s->last / 2 && s->returns++ < 8)
		neap__print(s->begins + n, sizeof s->begins - n, "%lld, ", (long long)event);
	s->last = t;
}

/* Recordings one behind the other: times start again, but seldom, as those of unsorted events do
 * not. */
static void doubt_order(struct array_events *s)
{
	enum { LEAST = 20 /* events of a recording; chosen */ };
	int64_t count = s->column[T].count;
	char code[OFFSETS_TEXT];
	if (!s->undivided || s->returns == 0 || (s->returns + 1) * LEAST > count ||
		s->falls > 2 * s->returns) /* events in no order */
		return;
	neap__print(s->source.doubt, sizeof s->source.doubt,
		"'%.200s': '%s' restarts %lld time%s, but without 'offsets' all %lld events "
		"are "
		"read as one recording. If these are %lld recordings one after the other, add "
		"offsets=[0, %s%s%lld] and an array 'labels' with a class for each%s",
		s->path, s->source.time_name, (long long)s->returns, s->returns == 1 ? "" : "s",
		(long long)count, (long long)s->returns + 1, s->begins,
		s->returns > 8 ? "..., " : "", (long long)count, add_offsets(code, s, ""));
}

static int take_times(struct array_events *s, const double *piece, int64_t n,
	struct neap__raw_events *events, int64_t done)
{
	double by_type = s->column[T].real ? 1 : 1e-6;
	double unit = s->unit > 0 ? s->unit : by_type;
	s->source.reals = s->column[T].real;
	s->source.time_unit = unit == by_type ? 0 : unit;
	for (int64_t i = 0; i < n; i++) {
		double time = piece[i] - s->origin; /* exact, for whole numbers below 2^53 */
		double t = unit == 1e-6 ? time / 1e6 : time * unit;
		if (!(t >= 0 && t <= 1e6))
			return wrong_time(s, done + i, piece[i], unit);
		events->time[done + i] = t;
		see_time(s, done + i, t);
	}
	return 0;
}

/* Finds the first time of a sample, if times count from there. */
static int find_origin(struct array_events *s, int64_t first, int64_t count)
{
	double piece[PIECE], least = INFINITY;
	s->origin = 0;
	if (!s->from_first)
		return 0;
	for (int64_t done = 0, n; done < count; done += n) {
		n = count - done < PIECE ? count - done : PIECE;
		NEAP_TRY(s->columns->read(s->columns, &s->column[T], first + done, n, piece));
		for (int64_t i = 0; i < n; i++)
			least = fmin(least, piece[i]); /* not a number: refused below */
	}
	s->origin = isfinite(least) ? least : 0;
	return 0;
}

static int read_events(
	struct array_events *s, int64_t first, int64_t count, struct neap__raw_events *events)
{
	double piece[PIECE];
	NEAP_TRY(neap__raw_events_grow(events, count));
	events->count = count;
	if (count == 0) /* there may be no memory for events yet */
		return 0;
	NEAP_TRY(find_origin(s, first, count));
	events->without_y = !s->column[Y].array;
	memset(events->y, 0, (size_t)count * sizeof *events->y);
	memset(events->p, 0, (size_t)count);
	for (int c = 0; c < COLUMNS; c++)
		for (int64_t done = 0, n; s->column[c].array && done < count; done += n) {
			n = count - done < PIECE ? count - done : PIECE;
			NEAP_TRY(s->columns->read(
				s->columns, &s->column[c], first + done, n, piece));
			NEAP_TRY(c == T ? take_times(s, piece, n, events, done)
					: take_whole(s, c, piece, n, c == P ? 1 : 65535, events,
						  done));
		}
	return 0;
}

static int next(
	struct neap__event_source *source, struct neap__raw_events *events, const char **where)
{
	struct array_events *s = (struct array_events *)source;
	int64_t first = 0, count;
	if (s->at >= source->samples)
		return 0;
	neap__print(s->where, sizeof s->where, "sample %lld", (long long)s->at);
	*where = s->where;
	if (!s->flat) {
		char prefix[32];
		neap__print(prefix, sizeof prefix, "%lld/", (long long)s->at);
		shut_columns(s);
		NEAP_TRY(find_columns(s, prefix));
		count = s->column[T].count;
	} else {
		first = (int64_t)s->offset[s->at];
		count = (int64_t)s->offset[s->at + 1] - first;
	}
	NEAP_TRY(read_events(s, first, count, events));
	doubt_order(s);
	events->label = source->recording ? -1 : (int)s->label[s->at];
	s->at++;
	return 1;
}

static void close_all(struct neap__event_source *source)
{
	struct array_events *s = (struct array_events *)source;
	if (s->columns) {
		shut_columns(s);
		s->columns->close(s->columns);
	}
	for (int i = 0; i < source->classes; i++)
		free(source->class_name[i]);
	free(source->class_name);
	free(s->offset);
	free(s->label);
	free(s->path);
	free(s);
}

/* Finds the layout; 0 where the file holds no events. */
static int describe(struct array_events *s, const struct neap_event_options *options)
{
	const char *const *prefix = neap__event_prefixes;
	int found = 0;
	while (*prefix && !found)
		NEAP_TRY(found = find_columns(s, *prefix++));
	s->flat = found && *prefix;
	if (s->flat)
		NEAP_TRY(read_offsets(s));
	else
		NEAP_TRY(count_samples(s));
	s->strange = s->source.samples == 0;
	if (s->strange)
		return NEAP_EFORMAT;
	if (s->folder && s->source.samples != 1)
		return neap__fail(NEAP_EFORMAT,
			"'%s' holds %lld samples, but each file of the folder '%s' must be one "
			"recording. Encode this file by itself: neap encode %s --out FILE.h5",
			s->path, (long long)s->source.samples, s->folder, neap__quoted(s->path));
	s->source.polarities = s->column[P].array != NULL;
	NEAP_TRY(read_size(s));
	return s->source.recording
		       ? 0
		       : neap__array_labels_read(&s->label, &s->source, s->columns, options);
}

/* The name of the file says which kind it is. */
static int open_columns(struct array_events *s)
{
	const char *dot = strrchr(s->path, '.');
	int numpy = dot && (strcasecmp(dot, ".npz") == 0 || strcasecmp(dot, ".npy") == 0);
	return numpy ? neap__npz_columns_open(&s->columns, s->path)
		     : neap__h5_columns_open(&s->columns, s->path);
}

int neap__array_events_open(struct neap__event_source **source, const char *path,
	const char *folder, const struct neap_event_options *options,
	const struct neap__recordings_lines *lines)
{
	struct array_events *s = calloc(1, sizeof *s);
	if (!s || !(s->path = strdup(path))) {
		free(s);
		return neap__fail_errno(ENOMEM, "'%s'", path);
	}
	s->source.next = next;
	s->source.close = close_all;
	s->folder = folder;
	s->unit = options->time_unit;
	s->from_first = options->from_first;
	int rc = open_columns(s);
	if (rc == 0)
		rc = describe(s, options);
	int strange = rc == NEAP_EFORMAT && s->strange;
	if (rc < 0)
		close_all(&s->source);
	else
		*source = &s->source;
	if (!strange)
		return rc;
	return lines ? lines->no_events(path, folder)
		     : neap__fail(rc, "'%s' has no arrays of events", path);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_events.c: samples of events from any source to one file in the SHD layout. One sample is
 * in memory at a time.
 */
#include "data/dataset.h"
#include "data/events/event_doubts.h"
#include "data/events/event_source.h"
#include "data/events/pixel_map.h"
#include "data/missing_file.h"
#include "data/recordings.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/print.h"
#include "base/struct_size.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* The largest coordinates of a sample, and of those behind it in `rest` if that is not NULL. */
static void see_largest(
	int largest[2], const struct neap__raw_events *raw, struct neap__event_source *rest)
{
	largest[0] = largest[1] = -1;
	if (rest)
		neap__event_largest(largest, rest);
	for (int64_t k = 0; k < raw->count; k++) {
		largest[0] = raw->x[k] > largest[0] ? raw->x[k] : largest[0];
		largest[1] = raw->y[k] > largest[1] ? raw->y[k] : largest[1];
	}
}

/*
 * A channel that does not exist: a wrong --inputs concerns all files, since most recordings lack
 * some channels; the array 'inputs' of a file only that file.
 */
static int beyond(const struct neap__raw_events *raw, const struct neap__pixel_map *map, int64_t i,
	struct neap__event_source *rest)
{
	int largest[2];

	see_largest(largest, raw, rest);
	int most = largest[0];
	if (!map->given)
		return neap__fail(NEAP_EFORMAT,
			"event %lld is in channel %d, but there are %d channels, numbered from 0. "
			"Correct the array 'inputs', or pass at least --inputs %d",
			(long long)i, raw->x[i], map->channels, most + 1);
	return neap__fail(NEAP_EUSAGE,
		"event %lld is in channel %d, but --inputs %d allows channels 0 to %d. Pass the "
		"number of channels, at least --inputs %d",
		(long long)i, raw->x[i], map->channels, map->channels - 1, most + 1);
}

/* A pixel that does not exist. The largest ones show the least size. */
static int outside_sensor(const struct neap__raw_events *raw, const struct neap__pixel_map *map,
	int64_t i, struct neap__event_source *rest)
{
	int largest[2];

	see_largest(largest, raw, rest);
	int x = largest[0] < map->width ? map->width - 1 : largest[0];
	int y = largest[1] < map->height ? map->height - 1 : largest[1];
	return neap__fail(NEAP_EUSAGE,
		"event %lld is at pixel (%d, %d), outside the sensor of %dx%d pixels. Pass the "
		"size of the sensor, at least --sensor %dx%d",
		(long long)i, raw->x[i], raw->y[i], map->width, map->height, x + 1, y + 1);
}

/* The channels of a sample, sorted by time. `rest`: the samples behind it, if an event outside of
 * the sensor ends the conversion; else NULL. */
static int map_sample(struct neap__event_buffer *buffer, const struct neap__raw_events *raw,
	const struct neap__pixel_map *map, int from_first, int64_t *outside,
	struct neap__event_source *rest)
{
	struct neap_events *e = &buffer->events;
	double origin = from_first && raw->count ? raw->time[0] : 0;
	for (int64_t i = 0; from_first && i < raw->count; i++)
		origin = fmin(origin, raw->time[i]);
	NEAP_TRY(neap__event_buffer_reserve(buffer, (size_t)raw->count));
	e->count = 0;
	e->duration = 0;
	e->label = raw->label;
	e->speaker = -1;
	if (raw->without_y && map->pool && map->height > 1)
		return neap__fail(NEAP_EFORMAT,
			"has no 'y', but the sensor of %dx%d pixels has %d rows. Add the array "
			"'y', or pass --sensor %dx1",
			map->width, map->height, map->height, map->width);
	for (int64_t i = 0; i < raw->count; i++) {
		int channel = neap__pixel_map_channel(map, raw->x[i], raw->y[i], raw->p[i]);
		if (channel == -2 && map->pool == 0)
			return beyond(raw, map, i, map->given ? rest : NULL);
		if (channel == -2)
			return outside_sensor(raw, map, i, rest);
		e->duration = fmax(e->duration, raw->time[i] - origin);
		*outside += channel < 0;
		if (channel < 0)
			continue;
		e->time[e->count] = raw->time[i] - origin;
		e->unit[e->count++] = (uint16_t)channel;
	}
	if (e->duration > NEAP__EVENTS_LONGEST)
		return neap__fail(NEAP_EFORMAT,
			"the events last %g seconds, and at most %g are supported. Pass the unit "
			"of "
			"their times with --time-unit, or correct the times",
			e->duration, NEAP__EVENTS_LONGEST);
	return neap__events_sort(e);
}

struct conversion {
	struct neap__event_source *source;
	struct neap_shd_writer *writer;
	const struct neap_event_options *options;
	struct neap_event_report *report;
	struct neap__pixel_map map;
	struct neap__raw_events raw;
	struct neap__event_buffer buffer;
	struct neap__event_doubts doubts;
	unsigned char *has_class; /* [classes] 1: of a whole sample */
	int classes;		  /* that the file gets */
};

/* Writes the sample that was read, or skips it where it is damaged. */
static int write_sample(struct conversion *c, int rc, const char *where, const char *path)
{
	char name[PATH_MAX]; /* the source's own changes when it is read further, for a message */
	neap__print(name, sizeof name, "%s", where);
	where = name;
	int is_last =
		c->report->samples == 0 || !c->source->files || !c->map.pool || c->options->strict;
	if (rc >= 0)
		rc = map_sample(&c->buffer, &c->raw, &c->map, c->options->from_first,
			&c->report->outside, is_last ? c->source : NULL);
	if (rc < 0 && !strstr(neap_detail(), where))
		rc = c->source->files || strcmp(where, path) == 0
			     ? neap__fail_in(rc, "'%s': ", where)
			     : neap__fail_in(rc, "'%s': %s: ", path, where);
	/* Pixels beyond the sensor: of the first file the sensor is wrong, of a later one that. */
	if (rc == NEAP_EUSAGE && c->report->samples > 0 && c->source->files && c->map.pool)
		rc = NEAP_EFORMAT;
	/* What an array file says of one sample holds for all; a folder's file stands alone. */
	if (rc == NEAP_EFORMAT && !c->options->strict && c->source->files) {
		c->report->damaged++;
		if (c->options->warn)
			c->options->warn(c->options->user, neap_detail());
		return 0;
	}
	NEAP_TRY(rc);
	NEAP_TRY(neap_shd_add(c->writer, &c->buffer.events));
	int label = c->buffer.events.label;
	if (c->has_class && label >= 0 && label < c->source->classes)
		c->has_class[label] = 1;
	c->report->samples++;
	c->report->empty += c->buffer.events.count == 0;
	neap__event_doubts_see(&c->doubts, &c->buffer.events,
		c->source->files ? neap__recordings_below(where, path) : where);
	c->report->events += c->buffer.events.count;
	c->report->longest = fmax(c->report->longest, c->buffer.events.duration);
	return 0;
}

static int convert(struct conversion *c, const char *path)
{
	int64_t done = 0;
	for (;;) {
		const char *where = "";
		int rc = c->source->next(c->source, &c->raw, &where);
		if (rc == 0)
			break;
		NEAP_TRY(write_sample(c, rc, where, path));
		if (c->options->progress &&
			c->options->progress(c->options->user, ++done, c->source->samples))
			return neap__fail(NEAP_EINTERRUPTED, "interrupted");
	}
	if (c->report->samples == 0)
		return neap__fail_in(NEAP_EFORMAT,
			"'%s': no file can be encoded (%lld damaged). The last: ", path,
			(long long)c->report->damaged);
	return 0;
}

static int finish(struct conversion *c)
{
	const struct neap__pixel_map *m = &c->map;
	struct neap_attribute attributes[11] = {{"time_unit", c->source->time_unit},
		{"sensor_width", m->width}, {"sensor_height", m->height}, {"crop_x", m->x},
		{"crop_y", m->y}, {"columns", m->columns}, {"rows", m->rows}, {"pool", m->pool},
		{"polarity", m->choice}};
	struct neap_shd_writer *writer = c->writer;
	int count = m->pool ? 9 : 1; /* channels have no pixels */
	if (c->options->from_first)  /* else the file is as it has always been */
		attributes[count++] = (struct neap_attribute){"from_first_event", 1};
	if (c->has_class) /* classes of damaged files alone are none */
		NEAP_TRY(c->classes = neap__shd_leave_out(writer, 0, c->source->class_name,
				 c->source->classes, c->has_class));
	c->writer = NULL; /* freed in any case */
	return neap_shd_finish(writer, (const char *const *)c->source->class_name, c->classes, NULL,
		0, attributes, count);
}

static int is_array_file(const char *path)
{
	static const char *const endings[] = {".npz", ".npy", ".h5", ".hdf5", ".hdf", ".he5", NULL};
	return neap__recordings_ends(path, endings);
}

/*
 * Archives may lie next to recordings of other kinds, such as a data set that was encoded before;
 * so a folder holds events only if it has more array files than tables, and than sounds.
 */
static int is_event_folder(const char *path)
{
	static const char *const published[] = {".bin", ".aedat", NULL};
	if (neap__recordings_having(path, published))
		return 1;
	int64_t arrays = neap__recordings_having(path, neap__event_endings);
	return arrays > neap__recordings_having(path, neap__table_endings) &&
	       arrays > neap__recordings_having(path, neap__sound_endings);
}

int neap_encode_is_events(const char *path)
{
	struct stat st;
	if (!path || stat(path, &st) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return is_array_file(path) || neap__recordings_ends(path, neap__event_endings);
	return S_ISDIR(st.st_mode) && is_event_folder(path);
}

static int check_options(const struct neap_event_options *o)
{
	if (o->polarity < NEAP_POLARITY_SPLIT || o->polarity > NEAP_POLARITY_OFF || o->pool < 0 ||
		o->width < 0 || o->height < 0 || o->inputs < 0 || !(o->time_unit >= 0))
		return neap__fail(NEAP_EUSAGE, "a size, polarity or unit of time is negative");
	if (o->from_first < 0 || o->from_first > 1)
		return neap__fail(
			NEAP_EUSAGE, "from_first is %d; it must be 0 or 1", o->from_first);
	return 0;
}

/* A file with one recording is read as a folder with that file, which names its class. */
static int open_source(struct neap__event_source **source, const char *path, int folder,
	const struct neap_event_options *options, struct neap_event_report *report)
{
	if (!folder && is_array_file(path)) {
		static const char *const numpy[] = {".npz", ".npy", NULL};
		int is = neap__recordings_ends(path, numpy)
				 ? 0
				 : neap__ntidigits_open(source, path, options, report);
		if (is != 0)
			return is < 0 ? is : 0;
		NEAP_TRY(neap__array_events_open(
			source, path, NULL, options, &neap__recordings_lines));
		if (!(*source)->recording)
			return 0;
		(*source)->close(*source);
		*source = NULL;
	}
	return neap__folder_events_open(source, path, options, report, &neap__recordings_lines);
}

int neap_encode_events(struct neap_event_report *report, const char *path, const char *out,
	const struct neap_event_options *options)
{
	NEAP_NEED(report, path, out);
	struct neap_event_options o = {0};
	struct stat st;
	struct conversion c = {.options = &o, .report = report};
	NEAP_TRY(neap__struct_size(
		report->size, sizeof *report, sizeof *report, "neap_event_report"));
	*report = (struct neap_event_report){.size = sizeof *report};
	if (options)
		NEAP_TRY(neap__struct_take(&o, sizeof o, options, "neap_event_options"));
	NEAP_TRY(check_options(&o));
	if (stat(path, &st) < 0)
		return neap__missing_file(errno, path);
	int rc = open_source(&c.source, path, S_ISDIR(st.st_mode), &o, report);
	if (rc == 0)
		rc = neap__pixel_map_new(&c.map, c.source, &o, path);
	if (rc == 0)
		rc = neap_shd_create(&c.writer, out, c.map.channels);
	if (rc == 0)
		c.classes = c.source->classes;
	if (rc == 0 && c.source->classes_found) {
		c.has_class = calloc((size_t)c.source->classes + 1, 1);
		rc = c.has_class ? 0 : neap__fail_errno(ENOMEM, "'%s'", path);
	}
	if (rc == 0)
		rc = convert(&c, path);
	if (rc == 0)
		rc = finish(&c);
	if (rc == 0)
		neap__event_doubts_tell(&c.doubts, c.source, &o, report, path);
	neap_shd_abort(c.writer);
	free(c.has_class);
	neap__raw_events_free(&c.raw);
	neap__event_buffer_free(&c.buffer);
	if (c.source) {
		report->classes = c.classes;
		c.source->close(c.source);
	}
	report->inputs = c.map.channels;
	report->width = c.map.columns;
	report->height = c.map.rows;
	return rc;
}

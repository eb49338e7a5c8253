/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_events.c: folders of event recordings: files with one recording each in a folder for each
 * class, of the kinds in the table below. DVS Gesture (Amir and others 2017): NAME.aedat with
 * NAME_labels.csv in the same folder, whose lines are class (from 1 on), start and end in
 * microseconds; a line is a sample. The names of its classes are those of gesture_mapping.csv,
 * where that is there.
 */
#include "data/events/event_source.h"
#include "data/names/name_list.h"
#include "data/recordings.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/print.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GESTURES = 11, GESTURE_SIDE = 128 /* pixels */, LONGEST_LINE = 1000 };

/* A sample: a file, or a part of one. */
struct part {
	int64_t file, from, to;
	int label;
};

struct folder_events {
	struct neap__event_source source;
	struct neap__recordings recordings;
	const struct neap_event_options *options; /* borrowed */
	const char *dir;			  /* borrowed */
	const struct neap__recordings_lines *lines;
	neap__event_read *read; /* of the kind; NULL: it has a function of its own */
	struct part *part;	/* NULL: each file is a sample */
	int64_t parts, room, at;
	char where[64];
};

/* The next file of a kind with a reader of its own. */
static int next_file(
	struct neap__event_source *source, struct neap__raw_events *events, const char **where)
{
	struct folder_events *f = (struct folder_events *)source;
	if (f->at >= f->recordings.count)
		return 0;
	const struct neap__recording *recording = &f->recordings.file[f->at++];
	struct neap__event_file file = {.path = recording->path,
		.time_unit = f->options->time_unit,
		.from_first = f->options->from_first};
	*where = recording->path;
	events->label = recording->class_number;
	events->count = 0;
	events->without_y = 0;
	NEAP_TRY(f->read(events, &file));
	source->time_unit = f->options->time_unit;
	source->reals = file.reals;
	return 1;
}

/* Opens a file that must hold one recording, of pixels (1) or channels (0) as others; -1: any. */
static int open_recording(struct neap__event_source **one, const struct folder_events *f,
	const char *path, int pixels)
{
	NEAP_TRY(neap__array_events_open(one, path, f->dir, f->options, f->lines));
	if (pixels < 0 || (*one)->pixels == pixels)
		return 0;
	(*one)->close(*one);
	return neap__fail(NEAP_EFORMAT,
		"'%s' contains events %s pixels, unlike other files of the folder. Move it to "
		"another folder",
		path, pixels ? "without" : "with");
}

static int next_array(
	struct neap__event_source *source, struct neap__raw_events *events, const char **where)
{
	struct folder_events *f = (struct folder_events *)source;
	struct neap__event_source *one;
	const char *within;
	if (f->at >= f->recordings.count)
		return 0;
	const struct neap__recording *file = &f->recordings.file[f->at++];
	*where = file->path;
	NEAP_TRY(open_recording(&one, f, file->path, source->pixels));
	int rc = one->next(one, events, &within);
	source->time_unit = one->time_unit;
	source->reals = one->reals;
	memcpy(source->time_name, one->time_name, sizeof source->time_name);
	if (!source->doubt[0])
		memcpy(source->doubt, one->doubt, sizeof source->doubt);
	one->close(one);
	events->label = file->class_number;
	return rc;
}

/* What the file shows of all of them, as far as it is readable. */
static int look_at(struct folder_events *f, const char *path)
{
	struct neap__event_source *one, *all = &f->source;
	struct neap__event_file file = {.path = path};
	if (f->read) {
		NEAP_TRY(f->read(NULL, &file));
		all->width = file.width;
		all->height = file.height;
		return 0;
	}
	NEAP_TRY(open_recording(&one, f, path, -1));
	all->width = one->width;
	all->height = one->height;
	all->inputs = one->inputs;
	all->pixels = one->pixels;
	all->polarities = one->polarities;
	one->close(one);
	return 0;
}

/*
 * What the last readable file shows of all of them. If none can, the line that remains is about the
 * first one.
 */
static int look_at_files(struct folder_events *f)
{
	int rc = 0;
	for (int64_t i = f->recordings.count - 1; i >= 0; i--) {
		rc = look_at(f, f->recordings.file[i].path);
		if (rc != NEAP_EFORMAT || f->options->strict)
			return rc;
	}
	return rc;
}

static int next_gesture(
	struct neap__event_source *source, struct neap__raw_events *events, const char **where)
{
	struct folder_events *f = (struct folder_events *)source;
	if (f->at >= f->parts)
		return 0;
	const struct part *part = &f->part[f->at++];
	*where = f->recordings.file[part->file].path;
	events->label = part->label;
	NEAP_TRY(neap__aedat_read(events, *where, part->from, part->to));
	return 1;
}

static void close_all(struct neap__event_source *source)
{
	struct folder_events *f = (struct folder_events *)source;
	if (f->part) /* names of gestures are the source's own */
		for (int i = 0; i < source->classes; i++)
			free(source->class_name[i]);
	if (f->part)
		free(source->class_name);
	free(f->part);
	neap__recordings_free(&f->recordings);
	free(f);
}

/* A whole number of digits at *p, and what follows it. */
static int take_number(char **p, int64_t *out, char after)
{
	char *end;
	errno = 0;
	while (**p == ' ')
		++*p;
	if (**p < '0' || **p > '9')
		return 0;
	*out = strtoll(*p, &end, 10);
	while (*end == ' ' || *end == '\r' || (after == '\n' && *end == '\n'))
		end++;
	if (errno || (after == ',' ? *end++ != ',' : *end != '\0'))
		return 0;
	*p = end;
	return 1;
}

static int add_part(struct folder_events *f, int64_t file, char *line, const char *path, int number)
{
	struct part part = {.file = file};
	int64_t label;
	char *p = line;
	if (!take_number(&p, &label, ',') || !take_number(&p, &part.from, ',') ||
		!take_number(&p, &part.to, '\n') || label < 1 || label > f->source.classes ||
		part.to < part.from)
		return neap__fail(NEAP_EFORMAT,
			"'%s', line %d: a line must be the class, from 1 to %d, and the start and "
			"end in microseconds, separated by commas. Correct the line",
			path, number, f->source.classes);
	part.label = (int)label - 1;
	if (neap__grow(&f->part, &f->room, f->parts + 1, sizeof *f->part) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	f->part[f->parts++] = part;
	return 0;
}

static int read_lines(struct folder_events *f, int64_t number, const char *path)
{
	char line[LONGEST_LINE];
	FILE *file = fopen(path, "re");
	int rc = 0;
	if (!file)
		return neap__fail_errno(
			errno, "cannot read '%s', the labels of its recording", path);
	for (int n = 1; rc == 0 && fgets(line, sizeof line, file); n++) {
		int head = n == 1 && (line[0] < '0' || line[0] > '9');
		if (!head && line[strspn(line, " \t\r\n")] != '\0')
			rc = add_part(f, number, line, path, n);
	}
	fclose(file);
	return rc;
}

static int read_parts(struct folder_events *f)
{
	int rc = 0;
	for (int64_t i = 0; rc == 0 && i < f->recordings.count; i++) {
		const char *aedat = f->recordings.file[i].path;
		char *path;
		int stem = (int)strlen(aedat) - (int)strlen(".aedat");
		if (asprintf(&path, "%.*s_labels.csv", stem, aedat) < 0)
			return neap__fail_errno(ENOMEM, "'%s'", aedat);
		rc = read_lines(f, i, path);
		free(path);
	}
	if (rc == 0 && f->parts == 0)
		rc = neap__fail(NEAP_EFORMAT,
			"the file of labels of '%s', NAME_labels.csv, lists no sample. Copy the "
			"data set again",
			f->recordings.file[0].path);
	f->source.samples = f->parts;
	return rc;
}

/* "hand_clapping,1", behind a line that names the columns. */
static void read_mapping(struct folder_events *f, const char *dir)
{
	char line[LONGEST_LINE], *path;
	if (asprintf(&path, "%s/gesture_mapping.csv", dir) < 0)
		return;
	FILE *file = fopen(path, "re");
	free(path);
	while (file && fgets(line, sizeof line, file)) {
		char *comma = strchr(line, ','), *p = comma ? comma + 1 : line;
		int64_t number;
		if (!comma || !take_number(&p, &number, '\n') || number < 1 || number > GESTURES)
			continue;
		char *name = strndup(line, (size_t)(comma - line));
		if (!name)
			continue;
		free(f->source.class_name[number - 1]);
		f->source.class_name[number - 1] = name;
	}
	if (file)
		fclose(file);
}

static int name_gestures(struct folder_events *f, const char *dir)
{
	f->source.class_name = calloc(GESTURES, sizeof *f->source.class_name);
	if (!f->source.class_name)
		return neap__fail_errno(ENOMEM, "'%s'", dir);
	for (int i = 0; i < GESTURES; i++) {
		char number[16];
		neap__print(number, sizeof number, "%d", i + 1);
		if (!(f->source.class_name[i] = strdup(number)))
			return neap__fail_errno(ENOMEM, "'%s'", dir);
	}
	f->source.classes = GESTURES;
	read_mapping(f, dir);
	return 0;
}

/*
 * A folder is of the first published kind of which it has a file, else of the kind of most of its
 * files; of kinds with as many files, of the first in the table.
 */
enum folder_kind { DVS_GESTURE, NMNIST, AEDAT4, EVT_RAW, DAT, EVENT_TEXT, ARRAYS, KINDS };
static const struct {
	const char *const endings[5]; /* NULL ends */
	neap__event_read *read;	      /* of a file; NULL: next is the kind's own */
	int (*next)(struct neap__event_source *source, struct neap__raw_events *events,
		const char **where);
	int published;
} kinds[KINDS] = {[DVS_GESTURE] = {{".aedat"}, NULL, next_gesture, 1},
	[NMNIST] = {{".bin"}, neap__nmnist_read, next_file, 1},
	[AEDAT4] = {{".aedat4"}, neap__aedat4_read, next_file, 0},
	[EVT_RAW] = {{".raw"}, neap__evt_raw_read, next_file, 0},
	[DAT] = {{".dat"}, neap__dat_read, next_file, 0},
	[EVENT_TEXT] = {{"events.txt"}, neap__event_text_read, next_file, 0},
	[ARRAYS] = {{".npz", ".npy", ".h5", ".hdf5"}, NULL, next_array, 0}};

static enum folder_kind kind_of(const char *path)
{
	enum folder_kind best = ARRAYS;
	int64_t most = 0;
	for (enum folder_kind k = 0; k < KINDS; k++) {
		int64_t count = neap__recordings_folder(path)
					? neap__recordings_having(path, kinds[k].endings)
					: neap__recordings_ends(path, kinds[k].endings);
		if (count && kinds[k].published)
			return k;
		if (count > most) {
			most = count;
			best = k;
		}
	}
	return best;
}

static int find_files(struct folder_events *f, const char *path, const struct neap_event_options *o,
	enum folder_kind kind, struct neap_event_report *report)
{
	int gestures = kind == DVS_GESTURE;
	struct neap__name_list split = {0}, without = {0};
	struct neap__recordings_choice choice = {.label = gestures ? "(.)" : o->label,
		.endings = kinds[kind].endings,
		.only = o->nsplit ? &split : NULL,
		.without = o->nwithout ? &without : NULL,
		.classes = gestures ? NULL : o->classes,
		.nclasses = o->nclasses,
		.strict = o->strict && !gestures,
		.lines = f->lines};
	int rc = o->nsplit ? neap__name_list_read(&split, o->split, o->nsplit) : 0;
	if (rc == 0 && o->nwithout)
		rc = neap__name_list_read(&without, o->without, o->nwithout);
	if (rc == 0)
		rc = neap__recordings_find(&f->recordings, path, &choice);
	neap__name_list_free(&split);
	neap__name_list_free(&without);
	report->others = gestures ? 0 : choice.others; /* lists and labels lie beside recordings */
	memcpy(report->other, choice.other, gestures ? 0 : sizeof report->other);
	report->strangers = choice.strangers;
	report->unlisted = choice.unlisted;
	return rc;
}

int neap__folder_events_open(struct neap__event_source **source, const char *path,
	const struct neap_event_options *options, struct neap_event_report *report,
	const struct neap__recordings_lines *lines)
{
	struct folder_events *f = calloc(1, sizeof *f);
	if (!f)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	enum folder_kind kind = kind_of(path);
	f->options = options;
	f->dir = path;
	f->lines = lines;
	f->read = kinds[kind].read;
	f->source = (struct neap__event_source){.next = kinds[kind].next,
		.close = close_all,
		.width = kind == DVS_GESTURE ? GESTURE_SIDE : 0,
		.height = kind == DVS_GESTURE ? GESTURE_SIDE : 0,
		.pixels = 1,
		.files = neap__recordings_folder(path),
		.polarities = 1};
	int rc = find_files(f, path, options, kind, report);
	if (rc == 0 && kind == DVS_GESTURE) {
		rc = neap__grow(&f->part, &f->room, 1, sizeof *f->part);
		if (rc == 0)
			rc = name_gestures(f, path);
		if (rc == 0)
			rc = read_parts(f);
	} else if (rc == 0) {
		f->source.samples = f->recordings.count;
		f->source.class_name = f->recordings.classes;
		f->source.classes = f->recordings.nclasses;
		f->source.classes_found = !options->classes;
		rc = look_at_files(f);
	}
	if (rc < 0)
		close_all(&f->source);
	else
		*source = &f->source;
	return rc;
}

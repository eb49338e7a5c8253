/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntidigits.c: N-TIDIGITS (Anumula and others 2018), spikes of a silicon cochlea with 64 channels,
 * as published: an HDF5 file with the names of the samples in `train_labels` and `test_labels`, and
 * for each sample the arrays `train_timestamps/NAME` (seconds) and `train_addresses/NAME`. The
 * class is what follows the last hyphen of a name: the digits that are spoken.
 */
#include "data/events/columns.h"
#include "data/events/event_source.h"
#include "data/names/name_pattern.h"
#include "data/recordings.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 64, PIECE = 4096, MOST_SAMPLES = 1 << 20 /* chosen */ };
static const double LONGEST = 1e6; /* seconds, as in arrays (array_events.c) */

struct ntidigits {
	struct neap__event_source source;
	struct neap__columns *columns;
	struct neap__recordings samples; /* path: the name */
	const char *part;		 /* "train" or "test" */
	int64_t at;
};

static int take(struct ntidigits *s, const char *name, int is_time, const double *piece, int64_t n,
	struct neap__raw_events *events, int64_t done)
{
	for (int64_t i = 0; i < n; i++) {
		double v = piece[i];
		if (is_time ? !(v >= 0 && v <= LONGEST) : !(v >= 0 && v <= 65535 && v == floor(v)))
			return neap__fail(NEAP_EFORMAT,
				"'%s': '%s'[%lld] is %g; it must be %s. Replace it with an intact "
				"copy",
				s->columns->path, name, (long long)(done + i), v,
				is_time ? "seconds from 0 to 1000000" : "a channel from 0");
		if (is_time)
			events->time[done + i] = v;
		else
			events->x[done + i] = (int32_t)v;
	}
	return 0;
}

/* Reads one of the two arrays of a sample, of which the second must be as long as the first. */
static int read_array(
	struct ntidigits *s, const char *kind, const char *sample, struct neap__raw_events *events)
{
	struct neap__column column;
	double piece[PIECE];
	char name[96];
	int is_time = strcmp(kind, "timestamps") == 0;
	neap__print(name, sizeof name, "%s_%s/%s", s->part, kind, sample);
	int there = s->columns->find(s->columns, name, &column), rc = there < 0 ? there : 0;
	if (there == 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has no array '%s', but '%s_labels' contains this name. Replace it "
			"with an intact copy",
			s->columns->path, name, s->part);
	if (there < 0)
		return rc;
	if (!is_time && column.count != events->count)
		rc = neap__fail(NEAP_EFORMAT,
			"'%s': '%s' has %lld entries, but there are %lld times. Replace it "
			"with an intact copy",
			s->columns->path, name, (long long)column.count, (long long)events->count);
	if (rc == 0)
		rc = neap__raw_events_grow(events, column.count);
	events->count = column.count;
	for (int64_t done = 0, n; rc == 0 && done < column.count; done += n) {
		n = column.count - done < PIECE ? column.count - done : PIECE;
		rc = s->columns->read(s->columns, &column, done, n, piece);
		if (rc == 0)
			rc = take(s, name, is_time, piece, n, events, done);
	}
	s->columns->shut(s->columns, &column);
	return rc;
}

static int next(
	struct neap__event_source *source, struct neap__raw_events *events, const char **where)
{
	struct ntidigits *s = (struct ntidigits *)source;
	if (s->at >= s->samples.count)
		return 0;
	const struct neap__recording *sample = &s->samples.file[s->at++];
	*where = sample->path;
	events->label = sample->class_number;
	events->without_y = 0;
	NEAP_TRY(read_array(s, "timestamps", sample->path, events));
	NEAP_TRY(read_array(s, "addresses", sample->path, events));
	if (events->count > 0) {
		memset(events->y, 0, (size_t)events->count * sizeof *events->y);
		memset(events->p, 0, (size_t)events->count);
	}
	return 1;
}

static void close_all(struct neap__event_source *source)
{
	struct ntidigits *s = (struct ntidigits *)source;
	if (s->columns)
		s->columns->close(s->columns);
	neap__recordings_free(&s->samples);
	free(s);
}

/* Lists the samples with the text of their class. */
static int list_samples(struct ntidigits *s, const char *label)
{
	char **names = NULL, list[32];
	int count = 0;
	struct neap__name_pattern *by_label = NULL;
	neap__print(list, sizeof list, "%s_labels", s->part);
	int rc = s->columns->texts(s->columns, list, MOST_SAMPLES, &names, &count);
	if (rc == 0 && count == 0)
		rc = neap__fail(NEAP_EFORMAT, "'%s': '%s' is empty. Replace it with an intact copy",
			s->columns->path, list);
	if (rc == 0 && label)
		rc = neap__name_pattern_new(&by_label, label, "--label");
	for (int i = 0; rc == 0 && i < count; i++) {
		rc = neap__recordings_add(&s->samples, names[i]);
		if (rc < 0)
			break;
		struct neap__recording *sample = &s->samples.file[i];
		const char *hyphen = strrchr(names[i], '-');
		if (label)
			rc = neap__name_pattern_find(by_label, &sample->label, names[i]);
		else if (!(sample->label = strdup(hyphen ? hyphen + 1 : names[i])))
			rc = neap__fail_errno(ENOMEM, "'%s'", s->columns->path);
	}
	neap__name_pattern_free(by_label);
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return rc;
}

static int choose_part(struct ntidigits *s, const struct neap_event_options *o)
{
	const char *given = o->nsplit == 1 ? o->split[0] : "";
	s->part = strcmp(given, "test") == 0 ? "test" : "train";
	if (strcmp(given, s->part) != 0 || o->nwithout)
		return neap__fail(NEAP_EUSAGE,
			"'%s' has two parts of N-TIDIGITS. Pass --split train or --split test, "
			"and no --without",
			s->columns->path);
	return 0;
}

static int describe(
	struct ntidigits *s, const struct neap_event_options *o, struct neap_event_report *report)
{
	struct neap__recordings_choice choice = {
		.classes = o->classes, .nclasses = o->nclasses, .strict = o->strict};
	NEAP_TRY(choose_part(s, o));
	NEAP_TRY(list_samples(s, o->label));
	NEAP_TRY(neap__recordings_number(&s->samples, s->columns->path, &choice));
	report->strangers = choice.strangers;
	s->source.samples = s->samples.count;
	s->source.class_name = s->samples.classes;
	s->source.classes = s->samples.nclasses;
	s->source.classes_found = !o->classes;
	return 0;
}

int neap__ntidigits_open(struct neap__event_source **source, const char *path,
	const struct neap_event_options *options, struct neap_event_report *report)
{
	struct neap__column labels;
	struct ntidigits *s = calloc(1, sizeof *s);
	if (!s)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	s->source = (struct neap__event_source){
		.next = next, .close = close_all, .inputs = CHANNELS, .reals = 1};
	int rc = neap__h5_columns_open(&s->columns, path);
	if (rc == 0)
		rc = s->columns->find(s->columns, "train_labels", &labels);
	if (rc > 0) {
		s->columns->shut(s->columns, &labels);
		int described = describe(s, options, report);
		rc = described < 0 ? described : 1;
	}
	if (rc > 0)
		*source = &s->source;
	else
		close_all(&s->source);
	return rc;
}

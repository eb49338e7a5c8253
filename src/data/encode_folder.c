/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_folder.c: encodes a folder of recordings into one file. Recordings are encoded in
 * parallel, a few for each thread at a time, and written in the order of their names. So the file
 * does not depend on the number of threads, and memory holds a few recordings only.
 */
#include "data/concat.h"
#include "data/encoder.h"
#include "data/name_list.h"
#include "data/recordings.h"
#include "data/sound_file.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/struct_size.h"
#include "sys/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_A_THREAD = 8 };

struct recording_item {
	struct neap_events events;
	double active; /* (channel, 1 ms) bins with a spike */
	int rc;
	char detail[512];
};

struct encode_work {
	const struct neap__recordings *recordings;
	struct neap_encoder_options encoder;
	int any_sound;
	int64_t first; /* of the block */
	struct recording_item *item;
	int last; /* code of the last file that was skipped */
};

/* Bins of 1 ms in which a channel spikes. Events are in order of time. */
static double active_bins(const struct neap_events *events)
{
	double last[700], bins = 0;
	for (int k = 0; k < 700; k++)
		last[k] = -1;
	for (int64_t i = 0; i < events->count; i++) {
		double bin = (double)(int64_t)(events->time[i] * 1000 + 1e-6);
		bins += bin > last[events->unit[i]];
		last[events->unit[i]] = bin;
	}
	return bins;
}

static void encode_one(void *arg, int number, int thread)
{
	struct encode_work *work = arg;
	struct recording_item *item = &work->item[number];
	const struct neap__recording *file = &work->recordings->file[work->first + number];
	float *samples = NULL;
	int64_t count = 0;
	double rate;
	(void)thread;
	memset(&item->events, 0, sizeof item->events);
	item->rc = neap__sound_read(&samples, &count, &rate, file->path, work->any_sound);
	if (item->rc == 0) {
		item->rc = neap_encode(&item->events, samples, count, rate, &work->encoder);
		if (item->rc < 0)
			neap__fail_in(item->rc, "'%s': ", file->path);
		free(samples);
	}
	if (item->rc < 0) {
		neap__print(item->detail, sizeof item->detail, "%s", neap_detail());
		return;
	}
	item->events.label = file->class_number;
	item->events.speaker = file->speaker_number;
	item->active = active_bins(&item->events);
}

/* Adds the block's recordings to the file, up to the first that failed. */
static int write_block(struct neap__concat *concat, struct encode_work *work, int size,
	struct neap_encode_report *report, const struct neap_encode_options *options)
{
	int rc = 0;
	for (int i = 0; i < size; i++) {
		struct recording_item *item = &work->item[i];
		int skipped = item->rc == NEAP_EFORMAT && !options->strict;
		if (rc == 0 && item->rc < 0 && !skipped)
			rc = neap__fail(item->rc, "%s", item->detail);
		if (rc == 0 && skipped) {
			report->damaged++;
			if (options->warn)
				options->warn(options->user, item->detail);
			work->last = neap__fail(item->rc, "%s", item->detail);
		} else if (rc == 0) {
			rc = neap__concat_add(concat, &item->events);
		}
		if (rc == 0 && !skipped) {
			report->files++;
			report->events += item->events.count;
			report->seconds_of_audio += item->events.duration;
			report->active += item->active;
		}
		if (rc == 0 && options->progress &&
			options->progress(options->user, report->files + report->damaged,
				work->recordings->count))
			rc = neap__fail(NEAP_EINTERRUPTED, "interrupted");
		neap_events_free(&item->events);
	}
	return rc;
}

static int encode_all(struct neap__concat *concat, struct neap__thread_pool *pool,
	struct encode_work *work, struct neap_encode_report *report,
	const struct neap_encode_options *options)
{
	int64_t total = work->recordings->count;
	int block = neap__thread_pool_threads(pool) * FILES_A_THREAD, rc = 0;
	work->item = calloc((size_t)block, sizeof *work->item);
	if (!work->item)
		return neap__fail_errno(ENOMEM, "encoding");
	for (work->first = 0; rc == 0 && work->first < total; work->first += block) {
		int64_t left = total - work->first;
		int size = left < block ? (int)left : block;
		neap__thread_pool_run(pool, size, encode_one, work);
		rc = write_block(concat, work, size, report, options);
	}
	free(work->item);
	return rc;
}

static int finish(struct neap_shd_writer *writer, const struct neap__recordings *recordings,
	struct neap_encoder_options *o)
{
	struct neap_attribute attributes[32];
	char names[32][40];
	int count = neap__encoder_numbers();

	for (int i = 0; i < count; i++) {
		const char *name;
		attributes[i].value = *neap__encoder_number(o, i, &name);
		neap__print(names[i], sizeof names[i], "encoder_%s", name);
		attributes[i].name = names[i];
	}
	attributes[count++] = (struct neap_attribute){"encoder_span", o->span};
	attributes[count++] = (struct neap_attribute){"encoder_rate", neap__encoder_rate(o)};
	return neap_shd_finish(writer, (const char *const *)recordings->classes,
		recordings->nclasses, (const char *const *)recordings->speakers,
		recordings->nspeakers, attributes, count);
}

static const char *const endings[] = {".wav", ".flac", ".aiff", ".aif", ".aifc", NULL};

static int find(struct neap__recordings *recordings, const char *dir,
	const struct neap_encode_options *o, struct neap_encode_report *report)
{
	struct neap__name_list split = {0}, without = {0};
	struct neap__recordings_choice choice = {.label = o->label,
		.speaker = o->speaker,
		.endings = o->any_sound ? NULL : endings,
		.only = o->nsplit ? &split : NULL,
		.without = o->nwithout ? &without : NULL,
		.classes = o->classes,
		.nclasses = o->nclasses,
		.strict = o->strict};
	int rc = o->nsplit ? neap__name_list_read(&split, o->split, o->nsplit) : 0;
	if (rc == 0 && o->nwithout)
		rc = neap__name_list_read(&without, o->without, o->nwithout);
	if (rc == 0)
		rc = neap__recordings_find(recordings, dir, &choice);
	neap__name_list_free(&split);
	neap__name_list_free(&without);
	report->others = choice.others;
	report->strangers = choice.strangers;
	report->unlisted = choice.unlisted;
	return rc;
}

int neap_encode_directory(struct neap_encode_report *report, const char *dir, const char *out,
	const struct neap_encode_options *options)
{
	NEAP_NEED(report, dir, out);
	struct neap_encode_options o = {0};
	struct neap__recordings recordings = {0};
	struct neap__thread_pool *pool = NULL;
	struct neap_shd_writer *writer = NULL;
	struct encode_work work = {.recordings = &recordings};

	NEAP_TRY(neap__struct_size(
		report->size, sizeof *report, sizeof *report, "neap_encode_report"));
	*report = (struct neap_encode_report){.size = sizeof *report};
	if (options)
		NEAP_TRY(neap__struct_take(&o, sizeof o, options, "neap_encode_options"));
	if (!dir || !*dir)
		return neap__fail(NEAP_EUSAGE, "the name of the folder is empty");
	if (o.threads < 0 || o.threads > 1024)
		return neap__fail(NEAP_EUSAGE, "%d threads; 0 to 1024 are accepted", o.threads);
	if (!(o.concat == 0 || (o.concat >= 1e-3 && o.concat <= 1e5)))
		return neap__fail(NEAP_EUSAGE,
			"samples of %g s; 0.001 to 100000 seconds are accepted", o.concat);
	work.any_sound = o.any_sound;
	o.encoder.size = sizeof o.encoder; /* the outer size vouches for it */
	NEAP_TRY(neap__encoder_settle(&work.encoder, &o.encoder));
	NEAP_TRY(find(&recordings, dir, &o, report));
	if (o.concat > 0)
		neap__recordings_sort(&recordings);
	int rc = neap_shd_create(&writer, out, work.encoder.channels);
	if (rc == 0)
		rc = neap__thread_pool_create(&pool, o.threads ? o.threads : neap__processors());
	struct neap__concat concat = {.writer = writer, .seconds = o.concat};
	if (rc == 0)
		rc = encode_all(&concat, pool, &work, report, &o);
	neap__concat_end(&concat);
	report->samples = concat.written;
	report->seconds_left = concat.left;
	if (rc == 0 && report->files == 0)
		rc = work.last; /* its line stands */
	else if (rc == 0 && concat.written == 0)
		rc = neap__fail(NEAP_EUSAGE,
			"no class and speaker of '%s' has recordings of %g s; less is accepted",
			dir, o.concat);
	if (rc == 0) {
		rc = finish(writer, &recordings, &work.encoder);
		writer = NULL;
	}
	neap_shd_abort(writer);
	neap__thread_pool_free(pool);
	report->classes = recordings.nclasses;
	report->speakers = recordings.nspeakers;
	double bins = report->seconds_of_audio * 1000 * work.encoder.channels;
	report->active = bins > 0 ? report->active / bins : 0;
	neap__recordings_free(&recordings);
	return rc;
}

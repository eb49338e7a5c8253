/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_folder.c: encodes a folder of recordings into one file. Recordings are encoded in
 * parallel, a few for each thread at a time, and written in the order of their names. So the file
 * does not depend on the number of threads, and memory holds a few recordings only.
 */
#include "data/concat.h"
#include "data/data_doubts.h"
#include "data/encode/encode_ranks.h"
#include "data/names/name_list.h"
#include "data/recordings.h"
#include "data/sound/encoder.h"
#include "data/sound/sound_file.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/struct_size.h"
#include "sys/pool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_A_THREAD = 8 };

struct encode_work {
	struct neap__recordings *recordings;
	struct neap_encoder_options encoder;
	int any_sound;
	int64_t first, written; /* of this rank's block; files of the rounds before */
	struct neap__encoded_recording *item;
	const char *dir;
	int last;	/* code of the last file that was skipped */
	double fastest; /* Hz, the highest of the sampling rates that were too low */
	struct neap__first_names silent;
	int classes, speakers; /* that the file gets */
	unsigned char *has_class,
		*has_speaker; /* [nclasses], [nspeakers] 1: of a whole recording */
};

/* Bins of 1 ms in which an input spikes. Events are in order of time. */
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
	struct neap__encoded_recording *item = &work->item[number];
	const struct neap__recording *file = &work->recordings->file[work->first + number];
	float *samples = NULL;
	int64_t count = 0;
	double rate;
	(void)thread;
	memset(&item->events, 0, sizeof item->events);
	item->slow = 0;
	item->rc = neap__sound_read(&samples, &count, &rate, file->path, work->any_sound);
	if (item->rc == 0 && (item->rc = neap__encoder_takes(&work->encoder, rate)) < 0) {
		neap__fail_in(item->rc, "'%s': ", file->path);
		free(samples);
		item->slow = rate;
		neap__print(item->detail, sizeof item->detail,
			"%s, or lower --high to %.0f Hz or less", neap_detail(),
			floor(neap__encoder_highest(rate)));
		return;
	}
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
static int write_block(struct neap__concat *concat, struct encode_work *work, int64_t size,
	struct neap_encode_report *report, const struct neap_encode_options *options)
{
	int rc = 0;
	for (int64_t i = 0; i < size; i++) {
		struct neap__encoded_recording *item = &work->item[i];
		int is_slow = item->rc == NEAP_EUSAGE; /* neap__encoder_takes refused the rate */
		int skipped = (item->rc == NEAP_EFORMAT || is_slow) && !options->strict &&
			      work->recordings->count > 1;
		if (rc == 0 && item->rc < 0 && !skipped)
			rc = neap__fail(is_slow ? NEAP_EFORMAT : item->rc, "%s", item->detail);
		if (rc == 0 && skipped) {
			*(is_slow ? &report->low_rates : &report->damaged) += 1;
			if (options->warn)
				options->warn(options->user, item->detail);
			work->last = neap__fail(NEAP_EFORMAT, "%s", item->detail);
			work->fastest = fmax(work->fastest, item->slow);
		} else if (rc == 0) {
			rc = neap__concat_add(concat, &item->events);
		}
		if (rc == 0 && !skipped) {
			const struct neap__recording *file =
				&work->recordings->file[work->written + i];
			if (file->class_number >= 0)
				work->has_class[file->class_number] = 1;
			if (file->speaker_number >= 0)
				work->has_speaker[file->speaker_number] = 1;
			report->files++;
			if (item->events.count == 0)
				neap__first_names_add(&work->silent,
					neap__recordings_below(file->path, work->dir));
			report->events += item->events.count;
			report->seconds_of_audio += item->events.duration;
			report->active += item->active;
		}
		if (rc == 0 && options->progress &&
			options->progress(
				options->user, work->written + i + 1, work->recordings->count))
			rc = neap__fail(NEAP_EINTERRUPTED, "interrupted");
		neap_events_free(&item->events);
	}
	return rc;
}

/* Rank 0 writes a round; any rank may be interrupted. The answer is the same on all of them. */
static int end_round(struct neap__ranks *ranks, struct neap__concat *concat,
	struct encode_work *work, int64_t size, struct neap_encode_report *report,
	const struct neap_encode_options *options)
{
	int rc = 0;

	if (neap__ranks_root(ranks))
		rc = write_block(concat, work, size, report, options);
	else if (options->progress && options->progress(options->user, 0, work->recordings->count))
		rc = neap__fail(NEAP_EINTERRUPTED, "interrupted");
	return neap__ranks_agree(ranks, rc);
}

/* Each rank encodes a block of every round. */
static int encode_all(struct neap__ranks *ranks, struct neap__concat *concat,
	struct neap__thread_pool *pool, struct encode_work *work, struct neap_encode_report *report,
	const struct neap_encode_options *options)
{
	const int64_t total = work->recordings->count;
	int count = ranks->peers ? ranks->peers->count : 1;
	int rank = ranks->peers ? ranks->peers->rank : 0, rc = 0;
	int64_t block = neap__thread_pool_threads(pool) * FILES_A_THREAD;

	NEAP_TRY(neap__ranks_least(ranks, &block, 1));
	work->item = calloc((size_t)block * (size_t)(rank ? 1 : count), sizeof *work->item);
	if (!work->item)
		rc = neap__fail_errno(ENOMEM, "encoding");
	rc = neap__ranks_agree(ranks, rc);
	for (int64_t first = 0; rc == 0 && first < total; first += block * count) {
		int64_t left = total - first, round = left < block * count ? left : block * count;
		int64_t own = round - block * rank;
		own = own < 0 ? 0 : own < block ? own : block;
		work->first = first + block * rank;
		if (own > 0)
			neap__thread_pool_run(pool, (int)own, encode_one, work);
		rc = neap__encode_gather(ranks, work->item, (int)block, round);
		if (rc == 0)
			rc = end_round(ranks, concat, work, round, report, options);
		work->written += round;
	}
	free(work->item);
	return rc;
}

static int finish(struct neap_shd_writer *writer, const struct encode_work *work,
	struct neap_encoder_options *o)
{
	const struct neap__recordings *recordings = work->recordings;
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
	if (o->pool > 1) { /* else the channels are the inputs */
		attributes[count++] = (struct neap_attribute){"encoder_pool", o->pool};
		attributes[count++] = (struct neap_attribute){"encoder_channels", o->channels};
	}
	return neap_shd_finish(writer, (const char *const *)recordings->classes, work->classes,
		(const char *const *)recordings->speakers, work->speakers, attributes, count);
}

static int find(struct neap__recordings *recordings, const char *dir,
	const struct neap_encode_options *o, struct neap_encode_report *report)
{
	struct neap__name_list split = {0}, without = {0};
	struct neap__recordings_choice choice = {.label = o->label,
		.speaker = o->speaker,
		.endings = o->any_sound ? NULL : neap__sound_endings,
		.only = o->nsplit ? &split : NULL,
		.without = o->nwithout ? &without : NULL,
		.classes = o->classes,
		.nclasses = o->nclasses,
		.strict = o->strict,
		.lines = &neap__recordings_lines};
	int rc = o->nsplit ? neap__name_list_read(&split, o->split, o->nsplit) : 0;
	if (rc == 0 && o->nwithout)
		rc = neap__name_list_read(&without, o->without, o->nwithout);
	if (rc == 0)
		rc = neap__recordings_find(recordings, dir, &choice);
	neap__name_list_free(&split);
	neap__name_list_free(&without);
	report->others = choice.others;
	memcpy(report->other, choice.other, sizeof report->other);
	report->strangers = choice.strangers;
	report->unlisted = choice.unlisted;
	return rc;
}

static int find_all(struct encode_work *work, const char *dir, const struct neap_encode_options *o,
	struct neap_encode_report *report)
{
	NEAP_TRY(find(work->recordings, dir, o, report));
	work->classes = work->recordings->nclasses;
	work->speakers = work->recordings->nspeakers;
	work->has_class = calloc((size_t)work->recordings->nclasses + 1, 1);
	work->has_speaker = calloc((size_t)work->recordings->nspeakers + 1, 1);
	return work->has_class && work->has_speaker ? 0 : neap__fail_errno(ENOMEM, "'%s'", dir);
}

/* Opens the file on rank 0 alone, and the threads. */
static int open_both(struct neap__ranks *ranks, struct neap_shd_writer **writer,
	struct neap__thread_pool **pool, const char *out, const struct encode_work *work,
	int threads)
{
	int rc = neap__ranks_root(ranks)
			 ? neap_shd_create(writer, out, neap__encoder_inputs(&work->encoder))
			 : 0;
	threads = neap__ranks_threads(ranks, threads);
	if (rc == 0)
		rc = neap__thread_pool_create(pool, threads ? threads : neap__processors());
	return neap__ranks_agree(ranks, rc);
}

/* Leaves out classes and speakers of skipped recordings alone; classes that are given stay. */
static int leave_out(struct neap_shd_writer *writer, struct encode_work *work,
	const struct neap_encode_options *o)
{
	struct neap__recordings *r = work->recordings;
	char line[512];

	for (int i = 0; i < r->nclasses && !o->classes && o->warn; i++)
		if (!work->has_class[i]) {
			neap__print(line, sizeof line,
				"class '%.200s' is left out: all its recordings were skipped",
				r->classes[i]);
			o->warn(o->user, line);
		}
	if (!o->classes)
		NEAP_TRY(work->classes = neap__shd_leave_out(
				 writer, 0, r->classes, r->nclasses, work->has_class));
	return work->speakers =
		       neap__shd_leave_out(writer, 1, r->speakers, r->nspeakers, work->has_speaker);
}

static void doubt_silent(
	const struct encode_work *work, int64_t files, const struct neap_encode_options *o)
{
	const struct neap__first_names *s = &work->silent;
	if (s->count)
		neap__doubt(o->doubt, o->user,
			"%lld of %lld recordings %s silent (no spikes): %s. A network cannot learn "
			"from %s. Remove %s from the data%s",
			(long long)s->count, (long long)files, s->count == 1 ? "is" : "are",
			s->text, s->count == 1 ? "it" : "them", s->count == 1 ? "it" : "them",
			neap__recordings_folder(work->dir)
				? ", or pass --without FILE with one such path per line"
				: "");
}

/* No recording has the frequencies that the options ask for, which is no fault of any of them. */
static int all_slow(const struct encode_work *work, const struct neap_encode_options *o)
{
	double high = work->encoder.high, most = floor(neap__encoder_highest(work->fastest));

	return neap__fail(NEAP_EFORMAT,
		"--high is %g Hz%s, but none of the recordings of '%s' has such frequencies: their "
		"highest sampling rate is %g Hz, which allows %.0f Hz. Lower --high to %.0f Hz or "
		"less, or resample them to at least %.0f Hz",
		high, o->encoder.high > 0 ? "" : " (default)", work->dir, work->fastest, most, most,
		ceil(neap__encoder_least(high)));
}

/* What is wrong with what was written, and else the end of the file: on rank 0. */
static int end_file(struct neap_encode_report *report, struct neap_shd_writer **writer,
	const struct neap__concat *concat, struct encode_work *work, const char *dir,
	const struct neap_encode_options *o)
{
	report->samples = concat->written;
	report->seconds_left = concat->left;
	report->silent = work->silent.count;
	if (work->recordings->count > 1 && report->low_rates == work->recordings->count)
		return all_slow(work, o);
	if (report->files == 0)
		return work->recordings->count > 1 ? neap__fail_in(work->last,
							     "none of the recordings of '%s' can "
							     "be encoded. The last one, ",
							     work->dir)
						   : work->last;
	if (concat->written == 0)
		return neap__fail(NEAP_EUSAGE,
			"no class and speaker of '%s' has %g s of recordings. Shorten --concat",
			dir, concat->seconds);
	NEAP_TRY(leave_out(*writer, work, o));
	int rc = finish(*writer, work, &work->encoder);
	*writer = NULL;
	if (rc == 0)
		doubt_silent(work, report->files, o);
	return rc;
}

static int encode_found(struct neap__ranks *ranks, struct neap__recordings *recordings,
	struct encode_work *work, struct neap_encode_report *report, const char *dir,
	const char *out, const struct neap_encode_options *o)
{
	struct neap__thread_pool *pool = NULL;
	struct neap_shd_writer *writer = NULL;

	if (o->concat > 0)
		neap__recordings_sort(recordings);
	NEAP_TRY(neap__ranks_same_build(ranks));
	NEAP_TRY(neap__encode_same(ranks, recordings, dir));
	int rc = open_both(ranks, &writer, &pool, out, work, o->threads);
	struct neap__concat concat = {.writer = writer, .seconds = o->concat};
	if (rc == 0)
		rc = encode_all(ranks, &concat, pool, work, report, o);
	neap__concat_end(&concat);
	if (rc == 0 && neap__ranks_root(ranks))
		rc = end_file(report, &writer, &concat, work, dir, o);
	rc = neap__ranks_agree(ranks, rc);
	neap_shd_abort(writer);
	neap__thread_pool_free(pool);
	report->classes = work->classes;
	report->speakers = work->speakers;
	double bins = report->seconds_of_audio * 1000 * neap__encoder_inputs(&work->encoder);
	report->active = bins > 0 ? report->active / bins : 0;
	if (rc == 0)
		rc = neap__ranks_send(ranks, report, sizeof *report);
	return rc;
}

int neap_encode_directory(struct neap_encode_report *report, const char *dir, const char *out,
	const struct neap_encode_options *options)
{
	NEAP_NEED(report, dir, out);
	struct neap_encode_options o = {0};
	struct neap__recordings recordings = {0};
	struct encode_work work = {.recordings = &recordings, .dir = dir};

	NEAP_TRY(neap__struct_size(
		report->size, sizeof *report, sizeof *report, "neap_encode_report"));
	*report = (struct neap_encode_report){.size = sizeof *report};
	if (options)
		NEAP_TRY(neap__struct_take(&o, sizeof o, options, "neap_encode_options"));
	if (!dir || !*dir)
		return neap__fail(
			NEAP_EUSAGE, "the name of the folder is empty; pass a folder or a file");
	if (o.threads < 0 || o.threads > 1024)
		return neap__fail(
			NEAP_EUSAGE, "--threads is %d; it must be between 0 and 1024", o.threads);
	if (!(o.concat == 0 || (o.concat >= 1e-3 && o.concat <= 1e5)))
		return neap__fail(NEAP_EUSAGE,
			"--concat is %g s; it must be between 0.001 and 100000 s", o.concat);
	work.any_sound = o.any_sound;
	o.encoder.size = sizeof o.encoder; /* the outer size vouches for it */
	NEAP_TRY(neap__encoder_settle(&work.encoder, &o.encoder));
	struct neap__ranks ranks;
	NEAP_TRY(neap__ranks_begin(&ranks, o.peers));
	int rc = neap__ranks_agree(&ranks, find_all(&work, dir, &o, report));
	if (rc == 0)
		rc = encode_found(&ranks, &recordings, &work, report, dir, out, &o);
	neap__ranks_end(&ranks, rc);
	free(work.has_class);
	free(work.has_speaker);
	neap__recordings_free(&recordings);
	return rc;
}

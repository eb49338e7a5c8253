/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shd.c: reads files in the layout of the Heidelberg Digits (Cramer, Stradmann, Schemmel,
 * Zenke, "The Heidelberg spiking data sets", IEEE TNNLS 33, 2022):
 * /spikes/times, /spikes/units, /labels; /extra/speaker, /extra/keys. Beside
 * them neap writes /extra/duration, /extra/speaker_names and the attributes
 * `inputs` and `longest` of the root.
 */
#include "data/formats/shd.h"
#include "data/formats/contents.h"
#include "data/recordings.h"
#include "data/sound/encoder.h"
#include "base/print.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 65536, SHD_CHANNELS = 700 };

/* One row of `vlen` as doubles or int64_t, in shd->convert. */
static int read_row(
	struct neap__shd *shd, struct neap__vlen *vlen, int64_t row, uint32_t *length, void **out)
{
	const unsigned char *data;
	NEAP_TRY(neap__vlen_row(vlen, row, &data, length));
	if (neap__grow(&shd->convert, &shd->convert_room, *length, 8) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", shd->path);
	*out = shd->convert;
	return neap__vlen_numbers(vlen, *length, data, shd->convert);
}

static int read_times(struct neap__shd *shd, int64_t index, struct neap__event_buffer *buffer)
{
	void *row = NULL;
	uint32_t n;
	NEAP_TRY(read_row(shd, &shd->times, index, &n, &row));
	NEAP_TRY(neap__event_buffer_reserve(buffer, n));
	const double *time = row;
	for (uint32_t i = 0; i < n; i++) {
		if (!(time[i] >= 0 && time[i] <= NEAP__LONGEST_SECONDS))
			return neap__fail(NEAP_EFORMAT,
				"'%s': /spikes/times of sample %lld has %g; times must be between "
				"0 and %g s",
				shd->path, (long long)index, time[i], NEAP__LONGEST_SECONDS);
		buffer->events.time[i] = time[i];
	}
	buffer->events.count = n;
	return 0;
}

static int read_units(struct neap__shd *shd, int64_t index, struct neap__event_buffer *buffer)
{
	void *row = NULL;
	uint32_t n;
	NEAP_TRY(read_row(shd, &shd->units, index, &n, &row));
	if (n != buffer->events.count)
		return neap__fail(NEAP_EFORMAT,
			"'%s': sample %lld has %lld /spikes/times, but %u /spikes/units", shd->path,
			(long long)index, (long long)buffer->events.count, n);
	const int64_t *unit = row;
	for (uint32_t i = 0; i < n; i++) {
		if (unit[i] < 0 || unit[i] >= shd->set.info.inputs)
			return neap__fail(NEAP_EFORMAT,
				"'%s': /spikes/units of sample %lld has %lld, but units must be "
				"between 0 and %d. Increase the attribute 'inputs' of the file",
				shd->path, (long long)index, (long long)unit[i],
				shd->set.info.inputs - 1);
		buffer->events.unit[i] = (uint16_t)unit[i];
	}
	return 0;
}

static int read_sample(struct neap__shd *shd, int64_t index, struct neap__event_buffer *buffer)
{
	NEAP_TRY(read_times(shd, index, buffer));
	NEAP_TRY(read_units(shd, index, buffer));
	NEAP_TRY(neap__events_sort(&buffer->events));
	int64_t n = buffer->events.count;
	double last = n > 0 ? buffer->events.time[n - 1] : 0;
	buffer->events.duration = shd->duration ? fmax(shd->duration[index], last) : 0;
	return 0;
}

static int shd_read(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer)
{
	struct neap__h5_guard guard;
	neap__h5_enter(&guard);
	int rc = read_sample((struct neap__shd *)set, index, buffer);
	neap__h5_leave(&guard);
	return rc;
}

static void release(struct neap__shd *shd)
{
	neap__vlen_close(&shd->times);
	neap__vlen_close(&shd->units);
	neap__h5_close(&shd->file);
	free(shd->duration);
	free(shd->convert);
	free(shd->path);
}

static void shd_close(struct neap_dataset *set)
{
	struct neap__h5_guard guard;
	neap__h5_enter(&guard);
	release((struct neap__shd *)set);
	neap__h5_leave(&guard);
}

static const struct neap__dataset_ops shd_ops = {.read = shd_read,
	.close = shd_close,
	.extent = neap__shd_extent,
	.prepare = neap__shd_prepare,
	.part = neap__shd_part};

static int largest(const int32_t *value, int64_t count)
{
	int most = -1;
	for (int64_t i = 0; value && i < count; i++)
		most = value[i] > most ? value[i] : most;
	return most;
}

/* Labels, speakers and their names. */
static int read_labels(struct neap__shd *shd)
{
	struct neap_dataset *set = &shd->set;
	int64_t n = set->info.samples;
	int there;
	NEAP_TRY(there = neap__h5_has(&shd->file, "/extra/keys"));
	if (there)
		NEAP_TRY(neap__h5_strings(&shd->file, "/extra/keys", MOST_CLASSES,
			&set->class_names, &set->nclass_names));
	NEAP_TRY(neap__h5_integers(&shd->file, "/labels", n, 0,
		(set->nclass_names ? set->nclass_names : MOST_CLASSES) - 1, &set->label));
	set->info.classes = set->nclass_names ? set->nclass_names : largest(set->label, n) + 1;
	NEAP_TRY(there = neap__h5_has(&shd->file, "/extra/speaker_names"));
	if (there)
		NEAP_TRY(neap__h5_strings(&shd->file, "/extra/speaker_names", MOST_CLASSES,
			&set->speaker_names, &set->nspeaker_names));
	NEAP_TRY(there = neap__h5_has(&shd->file, "/extra/speaker"));
	if (there) {
		NEAP_TRY(neap__h5_integers(
			&shd->file, "/extra/speaker", n, 0, MOST_CLASSES - 1, &set->speaker));
		set->info.speakers = largest(set->speaker, n) + 1;
	}
	if (set->nspeaker_names > set->info.speakers)
		set->info.speakers = set->nspeaker_names;
	return 0;
}

static int read_durations(struct neap__shd *shd)
{
	int64_t n = shd->set.info.samples;
	int there = neap__h5_has(&shd->file, "/extra/duration");
	if (there <= 0)
		return there;
	NEAP_TRY(neap__h5_reals(&shd->file, "/extra/duration", n, &shd->duration));
	for (int64_t i = 0; i < n; i++)
		if (!(shd->duration[i] >= 0 && shd->duration[i] <= NEAP__LONGEST_SECONDS))
			return neap__fail(NEAP_EFORMAT,
				"'%s': /extra/duration[%lld] is %g; it must be between 0 and %g s",
				shd->path, (long long)i, shd->duration[i], NEAP__LONGEST_SECONDS);
	return 0;
}

/* Finds the number of channels and the longest sample where the file does not name them: reads all.
 */
static int find_sizes(struct neap__shd *shd, int channels_known)
{
	struct neap__event_buffer buffer = {0};
	int most = -1, rc = 0;
	double longest = 0;
	for (int64_t i = 0; rc == 0 && i < shd->set.info.samples; i++) {
		rc = read_sample(shd, i, &buffer);
		if (rc < 0)
			break;
		const struct neap_events *e = &buffer.events;
		for (int64_t k = 0; k < e->count; k++)
			most = e->unit[k] > most ? e->unit[k] : most;
		double end = e->count > 0 ? e->time[e->count - 1] : 0;
		longest = fmax(longest, fmax(end, e->duration));
	}
	neap__event_buffer_free(&buffer);
	shd->set.info.duration = longest;
	if (channels_known)
		return rc;
	/* SHD and SSC have 700, and any part of them uses one above 350. In any other file, the
	 * largest channel that is used is only a lower bound. */
	shd->set.info.inputs_least =
		!shd->set.nclass_names || most < SHD_CHANNELS / 2 || most >= SHD_CHANNELS;
	shd->set.info.inputs = !shd->set.info.inputs_least ? SHD_CHANNELS : most < 0 ? 1 : most + 1;
	return rc;
}

/* The settings with which neap made spikes of recordings, if this is such a file. */
static int read_encoder(struct neap__shd *shd, double inputs)
{
	struct neap_encoder_options o = {.size = sizeof o};
	double span = 0, pool = 1, channels = inputs;
	char room[64];
	int known;

	NEAP_TRY(known = neap__h5_attribute(&shd->file, "encoder_span", &span));
	if (!known || !(span >= 1 && span <= 700) || inputs > 700)
		return 0;
	NEAP_TRY(known = neap__h5_attribute(&shd->file, "encoder_pool", &pool));
	if (known)
		NEAP_TRY(known = neap__h5_attribute(&shd->file, "encoder_channels", &channels));
	if (!(channels >= 0 && channels <= 700 && pool >= 1 && pool <= 700))
		return 0;
	o.span = (int)span;
	o.pool = (int)pool;
	o.channels = (int)channels;
	for (int i = 0; i < neap__encoder_numbers(); i++) {
		const char *name;
		double *value = neap__encoder_number(&o, i, &name);
		neap__print(room, sizeof room, "encoder_%s", name);
		NEAP_TRY(neap__h5_attribute(&shd->file, room, value));
	}
	if (neap__encoder_settle(&shd->set.encoder, &o) < 0 ||
		(known && neap__encoder_inputs(&shd->set.encoder) != (int)inputs))
		shd->set.encoder = (struct neap_encoder_options){0};
	return 0;
}

const char *const neap__event_numbers[NEAP__EVENT_NUMBERS] = {
	"pool", "polarity", "sensor_width", "sensor_height", "crop_x", "crop_y", "columns", "rows"};

/* The settings with which neap encoded the events of a sensor, if this is such a file. */
static int read_event_numbers(struct neap__shd *shd)
{
	shd->set.has_events = 1;
	for (int i = 0; i < NEAP__EVENT_NUMBERS; i++) {
		int known =
			neap__h5_attribute(&shd->file, neap__event_numbers[i], &shd->set.events[i]);
		NEAP_TRY(known);
		shd->set.has_events &= known;
	}
	int known = neap__h5_attribute(&shd->file, "time_unit", &shd->set.time_unit);
	NEAP_TRY(known);
	shd->set.has_time_unit = known && shd->set.time_unit >= 0;
	double from_first = 0;
	NEAP_TRY(neap__h5_attribute(&shd->file, "from_first_event", &from_first));
	shd->set.from_first = from_first > 0;
	return 0;
}

static int describe(struct neap__shd *shd)
{
	double inputs = 0, longest = 0;
	struct neap_dataset_info *info = &shd->set.info;
	int known, timed;
	NEAP_TRY(known = neap__h5_attribute(&shd->file, "inputs", &inputs));
	NEAP_TRY(timed = neap__h5_attribute(&shd->file, "longest", &longest));
	if (known && !(inputs >= 1 && inputs <= 65536 && inputs == floor(inputs)))
		return neap__fail(NEAP_EFORMAT,
			"'%s': attribute 'inputs' is %g; it must be between 1 and 65536", shd->path,
			inputs);
	if (timed && !(longest >= 0 && longest <= NEAP__LONGEST_SECONDS))
		return neap__fail(NEAP_EFORMAT,
			"'%s': attribute 'longest' is %g; it must be between 0 and %g s", shd->path,
			longest, NEAP__LONGEST_SECONDS);
	NEAP_TRY(read_encoder(shd, known ? inputs : 0));
	NEAP_TRY(read_event_numbers(shd));
	info->inputs = known ? (int)inputs : 65536;
	for (int64_t i = 0; i < info->samples; i++)
		info->events += neap__vlen_length(&shd->times, i);
	if (!known || !timed)
		return find_sizes(shd, known);
	info->duration = longest;
	for (int64_t i = 0; shd->duration && i < info->samples; i++)
		info->duration = fmax(info->duration, shd->duration[i]);
	return 0;
}

/* Opens all tables whose structures HDF5 itself parses. */
static int open_tables(struct neap__shd *shd)
{
	NEAP_TRY(neap__h5_open(&shd->file, shd->path));
	int there;
	NEAP_TRY(there = neap__h5_has(&shd->file, "/spikes"));
	shd->strange = !there;
	if (!there)
		return NEAP_EFORMAT; /* shd_open has the line */
	NEAP_TRY(neap__vlen_open(&shd->times, &shd->file, "/spikes/times", H5T_FLOAT));
	NEAP_TRY(neap__vlen_open(&shd->units, &shd->file, "/spikes/units", H5T_INTEGER));
	if (shd->times.rows != shd->units.rows)
		return neap__fail(NEAP_EFORMAT,
			"'%s': '/spikes/times' has %lld samples, but '/spikes/units' has %lld. "
			"Rewrite "
			"the file with both for each sample",
			shd->path, (long long)shd->times.rows, (long long)shd->units.rows);
	if (shd->times.rows == 0)
		return neap__fail(NEAP_EFORMAT, "'%s' has no samples", shd->path);
	shd->set.info.samples = shd->times.rows;
	NEAP_TRY(read_labels(shd));
	return read_durations(shd);
}

static void try_open(void *shd)
{
	(void)open_tables(shd);
}

static int open_all(struct neap__shd *shd)
{
	/* HDF5 1.10 may crash where the structures of a file are damaged. */
	int died = neap__data_try(try_open, shd);
	if (died)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is damaged: reading it crashed HDF5 (signal %d). Copy or write it "
			"again",
			shd->path, died);
	NEAP_TRY(open_tables(shd));
	return describe(shd);
}

static int shd_open(struct neap_dataset **out, const char *path)
{
	struct neap__h5_guard guard;
	/* Before the lock is taken, since the line depends on files that HDF5 opens. */
	if (neap__recordings_folder(path))
		return neap__contents_refuse_folder(path);
	struct neap__shd *shd = calloc(1, sizeof *shd);
	char *copy = strdup(path);
	if (!shd || !copy) {
		free(shd);
		free(copy);
		return neap__fail_errno(ENOMEM, "%s", path);
	}
	shd->path = copy;
	shd->set.ops = &shd_ops;
	shd->file.id = shd->times.base = shd->units.base = -1;
	shd->file.fd = -1;
	neap__h5_enter(&guard);
	int rc = open_all(shd), strange = shd->strange, is_other = shd->file.is_other;
	if (rc < 0)
		release(shd);
	neap__h5_leave(&guard);
	if (is_other)
		rc = neap__other_file(path);
	if (strange)
		rc = neap__contents_refuse(path,
			"has neither an array 'x' of rows of numbers (docs/data.md) nor "
			"'/spikes/times' and '/spikes/units', as the Heidelberg Digits have them");
	if (rc < 0) {
		neap__names_free(shd->set.class_names, shd->set.nclass_names);
		neap__names_free(shd->set.speaker_names, shd->set.nspeaker_names);
		free(shd->set.label);
		free(shd->set.speaker);
		free(shd);
		return rc;
	}
	*out = &shd->set;
	return 0;
}

static int takes_any(const char *name)
{
	(void)name;
	return 1;
}

const struct neap__dataset_format neap__format_shd = {"shd", takes_any, shd_open};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.c: one recording (wav, flac, aiff), or the standard input ("-"), as a data set of one
 * sample. It is turned into spikes when it is opened, as `neap encode` does it for many, and it has
 * no label.
 */
#include "data/dataset.h"
#include "data/sound/encoder.h"
#include "data/sound/sound_file.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct recording_set {
	struct neap_dataset set;
	struct neap_events events;
};

static int read_sample(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer)
{
	const struct neap_events *from = &((struct recording_set *)set)->events;
	(void)index;
	NEAP_TRY(neap__event_buffer_reserve(buffer, (size_t)from->count));
	struct neap_events *into = &buffer->events;
	if (from->count > 0) {
		memcpy(into->time, from->time, (size_t)from->count * sizeof *into->time);
		memcpy(into->unit, from->unit, (size_t)from->count * sizeof *into->unit);
	}
	into->count = from->count;
	into->duration = from->duration;
	return 0;
}

static void close_set(struct neap_dataset *set)
{
	neap_events_free(&((struct recording_set *)set)->events);
}

static const struct neap__dataset_ops ops = {.read = read_sample, .close = close_set};

/* The recording as spikes. */
static int encode(
	struct neap_events *events, const char *name, const struct neap_encoder_options *encoder)
{
	float *samples = NULL;
	int64_t count = 0;
	double rate = 0;
	int rc = strcmp(name, "-") == 0
			 ? neap__sound_read_stream(&samples, &count, &rate, STDIN_FILENO)
			 : neap__sound_read(&samples, &count, &rate, name, 0);
	if (rc == 0) {
		rc = neap_encode(events, samples, count, rate, encoder);
		if (rc < 0)
			neap__fail_in(rc, "'%s': ", name);
		free(samples);
	}
	return rc;
}

int neap__recording_shape(
	struct neap_dataset **out, const char *name, const struct neap_encoder_options *encoder)
{
	struct recording_set *r = calloc(1, sizeof *r);
	struct neap_encoder_options options = {.size = sizeof options};
	int rc = r ? 0 : neap__fail_errno(ENOMEM, "%s", name);
	if (rc == 0)
		r->set.label = malloc(sizeof *r->set.label);
	if (rc == 0 && !r->set.label)
		rc = neap__fail_errno(ENOMEM, "%s", name);
	if (rc == 0)
		rc = neap__encoder_settle(&options, encoder ? encoder : &options);
	if (rc < 0) {
		if (r)
			free(r->set.label);
		free(r);
		return rc;
	}
	r->set.ops = &ops;
	r->set.label[0] = -1;
	r->set.encoder = options;
	r->set.info.samples = 1;
	r->set.info.inputs = neap__encoder_inputs(&options);
	*out = &r->set;
	return 0;
}

int neap__recording_open(
	struct neap_dataset **out, const char *name, const struct neap_encoder_options *encoder)
{
	struct neap_dataset *set;
	NEAP_TRY(neap__recording_shape(&set, name, encoder));
	struct recording_set *r = (struct recording_set *)set;
	int rc = encode(&r->events, name, &set->encoder);
	if (rc < 0) {
		free(set->label);
		free(r);
		return rc;
	}
	set->info.events = r->events.count;
	set->info.duration = r->events.duration;
	*out = set;
	return 0;
}

int neap__recording_named(const char *name)
{
	return strcmp(name, "-") == 0 || neap__sound_named(name);
}

static int open_default(struct neap_dataset **out, const char *name)
{
	return neap__recording_open(out, name, NULL);
}

const struct neap__dataset_format neap__format_recording = {
	.name = "recording", .takes = neap__recording_named, .open = open_default};

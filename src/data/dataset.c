/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.c: the table of kinds of data sets, event buffers, and reading under the lock of a set.
 */
#include "data/dataset.h"
#include "data/recordings.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "base/grow.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The first row whose `takes` says yes opens the data set. */
static const struct neap__dataset_format *const formats[] = {
	&neap__format_randman,
	&neap__format_volleys,
	&neap__format_text,
	&neap__format_h5_arrays,
	&neap__format_npz_arrays,
	&neap__format_recording,
	&neap__format_shd,
};

/* Gives a set that was opened its name and lock; closes it where there is no memory. */
static int give_name(struct neap_dataset **out, struct neap_dataset *set, const char *name)
{
	pthread_mutex_init(&set->lock, NULL);
	set->name = strdup(name);
	set->info.name = set->name;
	if (!set->name) {
		neap_dataset_close(set);
		return neap__fail_errno(ENOMEM, "%s", name);
	}
	*out = set;
	return 0;
}

typedef int open_recording(
	struct neap_dataset **out, const char *name, const struct neap_encoder_options *encoder);

/* Opens a set by a format's function, or a recording with the settings of its encoder. */
static int open_named(struct neap_dataset **out, const char *name,
	int (*open)(struct neap_dataset **set, const char *name), open_recording *recording,
	const struct neap_encoder_options *encoder)
{
	struct neap_dataset *set = NULL;
	int rc = open ? open(&set, name) : recording(&set, name, encoder);
	return rc < 0 ? rc : give_name(out, set, name);
}

int neap__dataset_open_table(struct neap_dataset **out, const char *name,
	const struct neap__table_choice *choice, char ignored[NEAP__TAKEN_TEXT])
{
	struct neap_dataset *set = NULL;
	*out = NULL;
	int rc = neap__table_set_open(&set, name, choice, ignored);
	return rc < 0 ? rc : give_name(out, set, name);
}

int neap_dataset_open(struct neap_dataset **out, const char *name)
{
	NEAP_NEED(out, name);
	size_t i = 0;
	*out = NULL;
	if (!name || !*name)
		return neap__fail(
			NEAP_EUSAGE, "the name of the data set is empty; pass a file, or randman");
	while (!formats[i]->takes(name))
		i++;
	return open_named(out, name, formats[i]->open, NULL, NULL);
}

int neap__dataset_open_as(
	struct neap_dataset **out, const char *name, const struct neap_encoder_options *encoder)
{
	*out = NULL;
	if (encoder && name && neap__recording_named(name))
		return open_named(out, name, NULL, neap__recording_open, encoder);
	return neap_dataset_open(out, name);
}

int neap__dataset_open_live(
	struct neap_dataset **out, const char *name, const struct neap_encoder_options *encoder)
{
	*out = NULL;
	return open_named(out, name, NULL, neap__recording_shape, encoder);
}

int neap__dataset_has_labels(const struct neap_dataset *set)
{
	if (set->info.samples > 0 && set->info.classes > 0)
		return 0;
	if (set->info.values && set->info.samples > 0)
		return neap__contents_refuse(set->name, "has no array 'y' of targets");
	if (neap__recording_named(set->name))
		return neap__recordings_lone(set->name, 0);
	return neap__fail(NEAP_EFORMAT,
		"'%s' has %lld samples of %d classes; at least one sample with a class is needed",
		set->name, (long long)set->info.samples, set->info.classes);
}

int neap__dataset_is_labelled(const struct neap_dataset *set)
{
	if (set->info.target != NEAP_TARGET_LABEL)
		return 1;
	for (int64_t i = 0; i < set->info.samples; i++)
		if (neap_dataset_label(set, i) >= 0)
			return 1;
	return 0;
}

int neap__dataset_channels(struct neap_dataset *set, int given)
{
	struct neap_dataset_info *info = &set->info;
	if (!info->inputs_least)
		return 0;
	if (given > 0 && given < info->inputs)
		return neap__fail(NEAP_EUSAGE,
			"--channels %d is too small: the largest channel that '%s' uses is %d. "
			"Pass --channels %d, or more",
			given, set->name, info->inputs - 1, info->inputs);
	if (given < info->inputs)
		return neap__fail(NEAP_EUSAGE,
			"'%s' does not specify its number of channels, and the largest one used is "
			"%d. Set the attribute 'inputs' of the file, or pass --channels %d, or "
			"more, to 'neap train'",
			set->name, info->inputs - 1, info->inputs);
	info->inputs = given;
	info->inputs_least = 0;
	return 0;
}

void neap_dataset_close(struct neap_dataset *set)
{
	if (!set)
		return;
	set->ops->close(set);
	pthread_mutex_destroy(&set->lock);
	neap__names_free(set->class_names, set->nclass_names);
	neap__names_free(set->speaker_names, set->nspeaker_names);
	neap__names_free(set->feature_names, set->nfeature_names);
	neap__names_free(set->sample_names, (int)set->info.samples);
	free(set->order);
	free(set->unordered);
	free(set->sample_column);
	free(set->missing);
	free(set->doubt);
	free(set->label);
	free(set->speaker);
	free(set->numbers);
	free(set->shift);
	free(set->scale);
	free(set->target_mean);
	free(set->target_deviation);
	free(set->piece);
	free(set->name);
	free(set);
}

int neap_dataset_info(const struct neap_dataset *set, struct neap_dataset_info *info)
{
	NEAP_NEED(set, info);
	NEAP_TRY(neap__struct_size(info->size, sizeof *info, sizeof *info, "neap_dataset_info"));
	*info = set->info;
	info->size = sizeof *info;
	return 0;
}

int neap_dataset_label(const struct neap_dataset *set, int64_t index)
{
	NEAP_NEED(set);
	return set->label && index >= 0 && index < set->info.samples ? set->label[index] : -1;
}

int neap_dataset_speaker(const struct neap_dataset *set, int64_t index)
{
	NEAP_NEED(set);
	return set->speaker && index >= 0 && index < set->info.samples ? set->speaker[index] : -1;
}

const char *neap_dataset_class_name(const struct neap_dataset *set, int label)
{
	if (!set)
		return NULL;
	return label >= 0 && label < set->nclass_names ? set->class_names[label] : NULL;
}

const char *neap_dataset_speaker_name(const struct neap_dataset *set, int speaker)
{
	if (!set)
		return NULL;
	return speaker >= 0 && speaker < set->nspeaker_names ? set->speaker_names[speaker] : NULL;
}

int neap__dataset_read(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer)
{
	if (index < 0 || index >= set->info.samples)
		return neap__fail(NEAP_EUSAGE, "%s has no sample %lld; it has %lld, counted from 0",
			set->name, (long long)index, (long long)set->info.samples);
	pthread_mutex_lock(&set->lock);
	int rc = set->ops->read(set, index, buffer);
	pthread_mutex_unlock(&set->lock);
	if (rc < 0)
		return rc;
	buffer->events.label = neap_dataset_label(set, index);
	buffer->events.speaker = neap_dataset_speaker(set, index);
	return 0;
}

int neap__dataset_extent(
	struct neap_dataset *set, int64_t index, int prepare, struct neap__sample_extent *extent)
{
	pthread_mutex_lock(&set->lock);
	int rc = prepare && set->ops->prepare ? set->ops->prepare(set, index) : 0;
	if (rc == 0)
		rc = set->ops->extent(set, index, extent);
	pthread_mutex_unlock(&set->lock);
	return rc;
}

int neap__dataset_part(struct neap_dataset *set, int64_t index, double from, double to, size_t most,
	struct neap__event_buffer *buffer)
{
	pthread_mutex_lock(&set->lock);
	int rc = set->ops->part(set, index, from, to, most, buffer);
	pthread_mutex_unlock(&set->lock);
	return rc;
}

int neap_dataset_read(struct neap_dataset *set, int64_t index, struct neap_events *events)
{
	NEAP_NEED(set, events);
	struct neap__event_buffer buffer = {0};
	int rc = neap__dataset_read(set, index, &buffer);
	if (rc < 0)
		neap__event_buffer_free(&buffer);
	*events = buffer.events;
	return rc;
}

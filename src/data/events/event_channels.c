/* SPDX-License-Identifier: Apache-2.0 */
/* event_channels.c: what encode has to be given about the channels of a folder (recordings.h). */
#include "data/events/pixel_map.h"
#include "data/recordings.h"
#include "base/print.h"

static const char *const array_endings[] = {".npz", ".npy", ".h5", ".hdf5", NULL};

const char *neap__event_channels(char room[NEAP__CHANNELS_TEXT], const char *dir)
{
	int64_t samples;
	return neap__event_file_channels(room, &samples, dir);
}

const char *neap__event_file_channels(
	char room[NEAP__CHANNELS_TEXT], int64_t *samples, const char *path)
{
	struct neap_event_options options = {.size = sizeof options, .label = "(.*)"};
	struct neap_event_report report = {.size = sizeof report};
	struct neap__event_source *source = NULL;
	int largest[2];
	*samples = 0;
	neap__print(room, NEAP__CHANNELS_TEXT, " --sensor WIDTHxHEIGHT");
	int rc = neap__recordings_ends(path, array_endings) && !neap__recordings_folder(path)
			 ? neap__array_events_open(&source, path, NULL, &options, NULL)
			 : neap__folder_events_open(&source, path, &options, &report, NULL);
	if (rc < 0)
		return room;
	*samples = source->recording ? 1 : source->samples;
	int known = source->pixels ? source->width > 0 && source->height > 0 : source->inputs > 0;
	if (!known)
		neap__event_largest(largest, source);
	if (known)
		room[0] = '\0';
	else if (source->pixels && largest[0] >= 0)
		neap__print(room, NEAP__CHANNELS_TEXT, " --sensor %dx%d", largest[0] + 1,
			largest[1] + 1);
	else if (!source->pixels && largest[0] >= 0)
		neap__print(room, NEAP__CHANNELS_TEXT, " --inputs %d", largest[0] + 1);
	else if (!source->pixels)
		neap__print(room, NEAP__CHANNELS_TEXT, " --inputs N");
	source->close(source);
	return room;
}

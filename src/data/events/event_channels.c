/* SPDX-License-Identifier: Apache-2.0 */
/* event_channels.c: what encode has to be given about the channels of a folder (recordings.h). */
#include "data/events/pixel_map.h"
#include "data/recordings.h"
#include "base/print.h"

const char *neap__event_channels(char room[NEAP__CHANNELS_TEXT], const char *dir)
{
	struct neap_event_options options = {.size = sizeof options, .label = "(.*)"};
	struct neap_event_report report = {.size = sizeof report};
	struct neap__event_source *source = NULL;
	int largest[2];
	neap__print(room, NEAP__CHANNELS_TEXT, " --sensor WIDTHxHEIGHT");
	if (neap__folder_events_open(&source, dir, &options, &report) < 0)
		return room;
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

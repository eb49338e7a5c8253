/* SPDX-License-Identifier: Apache-2.0 */
/* event_channels.c: what encode has to be given about the channels of a folder (recordings.h). */
#include "data/events/event_source.h"
#include "data/recordings.h"

const char *neap__event_channels(const char *dir)
{
	struct neap_event_options options = {.size = sizeof options, .label = "(.*)"};
	struct neap_event_report report = {.size = sizeof report};
	struct neap__event_source *source = NULL;
	const char *option = " --sensor WIDTHxHEIGHT";
	if (neap__folder_events_open(&source, dir, &options, &report) < 0)
		return option;
	if (!source->pixels)
		option = source->inputs > 0 ? "" : " --inputs N";
	else if (source->width > 0 && source->height > 0)
		option = "";
	source->close(source);
	return option;
}

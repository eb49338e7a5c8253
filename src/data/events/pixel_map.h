/* SPDX-License-Identifier: Apache-2.0 */
/* pixel_map.h: which channel an event of a sensor belongs to, after crop, pooling and polarity. */
#ifndef NEAP_DATA_EVENTS_PIXEL_MAP_H
#define NEAP_DATA_EVENTS_PIXEL_MAP_H

#include "data/events/event_source.h"

struct neap__pixel_map {
	int width, height;	   /* of the sensor */
	int x, y, across, down;	   /* the part that counts */
	int pool;		   /* pixels a channel, on a side */
	int columns, rows;	   /* of channels */
	enum neap_polarity choice; /* split only where there are polarities */
	int channels;
	int given; /* 1: the number of channels is that of --inputs, not of a file */
};

/*
 * 0, or NEAP_EUSAGE where sizes are missing or do not fit each other, or where there are more than
 * 65536 channels. `path` is for messages; samples of the source are only read for them.
 */
int neap__pixel_map_new(struct neap__pixel_map *map, struct neap__event_source *source,
	const struct neap_event_options *options, const char *path);
/* The channel; -1 where crop or polarity drop the event, -2 where it is not on the sensor. */
int neap__pixel_map_channel(const struct neap__pixel_map *map, int x, int y, int p);

/*
 * The largest coordinates of the first samples, largest[0] -1 if none can be read or they are no
 * coordinates. The source cannot be read from its first sample after that.
 */
void neap__event_largest(int largest[2], struct neap__event_source *source);

#endif

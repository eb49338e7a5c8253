/* SPDX-License-Identifier: Apache-2.0 */
/* pixel_map.c: settles the sizes of a sensor and counts channels row by row. */
#include "data/events/pixel_map.h"
#include "base/fail.h"

#include <string.h>

/* SCANNED: events that a message about a missing size looks at, at least (chosen: a second). */
enum { MOST = 65536, SCANNED = 1 << 23 };

void neap__event_largest(int largest[2], struct neap__event_source *source)
{
	struct neap__raw_events raw = {0};
	const char *where;
	int64_t looked = 0, samples = 0;
	int rc = 1;

	largest[0] = largest[1] = -1;
	while (looked < SCANNED && rc != 0 && samples++ < source->samples) {
		rc = source->next(source, &raw, &where);
		for (int64_t i = 0; rc > 0 && i < raw.count; i++) {
			largest[0] = raw.x[i] > largest[0] ? raw.x[i] : largest[0];
			largest[1] = raw.y[i] > largest[1] ? raw.y[i] : largest[1];
		}
		looked += rc > 0 ? raw.count : 0;
		if (rc < 0 && !source->files)
			break;
	}
	if (largest[0] >= MOST || largest[1] >= MOST) /* other numbers than coordinates */
		largest[0] = -1;
	neap__raw_events_free(&raw);
}

/* Refuses a source without the size of its sensor, or without its number of channels. */
static int refuse_unknown(struct neap__event_source *source, const char *path)
{
	int largest[2];

	neap__event_largest(largest, source);
	if (!source->pixels)
		return largest[0] < 0
			       ? neap__fail(NEAP_EUSAGE,
					 "'%s' does not specify its number of channels (array "
					 "'inputs'). Pass --inputs N, 1 to %d",
					 path, MOST)
			       : neap__fail(NEAP_EUSAGE,
					 "'%s' does not specify its number of channels (array "
					 "'inputs'); the largest one that it uses is %d. Pass "
					 "--inputs "
					 "%d, or more if there are more channels",
					 path, largest[0], largest[0] + 1);
	return largest[0] < 0
		       ? neap__fail(NEAP_EUSAGE,
				 "'%s' does not specify the size of its sensor (array "
				 "'sensor_size'). Pass --sensor WIDTHxHEIGHT in pixels: 34x34 of "
				 "N-MNIST, 128x128 of a DVS128, 346x260 of a DAVIS346",
				 path)
		       : neap__fail(NEAP_EUSAGE,
				 "'%s' does not specify the size of its sensor (array "
				 "'sensor_size'); its largest x is %d, and its largest y %d. Pass "
				 "--sensor %dx%d, or the pixels of the camera: 34x34 of N-MNIST, "
				 "128x128 of a DVS128, 346x260 of a DAVIS346",
				 path, largest[0], largest[1], largest[0] + 1, largest[1] + 1);
}

static int without_pixels(struct neap__pixel_map *map, struct neap__event_source *source,
	const struct neap_event_options *o, const char *path)
{
	if (o->width || o->crop_width || o->pool > 1)
		return neap__fail(NEAP_EUSAGE,
			"'%s' contains events of channels without pixels ('units'), to which "
			"--sensor, --crop and --pool do not apply. Remove these options",
			path);
	map->channels = o->inputs ? o->inputs : source->inputs;
	map->given = o->inputs > 0;
	map->width = map->channels;
	if (map->channels < 1 || map->channels > MOST)
		return refuse_unknown(source, path);
	return 0;
}

/* Takes the part of the sensor that --crop names, in squares of --pool pixels. */
static int crop(struct neap__pixel_map *map, const struct neap_event_options *o)
{
	map->x = o->crop_x;
	map->y = o->crop_y;
	map->across = o->crop_width ? o->crop_width : map->width;
	map->down = o->crop_width ? o->crop_height : map->height;
	if (map->x < 0 || map->y < 0 || map->across < 1 || map->down < 1 ||
		map->across > map->width - map->x || map->down > map->height - map->y)
		return neap__fail(NEAP_EUSAGE,
			"--crop: %dx%d+%d+%d exceeds the sensor of %dx%d pixels. Reduce it",
			map->across, map->down, map->x, map->y, map->width, map->height);
	map->pool = o->pool > 1 ? o->pool : 1;
	if (map->pool > map->across && map->pool > map->down)
		return neap__fail(NEAP_EUSAGE,
			"--pool: squares of %d pixels are larger than the sensor of %dx%d pixels. "
			"Reduce it",
			map->pool, map->across, map->down);
	map->columns = (map->across - 1) / map->pool + 1;
	map->rows = (map->down - 1) / map->pool + 1;
	return 0;
}

int neap__pixel_map_new(struct neap__pixel_map *map, struct neap__event_source *source,
	const struct neap_event_options *o, const char *path)
{
	memset(map, 0, sizeof *map);
	if (!source->pixels)
		return without_pixels(map, source, o, path);
	if (o->inputs)
		return neap__fail(NEAP_EUSAGE,
			"--inputs: the events of '%s' have pixels, so --sensor gives the number of "
			"channels. Remove --inputs",
			path);
	map->width = o->width ? o->width : source->width;
	map->height = o->width ? o->height : source->height;
	if (map->width < 1 || map->height < 1 || map->width > MOST || map->height > MOST)
		return refuse_unknown(source, path);
	NEAP_TRY(crop(map, o));
	map->choice = o->polarity;
	if (!source->polarities && map->choice == NEAP_POLARITY_SPLIT)
		map->choice = NEAP_POLARITY_MERGE;
	int64_t channels =
		(int64_t)map->columns * map->rows * (map->choice == NEAP_POLARITY_SPLIT ? 2 : 1);
	if (channels > MOST)
		return neap__fail(NEAP_EUSAGE,
			"%dx%d pixels need %lld channels, but a network has at most %d. Reduce "
			"them with --pool N, --crop or --polarity merge",
			map->across, map->down, (long long)channels, MOST);
	map->channels = (int)channels;
	return 0;
}

int neap__pixel_map_channel(const struct neap__pixel_map *map, int x, int y, int p)
{
	if (map->pool == 0)
		return x < map->channels ? x : -2;
	if (x >= map->width || y >= map->height)
		return -2;
	if (x < map->x || y < map->y || x >= map->x + map->across || y >= map->y + map->down ||
		(map->choice == NEAP_POLARITY_ON && !p) || (map->choice == NEAP_POLARITY_OFF && p))
		return -1;
	int channel = (y - map->y) / map->pool * map->columns + (x - map->x) / map->pool;
	return map->choice == NEAP_POLARITY_SPLIT && p ? map->columns * map->rows + channel
						       : channel;
}

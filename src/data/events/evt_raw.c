/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evt_raw.c: reads a recording in Prophesee's RAW: lines that begin with %, then words, least
 * significant byte first, in the format that the header specifies. The upper 4 bits of a word are
 * its type.
 *     EVT2   32 bits. 0, 1: event of that polarity, {6 bits of time, 11 of x, 11 of y}; 8: the
 *            upper 28 bits of the time
 *     EVT21  64 bits. 0, 1: as before, and 32 bits, one for each of the pixels from x on that has
 *            an event; 8: as before. In files of "endianness=legacy" these 32 bits come first
 *     EVT3   16 bits. 0: y; 2: event, {polarity, 11 bits of x}; 3: the same, of the pixel that the
 *            next words begin at; 4, 5: 12 or 8 pixels from there on, a bit each; 6, 8: lower and
 *            upper 12 bits of the time
 * Words of other types (triggers, counters) are passed over. Times are microseconds since the first
 * word with the upper bits of the time, so recordings that were cut begin at 0. The upper bits
 * wrap around after 16.8 s (EVT3) or 4.8 hours (EVT2, EVT21).
 */
#include "data/events/event_source.h"
#include "data/events/event_words.h"
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NO_TIME = -1, TOO_FAR = 65536 /* no sensor has such a pixel */ };

struct evt_state {
	struct neap__raw_events *events;
	const char *path;
	int height; /* of the sensor; 0: unknown */
	int swapped;
	int64_t words;
	int64_t first_high; /* upper bits of the time, the first of the file; NO_TIME in front */
	int64_t last_high, turns;
	int64_t time; /* without the lower bits, microseconds */
	int64_t low;
	int x, y, p;
};

/* The upper `bits` bits of the time, above `shift` lower ones. */
static void take_high(struct evt_state *s, int64_t high, int bits, int shift)
{
	if (s->first_high == NO_TIME)
		s->first_high = s->last_high = high;
	s->turns += high + ((int64_t)1 << (bits - 1)) <= s->last_high;
	s->last_high = high;
	s->time = (s->turns << (bits + shift)) + (high - s->first_high) * (1 << shift);
}

/* Events in front of the first time have none, and are skipped. */
static int add(struct evt_state *s, int64_t low, int x)
{
	int64_t time = s->time + low;
	if (s->first_high == NO_TIME)
		return 0;
	if (time < 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is damaged: event %lld is before the first time of the file. Replace "
			"it "
			"with an intact copy",
			s->path, (long long)s->events->count);
	return neap__raw_events_add(s->events, (double)time / 1e6, x, s->y, (unsigned)s->p);
}

/* The pixels from s->x on that have a bit in `valid`. */
static int add_pixels(struct evt_state *s, int64_t low, uint32_t valid)
{
	for (int i = 0; valid; i++, valid >>= 1)
		if (valid & 1)
			NEAP_TRY(add(s, low, s->x + i));
	return 0;
}

/* Words with the upper bits of the time, and events with x, y and p: the lower bits of the time of
   an event, or -1 if the word is not an event. */
static int64_t take_word(struct evt_state *s, uint32_t word)
{
	uint32_t type = word >> 28;
	s->words++;
	if (type == 8)
		take_high(s, word & 0xfffffff, 28, 6);
	if (type > 1)
		return -1;
	s->p = (int)type;
	s->y = (int)(word & 0x7ff);
	s->x = (int)(word >> 11 & 0x7ff);
	return word >> 22 & 0x3f;
}

static int take_evt2(void *user, const unsigned char *p)
{
	struct evt_state *s = user;
	int64_t low = take_word(s, neap__word32(p));
	return low < 0 ? 0 : add(s, low, s->x);
}

static int take_evt21(void *user, const unsigned char *p)
{
	struct evt_state *s = user;
	uint32_t first = neap__word32(p), second = neap__word32(p + 4);
	int64_t low = take_word(s, s->swapped ? first : second);
	return low < 0 ? 0 : add_pixels(s, low, s->swapped ? second : first);
}

static int take_evt3(void *user, const unsigned char *p)
{
	struct evt_state *s = user;
	uint32_t word = neap__word16(p), value = word & 0xfff;
	/* Sensors send lines that they do not have, which Metavision leaves out as well. */
	int beyond = s->height && s->y >= s->height, width;
	s->words++;
	switch (word >> 12) {
	case 0:
		s->y = (int)(value & 0x7ff);
		return 0;
	case 2:
	case 3:
		s->p = (int)(value >> 11);
		if (word >> 12 == 2)
			return beyond ? 0 : add(s, s->low, (int)(value & 0x7ff));
		s->x = (int)(value & 0x7ff);
		return 0;
	case 4:
	case 5:
		width = word >> 12 == 4 ? 12 : 8;
		if (!beyond)
			NEAP_TRY(add_pixels(s, s->low, width == 12 ? value : value & 0xff));
		s->x = s->x + width < TOO_FAR ? s->x + width : TOO_FAR;
		return 0;
	case 6:
		s->low = value;
		return 0;
	case 8:
		take_high(s, value, 12, 12);
		return 0;
	default:
		return 0;
	}
}

static const struct {
	const char *name;
	size_t bytes; /* of a word */
	int (*take)(void *user, const unsigned char *word);
} formats[] = {{"EVT2", 4, take_evt2}, {"EVT21", 8, take_evt21}, {"EVT3", 2, take_evt3}};
enum { FORMATS = sizeof formats / sizeof *formats };

/* The row of the table, or NEAP_EFORMAT. */
static int find_format(const char *name, const char *path)
{
	for (int i = 0; i < FORMATS; i++)
		if (strcmp(formats[i].name, name) == 0)
			return i;
	if (!name[0])
		return neap__fail(NEAP_EFORMAT,
			"'%s' is not a RAW file of Prophesee: its header has no line '%% format' "
			"or '%% evt'. Convert it, or save its events as t, x, y, p in .npz "
			"(docs/events.md)",
			path);
	return neap__fail(NEAP_EFORMAT,
		"'%s' has events in the format '%s', but only EVT2, EVT21 and EVT3 can be read. "
		"Convert it with Metavision, or save its events as t, x, y, p in .npz "
		"(docs/events.md)",
		path, name);
}

int neap__evt_raw_read(struct neap__raw_events *events, struct neap__event_file *f)
{
	struct neap__prophesee head;
	struct evt_state state = {.events = events, .path = f->path, .first_high = NO_TIME};
	FILE *file = fopen(f->path, "re");
	if (!file)
		return neap__fail_errno(errno, "cannot read '%s'", f->path);
	int rc = neap__prophesee_header(&head, file, f->path), format = 0;
	f->width = head.width;
	state.height = f->height = head.height;
	state.swapped = head.swapped;
	if (rc == 0)
		rc = format = find_format(head.format, f->path);
	if (rc >= 0)
		rc = events ? neap__event_words(file, f->path, formats[format].bytes,
				      formats[format].take, &state)
			    : 0;
	if (rc == 0 && events && state.words == 0)
		rc = neap__fail(NEAP_EFORMAT,
			"'%s' is truncated: there is nothing behind its header. Replace it with an "
			"intact copy",
			f->path);
	fclose(file);
	return rc;
}

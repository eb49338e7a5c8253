/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dat.c: reads a recording in Prophesee's DAT, version 2: lines that begin with %, a byte with the
 * type of the events (12, or 0 of older files), a byte with their size (8), and events of {32 bits
 * of microseconds, 14 bits of x, 14 bits of y, polarity, 3 unused bits}, least significant byte
 * first. The 32 bits wrap around after 72 minutes: a time that is less than the one in front of it
 * by more than half of that is one period later.
 */
#include "data/events/event_source.h"
#include "data/events/event_words.h"
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>

enum { EVENT = 8, OLD_TYPE = 0, TYPE = 12, VERSION = 2 };

struct dat {
	struct neap__raw_events *events;
	int64_t turns, last; /* of 2^32 microseconds; the 32 bits read last */
};

static int take(void *user, const unsigned char *word)
{
	struct dat *dat = user;
	int64_t time = neap__word32(word);
	uint32_t pixel = neap__word32(word + 4);
	dat->turns += time + INT32_MAX < dat->last;
	dat->last = time;
	return neap__raw_events_add(dat->events, (double)((dat->turns << 32) + time) / 1e6,
		(int)(pixel & 0x3fff), (int)(pixel >> 14 & 0x3fff), pixel >> 28 & 1);
}

static int read_head(struct neap__prophesee *head, FILE *file, const char *path)
{
	NEAP_TRY(neap__prophesee_header(head, file, path));
	if (ftell(file) == 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is not a DAT file of Prophesee: its first line does not begin with "
			"'%% '. Convert it, or save its events as t, x, y, p in .npz "
			"(docs/events.md)",
			path);
	int type = getc(file), bytes = getc(file);
	if (bytes == EOF)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is truncated in its header. Replace it with an intact copy", path);
	if ((head->version != VERSION && head->version != 0) ||
		(type != TYPE && type != OLD_TYPE) || bytes != EVENT)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has version %d of DAT and events of type %d with %d bytes, but only "
			"version %d with type %d or %d and %d bytes can be read. Convert it with "
			"Metavision, or save its events as t, x, y, p in .npz (docs/events.md)",
			path, head->version, type, bytes, VERSION, TYPE, OLD_TYPE, EVENT);
	return 0;
}

int neap__dat_read(struct neap__raw_events *events, struct neap__event_file *f)
{
	struct neap__prophesee head;
	struct dat dat = {.events = events};
	FILE *file = fopen(f->path, "re");
	if (!file)
		return neap__fail_errno(errno, "cannot read '%s'", f->path);
	int rc = read_head(&head, file, f->path);
	f->width = head.width;
	f->height = head.height;
	if (rc == 0 && events)
		rc = neap__event_words(file, f->path, EVENT, take, &dat);
	fclose(file);
	return rc;
}

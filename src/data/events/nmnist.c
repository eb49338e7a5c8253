/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nmnist.c: reads a recording of N-MNIST or N-Caltech101 (Orchard and others 2015), 5 bytes an
 * event: x, y, then a bit of polarity and 23 bits of microseconds, most significant first. An event
 * with y = 240 is none: the times from there on are 2^13 microseconds later.
 */
#include "data/events/event_source.h"
#include "data/events/event_words.h"
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>

enum { EVENT = 5, OVERFLOW_Y = 240, OVERFLOW = 1 << 13, SIDE = 34 /* of N-MNIST */ };

struct nmnist {
	struct neap__raw_events *events;
	int64_t late;
};

static int take(void *user, const unsigned char *p)
{
	struct nmnist *s = user;
	int64_t time = (p[2] & 127) << 16 | p[3] << 8 | p[4];
	if (p[1] == OVERFLOW_Y) {
		s->late += OVERFLOW;
		return 0;
	}
	return neap__raw_events_add(
		s->events, (double)(time + s->late) / 1e6, p[0], p[1], p[2] >> 7);
}

int neap__nmnist_read(struct neap__raw_events *events, struct neap__event_file *f)
{
	struct nmnist state = {.events = events};
	f->width = f->height = SIDE;
	if (!events)
		return 0;
	FILE *file = fopen(f->path, "re");
	if (!file)
		return neap__fail_errno(errno, "cannot read '%s'", f->path);
	int rc = neap__event_words(file, f->path, EVENT, take, &state);
	if (rc == 0 && ftell(file) == 0)
		rc = neap__fail(NEAP_EFORMAT, "'%s' is empty. Copy it again", f->path);
	fclose(file);
	return rc;
}

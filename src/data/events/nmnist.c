/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nmnist.c: reads a recording of N-MNIST or N-Caltech101 (Orchard and others 2015), 5 bytes an
 * event: x, y, then a bit of polarity and 23 bits of microseconds, most significant first. An event
 * with y = 240 is none: the times from there on are 2^13 microseconds later.
 */
#include "data/events/event_source.h"
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>

enum { EVENT = 5, OVERFLOW_Y = 240, OVERFLOW = 1 << 13 };

static int add(struct neap__raw_events *events, const unsigned char *p, int64_t *late)
{
	if (p[1] == OVERFLOW_Y) {
		*late += OVERFLOW;
		return 0;
	}
	NEAP_TRY(neap__raw_events_grow(events, events->count + 1));
	int64_t n = events->count++;
	int64_t time = (p[2] & 127) << 16 | p[3] << 8 | p[4];
	events->x[n] = p[0];
	events->y[n] = p[1];
	events->p[n] = p[2] >> 7;
	events->time[n] = (double)(time + *late) / 1e6;
	return 0;
}

int neap__nmnist_read(struct neap__raw_events *events, const char *path)
{
	unsigned char piece[EVENT * 4096];
	int64_t late = 0;
	size_t n;
	int rc = 0;
	FILE *file = fopen(path, "re");
	if (!file)
		return neap__fail_errno(errno, "cannot read '%s'", path);
	events->count = 0;
	while (rc == 0 && (n = fread(piece, 1, sizeof piece, file)) > 0) {
		for (size_t i = 0; rc == 0 && i + EVENT <= n; i += EVENT)
			rc = add(events, piece + i, &late);
		if (rc == 0 && n % EVENT != 0)
			rc = neap__fail(NEAP_EFORMAT,
				"'%s' is truncated: its length is not a multiple of %d bytes, the "
				"size of an event. Copy it again",
				path, EVENT);
	}
	if (rc == 0 && ftell(file) == 0 && !ferror(file))
		rc = neap__fail(NEAP_EFORMAT, "'%s' is empty. Copy it again", path);
	if (rc == 0 && ferror(file))
		rc = neap__fail_errno(EIO, "cannot read '%s'", path);
	fclose(file);
	return rc;
}

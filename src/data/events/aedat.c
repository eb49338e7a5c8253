/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aedat.c: reads events of a DVS camera in AEDAT 3.1 (iniLabs), as DVS Gesture has them: lines that
 * begin with #, then packets. A packet is a head of 28 bytes {type 2, source 2, bytes of an event
 * 4, offset of the time 4, overflows 4, capacity 4, events 4, valid ones 4} and its events, each
 * {data 4, microseconds 4}, least significant byte first. Data are x (bits 17 to 31, 13 of them
 * used), y (bits 2 to 14), polarity (bit 1), valid (bit 0). Packets of other types are passed over.
 */
#include "data/events/event_source.h"
#include "data/events/event_words.h"
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { HEAD = 28, EVENT = 8, POLARITY = 1, LONGEST_LINE = 4096, MOST_EVENT = 1 << 16 };

static const char TRUNCATED[] = "'%s' is truncated within a packet of events. Copy it again";

/* Passes the lines at the beginning, of which the first names the version. */
static int pass_lines(FILE *file, const char *path)
{
	char line[LONGEST_LINE];
	int c;
	for (int number = 1; (c = getc(file)) == '#'; number++) {
		if (!fgets(line, sizeof line, file) || !strchr(line, '\n'))
			return neap__fail(NEAP_EFORMAT,
				"'%s' is damaged: line %d of its header does not end. Copy it "
				"again",
				path, number);
		if (number == 1 && strncmp(line, "!AER-DAT3.1", 11) != 0)
			return neap__fail(NEAP_EFORMAT,
				"'%s' is not AEDAT 3.1: its first line is not '#!AER-DAT3.1'. "
				"Convert it, or save its events as t, x, y, p in .npz "
				"(docs/events.md)",
				path);
		if (number == 1)
			continue;
	}
	if (ftell(file) <= 1)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is not AEDAT 3.1: its first line is not '#!AER-DAT3.1'. Convert it, "
			"or save its events as t, x, y, p in .npz (docs/events.md)",
			path);
	if (c != EOF)
		ungetc(c, file);
	return 0;
}

/* Which events count, and when the last of all is. */
struct aedat_span {
	int64_t from, to, last; /* microseconds */
};

static int add(struct neap__raw_events *events, const unsigned char *p, int64_t overflows,
	struct aedat_span *span)
{
	uint32_t data = neap__word32(p);
	int64_t time = (overflows << 31) + (neap__word32(p + 4) & 0x7fffffff);
	int64_t from = span->from, to = span->to;
	span->last = time > span->last ? time : span->last;
	if (!(data & 1) || time < from || time > to)
		return 0;
	return neap__raw_events_add(events, (double)(time - from) / 1e6, (int)(data >> 17 & 0x1fff),
		(int)(data >> 2 & 0x1fff), data >> 1 & 1);
}

static int read_packet(struct neap__raw_events *events, FILE *file, const unsigned char *head,
	struct aedat_span *span, const char *path)
{
	unsigned char piece[EVENT * 4096];
	uint32_t bytes = neap__word32(head + 4), capacity = neap__word32(head + 16);
	uint32_t count = neap__word32(head + 20), overflows = neap__word32(head + 12);
	int polarity = (head[0] | head[1] << 8) == POLARITY;
	if (bytes == 0 || bytes > MOST_EVENT || count > capacity || overflows > INT32_MAX ||
		(polarity && bytes != EVENT))
		return neap__fail(NEAP_EFORMAT,
			"'%s' is damaged: a packet declares %u events, %u of them valid, of %u "
			"bytes "
			"each. Copy the file again",
			path, capacity, count, bytes);
	uint64_t left = (uint64_t)bytes * capacity, at = 0;
	while (left > 0) {
		size_t want = left < sizeof piece ? (size_t)left : sizeof piece;
		if (fread(piece, 1, want, file) != want)
			return neap__fail(NEAP_EFORMAT, TRUNCATED, path);
		for (size_t i = 0; polarity && i < want && at < count; i += EVENT, at++)
			NEAP_TRY(add(events, piece + i, overflows, span));
		left -= want;
	}
	return 0;
}

int neap__aedat_read(struct neap__raw_events *events, const char *path, int64_t from, int64_t to)
{
	unsigned char head[HEAD];
	size_t n;
	struct aedat_span span = {from, to, -1};
	FILE *file = fopen(path, "re");
	if (!file)
		return neap__fail_errno(errno, "cannot read '%s'", path);
	events->count = 0;
	int packets = 0, rc = pass_lines(file, path);
	for (; rc == 0 && (n = fread(head, 1, HEAD, file)) > 0; packets = 1)
		rc = n == HEAD ? read_packet(events, file, head, &span, path)
			       : neap__fail(NEAP_EFORMAT, TRUNCATED, path);
	if (rc == 0 && ferror(file))
		rc = neap__fail_errno(EIO, "cannot read '%s'", path);
	else if (rc == 0 && !packets)
		rc = neap__fail(NEAP_EFORMAT,
			"'%s' is truncated: it has no packet of events. Copy it again", path);
	/* Nothing says how long a file is; a cut between packets shows in samples behind the end.
	 */
	else if (rc == 0 && span.last < from)
		rc = neap__fail(NEAP_EFORMAT,
			"'%s' is truncated: its last event is at %.6g s, but a sample of its "
			"labels "
			"begins at %.6g s. Copy it again",
			path, (double)span.last / 1e6, (double)from / 1e6);
	fclose(file);
	return rc;
}

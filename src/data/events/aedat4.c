/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aedat4.c: reads the events of a recording in AEDAT 4 (iniVation): a line "#!AER-DAT4.0", a table
 * of FlatBuffers (flat_table.h) with the compression, the place of the index behind the packets and
 * a description of the streams in XML; then packets {stream 4 bytes, size 4} and a compressed table
 * each. A packet of events has a vector of {microseconds 8 bytes, x 2, y 2, polarity 1, unused 3},
 * least significant byte first. The events of the first stream that has some are read; other
 * streams (images, motion) are passed over. Times count from the first event, since the clock of
 * the file is that of the computer.
 */
#include "data/events/event_source.h"
#include "data/events/event_words.h"
#include "data/events/flat_table.h"
#include "data/events/unpack.h"
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	EVENT = 16,
	HEAD = 8,
	LINE = 14,	       /* bytes of the first line */
	MOST_HEADER = 1 << 24, /* bytes, chosen: its text has some 1000 per stream */
	COMPRESSION = 0,       /* fields of the header */
	INDEX_PLACE = 1,
	DESCRIPTION = 2,
	ELEMENTS = 0 /* field of a packet */
};

struct aedat4 {
	struct neap__raw_events *events;
	struct neap__event_file *f;
	FILE *file;
	int64_t bytes, end; /* of the file; where packets end */
	enum neap__packing packing;
	int has_stream;
	uint32_t stream; /* whose events are read */
	int64_t first;	 /* time of the first event; known if there are events */
	unsigned char *packed;
	size_t room;
	struct neap__unpacked unpacked;
};

static int damaged(const struct aedat4 *s, const char *what)
{
	return neap__fail(NEAP_EFORMAT, "'%s' is damaged: %s. Replace it with an intact copy",
		s->f->path, what);
}

static int truncated(const struct aedat4 *s, const char *where)
{
	return neap__fail(NEAP_EFORMAT, "'%s' is truncated in %s. Replace it with an intact copy",
		s->f->path, where);
}

/* Reads `bytes` to s->packed, behind `kept` bytes that are there; the file has that many. */
static int read_block(struct aedat4 *s, size_t kept, size_t bytes, const char *where)
{
	if (s->room < kept + bytes) {
		unsigned char *more = realloc(s->packed, kept + bytes);
		if (!more)
			return neap__fail_errno(ENOMEM, "'%s'", s->f->path);
		s->packed = more;
		s->room = kept + bytes;
	}
	if (fread(s->packed + kept, 1, bytes, s->file) != bytes)
		return ferror(s->file) ? neap__fail_errno(EIO, "cannot read '%s'", s->f->path)
				       : truncated(s, where);
	return 0;
}

/* The number behind `key">` in a part of the description; 0 if there is none up to 65536. */
static int find_size(const char *part, const char *end, const char *key)
{
	const char *at = memmem(part, (size_t)(end - part), key, strlen(key));
	at = at ? memchr(at, '>', (size_t)(end - at)) : NULL;
	long n = at ? strtol(at + 1, NULL, 10) : 0;
	return n >= 1 && n <= 65536 ? (int)n : 0;
}

/* The first stream of events is read: its number, the name of a node, and the size of its sensor.
 */
static void read_description(struct aedat4 *s, const unsigned char *text, size_t count)
{
	static const char name[] = "<node name=\"";
	char *copy = strndup((const char *)text, count);
	const char *type = copy ? strstr(copy, ">EVTS<") : NULL, *node = NULL;
	for (const char *at = copy; type && (at = strstr(at, name)) && at < type; at++)
		node = at + strlen(name);
	if (node && *node >= '0' && *node <= '9') {
		s->stream = (uint32_t)strtoul(node, NULL, 10);
		s->has_stream = 1;
	}
	if (type) {
		const char *next = strstr(type, "typeIdentifier"), *end = type + strlen(type);
		s->f->width = find_size(type, next ? next : end, "\"sizeX\"");
		s->f->height = find_size(type, next ? next : end, "\"sizeY\"");
	}
	free(copy);
}

static int read_table(struct aedat4 *s, size_t bytes)
{
	struct neap__flat_table table;
	const unsigned char *field = NULL;
	size_t count = 0;
	if (neap__flat_root(&table, s->packed, bytes, "IOHE") <= 0)
		return damaged(s, "its header is not a table");
	int there = neap__flat_field(&table, COMPRESSION, 4, &field);
	uint32_t compression = there > 0 ? neap__word32(field) : 0;
	if (there < 0 || compression > 4)
		return damaged(s, "its header has an unknown compression");
	static const enum neap__packing packings[] = {
		NEAP__PLAIN, NEAP__LZ4, NEAP__LZ4, NEAP__ZSTD, NEAP__ZSTD};
	s->packing = packings[compression];
	there = neap__flat_field(&table, INDEX_PLACE, 8, &field);
	int64_t place = there > 0 ? (int64_t)neap__word64(field) : -1;
	if (there < 0 || place < -1 || (place >= 0 && place < ftell(s->file)))
		return damaged(s, "its header has a wrong position of the index");
	if (place >= s->bytes)
		return truncated(s, "its packets");
	/* A recording that was interrupted has no index. */
	s->end = place >= 0 ? place : s->bytes;
	there = neap__flat_vector(&table, DESCRIPTION, 1, &field, &count);
	if (there < 0)
		return damaged(s, "its header has a wrong description of the streams");
	if (there > 0)
		read_description(s, field, count);
	return 0;
}

static int read_header(struct aedat4 *s)
{
	static const char line[] = "#!AER-DAT4.0\r\n";
	char found[LINE] = "";
	if (fread(found, 1, LINE, s->file) != LINE || memcmp(found, line, LINE) != 0)
		return neap__fail(NEAP_EFORMAT,
			"'%s' is not AEDAT 4: its first line is not '#!AER-DAT4.0'. Convert it, "
			"or save its events as t, x, y, p in .npz (docs/events.md)",
			s->f->path);
	NEAP_TRY(read_block(s, 0, 4, "its header"));
	size_t bytes = neap__word32(s->packed);
	if (bytes > MOST_HEADER)
		return damaged(s, "its header has more than 16 MiB");
	if ((int64_t)bytes > s->bytes - LINE - 4)
		return truncated(s, "its header");
	NEAP_TRY(read_block(s, 4, bytes, "its header"));
	return read_table(s, bytes + 4);
}

static int add_events(struct aedat4 *s, const unsigned char *p, size_t count)
{
	for (; count > 0; count--, p += EVENT) {
		int64_t time = (int64_t)neap__word64(p), late;
		int x = (int16_t)neap__word16(p + 8), y = (int16_t)neap__word16(p + 10);
		if (s->events->count == 0)
			s->first = time;
		if (__builtin_sub_overflow(time, s->first, &late) || late < 0 || x < 0 || y < 0 ||
			p[12] > 1)
			return neap__fail(NEAP_EFORMAT,
				"'%s' is damaged: event %lld is at pixel (%d, %d) with polarity "
				"%d, "
				"%lld us after the first one. Replace it with an intact copy",
				s->f->path, (long long)s->events->count, x, y, p[12],
				(long long)late);
		NEAP_TRY(neap__raw_events_add(s->events, (double)late / 1e6, x, y, p[12]));
	}
	return 0;
}

static int read_packet(struct aedat4 *s)
{
	struct neap__flat_table table;
	const unsigned char *element = NULL;
	size_t count = 0;
	NEAP_TRY(read_block(s, 0, HEAD, "a packet"));
	uint32_t stream = neap__word32(s->packed), bytes = neap__word32(s->packed + 4);
	if (bytes > s->end - ftell(s->file))
		return truncated(s, "a packet");
	if (s->has_stream && stream != s->stream)
		return fseek(s->file, (long)bytes, SEEK_CUR) < 0
			       ? neap__fail_errno(errno, "cannot read '%s'", s->f->path)
			       : 0;
	NEAP_TRY(read_block(s, 0, bytes, "a packet"));
	NEAP_TRY(neap__unpack(&s->unpacked, s->packing, s->packed, bytes, s->f->path));
	int rc = neap__flat_root(&table, s->unpacked.data, s->unpacked.bytes, "EVTS");
	if (rc == 0 && !s->has_stream) /* images and the like */
		return 0;
	if (rc > 0)
		rc = neap__flat_vector(&table, ELEMENTS, EVENT, &element, &count) < 0 ? -1 : 1;
	if (rc <= 0)
		return damaged(s, "a packet of events is not a table");
	s->has_stream = 1;
	s->stream = stream;
	return add_events(s, element, count);
}

static int read_all(struct aedat4 *s)
{
	if (fseek(s->file, 0, SEEK_END) < 0 || (s->bytes = ftell(s->file)) < 0 ||
		fseek(s->file, 0, SEEK_SET) < 0)
		return neap__fail_errno(errno, "cannot read '%s'", s->f->path);
	NEAP_TRY(read_header(s));
	while (s->events && ftell(s->file) < s->end)
		NEAP_TRY(read_packet(s));
	return 0;
}

int neap__aedat4_read(struct neap__raw_events *events, struct neap__event_file *f)
{
	struct aedat4 state = {.events = events, .f = f, .file = fopen(f->path, "re")};
	if (!state.file)
		return neap__fail_errno(errno, "cannot read '%s'", f->path);
	int rc = read_all(&state);
	free(state.packed);
	free(state.unpacked.data);
	fclose(state.file);
	return rc;
}

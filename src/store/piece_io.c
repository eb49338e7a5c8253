/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece_io.c: pieces. A record is a stream, payload then trailer then padding; a piece is
 * a window of it in staging. A put's piece is filled when there is a free one; those of
 * a get land in any order and are emptied in the stream's.
 *
 * One piece of staging is enough: a piece that has landed is either emptied at once or
 * waits for an earlier one of its request, which flies.
 */
#include "store/mover_state.h"
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NEAR (UINT64_C(16) << 10) /* bytes */

/* A window [at, at + n) of the record's stream, and a part of it that starts at `from`. */
struct piece_part {
	uint64_t window, payload, bytes; /* offsets in the window and in the part */
};

/* What of the part [from, from + length) of the stream lies in [at, at + n). */
static struct piece_part overlap(uint64_t from, uint64_t length, uint64_t at, uint64_t n)
{
	uint64_t lo = from > at ? from : at;
	uint64_t hi = from + length < at + n ? from + length : at + n;
	return lo < hi ? (struct piece_part){lo - at, lo - from, hi - lo} : (struct piece_part){0};
}

/* In parts that are still in the nearest cache when they are hashed. */
static void copy_hashed(
	const struct neap__request *r, unsigned char *here, unsigned char *payload, uint64_t bytes)
{
	int put = r->gather.put;
	for (uint64_t at = 0, n; at < bytes; at += n) {
		n = bytes - at < NEAR ? bytes - at : NEAR;
		memcpy((put ? here : payload) + at, (put ? payload : here) + at, n);
		neap__record_hash(r->stream->hash, here + at, n);
	}
}

/* Copies between the spans and a window, hashing; the end of what was copied. */
static uint64_t copy(const struct neap__request *r, unsigned char *window, uint64_t at, uint64_t n)
{
	const struct neap__gather *gather = &r->gather;
	uint64_t from = 0, end = 0;
	for (int i = 0; i < gather->count && from < at + n; i++) {
		const struct neap_span *span = &gather->spans[i];
		struct piece_part data = overlap(from, span->bytes, at, n);
		unsigned char *here = window + data.window;
		unsigned char *payload = (unsigned char *)span->at + data.payload;
		from += span->bytes;
		if (!data.bytes)
			continue;
		copy_hashed(r, here, payload, data.bytes);
		end = data.window + data.bytes;
	}
	return end;
}

/* The window of a put. */
static void fill(const struct neap__mover *m, struct neap__request *r, struct neap__piece_io *p)
{
	struct neap__mover_queue *stream = r->stream;
	unsigned char *window = p->move.at;
	uint64_t n = p->move.bytes, end = copy(r, window, p->at, n);
	struct piece_part tail = overlap(r->gather.bytes, sizeof stream->trailer, p->at, n);
	if (tail.bytes && !stream->sealed)
		neap__record_seal(&stream->trailer, m->layout->epoch, r->tag, r->place,
			r->gather.bytes, XXH3_64bits_digest(stream->hash));
	stream->sealed |= tail.bytes > 0;
	if (tail.bytes) {
		memcpy(window + tail.window, (char *)&stream->trailer + tail.payload, tail.bytes);
		end = tail.window + tail.bytes;
	}
	memset(window + end, 0, n - end);
}

/* The window of a get. */
static void empty(struct neap__request *r, struct neap__piece_io *p)
{
	struct neap__mover_queue *stream = r->stream;
	unsigned char *window = p->move.at;
	uint64_t n = p->move.bytes;
	struct piece_part tail = overlap(r->gather.bytes, sizeof stream->trailer, p->at, n);
	(void)copy(r, window, p->at, n);
	if (tail.bytes)
		memcpy((char *)&stream->trailer + tail.payload, window + tail.window, tail.bytes);
}

static int check(const struct neap__mover *m, const struct neap__request *r)
{
	return neap__record_check(&r->stream->trailer, m->layout->epoch, r->tag, r->place,
		r->gather.bytes, XXH3_64bits_digest(r->stream->hash));
}

static void end(struct neap__mover *m, struct neap__request *r)
{
	m->free_streams[m->nfree_streams++] = r->stream;
	r->stream = NULL;
	neap__mover_done(m, r);
}

/* The request, and the rest of it, is given up; it ends when its last piece lands. */
static void fail(struct neap__mover *m, struct neap__request *r, int code)
{
	int way = r->gather.put;
	r->answer = code;
	snprintf(r->detail, sizeof r->detail, "%s", neap_detail());
	r->begun = r->whole;
	if (m->current[way] == r)
		m->current[way] = NULL;
}

/* Reads and writes in turn, where there are both. */
static struct neap__request *pick(struct neap__mover *m)
{
	for (int i = 0; i < 2; i++) {
		int way = i ? m->way : !m->way;
		struct neap__request *r = m->current[way];
		if (!r && (r = neap__mover_take(m, way)) != NULL) {
			r->stream = m->free_streams[--m->nfree_streams];
			r->stream->sealed = 0;
			XXH3_64bits_reset(r->stream->hash);
			m->current[way] = r;
		}
		if (!r)
			continue;
		m->way = way;
		return r;
	}
	return NULL;
}

/* Nobody waits for it any more. */
static void drop(struct neap__mover *m, struct neap__request *r)
{
	fail(m, r, neap__fail(-ETIMEDOUT, "nobody waits for it"));
	if (r->flying == 0)
		end(m, r);
}

static void begin(struct neap__mover *m, struct neap__request *r, struct neap__piece_io *p)
{
	if (!neap__mover_touch(m, r)) {
		drop(m, r);
		return;
	}
	struct neap__stripe stripe = neap__stripe_at(m->stripes, r->base + r->begun);
	uint64_t bytes = r->whole - r->begun;
	bytes = bytes < m->piece ? bytes : m->piece;
	bytes = bytes < stripe.run ? bytes : stripe.run;
	p->request = r;
	p->at = r->begun;
	p->arrived = 0;
	p->move = (struct neap__io_request){
		.file = &m->stripes->files[stripe.file],
		.number = stripe.file,
		.write = r->gather.put,
		.at = m->staging + (size_t)(p - m->passages) * m->piece,
		.bytes = bytes,
		.offset = stripe.offset,
	};
	r->begun += bytes;
	r->flying++;
	if (r->gather.put)
		fill(m, r, p);
	neap__mover_leave(m, r);
	if (r->begun == r->whole)
		m->current[r->gather.put] = NULL;
	neap__io_engine_start(&m->engine, &p->move);
}

static struct neap__piece_io *free_passage(struct neap__mover *m)
{
	for (int i = 0; i < m->npassages; i++)
		if (!m->passages[i].request)
			return &m->passages[i];
	return NULL;
}

/* The piece of a get that comes next, if it is there. */
static struct neap__piece_io *next_arrived(struct neap__mover *m, const struct neap__request *r)
{
	for (int i = 0; i < m->npassages; i++) {
		struct neap__piece_io *p = &m->passages[i];
		if (p->request == r && p->arrived && (p->at == r->settled || r->answer < 0))
			return p;
	}
	return NULL;
}

static void land(struct neap__mover *m, struct neap__piece_io *p)
{
	struct neap__request *r = p->request;
	struct neap__io_request *move = &p->move;
	r->flying--;
	p->arrived = 1;
	if (move->answer < 0 && r->answer == 0)
		fail(m, r, neap__scratch_explain(move->file, move->write, move->answer));
	if (r->gather.put) {
		r->settled += move->bytes;
		p->request = NULL;
	}
	while (!r->gather.put && (p = next_arrived(m, r)) != NULL) {
		if (r->answer == 0 && !neap__mover_touch(m, r)) {
			fail(m, r, neap__fail(-ETIMEDOUT, "nobody waits for it"));
		} else if (r->answer == 0) {
			empty(r, p);
			neap__mover_leave(m, r);
		}
		r->settled += p->move.bytes;
		p->request = NULL;
	}
	int code = !r->gather.put && r->answer == 0 && r->settled == r->whole ? check(m, r) : 0;
	if (code < 0)
		fail(m, r, code);
	if (r->flying == 0 && (r->answer < 0 || r->settled == r->whole))
		end(m, r);
}

int neap__pump(struct neap__mover *m)
{
	struct neap__piece_io *p;
	struct neap__request *r;
	while ((p = free_passage(m)) != NULL && (r = pick(m)) != NULL)
		begin(m, r, p);
	struct neap__io_request *move = neap__io_engine_finish(&m->engine, neap__mover_watch(m));
	if (!move)
		return m->engine.flying > 0;
	neap__mover_moved(m);
	land(m, (struct neap__piece_io *)move);
	return 1;
}

void neap__pump_stop(struct neap__mover *m)
{
	for (int way = 0; way < 2; way++) {
		struct neap__request *r = m->current[way];
		if (!r)
			continue;
		fail(m, r, neap__fail(-ECANCELED, "the tier is closed"));
		if (r->flying == 0)
			end(m, r);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece_io.c: moves records in pieces. A record is a stream of bytes: payload, trailer, padding. A
 * piece is a window of that stream in the staging. A put fills a piece as soon as one is free; the
 * pieces of a get arrive in any order and are copied out in the stream's, since the hash needs
 * that order. One piece of staging is enough: a piece that has arrived is either copied out at
 * once or waits for an earlier piece of its request, which is in flight.
 */
#include "store/piece_io.h"
#include "store/timeouts.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <string.h>

/* Bytes copied before they are hashed: half of a first-level cache, so they are still there. */
#define COPY_BLOCK (UINT64_C(16) << 10)

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

static void copy_hashed(
	const struct neap__request *r, unsigned char *here, unsigned char *payload, uint64_t bytes)
{
	int put = r->gather.put;
	for (uint64_t at = 0, n; at < bytes; at += n) {
		n = bytes - at < COPY_BLOCK ? bytes - at : COPY_BLOCK;
		memcpy((put ? here : payload) + at, (put ? payload : here) + at, n);
		neap__record_hash(r->stream->hash, here + at, n);
	}
}

/* Copies between the spans and a window, and hashes; returns where what was copied ends. */
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

/* Fills the window of a put. */
static void fill(const struct neap__mover *m, struct neap__request *r, struct neap__piece_io *p)
{
	struct neap__record_stream *stream = r->stream;
	unsigned char *window = p->io.at;
	uint64_t n = p->io.bytes, end = copy(r, window, p->at, n);
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

/* Copies the window of a get out. */
static void copy_out(struct neap__request *r, struct neap__piece_io *p)
{
	struct neap__record_stream *stream = r->stream;
	unsigned char *window = p->io.at;
	uint64_t n = p->io.bytes;
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

/* Begins no more pieces of the request; it ends when its last piece in flight is done. */
static void fail(struct neap__mover *m, struct neap__request *r, int code)
{
	int direction = r->gather.put;
	r->answer = code;
	neap__print(r->detail, sizeof r->detail, "%s", neap_detail());
	r->begun = r->whole;
	if (m->current[direction] == r)
		m->current[direction] = NULL;
}

/* The request whose piece begins next: reads and writes alternate where there are both. */
static struct neap__request *choose(struct neap__mover *m)
{
	for (int i = 0; i < 2; i++) {
		int direction = i ? m->direction : !m->direction;
		struct neap__request *r = m->current[direction];
		if (!r && (r = neap__mover_take(m, direction)) != NULL) {
			r->stream = m->free_streams[--m->nfree_streams];
			r->stream->sealed = 0;
			XXH3_64bits_reset(r->stream->hash);
			m->current[direction] = r;
		}
		if (!r)
			continue;
		m->direction = direction;
		return r;
	}
	return NULL;
}

/* Ends a request that was abandoned. */
static void drop(struct neap__mover *m, struct neap__request *r)
{
	fail(m, r, neap__fail(-ETIMEDOUT, "nobody waits for it"));
	if (r->in_flight == 0)
		end(m, r);
}

static void begin(struct neap__mover *m, struct neap__request *r, struct neap__piece_io *p)
{
	if (!neap__mover_use_memory(m, r)) {
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
	p->io = (struct neap__io_request){
		.file = &m->stripes->files[stripe.file],
		.number = stripe.file,
		.write = r->gather.put,
		.at = m->staging + (size_t)(p - m->pieces) * m->piece,
		.bytes = bytes,
		.offset = stripe.offset,
	};
	r->begun += bytes;
	r->in_flight++;
	if (r->gather.put)
		fill(m, r, p);
	neap__mover_release_memory(m, r);
	if (r->begun == r->whole)
		m->current[r->gather.put] = NULL;
	neap__io_engine_start(&m->engine, &p->io);
}

static struct neap__piece_io *free_piece(struct neap__mover *m)
{
	for (int i = 0; i < m->npieces; i++)
		if (!m->pieces[i].request)
			return &m->pieces[i];
	return NULL;
}

/* The next piece of a get to be copied out, if it has arrived. */
static struct neap__piece_io *next_arrived(struct neap__mover *m, const struct neap__request *r)
{
	for (int i = 0; i < m->npieces; i++) {
		struct neap__piece_io *p = &m->pieces[i];
		if (p->request == r && p->arrived && (p->at == r->settled || r->answer < 0))
			return p;
	}
	return NULL;
}

static void finish(struct neap__mover *m, struct neap__piece_io *p)
{
	struct neap__request *r = p->request;
	struct neap__io_request *io = &p->io;
	r->in_flight--;
	p->arrived = 1;
	if (io->answer < 0 && r->answer == 0)
		fail(m, r, neap__scratch_explain(io->file, io->write, io->answer));
	if (r->gather.put) {
		r->settled += io->bytes;
		p->request = NULL;
	}
	while (!r->gather.put && (p = next_arrived(m, r)) != NULL) {
		if (r->answer == 0 && !neap__mover_use_memory(m, r)) {
			fail(m, r, neap__fail(-ETIMEDOUT, "nobody waits for it"));
		} else if (r->answer == 0) {
			copy_out(r, p);
			neap__mover_release_memory(m, r);
		}
		r->settled += p->io.bytes;
		p->request = NULL;
	}
	int code = !r->gather.put && r->answer == 0 && r->settled == r->whole ? check(m, r) : 0;
	if (code < 0)
		fail(m, r, code);
	if (r->in_flight == 0 && (r->answer < 0 || r->settled == r->whole))
		end(m, r);
}

int neap__piece_io_run(struct neap__mover *m)
{
	struct neap__piece_io *p;
	struct neap__request *r;
	while ((p = free_piece(m)) != NULL && (r = choose(m)) != NULL)
		begin(m, r, p);
	struct neap__io_request *io = neap__io_engine_finish(&m->engine, neap__mover_wait_limit(m));
	if (!io)
		return m->engine.in_flight > 0;
	neap__mover_moved(m);
	finish(m, (struct neap__piece_io *)io);
	return 1;
}

void neap__piece_io_stop(struct neap__mover *m)
{
	for (int direction = 0; direction < 2; direction++) {
		struct neap__request *r = m->current[direction];
		if (!r)
			continue;
		fail(m, r, neap__fail(-ECANCELED, "the tier is closed"));
		if (r->in_flight == 0)
			end(m, r);
	}
}

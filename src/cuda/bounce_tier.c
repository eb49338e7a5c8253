/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounce_tier.c: a tier behind the memory of a device that uses another tier, such as a file, which
 * reads and writes ordinary memory. Records are divided into pieces of at most PIECE bytes. The
 * background thread copies a piece between the device and a buffer of a ring in pinned memory, and
 * the inner tier writes or reads up to RING buffers meanwhile. A piece is a record of the inner
 * tier, which checks its bytes and its tag.
 *
 * A put is over when its pieces are in buffers. If the inner tier then fails to write one, the next
 * get of the record fails, and the sweep recomputes it.
 */
#include "cuda/device_requests.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECE ((uint64_t)256 << 10) /* chosen: the copy takes some 10 us, a disk 50 us or more */
#define RING 16			    /* buffers, 4 MiB in all; chosen: some 100 us of a fast disk */

/* A buffer; busy: the inner tier has it, and has not been waited for. */
struct bounce_buffer {
	unsigned char *at;
	int64_t ticket;
	int busy;
	struct neap__device_request *get; /* NULL: of a put */
	uint64_t offset, bytes;		  /* of the piece in the record */
	struct neap_span span;		  /* of a piece of tapes: borrowed by the inner tier */
};

/* How records of one size are divided: of states, or of tapes. */
struct bounce_layout {
	uint64_t piece; /* bytes */
	int64_t pieces; /* of the largest record */
};

struct bounce {
	struct neap__device_requests requests; /* first */
	struct neap_tier
		*inner; /* while the tier is open, only the background thread waits for it */
	struct bounce_layout layouts[2];
	unsigned char *pinned;
	struct bounce_buffer ring[RING];
	int next;	/* buffer, which is the oldest */
	CUevent copied; /* of the piece that is copied */
	uint64_t capacity;
};

static struct bounce_layout divide(uint64_t bytes)
{
	struct bounce_layout layout = {.pieces = (int64_t)(bytes / PIECE + (bytes % PIECE > 0))};
	uint64_t pieces = (uint64_t)layout.pieces;
	layout.piece = neap__round_up(bytes / pieces + (bytes % pieces > 0), 64);
	return layout;
}

/* Bytes of the inner tier's capacity for a piece: what its records take, in terms of neap/tier.h.
 */
static uint64_t piece_footprint(const struct bounce *bounce, uint64_t piece)
{
	struct neap_tier_spec spec;
	neap_tier_describe(bounce->inner, piece, &spec);
	uint64_t records = spec.capacity / piece;
	return spec.capacity == NEAP_INFINITE || records == 0 ? piece : bounce->capacity / records;
}

static uint64_t footprint(void *self, uint64_t bytes)
{
	const struct bounce_layout layout = divide(bytes ? bytes : 1);
	return neap__sat_mul(piece_footprint(self, layout.piece), (uint64_t)layout.pieces);
}

/* Copies a piece between the device and a buffer, and waits for that. */
static int copy(struct bounce *bounce, const struct neap__device_request *r,
	const struct bounce_buffer *buffer)
{
	const struct neap_device *device = bounce->requests.device;
	CUstream stream = r->put ? device->out : device->in;
	int rc = neap__request_copy(r, buffer->offset, buffer->at, buffer->bytes, stream);
	if (rc == 0)
		rc = NEAP__CUDA(cuEventRecord, (bounce->copied, stream));
	if (rc == 0)
		return NEAP__CUDA(cuEventSynchronize, (bounce->copied));
	(void)neap__cuda.cuStreamSynchronize(stream); /* what was queued; the detail line stays */
	return rc;
}

/*
 * Waits for the inner tier to be done with a buffer; a piece that was read goes to the device. The
 * failure of a put is noticed by the get of its record.
 */
static int empty(struct bounce *bounce, struct bounce_buffer *buffer)
{
	if (!buffer->busy)
		return 0;
	buffer->busy = 0;
	int rc = neap_tier_wait(bounce->inner, buffer->ticket);
	if (!buffer->get)
		return 0;
	return rc < 0 ? rc : copy(bounce, buffer->get, buffer);
}

static int empty_all(struct bounce *bounce)
{
	int rc = 0;
	for (int i = 0; i < RING; i++) {
		int answer = empty(bounce, &bounce->ring[(bounce->next + i) % RING]);
		rc = rc < 0 ? rc : answer;
	}
	return rc;
}

typedef int inner_call(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);

/* Passes a piece to the inner tier. */
static int pass(struct bounce *bounce, const struct neap__device_request *r,
	struct bounce_buffer *buffer, int64_t piece)
{
	int64_t place = r->place * bounce->layouts[r->tapes].pieces + piece;
	struct neap_tier *inner = bounce->inner;
	if (!r->tapes)
		return r->put ? neap_tier_put(inner, place, r->tag, buffer->at, buffer->bytes,
					&buffer->ticket)
			      : neap_tier_get(inner, place, r->tag, buffer->at, buffer->bytes,
					&buffer->ticket);
	inner_call *call = r->put ? neap_tier_put_tapes : neap_tier_get_tapes;
	buffer->span = (struct neap_span){buffer->at, buffer->bytes};
	return call(inner, place, r->tag, &buffer->span, 1, &buffer->ticket);
}

/* Begins with a piece in the oldest buffer, once that is empty. */
static int begin(struct bounce *bounce, struct neap__device_request *r, int64_t piece)
{
	uint64_t most = bounce->layouts[r->tapes].piece;
	struct bounce_buffer *buffer = &bounce->ring[bounce->next];
	NEAP_TRY(empty(bounce, buffer));
	buffer->offset = (uint64_t)piece * most;
	buffer->bytes = r->bytes - buffer->offset < most ? r->bytes - buffer->offset : most;
	buffer->get = r->put ? NULL : r;
	if (r->put)
		NEAP_TRY(copy(bounce, r, buffer));
	NEAP_TRY(pass(bounce, r, buffer, piece));
	buffer->busy = 1;
	bounce->next = (bounce->next + 1) % RING;
	return 0;
}

static int start(void *self, struct neap__device_request *r)
{
	(void)self, (void)r;
	return 0;
}

/* In the background. */
static int finish(void *self, struct neap__device_request *r)
{
	struct bounce *bounce = self;
	const struct neap_device *device = bounce->requests.device;
	uint64_t most = bounce->layouts[r->tapes].piece;
	int rc = neap__stream_wait(r->put ? device->out : device->in, r->ready);
	for (int64_t piece = 0; rc == 0 && (uint64_t)piece * most < r->bytes; piece++)
		rc = begin(bounce, r, piece);
	if (r->put)
		return rc;
	if (rc == 0)
		return empty_all(bounce);
	/* The buffers of a get that failed are emptied, too: they are not of the next request. */
	char line[NEAP__DETAIL_BYTES];
	neap__print(line, sizeof line, "%s", neap_detail());
	empty_all(bounce);
	return neap__fail(rc, "%s", line);
}

static void settle(struct bounce *bounce)
{
	neap__worker_idle(bounce->requests.worker);
	empty_all(bounce);
}

/* 0, with the number of the inner tier's places, or -ENOSPC. */
static int inner_places(int64_t *inner, const struct bounce_layout *layout, int64_t places)
{
	if (!__builtin_mul_overflow(places, layout->pieces, inner))
		return 0;
	return neap__fail(-ENOSPC, "%lld records of %lld pieces are too many", (long long)places,
		(long long)layout->pieces);
}

static int format(void *self, uint64_t bytes, int64_t places, void *staging)
{
	struct bounce *bounce = self;
	int64_t inner;
	(void)staging;
	settle(bounce);
	bounce->layouts[0] = divide(bytes);
	NEAP_TRY(inner_places(&inner, &bounce->layouts[0], places));
	return neap_tier_format(bounce->inner, bounce->layouts[0].piece, inner, NULL);
}

static int format_tapes(void *self, uint64_t bytes, int64_t places, uint64_t staging)
{
	struct bounce *bounce = self;
	int64_t inner;
	(void)staging;
	settle(bounce);
	bounce->layouts[1] = divide(bytes);
	NEAP_TRY(inner_places(&inner, &bounce->layouts[1], places));
	return neap_tier_format_tapes(bounce->inner, bounce->layouts[1].piece, inner, 0);
}

static void set_patience(void *self, double seconds)
{
	struct bounce *bounce = self;
	settle(bounce); /* else the inner tier is in use */
	neap_tier_set_patience(bounce->inner, seconds);
}

static void close_bounce(void *self)
{
	struct bounce *bounce = self;
	neap__device_requests_close(&bounce->requests);
	empty_all(bounce);
	if (bounce->copied && neap__device_enter_to_free(bounce->requests.device))
		NEAP__CUDA(cuEventDestroy, (bounce->copied));
	neap__pinned_free(bounce->requests.device, bounce->pinned);
	neap_tier_close(bounce->inner);
	free(bounce);
}

/* In a child process. The pinned memory is the parent's. */
static void abandon(void *self)
{
	struct bounce *bounce = self;
	neap__device_requests_abandon(&bounce->requests);
	neap_tier_abandon(bounce->inner);
	free(bounce);
}

static int get_ready(struct bounce *bounce)
{
	void *pinned = NULL;
	if (neap_tier_takes_tapes(bounce->inner) != 1)
		return neap__fail(
			NEAP_EUSAGE, "%s does not store tapes", neap_tier_about(bounce->inner));
	NEAP_TRY(neap__pinned_alloc(bounce->requests.device, &pinned, RING * PIECE));
	bounce->pinned = pinned;
	for (int i = 0; i < RING; i++)
		bounce->ring[i].at = bounce->pinned + (uint64_t)i * PIECE;
	NEAP_TRY(NEAP__CUDA(cuEventCreate, (&bounce->copied, NEAP__CUDA_EVENT_DISABLE_TIMING)));
	return neap__device_requests_open(&bounce->requests);
}

int neap__bounce_open(struct neap_tier **tier, struct neap_device *device, struct neap_tier *inner)
{
	struct neap_tier_ops ops = {
		.size = sizeof ops,
		.format = format,
		.format_tapes = format_tapes,
		.footprint = footprint,
		.set_patience = set_patience,
		.close = close_bounce,
		.abandon = abandon,
		.memory = &device->memory,
		.in_order = 1,
	};
	struct neap_tier_spec spec;
	neap_tier_describe(inner, 0, &spec);
	spec.staging = 0; /* the inner tier has its own */
	neap__device_requests_ops(&ops);
	struct bounce *bounce = calloc(1, sizeof *bounce);
	if (!bounce) {
		neap_tier_close(inner);
		return neap__fail_errno(ENOMEM, "slow memory of %s", device->name);
	}
	bounce->inner = inner;
	bounce->capacity = spec.capacity;
	bounce->requests.device = device;
	bounce->requests.start = start;
	bounce->requests.finish = finish;
	int rc = get_ready(bounce);
	if (rc == 0)
		rc = neap_tier_wrap(tier, &ops, &spec, bounce);
	if (rc < 0)
		close_bounce(bounce);
	return rc;
}

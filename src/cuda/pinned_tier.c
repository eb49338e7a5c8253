/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinned_tier.c: a tier in pinned memory of the host. The device copies records itself, on a stream
 * for each direction, while it computes; a request is over after the event behind its copies.
 *
 * A record has a trailer with a checksum, as in the other tiers. The checksum is that of the pinned
 * bytes: the background thread computes it when the copy to them has ended, and compares it while
 * they are copied back. It does not cover the transfers, which PCI Express protects itself.
 */
#include "cuda/device_requests.h"
#include "store/records/record.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>

#define UNIT 64 /* bytes, to which records are rounded up: an access of the bus */

/* A place: what is stored there, and the request that used it last. */
struct pinned_place {
	struct neap__trailer trailer;
	int request; /* index of the request, if its `use` is still the same and it is busy */
	uint32_t use;
};

/* The places of records of one size: of states, or of tapes. */
struct pinned_area {
	unsigned char *at;
	uint64_t mapped, stride;
	struct pinned_place *places;
};

struct pinned {
	struct neap__device_requests requests; /* first */
	struct pinned_area areas[2];	       /* of states; of tapes */
	uint64_t capacity, epoch;
	XXH3_state_t *hash; /* of the background thread */
};

static uint64_t footprint(void *self, uint64_t bytes)
{
	(void)self;
	return neap__round_up(bytes, UNIT);
}

static void free_area(const struct pinned *pinned, struct pinned_area *area)
{
	neap__pinned_free(pinned->requests.device, area->at);
	free(area->places);
	*area = (struct pinned_area){0};
}

/* Places that held records of the same total size keep their memory: pinning it takes long. */
static int format_area(struct pinned *pinned, int tapes, uint64_t bytes, int64_t places)
{
	struct pinned_area *area = &pinned->areas[tapes];
	uint64_t stride = footprint(pinned, bytes), size, all;
	if (neap__mul_u64(&size, stride, (uint64_t)places) < 0 ||
		neap__add_u64(&all, size, tapes ? pinned->areas[0].mapped : 0) < 0 ||
		all > pinned->capacity)
		return neap__fail(-ENOSPC,
			"pinned memory of %llu bytes has no room for %lld records of %llu bytes",
			(unsigned long long)pinned->capacity, (long long)places,
			(unsigned long long)stride);
	if (size != area->mapped) {
		void *at = NULL;
		free_area(pinned, area);
		if (size > 0)
			NEAP_TRY(neap__pinned_alloc(pinned->requests.device, &at, size));
		area->at = at;
		area->mapped = size;
	}
	free(area->places);
	area->places = calloc((size_t)places + 1, sizeof *area->places);
	area->stride = stride;
	return area->places ? 0 : neap__fail_errno(ENOMEM, "records in pinned memory");
}

static int format(void *self, uint64_t bytes, int64_t places, void *staging)
{
	struct pinned *pinned = self;
	(void)staging;
	neap__worker_idle(pinned->requests.worker);
	if (pinned->areas[0].mapped != footprint(self, bytes) * (uint64_t)places)
		free_area(pinned, &pinned->areas[1]); /* its bytes may be needed */
	pinned->epoch++;
	return format_area(pinned, 0, bytes, places);
}

static int format_tapes(void *self, uint64_t bytes, int64_t places, uint64_t staging)
{
	(void)staging;
	return format_area(self, 1, bytes, places);
}

static struct pinned_area *area_of(struct pinned *pinned, const struct neap__device_request *r)
{
	return &pinned->areas[r->tapes];
}

static unsigned char *record_at(struct pinned *pinned, const struct neap__device_request *r)
{
	const struct pinned_area *area = area_of(pinned, r);
	return area->at + (uint64_t)r->place * area->stride;
}

/*
 * Puts a request behind the one before it at its place, if that is in flight: a get reads what a
 * put has copied; a put overwrites what the background thread has hashed. Gets are independent.
 */
static int follow(struct pinned *pinned, const struct neap__device_request *r,
	const struct pinned_place *place, CUstream stream)
{
	const struct neap__device_request *last = &pinned->requests.all[place->request];
	if (last == r || !last->busy || last->use != place->use)
		return 0;
	if (r->put)
		neap__worker_idle(pinned->requests.worker);
	return !r->put && last->put ? neap__stream_wait(stream, last->copied) : 0;
}

static int queue_copies(struct pinned *pinned, struct neap__device_request *r, CUstream stream)
{
	struct pinned_place *place = &area_of(pinned, r)->places[r->place];
	NEAP_TRY(neap__stream_wait(stream, r->ready));
	NEAP_TRY(follow(pinned, r, place, stream));
	NEAP_TRY(neap__request_copy(r, 0, record_at(pinned, r), r->bytes, stream));
	NEAP_TRY(NEAP__CUDA(cuEventRecord, (r->copied, stream)));
	place->request = (int)(r - pinned->requests.all);
	place->use = r->use;
	return 0;
}

static int start(void *self, struct neap__device_request *r)
{
	struct pinned *pinned = self;
	CUstream stream = r->put ? pinned->requests.device->out : pinned->requests.device->in;
	int rc = queue_copies(pinned, r, stream);
	if (rc <
		0) /* copies that were queued must not outlive the request; the detail line stays */
		(void)neap__cuda.cuStreamSynchronize(stream);
	return rc;
}

/* In the background. The bytes of a get are compared while the device copies them. */
static int finish(void *self, struct neap__device_request *r)
{
	struct pinned *pinned = self;
	struct neap__trailer *trailer = &area_of(pinned, r)->places[r->place].trailer;
	if (r->put)
		NEAP_TRY(NEAP__CUDA(cuEventSynchronize, (r->copied)));
	XXH3_64bits_reset(pinned->hash);
	neap__record_hash(pinned->hash, record_at(pinned, r), r->bytes);
	uint64_t hash = XXH3_64bits_digest(pinned->hash);
	if (r->put) {
		neap__record_seal(trailer, pinned->epoch, r->tag, r->place, r->bytes, hash);
		return 0;
	}
	NEAP_TRY(NEAP__CUDA(cuEventSynchronize, (r->copied)));
	return neap__record_check(trailer, pinned->epoch, r->tag, r->place, r->bytes, hash);
}

static void close_pinned(void *self)
{
	struct pinned *pinned = self;
	neap__device_requests_close(&pinned->requests);
	free_area(pinned, &pinned->areas[0]);
	free_area(pinned, &pinned->areas[1]);
	XXH3_freeState(pinned->hash);
	free(pinned);
}

/* In a child process. The pinned memory is the parent's. */
static void abandon(void *self)
{
	struct pinned *pinned = self;
	neap__device_requests_abandon(&pinned->requests);
	free(pinned->areas[0].places);
	free(pinned->areas[1].places);
	XXH3_freeState(pinned->hash);
	free(pinned);
}

int neap__pinned_open(struct neap_tier **tier, struct neap_device *device, uint64_t capacity)
{
	struct neap_tier_ops ops = {
		.size = sizeof ops,
		.format = format,
		.format_tapes = format_tapes,
		.footprint = footprint,
		.close = close_pinned,
		.abandon = abandon,
		.memory = &device->memory,
		.in_order = 1,
	};
	struct neap_tier_spec spec = {
		.capacity = capacity,
		.write_rate = 2e10, /* of PCI Express 4.0 with 16 lanes, until it is measured */
		.read_rate = 2e10,
		.write_fixed = 2e-5,
		.read_fixed = 2e-5,
	};
	neap__print(spec.name, sizeof spec.name, "pinned memory of %s", device->name);
	neap__device_requests_ops(&ops);
	struct pinned *pinned = calloc(1, sizeof *pinned);
	if (!pinned)
		return neap__fail_errno(ENOMEM, "pinned memory tier");
	pinned->capacity = capacity;
	pinned->requests.device = device;
	pinned->requests.start = start;
	pinned->requests.finish = finish;
	pinned->hash = XXH3_createState();
	int rc = pinned->hash ? 0 : neap__fail_errno(ENOMEM, "pinned memory tier");
	if (rc == 0)
		rc = neap__device_requests_open(&pinned->requests);
	if (rc == 0)
		rc = neap_tier_wrap(tier, &ops, &spec, pinned);
	if (rc < 0)
		close_pinned(pinned);
	return rc;
}

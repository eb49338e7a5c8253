/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_tier.c: a tier of ordinary memory; copies and checksums run on a thread beside the
 * caller.
 */
#include "store/tier_state.h"
#include "store/records/record.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/memory.h"
#include "store/background.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* All fields but `hash` change only while the worker is idle. */
struct memory {
	struct neap__background background; /* first */
	unsigned char *pool;
	size_t mapped;
	uint64_t capacity, stride, epoch;
	uint64_t states,
		tape_stride; /* bytes of all states; of a record of tapes, which lie behind them */
	XXH3_state_t *hash;  /* of the worker's thread */
};

#define UNIT 64 /* bytes of a place for tapes; a payload and a trailer are whole units */

static uint64_t footprint(void *self, uint64_t bytes)
{
	(void)self;
	return neap__sat_add(neap__round_up(bytes, UNIT), sizeof(struct neap__trailer));
}

static unsigned char *record_at(const struct memory *memory, int tapes, int64_t place)
{
	return tapes ? memory->pool + memory->states + (uint64_t)place * memory->tape_stride
		     : memory->pool + (uint64_t)place * memory->stride;
}

static int run(void *self, const struct neap__job *job)
{
	struct memory *memory = self;
	struct neap_span one;
	struct neap__gather gather = neap__background_gather(job, &one);
	unsigned char *record = record_at(memory, gather.tapes, job->place);
	struct neap__trailer *trailer =
		(struct neap__trailer *)(record + neap__round_up(gather.bytes, UNIT));

	XXH3_64bits_reset(memory->hash);
	for (int i = 0; i < gather.count; i++) {
		const struct neap_span *span = &gather.spans[i];
		if (gather.put)
			memcpy(record, span->at, span->bytes);
		else
			memcpy(span->at, record, span->bytes);
		neap__record_hash(memory->hash, span->at, span->bytes);
		record += span->bytes;
	}
	uint64_t hash = XXH3_64bits_digest(memory->hash);
	if (!gather.put)
		return neap__record_check(
			trailer, memory->epoch, job->tag, job->place, gather.bytes, hash);
	neap__record_seal(trailer, memory->epoch, job->tag, job->place, gather.bytes, hash);
	return 0;
}

/* Makes room for `places` records after `before` bytes of the pool that are in use. */
static int reserve(struct memory *memory, uint64_t before, uint64_t stride, int64_t places)
{
	uint64_t size;
	if (neap__mul_u64(&size, stride, (uint64_t)places) < 0 ||
		neap__add_u64(&size, size, before) < 0 || size > memory->capacity)
		return neap__fail(-ENOSPC,
			"a memory tier of %llu bytes has no room for %lld records of %llu bytes",
			(unsigned long long)memory->capacity, (long long)places,
			(unsigned long long)stride);
	neap__worker_idle(memory->background.worker);
	if (size > memory->mapped || (!before && size < memory->mapped / 2)) {
		neap__unmap_pages(memory->pool, memory->mapped);
		memory->pool = NULL;
		memory->mapped = 0;
		void *pool;
		NEAP_TRY(neap__map_pages(&pool, size));
		memory->pool = pool;
		memory->mapped = size;
	}
	memory->epoch++;
	return 0;
}

static int format(void *self, uint64_t bytes, int64_t places, void *staging)
{
	struct memory *memory = self;
	uint64_t stride = footprint(self, bytes);
	(void)staging;
	NEAP_TRY(reserve(memory, 0, stride, places));
	memory->stride = stride;
	memory->states = stride * (uint64_t)places;
	return 0;
}

static int format_strides(struct memory *memory, uint64_t stride, int64_t places)
{
	NEAP_TRY(reserve(memory, memory->states, stride, places));
	memory->tape_stride = stride;
	return 0;
}

static int format_tapes(void *self, uint64_t bytes, int64_t places, uint64_t staging)
{
	(void)staging;
	return format_strides(self, footprint(self, bytes), places);
}

static uint64_t unit(void *self)
{
	(void)self;
	return UNIT;
}

static int format_units(void *self, uint64_t bytes, int64_t units, uint64_t staging)
{
	(void)bytes;
	(void)staging;
	return format_strides(self, unit(self), units);
}

static int poke(void *self, int tapes, int64_t place, uint64_t offset, unsigned mask)
{
	struct memory *memory = self;
	neap__worker_idle(memory->background.worker);
	unsigned char *record = record_at(memory, tapes, place);
	uint64_t stride = tapes ? memory->tape_stride : memory->stride;
	if (mask)
		record[offset] ^= (unsigned char)mask;
	else /* a record of several units: its next one */
		memset(record + offset, 0, offset < stride ? stride - offset : UNIT);
	return 0;
}

static void close_memory(void *self)
{
	struct memory *memory = self;
	neap__worker_free(memory->background.worker);
	neap__unmap_pages(memory->pool, memory->mapped);
	XXH3_freeState(memory->hash);
	free(memory);
}

/* In a child process: the worker's thread is the parent's. */
static void abandon(void *self)
{
	struct memory *memory = self;
	neap__worker_orphan(memory->background.worker);
	neap__unmap_pages(memory->pool, memory->mapped);
	XXH3_freeState(memory->hash);
	free(memory);
}

static const struct neap_tier_ops ops = {
	.size = sizeof ops,
	.format = format,
	.put = neap__background_put,
	.get = neap__background_get,
	.wait = neap__background_wait,
	.close = close_memory,
	.format_tapes = format_tapes,
	.put_tapes = neap__background_put_tapes,
	.get_tapes = neap__background_get_tapes,
	.footprint = footprint,
	.times = neap__background_times,
	.unit = unit,
	.format_units = format_units,
	.put_spans = neap__background_put_spans,
	.get_spans = neap__background_get_spans,
	.done = neap__background_done,
	.wait_for = neap__background_wait_for,
	.abandon = abandon,
};

int neap_tier_open_memory(struct neap_tier **tier, uint64_t capacity)
{
	NEAP_NEED(tier);
	const struct neap_tier_spec spec = {
		.name = "memory",
		.capacity = capacity,
		.write_rate = 4e9,
		.read_rate = 4e9,
		.write_fixed = 1e-5,
		.read_fixed = 1e-5,
	};
	struct memory *memory = calloc(1, sizeof *memory);
	if (!memory)
		return neap__fail_errno(ENOMEM, "memory tier");
	memory->capacity = capacity;
	memory->hash = XXH3_createState();
	int rc = memory->hash ? 0 : neap__fail_errno(ENOMEM, "memory tier");
	if (rc == 0)
		rc = neap__worker_create(&memory->background.worker, NEAP__REQUESTS, run, memory);
	if (rc == 0)
		rc = neap_tier_wrap(tier, &ops, &spec, memory);
	if (rc < 0) {
		close_memory(memory);
		return rc;
	}
	(*tier)->poke = poke;
	if (capacity == NEAP_INFINITE)
		neap__print((*tier)->about, sizeof(*tier)->about, "memory");
	else
		neap__print((*tier)->about, sizeof(*tier)->about, "memory, at most %llu bytes",
			(unsigned long long)capacity);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* memtier.c: a tier of ordinary memory; copies and checksums run beside the caller. */
#include "store/tier.h"
#include "store/record.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/memory.h"
#include "store/worked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* pool, stride and epoch change only while the worker is idle. */
struct memory {
	struct neap__worked worked; /* first */
	unsigned char *pool;
	size_t mapped;
	uint64_t capacity, stride, epoch;
};

static uint64_t footprint(void *self, uint64_t bytes)
{
	(void)self;
	return neap__sat_add(neap__round_up(bytes, 64), sizeof(struct neap__trailer));
}

static int run(void *self, const struct neap__job *job)
{
	struct memory *memory = self;
	unsigned char *record = memory->pool + (uint64_t)job->place * memory->stride;
	struct neap__trailer *trailer =
		(struct neap__trailer *)(record + neap__round_up(job->bytes, 64));

	if (job->kind == NEAP__PUT) {
		memcpy(record, job->data, job->bytes);
		neap__record_seal(trailer, memory->epoch, job->tag, job->place, job->bytes,
			XXH3_64bits(job->data, job->bytes));
		return 0;
	}
	memcpy(job->data, record, job->bytes);
	return neap__record_check(trailer, memory->epoch, job->tag, job->place, job->bytes,
		XXH3_64bits(job->data, job->bytes));
}

static int format(void *self, uint64_t bytes, int64_t places, void *staging)
{
	struct memory *memory = self;
	uint64_t stride = footprint(self, bytes), size;
	(void)staging;
	if (neap__mul_u64(&size, stride, (uint64_t)places) < 0 || size > memory->capacity)
		return neap__fail(-ENOSPC,
			"a memory tier of %llu bytes has no room for %lld records of %llu bytes",
			(unsigned long long)memory->capacity, (long long)places,
			(unsigned long long)stride);
	neap__worker_idle(memory->worked.worker);
	if (size > memory->mapped || size < memory->mapped / 2) {
		neap__unmap_pages(memory->pool, memory->mapped);
		memory->pool = NULL;
		memory->mapped = 0;
		void *pool;
		NEAP_TRY(neap__map_pages(&pool, size));
		memory->pool = pool;
		memory->mapped = size;
	}
	memory->stride = stride;
	memory->epoch++;
	return 0;
}

static int poke(void *self, int64_t place, uint64_t offset, unsigned mask)
{
	struct memory *memory = self;
	neap__worker_idle(memory->worked.worker);
	unsigned char *record = memory->pool + (uint64_t)place * memory->stride;
	if (mask)
		record[offset] ^= (unsigned char)mask;
	else
		memset(record + offset, 0, memory->stride - offset);
	return 0;
}

static void close_memory(void *self)
{
	struct memory *memory = self;
	neap__worker_free(memory->worked.worker);
	neap__unmap_pages(memory->pool, memory->mapped);
	free(memory);
}

int neap_tier_open_memory(struct neap_tier **tier, uint64_t capacity)
{
	static const struct neap_tier_ops ops = {
		.size = sizeof ops,
		.format = format,
		.put = neap__worked_put,
		.get = neap__worked_get,
		.wait = neap__worked_wait,
		.close = close_memory,
	};
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
	int rc = neap__worker_create(&memory->worked.worker, NEAP__REQUESTS, run, memory);
	if (rc == 0)
		rc = neap_tier_wrap(tier, &ops, &spec, memory);
	if (rc < 0) {
		close_memory(memory);
		return rc;
	}
	(*tier)->footprint = footprint;
	(*tier)->poke = poke;
	if (capacity == NEAP_INFINITE)
		snprintf((*tier)->about, sizeof(*tier)->about, "memory");
	else
		snprintf((*tier)->about, sizeof(*tier)->about, "memory, at most %llu bytes",
			(unsigned long long)capacity);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filetier.c: records in one preallocated file, unnamed or kept. A record is a stream,
 * payload then trailer then padding, moved in pieces through the staging buffer
 * (aligned as O_DIRECT wants it) and hashed on its way.
 */
#include "store/tier.h"
#include "store/record.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/memory.h"
#include "sys/scratch.h"
#include "store/worked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE (UINT64_C(256) << 10)

/* Everything but the worker changes only while the worker is idle. */
struct file {
	struct neap__worked worked; /* first */
	struct neap__scratch scratch;
	uint64_t capacity, stride, epoch;
	uint64_t states, tape_stride; /* bytes of all states; of a record of tapes, after them */
	int wanted;		      /* the file is to outlive the process */
	unsigned char *staging;
	size_t piece;
	void *own; /* staging of our own, where none was given */
	size_t own_bytes;
	XXH3_state_t *hash; /* the worker's */
};

static uint64_t footprint(void *self, uint64_t bytes)
{
	(void)self;
	return neap__round_up(neap__sat_add(bytes, sizeof(struct neap__trailer)), NEAP__PAGE);
}

static uint64_t staging_bytes(void *self, uint64_t bytes)
{
	uint64_t whole = footprint(self, bytes);
	return whole < PIECE ? whole : PIECE;
}

/* A window [at, at + n) of the record's stream, and a part of it that starts at `from`. */
struct part {
	uint64_t window, payload, bytes; /* offsets in the window and in the part */
};

/* What of the part [from, from + length) of the stream lies in [at, at + n). */
static struct part overlap(uint64_t from, uint64_t length, uint64_t at, uint64_t n)
{
	uint64_t lo = from > at ? from : at;
	uint64_t hi = from + length < at + n ? from + length : at + n;
	return lo < hi ? (struct part){lo - at, lo - from, hi - lo} : (struct part){0};
}

/* Where a record starts in the file. */
static uint64_t record_at(const struct file *file, int tapes, int64_t place)
{
	uint64_t at = tapes ? file->states + (uint64_t)place * file->tape_stride
			    : (uint64_t)place * file->stride;
	return file->scratch.head + at;
}

/* Copies between the spans and the window [at, at + n) of the stream, in staging, hashing. */
static uint64_t copy(struct file *file, const struct neap__gather *gather, uint64_t at, uint64_t n)
{
	uint64_t from = 0, end = 0;
	for (int i = 0; i < gather->count && from < at + n; i++) {
		const struct neap_span *span = &gather->spans[i];
		struct part data = overlap(from, span->bytes, at, n);
		unsigned char *window = file->staging + data.window;
		unsigned char *payload = (unsigned char *)span->at + data.payload;
		from += span->bytes;
		if (!data.bytes)
			continue;
		memcpy(gather->put ? window : payload, gather->put ? payload : window, data.bytes);
		XXH3_64bits_update(file->hash, window, data.bytes);
		end = data.window + data.bytes;
	}
	return end;
}

static int run_put(
	struct file *file, const struct neap__job *job, const struct neap__gather *gather)
{
	uint64_t base = record_at(file, gather->tapes, job->place);
	uint64_t whole = footprint(file, gather->bytes);
	struct neap__trailer trailer = {0};
	int sealed = 0;

	XXH3_64bits_reset(file->hash);
	for (uint64_t at = 0; at < whole; at += file->piece) {
		uint64_t n = whole - at < file->piece ? whole - at : file->piece;
		struct part tail = overlap(gather->bytes, sizeof trailer, at, n);
		uint64_t end = copy(file, gather, at, n);
		if (tail.bytes && !sealed) {
			neap__record_seal(&trailer, file->epoch, job->tag, job->place,
				gather->bytes, XXH3_64bits_digest(file->hash));
			sealed = 1;
		}
		if (tail.bytes) {
			memcpy(file->staging + tail.window, (char *)&trailer + tail.payload,
				tail.bytes);
			end = tail.window + tail.bytes;
		}
		memset(file->staging + end, 0, n - end);
		NEAP_TRY(neap__scratch_write(&file->scratch, file->staging, n, base + at));
	}
	return 0;
}

static int run_get(
	struct file *file, const struct neap__job *job, const struct neap__gather *gather)
{
	uint64_t base = record_at(file, gather->tapes, job->place);
	uint64_t whole = footprint(file, gather->bytes);
	struct neap__trailer trailer = {0};

	XXH3_64bits_reset(file->hash);
	for (uint64_t at = 0; at < whole; at += file->piece) {
		uint64_t n = whole - at < file->piece ? whole - at : file->piece;
		NEAP_TRY(neap__scratch_read(&file->scratch, file->staging, n, base + at));
		struct part tail = overlap(gather->bytes, sizeof trailer, at, n);
		(void)copy(file, gather, at, n);
		memcpy((char *)&trailer + tail.payload, file->staging + tail.window, tail.bytes);
	}
	return neap__record_check(&trailer, file->epoch, job->tag, job->place, gather->bytes,
		XXH3_64bits_digest(file->hash));
}

static int run(void *self, const struct neap__job *job)
{
	struct neap_span one;
	struct neap__gather gather = neap__worked_gather(job, &one);
	return gather.put ? run_put(self, job, &gather) : run_get(self, job, &gather);
}

static int use_staging(struct file *file, uint64_t bytes, void *staging)
{
	file->piece = staging_bytes(file, bytes);
	if (!staging && file->own_bytes < file->piece) {
		neap__unmap_pages(file->own, file->own_bytes);
		file->own = NULL;
		file->own_bytes = 0;
		NEAP_TRY(neap__map_pages(&file->own, file->piece));
		file->own_bytes = file->piece;
	}
	file->staging = staging ? staging : file->own;
	if ((uintptr_t)file->staging % NEAP__PAGE != 0)
		return neap__fail(NEAP_EUSAGE, "staging must be aligned to %d bytes", NEAP__PAGE);
	return 0;
}

/* Blocks for so many records after `before` bytes. */
static int reserve(struct file *file, uint64_t before, uint64_t stride, int64_t places)
{
	uint64_t size;
	if (neap__mul_u64(&size, stride, (uint64_t)places) < 0 ||
		neap__add_u64(&size, size, before) < 0 || size > file->capacity)
		return neap__fail(-ENOSPC,
			"'%s' has %llu bytes for slow memory: no room for %lld records of %llu "
			"bytes",
			file->scratch.directory, (unsigned long long)file->capacity,
			(long long)places, (unsigned long long)stride);
	neap__worker_idle(file->worked.worker);
	NEAP_TRY(neap__scratch_reserve(&file->scratch, file->scratch.head + size));
	file->epoch++; /* what the blocks hold from before is no record any more */
	return 0;
}

static int format(void *self, uint64_t bytes, int64_t places, void *staging)
{
	struct file *file = self;
	uint64_t stride = footprint(self, bytes);
	neap__worker_idle(file->worked.worker);
	NEAP_TRY(use_staging(file, bytes, staging));
	NEAP_TRY(reserve(file, 0, stride, places));
	file->stride = stride;
	file->states = stride * (uint64_t)places;
	return 0;
}

static int format_tapes(void *self, uint64_t bytes, int64_t places, uint64_t staging)
{
	struct file *file = self;
	uint64_t stride = footprint(self, bytes), piece = staging - staging % NEAP__PAGE;
	NEAP_TRY(reserve(file, file->states, stride, places));
	file->tape_stride = stride;
	if (file->staging != file->own && piece > file->piece)
		file->piece = piece < PIECE ? (size_t)piece : PIECE;
	return 0;
}

static int poke(void *self, int tapes, int64_t place, uint64_t offset, unsigned mask)
{
	struct file *file = self;
	uint64_t at = record_at(file, tapes, place) + offset, page = at - at % NEAP__PAGE;
	neap__worker_idle(file->worked.worker);
	if (!mask)
		return neap__scratch_truncate(&file->scratch, at);
	NEAP_TRY(neap__scratch_read(&file->scratch, file->staging, NEAP__PAGE, page));
	file->staging[at - page] ^= (unsigned char)mask;
	return neap__scratch_write(&file->scratch, file->staging, NEAP__PAGE, page);
}

static int sync_file(void *self)
{
	struct file *file = self;
	neap__worker_idle(file->worked.worker);
	return neap__scratch_sync(&file->scratch);
}

static int adopt(void *self, uint64_t epoch)
{
	struct file *file = self;
	neap__worker_idle(file->worked.worker);
	file->epoch = epoch ? epoch : file->epoch + 1;
	file->wanted = epoch != 0;
	return 0;
}

static void close_file(void *self)
{
	struct file *file = self;
	neap__worker_free(file->worked.worker);
	if (!file->wanted)
		neap__scratch_remove(&file->scratch);
	neap__scratch_close(&file->scratch);
	neap__unmap_pages(file->own, file->own_bytes);
	XXH3_freeState(file->hash);
	free(file);
}

static int wrap(struct neap_tier **tier, struct file *file)
{
	static const struct neap_tier_ops ops = {
		.size = sizeof ops,
		.format = format,
		.put = neap__worked_put,
		.get = neap__worked_get,
		.wait = neap__worked_wait,
		.staging = staging_bytes,
		.close = close_file,
		.format_tapes = format_tapes,
		.put_tapes = neap__worked_put_tapes,
		.get_tapes = neap__worked_get_tapes,
		.sync = sync_file,
		.adopt = adopt,
	};
	const struct neap_tier_spec spec = {
		.name = "file",
		.capacity = file->capacity,
		.write_rate = 4e8,
		.read_rate = 8e8,
		.write_fixed = 1e-4,
		.read_fixed = 1e-4,
	};
	const struct neap__scratch *scratch = &file->scratch;
	NEAP_TRY(neap_tier_wrap(tier, &ops, &spec, file));
	(*tier)->footprint = footprint;
	(*tier)->poke = poke;
	(*tier)->holds = file->wanted;
	snprintf((*tier)->about, sizeof(*tier)->about, "%s file in %.256s",
		scratch->direct	     ? "O_DIRECT"
		: scratch->in_memory ? "in-memory (tmpfs)"
				     : "page-cached",
		scratch->directory);
	return 0;
}

int neap_tier_open_file(
	struct neap_tier **tier, const char *dir, const struct neap_file_options *options)
{
	struct neap_file_options o = {0};
	if (options && (options->size < sizeof(uint32_t) || options->size > sizeof o))
		return neap__fail(NEAP_EUSAGE, "neap_file_options: set size to its sizeof");
	if (options)
		memcpy(&o, options, options->size);
	struct file *file = calloc(1, sizeof *file);
	if (!file)
		return neap__fail_errno(ENOMEM, "file tier");
	file->scratch.fd = -1;
	file->hash = XXH3_createState();
	unsigned flags = (o.page_cache ? NEAP__SCRATCH_CACHED : 0u) |
			 (o.in_memory ? NEAP__SCRATCH_MEMORY : 0u);
	int rc = file->hash ? 0 : neap__fail_errno(ENOMEM, "file tier");
	if (rc == 0)
		rc = o.keep ? neap__scratch_open_kept(
				      &file->scratch, dir ? dir : "", "neap.slow", flags)
			    : neap__scratch_open(&file->scratch, dir ? dir : "", flags);
	file->wanted = file->scratch.existed;
	file->capacity = o.capacity ? o.capacity : file->scratch.room;
	if (rc == 0)
		rc = neap__worker_create(&file->worked.worker, NEAP__REQUESTS, run, file);
	if (rc == 0)
		rc = wrap(tier, file);
	if (rc < 0)
		close_file(file);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_tier.c: the tier of files: records in preallocated files, unnamed or kept, that a mover
 * moves in pieces through the staging, which is aligned as O_DIRECT needs it.
 */
#include "store/mover.h"
#include "store/tier_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/struct_size.h"
#include "sys/memory.h"
#include "store/background.h"

#include <errno.h>
#include <stdlib.h>

#define PIECE NEAP__STRIPE		 /* bytes: smaller ones move slower, larger no faster */
#define PIECE_LEAST ((uint64_t)32 << 10) /* bytes: a larger record is not cut into smaller ones */
#define PIECES_LEAST 4			 /* of the staging, so that some move while one is filled */
#define PIECES_MOST 8			 /* in flight: as many keep a disk busy */

/* All fields change only while the mover is idle. */
struct file {
	struct neap__background background; /* first */
	struct neap__stripes stripes;
	struct neap__layout layout;
	uint64_t capacity;
	int outlives;	       /* the files are to outlive the process */
	uint64_t lent_staging; /* bytes of staging that formats bring; 0: the least */
	void *staging;	       /* what format got, or `own` */
	void *own;
	size_t own_bytes;
};

static uint64_t footprint(void *self, uint64_t bytes)
{
	(void)self;
	return neap__record_whole(bytes);
}

static uint64_t staging_bytes(void *self, uint64_t bytes)
{
	uint64_t whole = footprint(self, bytes);
	return whole < PIECE ? whole : PIECE;
}

static uint64_t staging_most(void *self, uint64_t bytes)
{
	const struct file *file = self;
	uint64_t most = (file->stripes.count > 1 ? 2 : 1) * PIECES_MOST * PIECE;
	uint64_t all = neap__sat_mul(staging_bytes(self, bytes), NEAP__IO_REQUESTS);
	return all < most ? all : most;
}

static void lend(void *self, uint64_t bytes)
{
	struct file *file = self;
	file->lent_staging = bytes;
}

/*
 * Hands `bytes` of staging to the mover, for records that take `whole` bytes each: in several
 * pieces rather than large ones, so that some are in flight while another is filled.
 */
static void stage(struct file *file, uint64_t bytes, uint64_t whole)
{
	uint64_t piece = whole < PIECE ? whole : PIECE;
	uint64_t share = bytes / PIECES_LEAST & ~(uint64_t)(NEAP__PAGE - 1);
	share = share > PIECE_LEAST ? share : PIECE_LEAST;
	piece = piece < share ? piece : share;
	piece = piece < bytes ? piece : bytes - bytes % NEAP__PAGE;
	neap__mover_stage(file->background.mover, file->staging, bytes, piece);
}

/* Uses staging of the tier's own, where format got none. */
static int use_own(struct file *file, uint64_t bytes)
{
	file->staging = file->own;
	if (file->own_bytes >= bytes)
		return 0;
	neap__mover_stage(file->background.mover, NULL, 0, NEAP__PAGE);
	neap__unmap_pages(file->own, file->own_bytes);
	file->own = file->staging = NULL;
	file->own_bytes = 0;
	NEAP_TRY(neap__map_pages(&file->own, bytes));
	file->own_bytes = bytes;
	file->staging = file->own;
	return 0;
}

/* Gives the tier's own staging back, once no transfer that was given up may touch it. */
static void drop_own(struct file *file)
{
	if (neap__mover_holds_staging(file->background.mover))
		return;
	neap__unmap_pages(file->own, file->own_bytes);
	file->own = NULL;
	file->own_bytes = 0;
}

static int use_staging(struct file *file, uint64_t bytes, void *staging)
{
	uint64_t least = staging_bytes(file, bytes), most = staging_most(file, bytes);
	uint64_t given = file->lent_staging > least ? file->lent_staging : least;
	if (!staging) {
		given = file->lent_staging && given < most ? given - given % NEAP__PAGE : most;
		NEAP_TRY(use_own(file, given));
	} else {
		file->staging = staging;
	}
	if ((uintptr_t)file->staging % NEAP__PAGE != 0)
		return neap__fail(NEAP_EUSAGE, "staging must be aligned to %d bytes", NEAP__PAGE);
	stage(file, given, footprint(file, bytes));
	if (staging)
		drop_own(file);
	return 0;
}

/* Reserves blocks for `places` records after `before` bytes; records of before are dropped. */
static int reserve(struct file *file, uint64_t before, uint64_t stride, int64_t places)
{
	uint64_t size;
	if (neap__mul_u64(&size, stride, (uint64_t)places) < 0 ||
		neap__add_u64(&size, size, before) < 0 || size > file->capacity)
		return neap__fail(-ENOSPC,
			"'%s' has %llu bytes for slow memory, too few for %lld records of %llu "
			"bytes. Free space there, or choose another directory",
			file->stripes.list, (unsigned long long)file->capacity, (long long)places,
			(unsigned long long)stride);
	NEAP_TRY(neap__mover_idle(file->background.mover));
	NEAP_TRY(neap__stripes_reserve(&file->stripes, size));
	file->layout.epoch++; /* old records on the blocks do not count any more */
	return 0;
}

static int format(void *self, uint64_t bytes, int64_t places, void *staging)
{
	struct file *file = self;
	uint64_t stride = footprint(self, bytes);
	NEAP_TRY(neap__mover_idle(file->background.mover));
	NEAP_TRY(use_staging(file, bytes, staging));
	NEAP_TRY(reserve(file, 0, stride, places));
	file->layout.stride = stride;
	file->layout.states = stride * (uint64_t)places;
	return 0;
}

/* Room for `places` places of `stride` bytes, for records of tapes of at most `bytes`. */
static int format_strides(
	struct file *file, uint64_t stride, int64_t places, uint64_t bytes, uint64_t staging)
{
	struct neap__layout *layout = &file->layout;
	uint64_t whole = footprint(file, bytes);
	NEAP_TRY(reserve(file, layout->states, stride, places));
	layout->tape_stride = stride;
	if (file->staging == file->own)
		return use_staging(file, whole > layout->stride ? bytes : layout->stride, NULL);
	stage(file, staging, whole > layout->stride ? whole : layout->stride);
	return 0;
}

static int format_tapes(void *self, uint64_t bytes, int64_t places, uint64_t staging)
{
	return format_strides(self, footprint(self, bytes), places, bytes, staging);
}

static uint64_t unit(void *self)
{
	return footprint(self, 1);
}

static int format_units(void *self, uint64_t bytes, int64_t units, uint64_t staging)
{
	return format_strides(self, unit(self), units, bytes, staging);
}

static int forget(void *self, int64_t place)
{
	struct file *file = self;
	neap__mover_forget(file->background.mover, place);
	return 0;
}

static int poke(void *self, int tapes, int64_t place, uint64_t offset, unsigned mask)
{
	struct file *file = self;
	uint64_t at = neap__layout_at(&file->layout, tapes, place) + offset;
	struct neap__stripe stripe = neap__stripe_at(&file->stripes, at);
	struct neap__scratch *scratch = &file->stripes.files[stripe.file];
	uint64_t in = stripe.offset % NEAP__PAGE, page = stripe.offset - in;
	unsigned char *staging = file->staging;
	NEAP_TRY(neap__mover_idle(file->background.mover));
	if (!mask)
		return neap__scratch_truncate(scratch, stripe.offset);
	NEAP_TRY(neap__scratch_read(scratch, staging, NEAP__PAGE, page));
	staging[in] ^= (unsigned char)mask;
	return neap__scratch_write(scratch, staging, NEAP__PAGE, page);
}

static int cached(void *self, uint64_t *bytes)
{
	struct file *file = self;
	NEAP_TRY(neap__mover_idle(file->background.mover));
	*bytes = 0;
	for (int i = 0; i < file->stripes.count; i++) {
		uint64_t one;
		NEAP_TRY(neap__scratch_cached(&file->stripes.files[i], &one));
		*bytes += one;
	}
	return 0;
}

static int sync_file(void *self)
{
	struct file *file = self;
	NEAP_TRY(neap__mover_idle(file->background.mover));
	for (int i = 0; i < file->stripes.count; i++)
		NEAP_TRY(neap__scratch_sync(&file->stripes.files[i]));
	return 0;
}

static int adopt(void *self, uint64_t epoch)
{
	struct file *file = self;
	NEAP_TRY(neap__mover_idle(file->background.mover));
	file->layout.epoch = epoch ? epoch : file->layout.epoch + 1;
	file->outlives = epoch != 0;
	return 0;
}

static void set_patience(void *self, double seconds)
{
	struct file *file = self;
	neap__mover_patience(file->background.mover, seconds);
}

static int holds_staging(void *self)
{
	struct file *file = self;
	return neap__mover_holds_staging(file->background.mover);
}

/* Called once nothing is in flight. */
static void free_file(void *self)
{
	struct file *file = self;
	for (int i = 0; i < file->stripes.count && !file->outlives; i++)
		neap__scratch_remove(&file->stripes.files[i]);
	neap__stripes_close(&file->stripes);
	neap__unmap_pages(file->own, file->own_bytes);
	free(file);
}

static void close_file(void *self)
{
	struct file *file = self;
	if (file->background.mover)
		neap__mover_free(file->background.mover, free_file, file);
	else
		free_file(file);
}

/* In a child process: the files and their names are the parent's, the descriptors ours, too. */
static void abandon(void *self)
{
	struct file *file = self;
	neap__mover_orphan(file->background.mover);
	file->outlives = 1;
	free_file(file);
}

static const struct neap_tier_ops ops = {
	.size = sizeof ops,
	.format = format,
	.put = neap__background_put,
	.get = neap__background_get,
	.wait = neap__background_wait,
	.forget = forget,
	.staging = staging_bytes,
	.close = close_file,
	.format_tapes = format_tapes,
	.put_tapes = neap__background_put_tapes,
	.get_tapes = neap__background_get_tapes,
	.sync = sync_file,
	.adopt = adopt,
	.set_patience = set_patience,
	.holds_staging = holds_staging,
	.footprint = footprint,
	.staging_most = staging_most,
	.lend = lend,
	.cached = cached,
	.times = neap__background_times,
	.cancel = neap__background_cancel,
	.unit = unit,
	.format_units = format_units,
	.put_spans = neap__background_put_spans,
	.get_spans = neap__background_get_spans,
	.done = neap__background_done,
	.wait_for = neap__background_wait_for,
	.abandon = abandon,
};

static int wrap(struct neap_tier **tier, struct file *file)
{
	const struct neap__io_engine *engine = neap__mover_engine(file->background.mover);
	const struct neap_tier_spec spec = {
		.name = "file",
		.capacity = file->capacity,
		.write_rate = 4e8,
		.read_rate = 8e8,
		.write_fixed = 1e-4,
		.read_fixed = 1e-4,
	};
	const struct neap__scratch *scratch = &file->stripes.files[0];
	NEAP_TRY(neap_tier_wrap(tier, &ops, &spec, file));
	(*tier)->poke = poke;
	(*tier)->journalled = file->outlives;
	neap__print((*tier)->about, sizeof(*tier)->about, "%s file%s in %.256s, %.96s",
		scratch->direct	     ? "O_DIRECT"
		: scratch->in_memory ? "in-memory (tmpfs)"
				     : "page-cached",
		file->stripes.count > 1 ? "s" : "", file->stripes.list, engine->about);
	return 0;
}

int neap_tier_open_file(
	struct neap_tier **tier, const char *dir, const struct neap_file_options *options)
{
	NEAP_NEED(tier);
	struct neap_file_options o = {0};
	if (options)
		NEAP_TRY(neap__struct_take(&o, sizeof o, options, "neap_file_options"));
	char name[NEAP__SCRATCH_NAME];
	NEAP_TRY(neap__scratch_name(name, "neap.slow", o.suffix));
	struct file *file = calloc(1, sizeof *file);
	if (!file)
		return neap__fail_errno(ENOMEM, "file tier");
	unsigned flags = (o.page_cache ? NEAP__SCRATCH_CACHED : 0u) |
			 (o.in_memory ? NEAP__SCRATCH_MEMORY : 0u);
	int rc = neap__stripes_open(&file->stripes, dir ? dir : "", o.keep ? name : NULL, flags);
	for (int i = 0; i < file->stripes.count; i++)
		file->outlives |= file->stripes.files[i].existed;
	file->capacity = o.capacity ? o.capacity : file->stripes.room;
	if (rc == 0)
		rc = neap__mover_create(&file->background.mover, &file->stripes, &file->layout);
	if (rc == 0)
		rc = wrap(tier, file);
	if (rc < 0)
		close_file(file);
	return rc;
}

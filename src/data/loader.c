/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c: prepares batches, one ahead, on a thread of its own. There are two frames: the caller
 * holds one while the thread fills the other. The content of a batch is a function of (data set,
 * options, epoch, number of the batch) alone.
 */
#include "data/dataset.h"
#include "data/frame.h"
#include "data/loader_ahead.h"
#include "data/loader_memory.h"
#include "data/step_rows.h"
#include "data/windows.h"
#include "base/fail.h"
#include "base/philox.h"
#include "base/print.h"
#include "ranks/rank_share.h"
#include "sys/pool.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct neap_loader {
	struct neap_dataset *set; /* borrowed */
	struct neap_loader_options options;
	int64_t count, batches;
	int64_t *order; /* [count]; written only while the thread is idle */
	struct neap__source source;
	struct neap__augment augment; /* its epoch is written only while the threads are idle */
	struct neap__event_buffer events;
	struct neap_windows
		*windows; /* made for the first long batch; used by the caller's thread only */

	struct neap__processor_loan loan; /* the thread's */
	pthread_t thread;
	pthread_mutex_t lock; /* guards all below, and frames[i].ready */
	pthread_cond_t changed;
	int started, cancel, busy, quit;
	int64_t next_made, next_given;	   /* numbers of batches */
	struct neap__batch_frame frame[2]; /* batch n is in frame n % 2 */
	struct neap__batch_frame *held;	   /* by the caller, until its next call */
};

#define WINDOW_BYTES (16u << 20)

/* What a loader has of a batch of so many samples. */
struct share {
	int first, size;
};

static struct share share_of(const struct neap_loader_options *o, int size)
{
	int group = size < o->batch && o->last_group > 0 ? o->last_group : o->group;

	if (o->ranks == 0)
		return (struct share){0, size};
	int first = neap__rank_sample(o->rank, o->ranks, size, group);
	return (struct share){first, neap__rank_sample(o->rank + 1, o->ranks, size, group) - first};
}

/* Samples of the loader's largest batch, at least 1. */
static int most_of(const struct neap_loader *loader)
{
	const struct neap_loader_options *o = &loader->options;
	int64_t last = loader->count - (loader->batches - 1) * o->batch;
	int most = share_of(o, (int)last).size;

	if (loader->batches > 1 && share_of(o, o->batch).size > most)
		most = share_of(o, o->batch).size;
	return most > 0 ? most : 1;
}

static int fill(struct neap_loader *loader, struct neap__batch_frame *frame, int64_t number)
{
	int64_t first = number * loader->options.batch, left = loader->count - first;
	int size = (int)(left < loader->options.batch ? left : loader->options.batch);
	struct share share = share_of(&loader->options, size);
	int rc = neap__batch_frame_fill(
		frame, &loader->source, loader->order + first + share.first, share.size);
	frame->batch.of = loader->options.ranks > 0 ? size : 0;
	return rc;
}

static int has_work(const struct neap_loader *loader)
{
	if (!loader->started || loader->cancel || loader->next_made >= loader->batches)
		return 0;
	return !loader->frame[loader->next_made % 2].ready;
}

static void *work(void *arg)
{
	struct neap_loader *loader = arg;
	pthread_mutex_lock(&loader->lock);
	for (;;) {
		while (!loader->quit && !has_work(loader))
			pthread_cond_wait(&loader->changed, &loader->lock);
		if (loader->quit)
			break;
		int64_t number = loader->next_made;
		struct neap__batch_frame *frame = &loader->frame[number % 2];
		loader->busy = 1;
		pthread_mutex_unlock(&loader->lock);

		neap__processor_loan_begin(&loader->loan);
		int rc = fill(loader, frame, number);
		neap__processor_loan_end(&loader->loan);
		if (rc < 0)
			neap__print(frame->detail, sizeof frame->detail, "%s", neap_detail());

		pthread_mutex_lock(&loader->lock);
		loader->busy = 0;
		frame->rc = rc;
		frame->ready = 1;
		/* After an error no further batch is made. */
		loader->next_made = rc < 0 ? loader->batches : number + 1;
		pthread_cond_broadcast(&loader->changed);
	}
	pthread_mutex_unlock(&loader->lock);
	return NULL;
}

static int check_options(const struct neap_dataset *set, const struct neap_loader_options *o)
{
	if (o->batch < 1 || o->batch > 1 << 20)
		return neap__fail(NEAP_EUSAGE,
			"batch is %d; it must be between 1 and 1048576 samples", o->batch);
	if (!(o->dt >= 1e-9 && o->dt <= 1e3))
		return neap__fail(
			NEAP_EUSAGE, "dt is %g s; it must be between 1e-9 and 1e3 s", o->dt);
	if (o->steps < 0)
		return neap__fail(NEAP_EUSAGE, "max-steps is %lld; it must not be negative",
			(long long)o->steps);
	NEAP_TRY(neap__augment_check(&o->augment));
	if (set->info.steps && neap__augment_used(&o->augment))
		return neap__fail(NEAP_EUSAGE,
			"--shift, --jitter and --stretch augment spikes, but the samples of '%s' "
			"are rows of numbers per step. Remove them",
			set->name);
	uint64_t most = o->window_bytes > o->whole_bytes ? o->window_bytes : o->whole_bytes;
	if (most > SIZE_MAX / 4)
		return neap__fail(NEAP_EUSAGE, "windows of %llu bytes are not possible",
			(unsigned long long)most);
	if (o->ranks < 0 || o->last_group < 0 ||
		(o->ranks > 0 && (o->rank < 0 || o->rank >= o->ranks || o->group < 1)))
		return neap__fail(NEAP_EUSAGE, "rank %d of %d, groups of %d and %d samples",
			o->rank, o->ranks, o->group, o->last_group);
	int64_t n = o->index ? o->count : set->info.samples;
	if (n < 1)
		return neap__fail(NEAP_EUSAGE, "'%s' has no samples to load", set->name);
	for (int64_t i = 0; o->index && i < n; i++)
		if (o->index[i] < 0 || o->index[i] >= set->info.samples)
			return neap__fail(NEAP_EUSAGE,
				"'%s' has no sample %lld; it has %lld, counted from 0", set->name,
				(long long)o->index[i], (long long)set->info.samples);
	return 0;
}

static void release(struct neap_loader *loader)
{
	neap__windows_free(loader->windows);
	for (int i = 0; i < 2; i++)
		neap__batch_frame_free(&loader->frame[i]);
	neap__event_buffer_free(&loader->events);
	free(loader->order);
	free(loader);
}

/* The thread blocks all signals, which the program's own threads handle. */
static int start_thread(struct neap_loader *loader)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = pthread_create(&loader->thread, NULL, work, loader);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err ? neap__fail_errno(err, "cannot start a thread to read '%s'", loader->set->name)
		   : 0;
}

/* Takes the options of a loader; what follows from them. */
static void take_options(struct neap_loader *loader, const struct neap_loader_options *o)
{
	struct neap_dataset *set = loader->set;

	loader->options = *o;
	loader->augment = (struct neap__augment){
		.options = o->augment, .inputs = set->info.inputs, .dt = o->dt, .seed = o->seed};
	loader->count = o->index ? o->count : set->info.samples;
	loader->batches = (loader->count - 1) / o->batch + 1;
	loader->source = (struct neap__source){.set = set,
		.batch = most_of(loader),
		.inputs = set->info.inputs,
		.dt = set->info.steps ? 1 : o->dt,
		.augment = neap__augment_used(&o->augment) ? &loader->augment : NULL,
		.steps = o->steps,
		.whole_bytes =
			o->whole_bytes > o->window_bytes / 2 ? o->whole_bytes : o->window_bytes / 2,
		.cancel = &loader->cancel,
		.events = &loader->events};
}

int neap_loader_open(struct neap_loader **out, struct neap_dataset *set,
	const struct neap_loader_options *options)
{
	NEAP_NEED(out, set, options);
	struct neap_loader_options o = {0};
	*out = NULL;
	memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
	NEAP_TRY(check_options(set, &o));
	if (o.window_bytes == 0)
		o.window_bytes = WINDOW_BYTES;
	struct neap_loader *loader = calloc(1, sizeof *loader);
	if (!loader)
		return neap__fail_errno(ENOMEM, "loading '%s'", set->name);
	loader->set = set;
	take_options(loader, &o);
	loader->order = malloc((size_t)loader->count * sizeof *loader->order);
	int rc = loader->order ? 0 : -ENOMEM;
	for (int i = 0; rc == 0 && i < 2; i++)
		rc = neap__batch_frame_init(&loader->frame[i], &loader->source);
	if (rc < 0) {
		release(loader);
		return neap__fail_errno(ENOMEM, "loading '%s'", set->name);
	}
	pthread_mutex_init(&loader->lock, NULL);
	pthread_cond_init(&loader->changed, NULL);
	rc = start_thread(loader);
	if (rc < 0) {
		pthread_cond_destroy(&loader->changed);
		pthread_mutex_destroy(&loader->lock);
		release(loader);
		return rc;
	}
	*out = loader;
	return 0;
}

/*
 * Arrays grow to a quarter more than they need, and while one moves both of its places count:
 * each byte of a batch may take two and a half.
 */
#define GROWTH 2.5
/* Of an event of the sample being read: double, u16 and the row as the file has it; its sorting. */
enum { EVENT_READ = 32, EVENT_SORTED = 10, BIN_COUNT = 4 };

/* Bytes that reading numbers takes, beside what is read. */
static double reading_rows(const struct neap_dataset *set)
{
	return (double)set->read_bytes +
	       sizeof(double) * (double)(NEAP__PIECE_NUMBERS + neap__features(set));
}

/* The same of values: two frames that are made as large as they have to be, or windows. */
static int values_most(const struct neap__source *source, uint64_t window_bytes, int64_t count,
	double longest, uint64_t *bytes)
{
	double size = (double)(source->batch < count ? source->batch : count);
	double batch = size * longest * (double)neap__step_bytes(source->set);

	double windows = 0;
	if (batch > (double)source->whole_bytes) {
		batch = (double)source->whole_bytes;
		windows = (double)window_bytes;
	}
	*bytes = (uint64_t)(2 * batch + windows + reading_rows(source->set));
	return 0;
}

int neap__loader_most(const struct neap_loader *loader, uint64_t *bytes)
{
	const struct neap__source *source = &loader->source;
	const int64_t *index = loader->options.index;
	double whole = (double)source->whole_bytes, longest = 0, events = 0;

	for (int64_t i = 0; i < loader->count; i++) {
		struct neap__sample_extent e;
		int64_t length;
		NEAP_TRY(neap__sample_size(source, index ? index[i] : i, 0, &e, &length));
		longest = fmax(longest, (double)length);
		events = fmax(events, (double)e.count);
	}
	if (source->set->info.values)
		return values_most(
			source, loader->options.window_bytes, loader->count, longest, bytes);
	double sample = (longest + 1) * sizeof(uint32_t) + events * sizeof(uint16_t) +
			longest * (double)neap__step_bytes(source->set);
	double batch =
		sample * (double)(source->batch < loader->count ? source->batch : loader->count);
	double reading = events * (EVENT_READ + EVENT_SORTED) + longest * BIN_COUNT, windows = 0;
	double rows = source->set->coded ? reading_rows(source->set) : 0;
	if (batch > whole && source->set->ops->part) { /* windows have their own bound */
		reading = fmin(reading, whole / sample * reading);
		windows = (double)loader->options.window_bytes;
		batch = whole;
	}
	*bytes = (uint64_t)(GROWTH * (2 * batch + reading) + windows + rows);
	return 0;
}

int64_t neap_loader_batches(const struct neap_loader *loader)
{
	if (!loader)
		return 0;
	return loader->batches;
}

/* Fisher and Yates, from the samples' given order: a function of (seed, epoch). */
static void make_order(struct neap_loader *loader, int64_t epoch)
{
	const struct neap_loader_options *o = &loader->options;
	for (int64_t i = 0; i < loader->count; i++)
		loader->order[i] = o->index ? o->index[i] : i;
	for (int64_t i = loader->count - 1; o->shuffle && i > 0; i--) {
		int64_t j = (int64_t)neap__random_below(o->seed, NEAP__STREAM_SHUFFLE,
			(uint32_t)epoch, (uint64_t)i, (uint64_t)i + 1);
		int64_t swap = loader->order[i];
		loader->order[i] = loader->order[j];
		loader->order[j] = swap;
	}
}

/* Binds the windows to the batch that is given out. */
static int bind_windows(struct neap_loader *loader, struct neap__batch_frame *frame)
{
	const struct neap__windows_options o = {.set = loader->set,
		.batch = loader->source.batch,
		.inputs = loader->source.inputs,
		.dt = loader->source.dt,
		.augment = loader->source.augment,
		.bytes = loader->options.window_bytes};
	if (!loader->windows)
		NEAP_TRY(neap__windows_create(&loader->windows, &o));
	neap__windows_bind(loader->windows, frame->sequence, frame->batch.size, frame->batch.steps);
	frame->batch.windows = loader->windows;
	frame->batch.bytes = (size_t)neap__windows_bytes(loader->windows);
	return 1;
}

/* Unbinds the windows from the batch before, so that its frame can be filled again. */
static void unbind_windows(struct neap_loader *loader)
{
	if (loader->windows)
		neap__windows_bind(loader->windows, NULL, 0, 0);
}

/* With the lock: the thread makes no batch while `cancel` is set, and is not making one after it.
 */
static void cancel_work(struct neap_loader *loader)
{
	__atomic_store_n(&loader->cancel, 1, __ATOMIC_RELAXED);
	while (loader->busy)
		pthread_cond_wait(&loader->changed, &loader->lock);
}

int neap_loader_start(struct neap_loader *loader, int64_t epoch, int64_t first_batch)
{
	NEAP_NEED(loader);
	if (epoch < 0 || epoch > UINT32_MAX || first_batch < 0 || first_batch > loader->batches)
		return neap__fail(NEAP_EUSAGE, "epoch %lld, batch %lld of %lld", (long long)epoch,
			(long long)first_batch, (long long)loader->batches);
	unbind_windows(loader);
	pthread_mutex_lock(&loader->lock);
	cancel_work(loader);
	make_order(loader, epoch);
	loader->augment.epoch = (uint32_t)epoch;
	loader->frame[0].ready = loader->frame[1].ready = 0;
	loader->next_made = first_batch;
	loader->next_given = first_batch;
	loader->held = NULL;
	loader->started = 1;
	__atomic_store_n(&loader->cancel, 0, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&loader->changed);
	pthread_mutex_unlock(&loader->lock);
	return 0;
}

int neap_loader_next(struct neap_loader *loader, const struct neap_batch **batch)
{
	NEAP_NEED(loader, batch);
	int rc = 0;
	*batch = NULL;
	pthread_mutex_lock(&loader->lock);
	if (!loader->started) {
		pthread_mutex_unlock(&loader->lock);
		return neap__fail(NEAP_EUSAGE, "neap_loader_next before neap_loader_start");
	}
	if (loader->held) {
		unbind_windows(loader);
		loader->held->ready = 0;
		loader->held = NULL;
		pthread_cond_broadcast(&loader->changed);
	}
	int64_t number = loader->next_given;
	if (number < loader->batches) {
		struct neap__batch_frame *frame = &loader->frame[number % 2];
		while (!frame->ready)
			pthread_cond_wait(&loader->changed, &loader->lock);
		rc = frame->rc;
		if (rc < 0) {
			rc = neap__fail(rc, "%s", frame->detail);
		} else {
			*batch = &frame->batch;
			loader->next_given = number + 1;
			loader->held = frame;
			rc = 1;
		}
	}
	struct neap__batch_frame *given = rc > 0 ? loader->held : NULL;
	pthread_mutex_unlock(&loader->lock);
	if (given && given->is_long)
		rc = bind_windows(loader, given);
	if (rc == 0) { /* the epoch is over; frees memory for the windows of another loader */
		neap__windows_free(loader->windows);
		loader->windows = NULL;
	}
	if (rc < 0)
		*batch = NULL;
	return rc;
}

const struct neap_batch *neap__loader_ahead(struct neap_loader *loader)
{
	pthread_mutex_lock(&loader->lock);
	const struct neap__batch_frame *frame = &loader->frame[loader->next_given % 2];
	int known = loader->started && loader->next_given < loader->batches && frame->ready &&
		    frame->rc >= 0 && !frame->is_long;
	pthread_mutex_unlock(&loader->lock);
	return known ? &frame->batch : NULL;
}

void neap__loader_rest(struct neap_loader *loader)
{
	pthread_mutex_lock(&loader->lock);
	cancel_work(loader);
	loader->started = 0;
	__atomic_store_n(&loader->cancel, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&loader->lock);
}

void neap_loader_close(struct neap_loader *loader)
{
	if (!loader)
		return;
	pthread_mutex_lock(&loader->lock);
	loader->quit = 1;
	__atomic_store_n(&loader->cancel, 1, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&loader->changed);
	pthread_mutex_unlock(&loader->lock);
	pthread_join(loader->thread, NULL);
	pthread_cond_destroy(&loader->changed);
	pthread_mutex_destroy(&loader->lock);
	release(loader);
}

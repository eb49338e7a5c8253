/* SPDX-License-Identifier: Apache-2.0 */
/* emulator.c: schedules the threads of a cluster, and checks how they meet (emulator.h). */
#include "emulator.h"
#include "fiber.h"
#include "base/subnormals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __SANITIZE_ADDRESS__
#define HAS_ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

enum {
	THREADS_MOST = 1024,
	CLUSTER_MOST = 16,
	WARP = 32,
	BLOCKS_MOST = 1 << 20,
	BARRIERS_MOST = 64,
	GAP = 32,	   /* bytes behind an array in shared memory that nothing may touch */
	ARRAYS_MOST = 64,  /* arrays in shared memory */
	COPIES_MOST = 256, /* that a thread waits for */
	UNSET = 0xa5	   /* what shared memory holds when a block begins */
};

/* Why a thread does not run. */
enum waiting { READY, AT_BARRIER, AT_SUM, AT_BALLOT, AT_MMA, AT_CLUSTER, ENDED, WRONG };

/* Numbers on their way to shared memory; from NULL: 0. */
struct emulated_copies {
	int count, groups; /* groups: that have ended so far */
	struct {
		float *to;
		const float *from;
		int group;
	} copy[COPIES_MOST];
};

struct emulated_fiber {
	struct fiber *fiber;
	struct emulated_copies *copies; /* NULL: it never began any */
	enum waiting waits;
	int barrier; /* where it waits: index of a barrier */
	int sums;    /* calls of emulator_sum16 */
	int vote;
	uint32_t ballot; /* the votes of its warp */
	enum mma_kind mma;
	int split_mmas;				      /* of the warp, noted in its first thread */
	float *sums_of_mma;			      /* registers of an mma: what it adds to ... */
	const uint32_t *rows_of_mma, *columns_of_mma; /* ... and multiplies */
};

/* A block of the cluster that runs: READY while its threads can go on. */
struct emulated_block {
	enum waiting waits;
	int barrier; /* of the cluster, where it waits */
};

struct emulated_thread emulator_thread;
static struct emulated_fiber fibers[CLUSTER_MOST * THREADS_MOST]; /* [rank][threads] */
static struct emulated_block cluster[CLUSTER_MOST];
static struct emulated_barrier barriers[BARRIERS_MOST];
static int nbarriers, skipped = -1, skipped_mma = -1, has_subnormals;
static char report[256];

/* The launch in progress. */
static struct {
	const struct emulated_kernel *kernel;
	const void *arguments;
	unsigned char *shared; /* [ranks][shared_room] */
	size_t shared_bytes, shared_room;
	int threads, ranks; /* ranks: blocks of a cluster */
	uint32_t random;
	/* By the parity of the call of emulator_sum16. */
	float sum_room[2][CLUSTER_MOST * THREADS_MOST];
} launch;

const char *emulator_report(void)
{
	return report;
}

int emulator_barriers(void)
{
	return nbarriers;
}

struct emulated_barrier emulator_barrier(int index)
{
	return barriers[index];
}

void emulator_skip(int index)
{
	skipped = index;
}

void emulator_skip_mma(int index)
{
	skipped_mma = index;
}

void emulator_subnormals(int on)
{
	has_subnormals = on;
}

/* The place of the thread that runs. */
static int running(void)
{
	return emulator_thread.rank * launch.threads + emulator_thread.thread;
}

/* Stops the thread that runs. */
static void park(enum waiting waits, int barrier)
{
	struct emulated_fiber *fiber = &fibers[running()];

	fiber->waits = waits;
	fiber->barrier = barrier;
	fiber_leave(fiber->fiber, waits == ENDED || waits == WRONG);
}

static int barrier_of(const char *file, int line)
{
	int i = 0;

	while (i < nbarriers && (barriers[i].line != line || strcmp(barriers[i].file, file) != 0))
		i++;
	if (i == BARRIERS_MOST)
		abort();
	if (i == nbarriers)
		barriers[nbarriers++] = (struct emulated_barrier){file, line};
	return i;
}

void emulator_sync(const char *file, int line)
{
	int barrier = barrier_of(file, line);

	if (barrier != skipped)
		park(AT_BARRIER, barrier);
}

void emulator_cluster_sync(const char *file, int line)
{
	int barrier = barrier_of(file, line);

	if (barrier != skipped)
		park(AT_CLUSTER, barrier);
}

uint32_t emulator_ballot(int p)
{
	struct emulated_fiber *fiber = &fibers[running()];

	fiber->vote = p != 0;
	park(AT_BALLOT, 0);
	return fiber->ballot;
}

/* The copies of the thread that runs. */
static struct emulated_copies *copies_of(void)
{
	struct emulated_fiber *fiber = &fibers[running()];

	if (!fiber->copies && !(fiber->copies = calloc(1, sizeof *fiber->copies)))
		abort();
	return fiber->copies;
}

void emulator_copy(float *to, const float *from)
{
	struct emulated_copies *copies = copies_of();

	if (copies->count == COPIES_MOST)
		abort();
	memset(to, UNSET, sizeof *to);
	copies->copy[copies->count].to = to;
	copies->copy[copies->count].from = from;
	copies->copy[copies->count++].group = copies->groups;
}

void emulator_copies_end(void)
{
	copies_of()->groups++;
}

void emulator_copies_wait(int groups)
{
	struct emulated_copies *copies = copies_of();
	int kept = 0;

	for (int i = 0; i < copies->count; i++)
		if (copies->copy[i].group >= copies->groups - groups)
			copies->copy[kept++] = copies->copy[i];
		else
			*copies->copy[i].to = copies->copy[i].from ? *copies->copy[i].from : 0;
	copies->count = kept;
}

void emulator_mma(enum mma_kind kind, float *d, const uint32_t *a, const uint32_t *b)
{
	struct emulated_fiber *fiber = &fibers[running()];

	fiber->mma = kind;
	fiber->sums_of_mma = d;
	fiber->rows_of_mma = a;
	fiber->columns_of_mma = b;
	park(AT_MMA, 0);
}

/*
 * A thread may be at most one call ahead of the others, so that two rooms suffice: all have read
 * the numbers of a call when all are in the next one.
 */
float emulator_sum16(float x)
{
	int thread = running();
	float *room = launch.sum_room[fibers[thread].sums++ & 1];
	float v[16];

	room[thread] = x;
	park(AT_SUM, 0);
	memcpy(v, room + (thread & ~15), sizeof v);
	for (int half = 8; half; half /= 2)
		for (int i = 0; i < half; i++)
			v[i] += v[i + half];
	return v[0];
}

static unsigned char *shared_of(int rank)
{
	return launch.shared + (size_t)rank * launch.shared_room;
}

void *emulator_remote(const void *at, int rank)
{
	size_t offset = (size_t)((const unsigned char *)at - shared_of(emulator_thread.rank));

	if (rank < 0 || rank >= launch.ranks || offset >= launch.shared_room ||
		cluster[rank].waits == ENDED) {
		snprintf(report, sizeof report,
			"%s: block %d reaches for shared memory of block %d of its cluster, which "
			"has ended or does not exist",
			launch.kernel->name, emulator_thread.block, rank);
		park(WRONG, 0);
	}
	return shared_of(rank) + offset;
}

void *emulator_shared(struct emulated_shared *shared, unsigned bytes, unsigned used)
{
	unsigned char *at =
		shared_of(emulator_thread.rank) + shared->bytes + (size_t)shared->arrays * GAP;

	shared->bytes += bytes;
	shared->arrays++;
	if (shared->bytes > launch.shared_bytes || shared->arrays > ARRAYS_MOST) {
		snprintf(report, sizeof report,
			"%s: more than the %zu bytes of shared memory of the launch",
			launch.kernel->name, launch.shared_bytes);
		park(WRONG, 0);
	}
#ifdef HAS_ASAN
	__asan_poison_memory_region(at + used, bytes - used + GAP);
#else
	(void)used;
#endif
	return at;
}

static void run_thread(void)
{
	launch.kernel->run(launch.arguments);
	park(ENDED, 0);
}

static uint32_t draw(uint32_t below)
{
	launch.random = launch.random * 1664525u + 1013904223u;
	return (launch.random >> 8) % below;
}

/* Another order at each call; with seed 0, the ascending order stays. */
static void shuffle(int *order, int n)
{
	for (int i = n - 1; i > 0 && launch.random; i--) {
		int j = (int)draw((uint32_t)i + 1), at = order[i];
		order[i] = order[j];
		order[j] = at;
	}
}

static int wrong(const char *what, const struct emulated_fiber *fiber)
{
	const struct emulated_barrier *b = &barriers[fiber->barrier];

	snprintf(report, sizeof report, "%s: %s: block %d, thread %d, line %d of %s",
		launch.kernel->name, what, emulator_thread.block,
		(int)(fiber - fibers) % launch.threads, b->line, b->file);
	return -1;
}

/* Without clusters, all threads of a block add up, since warps of other devices are larger. */
static int meets_by_warps(const struct emulated_fiber *fiber)
{
	return fiber->waits == AT_MMA ||
	       (launch.ranks > 1 && (fiber->waits == AT_SUM || fiber->waits == AT_BALLOT));
}

/* Runs the mma that the threads of a warp are at. Returns 0, or -1: they are at different ones. */
static int run_mma(struct emulated_fiber *warp)
{
	float *d[WARP];
	const uint32_t *a[WARP], *b[WARP];

	for (int i = 0; i < WARP; i++) {
		if (warp[i].mma != warp[0].mma)
			return wrong("threads of the warp are at different mma", &warp[i]);
		d[i] = warp[i].sums_of_mma;
		a[i] = warp[i].rows_of_mma;
		b[i] = warp[i].columns_of_mma;
	}
	if (warp[0].mma != MMA_KIND_TF32 || warp[0].split_mmas++ % SPLIT_MMA != skipped_mma)
		mma_model(warp[0].mma, d, a, b);
	return 0;
}

/* Lets a warp go on if its threads vote, add or multiply. Returns 1: they do; -1: not all do. */
static int meet_warp(struct emulated_fiber *warp)
{
	uint32_t ballot = 0;

	for (int i = 0; i < WARP; i++) {
		if (warp[i].waits != warp[0].waits &&
			(meets_by_warps(&warp[i]) || meets_by_warps(&warp[0])))
			return wrong("not all threads of the warp go on", &warp[i]);
		ballot |= (uint32_t)warp[i].vote << i;
	}
	if (!meets_by_warps(&warp[0]))
		return 0;
	if (warp[0].waits == AT_MMA && run_mma(warp) < 0)
		return -1;
	for (int i = 0; i < WARP; i++) {
		warp[i].ballot = ballot;
		warp[i].waits = READY;
	}
	return 1;
}

/* Lets warps of a block go on. Returns 1: some do; -1: wrong. */
static int meet_warps(struct emulated_fiber *block)
{
	int any = 0;

	for (int i = 0; i < launch.threads; i += WARP) {
		int met = meet_warp(&block[i]);
		if (met < 0)
			return -1;
		any |= met;
	}
	return any;
}

/*
 * Lets the threads of a block go on if all wait at the same place, and notes where the block is.
 * Returns 0, or -1: wrong.
 */
static int meet(int rank)
{
	struct emulated_fiber *block = &fibers[rank * launch.threads];
	const struct emulated_fiber *first = block;

	for (int i = 0; i < launch.threads; i++)
		if (block[i].waits == WRONG)
			return -1;
	int warps = meet_warps(block);
	if (warps)
		return warps < 0 ? -1 : 0;
	for (int i = 0; i < launch.threads; i++) {
		if (block[i].waits != first->waits)
			return wrong("not all threads reach this barrier",
				first->waits == AT_BARRIER || first->waits == AT_CLUSTER
					? first
					: &block[i]);
		if ((first->waits == AT_BARRIER || first->waits == AT_CLUSTER) &&
			block[i].barrier != first->barrier)
			return wrong("threads wait at different barriers", &block[i]);
	}
	cluster[rank] = (struct emulated_block){first->waits, first->barrier};
	if (first->waits == ENDED || first->waits == AT_CLUSTER)
		return 0;
	cluster[rank].waits = READY;
	for (int i = 0; i < launch.threads; i++)
		block[i].waits = READY;
	return 0;
}

/* Lets the blocks go on if all wait at the same barrier. Returns 1: all have ended; -1: wrong. */
static int meet_blocks(void)
{
	for (int r = 0; r < launch.ranks; r++)
		if (cluster[r].waits != cluster[0].waits ||
			(cluster[r].waits == AT_CLUSTER &&
				cluster[r].barrier != cluster[0].barrier))
			return wrong("not all blocks of the cluster reach this barrier",
				&fibers[(cluster[r].waits == AT_CLUSTER ? r : 0) * launch.threads]);
	if (cluster[0].waits == ENDED)
		return 1;
	for (int r = 0; r < launch.ranks; r++)
		cluster[r].waits = READY;
	for (int i = 0; i < launch.ranks * launch.threads; i++)
		fibers[i].waits = READY;
	return 0;
}

static void prepare_shared(void)
{
	size_t bytes = launch.shared_room * (size_t)launch.ranks;
#ifdef HAS_ASAN
	__asan_unpoison_memory_region(launch.shared, bytes);
#endif
	memset(launch.shared, UNSET, bytes);
}

/* A block whose threads can go on, or -1. Mostly the one that ran last. */
static int next_block(int last)
{
	int ready[CLUSTER_MOST], count = 0;

	for (int r = 0; r < launch.ranks; r++)
		if (cluster[r].waits == READY)
			ready[count++] = r;
	if (count == 0)
		return -1;
	if (cluster[last].waits == READY && (launch.ranks == 1 || !launch.random || draw(4) > 0))
		return last;
	return ready[launch.random ? draw((uint32_t)count) : 0];
}

/* Runs the threads of a block that can go on, each up to where it waits. */
static void run_threads(int rank, int block, int *order)
{
	shuffle(order, launch.threads);
	for (int i = 0; i < launch.threads; i++) {
		struct emulated_fiber *fiber = &fibers[rank * launch.threads + order[i]];
		emulator_thread =
			(struct emulated_thread){order[i], block + rank, launch.threads, rank};
		if (fiber->waits == READY)
			fiber_enter(fiber->fiber);
	}
}

static int run_cluster(int first)
{
	int order[THREADS_MOST], rank = 0, met = 0;

	prepare_shared();
	for (int i = 0; i < launch.ranks * launch.threads; i++) {
		fiber_start(fibers[i].fiber, run_thread);
		fibers[i].waits = READY;
		fibers[i].sums = fibers[i].vote = fibers[i].split_mmas = 0;
		if (fibers[i].copies)
			fibers[i].copies->count = fibers[i].copies->groups = 0;
	}
	for (int i = 0; i < launch.threads; i++)
		order[i] = i;
	for (int r = 0; r < launch.ranks; r++)
		cluster[r].waits = READY;
	while (met == 0) {
		rank = next_block(rank);
		if (rank >= 0) {
			run_threads(rank, first, order);
			met = meet(rank);
		} else {
			met = meet_blocks();
			rank = 0;
		}
	}
	return met < 0 ? -1 : 0;
}

static int run_clusters(int clusters)
{
	int *order = malloc((size_t)clusters * sizeof *order), rc = 0;

	if (!order)
		abort();
	for (int i = 0; i < clusters; i++)
		order[i] = i;
	shuffle(order, clusters);
	for (int i = 0; i < clusters && rc == 0; i++)
		rc = run_cluster(order[i] * launch.ranks);
	free(order);
	return rc;
}

static void free_fibers(void)
{
	for (int i = 0; i < CLUSTER_MOST * THREADS_MOST; i++) {
		fiber_free(fibers[i].fiber);
		free(fibers[i].copies);
	}
}

static void make_fibers(int threads)
{
	if (!fibers[0].fiber)
		atexit(free_fibers);
	for (int i = 0; i < threads; i++)
		if (!fibers[i].fiber && !(fibers[i].fiber = fiber_make()))
			abort();
}

int emulator_launch(const struct emulated_kernel *kernel, int blocks, int threads,
	size_t shared_bytes, void **args, uint32_t seed)
{
	return emulator_launch_clusters(kernel, blocks, 1, threads, shared_bytes, args, seed);
}

int emulator_launch_clusters(const struct emulated_kernel *kernel, int blocks, int ranks,
	int threads, size_t shared_bytes, void **args, uint32_t seed)
{
	if (threads < 1 || threads > THREADS_MOST || threads % WARP || blocks < 1 ||
		blocks > BLOCKS_MOST || ranks < 1 || ranks > CLUSTER_MOST || blocks % ranks) {
		snprintf(report, sizeof report, "%s: %d blocks of %d threads in clusters of %d",
			kernel->name, blocks, threads, ranks);
		return -1;
	}
	make_fibers(ranks * threads);
	launch.kernel = kernel;
	launch.arguments = args[0];
	launch.shared_bytes = shared_bytes;
	launch.random = seed;
	launch.threads = threads;
	launch.ranks = ranks;
	launch.shared_room = (shared_bytes + ARRAYS_MOST * GAP + 63) & ~(size_t)63;
	launch.shared = aligned_alloc(64, launch.shared_room * (size_t)ranks);
	if (!launch.shared)
		abort();
	unsigned mode = neap__subnormals_off();
	if (has_subnormals)
		neap__subnormals_restore(mode);
	int rc = run_clusters(blocks / ranks);
	neap__subnormals_restore(mode);
#ifdef HAS_ASAN
	__asan_unpoison_memory_region(launch.shared, launch.shared_room * (size_t)ranks);
#endif
	free(launch.shared);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* emulator.c: schedules the threads of a block, and checks how they meet (emulator.h). */
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
	BLOCKS_MOST = 1 << 20,
	BARRIERS_MOST = 64,
	GAP = 32,	  /* bytes behind an array in shared memory that nothing may touch */
	ARRAYS_MOST = 64, /* arrays in shared memory */
	UNSET = 0xa5	  /* what shared memory holds when a block begins */
};

/* Why a thread does not run. */
enum waiting { READY, AT_BARRIER, AT_SUM, ENDED, WRONG };

struct emulated_fiber {
	struct fiber *fiber;
	enum waiting waits;
	int barrier; /* where it waits: index of a barrier */
	int sums;    /* calls of emulator_sum16 */
};

struct emulated_thread emulator_thread;
static struct emulated_fiber fibers[THREADS_MOST];
static struct emulated_barrier barriers[BARRIERS_MOST];
static int nbarriers, skipped = -1, has_subnormals;
static char report[256];

/* The launch in progress. */
static struct {
	const struct emulated_kernel *kernel;
	const void *arguments;
	unsigned char *shared;
	size_t shared_bytes;
	uint32_t random;
	float sum_room[2][THREADS_MOST]; /* by the parity of the call of emulator_sum16 */
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

void emulator_subnormals(int on)
{
	has_subnormals = on;
}

/* Stops the thread that runs. */
static void park(enum waiting waits, int barrier)
{
	struct emulated_fiber *fiber = &fibers[emulator_thread.thread];

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

/*
 * A thread may be at most one call ahead of the others, so that two rooms suffice: all have read
 * the numbers of a call when all are in the next one.
 */
float emulator_sum16(float x)
{
	int thread = emulator_thread.thread;
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

void *emulator_shared(struct emulated_shared *shared, unsigned bytes, unsigned used)
{
	unsigned char *at = launch.shared + shared->bytes + (size_t)shared->arrays * GAP;

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

static int wrong(const char *what, int thread)
{
	const struct emulated_barrier *b = &barriers[fibers[thread].barrier];

	snprintf(report, sizeof report, "%s: %s: block %d, thread %d, line %d of %s",
		launch.kernel->name, what, emulator_thread.block, thread, b->line, b->file);
	return -1;
}

/* Lets the threads go on if all wait at the same place. Returns 1: all have ended; -1: wrong. */
static int meet(int threads)
{
	const struct emulated_fiber *first = &fibers[0];

	for (int i = 0; i < threads; i++) {
		if (fibers[i].waits == WRONG)
			return -1;
		if (fibers[i].waits != first->waits)
			return wrong("not all threads reach this barrier",
				first->waits == AT_BARRIER ? 0 : i);
		if (first->waits == AT_BARRIER && fibers[i].barrier != first->barrier)
			return wrong("threads wait at different barriers", i);
	}
	if (first->waits == ENDED)
		return 1;
	for (int i = 0; i < threads; i++)
		fibers[i].waits = READY;
	return 0;
}

static void prepare_shared(void)
{
	size_t bytes = launch.shared_bytes + (size_t)ARRAYS_MOST * GAP;
#ifdef HAS_ASAN
	__asan_unpoison_memory_region(launch.shared, bytes);
#endif
	memset(launch.shared, UNSET, bytes);
}

static int run_block(int block, int threads, int *order)
{
	int met;

	prepare_shared();
	for (int i = 0; i < threads; i++) {
		fiber_start(fibers[i].fiber, run_thread);
		fibers[i].waits = READY;
		fibers[i].sums = 0;
		order[i] = i;
	}
	do {
		shuffle(order, threads);
		for (int i = 0; i < threads; i++) {
			emulator_thread = (struct emulated_thread){order[i], block, threads};
			fiber_enter(fibers[order[i]].fiber);
		}
		met = meet(threads);
	} while (met == 0);
	return met < 0 ? -1 : 0;
}

static int run_blocks(int blocks, int threads)
{
	int *order = malloc((size_t)blocks * sizeof *order), thread_order[THREADS_MOST], rc = 0;

	if (!order)
		abort();
	for (int i = 0; i < blocks; i++)
		order[i] = i;
	shuffle(order, blocks);
	for (int i = 0; i < blocks && rc == 0; i++)
		rc = run_block(order[i], threads, thread_order);
	free(order);
	return rc;
}

static void free_fibers(void)
{
	for (int i = 0; i < THREADS_MOST; i++)
		fiber_free(fibers[i].fiber);
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
	if (threads < 1 || threads > THREADS_MOST || threads % 32 || blocks < 1 ||
		blocks > BLOCKS_MOST) {
		snprintf(report, sizeof report, "%s: %d blocks of %d threads", kernel->name, blocks,
			threads);
		return -1;
	}
	make_fibers(threads);
	launch.kernel = kernel;
	launch.arguments = args[0];
	launch.shared_bytes = shared_bytes;
	launch.random = seed;
	launch.shared = aligned_alloc(64, (shared_bytes + ARRAYS_MOST * GAP + 63) & ~(size_t)63);
	if (!launch.shared)
		abort();
	unsigned mode = neap__subnormals_off();
	if (has_subnormals)
		neap__subnormals_restore(mode);
	int rc = run_blocks(blocks, threads);
	neap__subnormals_restore(mode);
#ifdef HAS_ASAN
	__asan_unpoison_memory_region(launch.shared, shared_bytes + (size_t)ARRAYS_MOST * GAP);
#endif
	free(launch.shared);
	return rc;
}

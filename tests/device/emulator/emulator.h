/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulator.h: runs the kernels of src/device/kernels on one CPU thread, so that tests need no GPU.
 * Every thread of a block is a fiber. A barrier switches to the next fiber; between barriers the
 * threads of a block run one after the other, in an order that changes at every barrier and depends
 * on a seed. A missing barrier therefore gives a wrong result for some seeds. The emulator reports
 * barriers that not all threads of a block reach, and kernels that declare other shared memory than
 * they were launched with. With AddressSanitizer, it also finds accesses beyond an array in shared
 * memory. The blocks of a cluster run in turns, each of them for a random number of its barriers,
 * up to the next barrier of the cluster. Floating-point arithmetic flushes subnormal numbers, as
 * the kernels are compiled to do.
 */
#ifndef NEAP_EMULATOR_H
#define NEAP_EMULATOR_H

#include "base/half.h"
#include "mma_model.h"

#include <stddef.h>
#include <stdint.h>

/* A kernel by its name, as cuModuleGetFunction finds it. */
struct emulated_kernel {
	const char *name;
	size_t argument_bytes; /* of the structure that is its only argument */
	void (*run)(const void *arguments);
};

/* Returns the kernel of that name; NULL if there is none. */
const struct emulated_kernel *emulated_kernel(const char *name);

/*
 * Runs `blocks` blocks of `threads` threads, a multiple of 32 up to 1,024. args[0] points to the
 * arguments, as cuLaunchKernel takes them. seed 0: threads and blocks run in ascending order.
 * Returns 0, or -1 if the kernel is wrong: emulator_report() then describes the error.
 */
int emulator_launch(const struct emulated_kernel *kernel, int blocks, int threads,
	size_t shared_bytes, void **args, uint32_t seed);

/*
 * The same with clusters of `cluster` blocks, a divisor of `blocks` up to 16. Warps of these
 * kernels are those of NVIDIA: a warp alone may call emulator_sum16 and emulator_ballot.
 */
int emulator_launch_clusters(const struct emulated_kernel *kernel, int blocks, int cluster,
	int threads, size_t shared_bytes, void **args, uint32_t seed);

/* The error of the last launch that failed, one line. */
const char *emulator_report(void);

/* Barriers in the texts of kernels that were reached so far, in the order of the first time. */
struct emulated_barrier {
	const char *file;
	int line;
};
int emulator_barriers(void);
struct emulated_barrier emulator_barrier(int index);
/* From now on, barrier `index` does nothing, as if it were not in the text; -1: all work. */
void emulator_skip(int index);
/*
 * From now on, of each `SPLIT_MMA` TF32 products of a warp, number `index` does nothing: those of
 * three products of split numbers each. -1: all work.
 */
enum { SPLIT_MMA = 6 };
void emulator_skip_mma(int index);
/* 1: from now on arithmetic does not flush subnormal numbers, as that of devices in double. */
void emulator_subnormals(int on);

/* What the dialect uses. */
struct emulated_thread {
	int thread, block, threads;
	int rank; /* of the block in its cluster */
};
extern struct emulated_thread emulator_thread; /* the thread that runs */

struct emulated_shared {
	unsigned bytes; /* of the arrays that the thread declared so far */
	int arrays;
};
/* The array that follows: `used` of the `bytes` that it counts for. */
void *emulator_shared(struct emulated_shared *shared, unsigned bytes, unsigned used);
void emulator_sync(const char *file, int line);
/* SUM16 of dialect.h. */
float emulator_sum16(float x);
/* CLUSTER_SYNC, REMOTE and BALLOT of dialect.h. */
void emulator_cluster_sync(const char *file, int line);
void *emulator_remote(const void *at, int rank);
uint32_t emulator_ballot(int p);
/* ASYNC_COPY, with NULL for 0, ASYNC_COMMIT and ASYNC_WAIT: numbers arrive as late as they may. */
void emulator_copy(float *to, const float *from);
void emulator_copies_end(void);
void emulator_copies_wait(int groups);
/* MMA_BF16 and MMA_TF32 of dialect.h, of the warp alone: mma_model(). */
void emulator_mma(enum mma_kind kind, float *d, const uint32_t *a, const uint32_t *b);

#endif

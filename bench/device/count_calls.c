/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count_calls.c: a library in front of the CUDA driver that counts launches, copies and waits, and
 * the host's seconds in them. It links to the driver, where neap finds all other functions:
 *     cc -O2 -shared -fPIC count_calls.c -o count_calls.so -Wl,--no-as-needed -l:libcuda.so.1
 *     NEAP_CUDA_DRIVER=count_calls.so NEAP_COUNT_CALLS=FILE neap train ... --device cuda
 * writes a row for each function to FILE when the process ends: name, calls, microseconds a call.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#pragma GCC visibility push(default)

typedef void *handle;
typedef uint64_t address;

/* X(name, symbol, parameters, arguments) */
/* clang-format off */
#define CALLS(X)                                                                                   \
	X(launch, cuLaunchKernel, (handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
		unsigned bz, unsigned shared, handle stream, void **arguments, void **extra), \
		(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra)) \
	X(launch_clusters, cuLaunchKernelEx, (const void *config, handle function, void **arguments, void **extra), \
		(config, function, arguments, extra)) \
	X(copy_in, cuMemcpyHtoDAsync_v2, (address to, const void *from, size_t bytes, handle stream), (to, from, bytes, stream)) \
	X(copy_out, cuMemcpyDtoHAsync_v2, (void *to, address from, size_t bytes, handle stream), (to, from, bytes, stream)) \
	X(copy, cuMemcpyDtoDAsync_v2, (address to, address from, size_t bytes, handle stream), (to, from, bytes, stream)) \
	X(fill, cuMemsetD8Async, (address at, unsigned char byte, size_t bytes, handle stream), (at, byte, bytes, stream)) \
	X(stream_wait, cuStreamWaitEvent, (handle stream, handle event, unsigned flags), (stream, event, flags)) \
	X(wait_stream, cuStreamSynchronize, (handle stream), (stream)) \
	X(wait_event, cuEventSynchronize, (handle event), (event))
/* clang-format on */

/* Makes linkers keep the driver. */
int cuInit(unsigned flags);
__attribute__((used)) static int (*const driver)(unsigned flags) = cuInit;

enum call {
#define X(name, symbol, parameters, arguments) name##_call,
	CALLS(X)
#undef X
		CALL_COUNT
};

static const char *const names[] = {
#define X(name, symbol, parameters, arguments) #name,
	CALLS(X)
#undef X
};

/* Of all threads: a count may be lost where two of them call at once. */
static long counts[CALL_COUNT];
static double seconds[CALL_COUNT];

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define X(name, symbol, parameters, arguments)                                                     \
	int symbol parameters;                                                                     \
	int symbol parameters                                                                      \
	{                                                                                          \
		static int(*next) parameters;                                                      \
		if (!next)                                                                         \
			*(void **)&next = dlsym(RTLD_NEXT, #symbol);                               \
		double start = now();                                                              \
		int result = next arguments;                                                       \
		seconds[name##_call] += now() - start;                                             \
		counts[name##_call]++;                                                             \
		return result;                                                                     \
	}
CALLS(X)
#undef X

__attribute__((destructor)) static void report(void)
{
	const char *path = getenv("NEAP_COUNT_CALLS");
	FILE *file = path ? fopen(path, "w") : NULL;

	for (int i = 0; file && i < CALL_COUNT; i++)
		fprintf(file, "%s %ld %.2f\n", names[i], counts[i],
			counts[i] ? 1e6 * seconds[i] / (double)counts[i] : 0);
	if (file)
		fclose(file);
}

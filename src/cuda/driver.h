/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h: the functions of the CUDA driver that neap calls, found at run time by dlopen, so that
 * nothing links to CUDA. The types are declared here as in cuda.h, with structs that stay opaque.
 * Every answer of the driver is checked by NEAP__CUDA, which turns it into a code of neap:
 *
 *     NEAP_TRY(NEAP__CUDA(cuMemFree, (address)));
 */
#ifndef NEAP_CUDA_DRIVER_H
#define NEAP_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

/* Results that neap distinguishes. */
enum {
	NEAP__CUDA_OUT_OF_MEMORY = 2,
	NEAP__CUDA_NO_DEVICE = 100,
	NEAP__CUDA_INVALID_DEVICE = 101,
	NEAP__CUDA_NOT_READY = 600
};

/* Flags and attributes, from cuda.h. */
enum {
	NEAP__CUDA_STREAM_NON_BLOCKING = 1,
	NEAP__CUDA_EVENT_DISABLE_TIMING = 2,
	NEAP__CUDA_HOST_PORTABLE = 1,
	NEAP__CUDA_ATTRIBUTE_PROCESSORS = 16,
	NEAP__CUDA_ATTRIBUTE_MAJOR = 75,
	NEAP__CUDA_ATTRIBUTE_MINOR = 76,
	NEAP__CUDA_ATTRIBUTE_SHARED = 97,    /* bytes of shared memory of a block, at most */
	NEAP__CUDA_ATTRIBUTE_CLUSTERS = 120, /* whether blocks can form clusters */
	NEAP__CUDA_FUNCTION_SHARED = 8,	     /* bytes of shared memory that a launch may ask for */
	NEAP__CUDA_FUNCTION_WIDE = 14,	     /* clusters of more than 8 blocks are allowed */
	NEAP__CUDA_LAUNCH_CLUSTER = 4
};

/* An attribute of a launch: blocks of a cluster in x, y and z. */
typedef struct {
	int id;
	int unused;
	union {
		unsigned cluster[3];
		char room[64];
	} value;
} CUlaunchAttribute;

typedef struct {
	unsigned grid[3], block[3];
	unsigned shared;
	CUstream stream;
	CUlaunchAttribute *attributes;
	unsigned count; /* of attributes */
} CUlaunchConfig;

/* clang-format off */
/* X(name, symbol, arguments): newer versions of a function have a suffix in the driver. */
#define NEAP__CUDA_CALLS(X)                                                                        \
	X(cuInit, "cuInit", (unsigned flags))                                                      \
	X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char **text))               \
	X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                      \
	X(cuDeviceGet, "cuDeviceGet", (CUdevice *device, int ordinal))                             \
	X(cuDeviceGetName, "cuDeviceGetName", (char *name, int size, CUdevice device))             \
	X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int which, CUdevice device))  \
	X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *bus, int size, CUdevice device))      \
	X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *context, CUdevice device)) \
	X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))            \
	X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext context))                                 \
	X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))                          \
	X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *at, size_t bytes))                            \
	X(cuMemFree, "cuMemFree_v2", (CUdeviceptr at))                                             \
	X(cuMemHostAlloc, "cuMemHostAlloc", (void **at, size_t bytes, unsigned flags))             \
	X(cuMemFreeHost, "cuMemFreeHost", (void *at))                                              \
	X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
	X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr at, unsigned char byte, size_t bytes, CUstream stream)) \
	X(cuStreamCreate, "cuStreamCreate", (CUstream *stream, unsigned flags))                    \
	X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                                \
	X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream))                           \
	X(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned flags)) \
	X(cuEventCreate, "cuEventCreate", (CUevent *event, unsigned flags))                        \
	X(cuEventDestroy, "cuEventDestroy_v2", (CUevent event))                                    \
	X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))                        \
	X(cuEventSynchronize, "cuEventSynchronize", (CUevent event))                               \
	X(cuModuleLoadData, "cuModuleLoadData", (CUmodule *module, const void *image))             \
	X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                                     \
	X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction *function, CUmodule module, const char *name)) \
	X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, int which, int value))   \
	X(cuLaunchKernel, "cuLaunchKernel", (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
		unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, \
		void **arguments, void **extra))
/* The same of functions that older drivers lack: NULL there. */
#define NEAP__CUDA_LATER_CALLS(X)                                                                  \
	X(cuLaunchKernelEx, "cuLaunchKernelEx", (const CUlaunchConfig *config, CUfunction function, \
		void **arguments, void **extra))                                                   \
	X(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters", (int *clusters, CUfunction function, \
		const CUlaunchConfig *config))
/* clang-format on */

/* The driver's functions, after neap__cuda_load. */
struct neap__cuda {
#define NEAP__X(name, symbol, arguments) CUresult(*name) arguments;
	NEAP__CUDA_CALLS(NEAP__X)
	NEAP__CUDA_LATER_CALLS(NEAP__X)
#undef NEAP__X
};
extern struct neap__cuda neap__cuda;

/*
 * Loads and initializes the driver: libcuda.so.1, or the library that the environment variable
 * NEAP_CUDA_DRIVER names, for tests. Later calls do nothing once it has succeeded. From any thread.
 * -ENODEV: there is no driver, it is too old, or it finds no device.
 */
int neap__cuda_load(void);

/* 0, or the code of a result: -ENOMEM, -ENODEV or -EIO, with the driver's text in the detail. */
int neap__cuda_answer(CUresult result, const char *call);

/* Calls a function of the driver. */
#define NEAP__CUDA(name, arguments) neap__cuda_answer(neap__cuda.name arguments, #name)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* fake_driver.c: the functions of the CUDA driver; see fake_driver.h. */
#include "fake_streams.h"
#include "cuda/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400, NOT_FOUND = 500, LAUNCH_FAILED = 719, INVALID_CLUSTER_SIZE = 912 };
/* clang-format on */

/* Bytes of shared memory of a block: of every launch, and of H100 at most. */
enum { SHARED_USUAL = 48 << 10, SHARED_MOST = 227 << 10 };

/* Contexts, modules and functions hold nothing: their handles are these. */
static int context, module;
static struct fake_driver driver;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static int held;
static _Thread_local CUcontext current;

struct fake_driver *fake_driver(void)
{
	return &driver;
}

void fake_driver_reset(uint64_t seed)
{
	int64_t alive = driver.alive;
	driver = (struct fake_driver){.seed = seed,
		.total_bytes = (uint64_t)64 << 20,
		.devices = 1,
		.major = 9,
		.cluster_most = 16,
		.bytes_a_second = 2.5e10,
		.fail_code = 999,
		.ignored_count = 1,
		.alive = alive};
	fake_streams_reset();
}

void fake_driver_hold(uint64_t on)
{
	pthread_mutex_lock(&lock);
	held = on != 0;
	pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&lock);
}

/* With the lock: the result of a call that would succeed. */
static CUresult enter(void)
{
	pthread_mutex_lock(&lock);
	fake_play();
	return ++driver.calls == driver.fail_call ? driver.fail_code : SUCCESS;
}

static CUresult leave(CUresult result)
{
	fake_memory_close();
	pthread_mutex_unlock(&lock);
	return result;
}

/* `work` is done if the call succeeds; `always`: also if it is to fail. */
#define CALL(work)                                                                                 \
	CUresult result = enter();                                                                 \
	if (result == SUCCESS)                                                                     \
		result = (work);                                                                   \
	return leave(result)
#define CALL_ALWAYS(work)                                                                          \
	CUresult result = enter(), answer = (work);                                                \
	return leave(result == SUCCESS ? answer : result)
#define IN_CONTEXT(work) CALL(!current ? INVALID_CONTEXT : (work))

static CUresult born(int answer, CUresult otherwise)
{
	driver.alive += answer == 0;
	return answer == 0 ? SUCCESS : otherwise;
}

static CUresult dead(int answer)
{
	driver.alive -= answer == 0;
	return answer == 0 ? SUCCESS : INVALID_VALUE;
}

/* Every prototype is checked against the table of driver.h. */
#define NEAP__X(name, symbol, arguments) FAKE_EXPORT CUresult fake_##name arguments __asm__(symbol);
NEAP__CUDA_CALLS(NEAP__X)
NEAP__CUDA_LATER_CALLS(NEAP__X)
#undef NEAP__X

/* Files: for counts, at the end; for numbers of devices, of all processes, when they are opened. */
static const char *report, *opened;

static void write_report(void)
{
	FILE *file = fopen(report, "w");
	if (!file)
		return;
	fprintf(file, "calls %lld\njobs %lld\nalive %lld\n", (long long)driver.calls,
		(long long)driver.jobs, (long long)driver.alive);
	fclose(file);
}

/* Settings of processes that a test starts: FAKE_CUDA is a list such as "bytes=1000000,fail=17". */
static void read_environment(void)
{
	static char list[512];
	const char *given = getenv("FAKE_CUDA");
	char *rest = NULL;

	fake_driver_reset(0);
	snprintf(list, sizeof list, "%s", given ? given : "");
	for (char *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
		const char *value = strchr(item, '=') ? strchr(item, '=') + 1 : "0";
		if (strncmp(item, "bytes=", 6) == 0)
			driver.total_bytes = strtoull(value, NULL, 10);
		else if (strncmp(item, "devices=", 8) == 0)
			driver.devices = atoi(value);
		else if (strncmp(item, "major=", 6) == 0)
			driver.major = atoi(value);
		else if (strncmp(item, "seed=", 5) == 0)
			driver.seed = strtoull(value, NULL, 10);
		else if (strncmp(item, "fail=", 5) == 0)
			driver.fail_call = atoll(value);
		else if (strncmp(item, "code=", 5) == 0)
			driver.fail_code = atoi(value);
		else if (strncmp(item, "fail_job=", 9) == 0)
			driver.fail_job = atoll(value);
		else if (strncmp(item, "fail_copy=", 10) == 0)
			driver.fail_copy = atoll(value);
		else if (strncmp(item, "copy_bytes=", 11) == 0)
			driver.copy_bytes = strtoull(value, NULL, 10);
		else if (strncmp(item, "cluster_most=", 13) == 0)
			driver.cluster_most = atoi(value);
		else if (strncmp(item, "slow=", 5) == 0)
			driver.slow = atoi(value);
		else if (strncmp(item, "quick=", 6) == 0)
			driver.quick = atoi(value);
		else if (strncmp(item, "foreign=", 8) == 0)
			driver.foreign = atoi(value);
		else if (strncmp(item, "report=", 7) == 0)
			report = value;
		else if (strncmp(item, "opened=", 7) == 0)
			opened = value;
		else
			abort();
	}
	if (report)
		atexit(write_report);
}

CUresult fake_cuInit(unsigned flags)
{
	(void)flags;
	if (driver.total_bytes == 0)
		read_environment();
	CALL(driver.devices > 0 ? SUCCESS : NO_DEVICE);
}

CUresult fake_cuGetErrorString(CUresult error, const char **text)
{
	*text = error == OUT_OF_MEMORY ? "out of memory" : "an error of the fake driver";
	return SUCCESS;
}

CUresult fake_cuDeviceGetCount(int *count)
{
	CALL((*count = driver.devices, SUCCESS));
}

CUresult fake_cuDeviceGet(CUdevice *device, int ordinal)
{
	CALL(ordinal < driver.devices ? (*device = ordinal, SUCCESS) : INVALID_DEVICE);
}

CUresult fake_cuDeviceGetName(char *name, int size, CUdevice device)
{
	CALL((snprintf(name, (size_t)size, device ? "fake device %d" : "fake device", device),
		SUCCESS));
}

CUresult fake_cuDeviceGetAttribute(int *value, int which, CUdevice device)
{
	(void)device;
	CALL((*value = which == NEAP__CUDA_ATTRIBUTE_PROCESSORS ? 132
		       : which == NEAP__CUDA_ATTRIBUTE_MAJOR	? driver.major
		       : which == NEAP__CUDA_ATTRIBUTE_SHARED	? SHARED_MOST
		       : which == NEAP__CUDA_ATTRIBUTE_CLUSTERS ? driver.major >= 9
								: 0,
		SUCCESS));
}

CUresult fake_cuDeviceGetPCIBusId(char *bus, int size, CUdevice device)
{
	CALL((snprintf(bus, (size_t)size, "0000:%02x:00.0", (unsigned)device), SUCCESS));
}

CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
	FILE *file = opened ? fopen(opened, "a") : NULL;
	if (file) {
		fprintf(file, "%d\n", device);
		fclose(file);
	}
	CALL((*out = (CUcontext)&context, born(0, SUCCESS)));
}

CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
{
	(void)device;
	CALL_ALWAYS(dead(0));
}

CUresult fake_cuCtxSetCurrent(CUcontext given)
{
	CALL(given == (CUcontext)&context ? (current = given, SUCCESS) : INVALID_CONTEXT);
}

CUresult fake_cuMemGetInfo(size_t *left, size_t *total)
{
	IN_CONTEXT((*total = driver.total_bytes, *left = driver.total_bytes - fake_memory_used(),
		SUCCESS));
}

CUresult fake_cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
	IN_CONTEXT(born(fake_memory_alloc(at, bytes), OUT_OF_MEMORY));
}

CUresult fake_cuMemFree(CUdeviceptr at)
{
	CALL_ALWAYS((fake_finish_all(), dead(fake_memory_free(at))));
}

CUresult fake_cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
	(void)flags;
	IN_CONTEXT(born(fake_pinned_alloc(at, bytes), OUT_OF_MEMORY));
}

CUresult fake_cuMemFreeHost(void *at)
{
	CALL_ALWAYS((fake_finish_all(), dead(fake_pinned_free(at))));
}

/* The stream of a call; NULL is the default stream, which exists as long as the process. */
static CUstream stream_of(CUstream given)
{
	return given ? given : fake_default_stream();
}

/* Ends a call that queued work on a stream: on the default one it is done at once. */
static CUresult queued(CUresult result, CUstream given)
{
	if (!given && result == SUCCESS)
		fake_finish_stream(fake_default_stream());
	return result;
}

static CUresult copy(void *to, const void *from, size_t bytes, CUstream stream, int rules)
{
	struct fake_job *job = rules && bytes > 0 ? fake_queue(stream_of(stream), FAKE_COPY) : NULL;
	if (!job)
		return INVALID_VALUE;
	job->to = to;
	job->from = from;
	job->bytes = bytes;
	return queued(SUCCESS, stream);
}

static void *pointer(CUdeviceptr at)
{
	return (void *)(uintptr_t)at;
}

CUresult fake_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	driver.to_device += bytes;
	IN_CONTEXT(copy(pointer(to), from, bytes, stream,
		fake_memory_holds(pointer(to), bytes) && fake_memory_is_host(from, bytes)));
}

CUresult fake_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	driver.to_host += bytes;
	IN_CONTEXT(copy(to, pointer(from), bytes, stream,
		fake_memory_holds(pointer(from), bytes) && fake_memory_is_host(to, bytes)));
}

CUresult fake_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	int apart = to + bytes <= from || from + bytes <= to;
	IN_CONTEXT(copy(pointer(to), pointer(from), bytes, stream,
		apart && fake_memory_holds(pointer(to), bytes) &&
			fake_memory_holds(pointer(from), bytes)));
}

static CUresult fill(CUdeviceptr at, unsigned char byte, size_t bytes, CUstream stream)
{
	struct fake_job *job = fake_memory_holds(pointer(at), bytes)
				       ? fake_queue(stream_of(stream), FAKE_FILL)
				       : NULL;
	if (!job)
		return INVALID_VALUE;
	job->to = pointer(at);
	job->byte = byte;
	job->bytes = bytes;
	return queued(SUCCESS, stream);
}

CUresult fake_cuMemsetD8Async(CUdeviceptr at, unsigned char byte, size_t bytes, CUstream stream)
{
	IN_CONTEXT(fill(at, byte, bytes, stream));
}

CUresult fake_cuStreamCreate(CUstream *stream, unsigned flags)
{
	(void)flags;
	IN_CONTEXT(born((*stream = fake_stream_new()) ? 0 : -1, OUT_OF_MEMORY));
}

CUresult fake_cuStreamDestroy(CUstream stream)
{
	CALL_ALWAYS((fake_stream_free(stream), dead(0)));
}

/* 1 if this wait is to be ignored. */
static int ignored(enum fake_wait kind, int pending, const struct CUstream_st *stream)
{
	int64_t number = ++driver.waits[kind], first = driver.ignored_number;
	if (number < FAKE_NUMBERED)
		driver.pending[kind][number] =
			(unsigned char)(pending ? 1 + (stream ? stream->number : 0) : 0);
	return first && driver.ignored_wait == (int)kind && number >= first &&
	       number < first + driver.ignored_count;
}

static CUresult waited(void)
{
	return fake_failed() ? LAUNCH_FAILED : SUCCESS;
}

CUresult fake_cuStreamSynchronize(CUstream stream)
{
	stream = stream_of(stream);
	IN_CONTEXT(ignored(FAKE_STREAM_SYNCHRONIZE, stream->first != NULL, stream)
			   ? SUCCESS
			   : (fake_finish_stream(stream), waited()));
}

CUresult fake_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	(void)flags;
	stream = stream_of(stream);
	IN_CONTEXT(ignored(FAKE_STREAM_WAIT_EVENT, fake_event_is_pending(event), stream) ? SUCCESS
		   : fake_wait_for(stream, event) == 0					 ? SUCCESS
						       : OUT_OF_MEMORY);
}

CUresult fake_cuEventCreate(CUevent *event, unsigned flags)
{
	(void)flags;
	IN_CONTEXT(born((*event = calloc(1, sizeof **event)) ? 0 : -1, OUT_OF_MEMORY));
}

CUresult fake_cuEventDestroy(CUevent event)
{
	CALL_ALWAYS((fake_event_free(event), dead(0)));
}

CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
	IN_CONTEXT(queued(
		fake_record(event, stream_of(stream)) == 0 ? SUCCESS : OUT_OF_MEMORY, stream));
}

CUresult fake_cuEventSynchronize(CUevent event)
{
	pthread_mutex_lock(&lock);
	while (held)
		pthread_cond_wait(&released, &lock);
	pthread_mutex_unlock(&lock);
	IN_CONTEXT(ignored(FAKE_EVENT_SYNCHRONIZE, fake_event_is_pending(event), NULL)
			   ? SUCCESS
			   : (fake_finish_event(event), waited()));
}

CUresult fake_cuModuleLoadData(CUmodule *out, const void *image)
{
	(void)image;
	IN_CONTEXT((*out = (CUmodule)&module, born(0, SUCCESS)));
}

CUresult fake_cuModuleUnload(CUmodule given)
{
	(void)given;
	CALL_ALWAYS((fake_finish_all(), dead(0)));
}

CUresult fake_cuModuleGetFunction(CUfunction *function, CUmodule given, const char *name)
{
	(void)given;
	const struct fake_kernel *kernel = fake_kernel(name);
	IN_CONTEXT(kernel ? (*function = (CUfunction)(uintptr_t)kernel, SUCCESS) : NOT_FOUND);
}

/* What a function was allowed beyond what every launch may have. */
static struct allowance {
	const void *function;
	int shared, wide;
} allowances[64];

static struct allowance *allowance_of(const void *function)
{
	struct allowance *a = allowances;
	while (a->function && a->function != function)
		a++;
	a->function = function;
	return a;
}

static CUresult allow(const void *function, int which, int value)
{
	if (which == NEAP__CUDA_FUNCTION_SHARED && value >= 0 && value <= SHARED_MOST)
		allowance_of(function)->shared = value;
	else if (which == NEAP__CUDA_FUNCTION_WIDE && (value == 0 || value == 1))
		allowance_of(function)->wide = value;
	else
		return INVALID_VALUE;
	return SUCCESS;
}

CUresult fake_cuFuncSetAttribute(CUfunction function, int which, int value)
{
	IN_CONTEXT(allow(function, which, value));
}

/* Whether the device can run this. */
static CUresult check(const struct fake_kernel *kernel, const struct fake_shape *shape)
{
	const struct allowance *a = allowance_of(kernel);
	unsigned most = a->wide ? 16 : 8;
	int words = 0;

	if (shape->grid == 0 || shape->block == 0 || shape->block > 1024)
		return INVALID_VALUE;
	for (int i = 0; kernel->argument_bytes[i]; i++)
		words += (kernel->argument_bytes[i] + 7) / 8;
	if (words > FAKE_ARGUMENT_WORDS)
		return INVALID_VALUE;
	if (shape->shared > (unsigned)(a->shared > SHARED_USUAL ? a->shared : SHARED_USUAL))
		return INVALID_VALUE;
	if (shape->cluster &&
		(driver.major < 9 || shape->cluster > most || shape->grid % shape->cluster))
		return INVALID_CLUSTER_SIZE;
	return SUCCESS;
}

static CUresult launch(const struct fake_kernel *kernel, struct fake_shape shape, CUstream stream,
	void **arguments)
{
	CUresult wrong = check(kernel, &shape);
	struct fake_job *job = wrong ? NULL : fake_queue(stream_of(stream), FAKE_LAUNCH);
	if (!job)
		return wrong ? wrong : OUT_OF_MEMORY;
	driver.clusters += shape.cluster > 0;
	job->kernel = kernel;
	job->shape = shape;
	for (int i = 0, word = 0; kernel->argument_bytes[i]; i++) {
		memcpy(&job->arguments[word], arguments[i], kernel->argument_bytes[i]);
		word += (kernel->argument_bytes[i] + 7) / 8;
	}
	return queued(SUCCESS, stream);
}

CUresult fake_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
	void **arguments, void **extra)
{
	(void)extra;
	int flat = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
	const struct fake_shape shape = {grid_x, 0, block_x, shared};
	IN_CONTEXT(flat ? launch((const struct fake_kernel *)function, shape, stream, arguments)
			: INVALID_VALUE);
}

/* The shape of a launch with attributes; `grid` 0 if it is not one that this driver knows. */
static struct fake_shape shape_of(const CUlaunchConfig *config)
{
	struct fake_shape shape = {config->grid[0], 0, config->block[0], config->shared};
	int flat = config->grid[1] == 1 && config->grid[2] == 1 && config->block[1] == 1 &&
		   config->block[2] == 1;

	for (unsigned i = 0; i < config->count; i++) {
		const unsigned *cluster = config->attributes[i].value.cluster;
		flat = flat && config->attributes[i].id == NEAP__CUDA_LAUNCH_CLUSTER &&
		       cluster[0] > 0 && cluster[1] == 1 && cluster[2] == 1;
		shape.cluster = cluster[0];
	}
	shape.grid = flat ? shape.grid : 0;
	return shape;
}

CUresult fake_cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra)
{
	(void)extra;
	IN_CONTEXT(launch(
		(const struct fake_kernel *)function, shape_of(config), config->stream, arguments));
}

static CUresult occupancy(
	int *clusters, const struct fake_kernel *kernel, const CUlaunchConfig *config)
{
	struct fake_shape shape = shape_of(config);
	CUresult wrong = check(kernel, &shape);

	*clusters = wrong || shape.cluster > (unsigned)driver.cluster_most
			    ? 0
			    : 132 / (int)shape.cluster;
	return wrong;
}

CUresult fake_cuOccupancyMaxActiveClusters(
	int *clusters, CUfunction function, const CUlaunchConfig *config)
{
	IN_CONTEXT(occupancy(clusters, (const struct fake_kernel *)function, config));
}

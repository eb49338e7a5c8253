/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h: the arena of a sweep in the memory of a CUDA device, and tiers behind it.
 *
 *     struct neap_device *device;
 *     struct neap_tier *tiers[NEAP_TIERS_MAX];
 *     int ntiers;
 *     neap_device_open(&device, "cuda:0");
 *     neap_device_tiers_open(device, tiers, &ntiers, "pinned:64G,/scratch", NULL);
 *     ops.memory = neap_device_memory(device);          callbacks get addresses of the device
 *     ops.fence = a function that calls neap_device_wait(device);
 *     options.memory = bytes of the device;
 *     neap_sweep_create(&sweep, &ops, model, &options);
 *
 * These functions are in libneap-cuda, which finds the CUDA driver when a device is opened and does
 * not link to CUDA. Any thread may use a device, one at a time. A process that was forked must open
 * its own.
 *
 * Close a device last: after its sweeps are freed and its tiers are closed.
 */
#ifndef NEAP_CUDA_H
#define NEAP_CUDA_H

#include <neap/memory.h>
#include <neap/tier.h>

#ifdef __cplusplus
extern "C" {
#endif

struct neap_device;

/*
 * Opens a device: "cuda" or "cuda:0" is the first one. Retains its primary context, which other
 * libraries in the process share. -ENODEV: there is no CUDA driver, or no such device.
 * NEAP_EINFEASIBLE: the memory of the device is full.
 */
NEAP_API int neap_device_open(struct neap_device **device, const char *name);
/* Frees all that belongs to the device. NULL is allowed. */
NEAP_API void neap_device_close(struct neap_device *device);

/* Returns a one-line description with the device's name; owned by the device. */
NEAP_API const char *neap_device_about(const struct neap_device *device);
/* Gets the bytes of the device's memory: those that are free now, and all. */
NEAP_API int neap_device_bytes(
	const struct neap_device *device, uint64_t *free_bytes, uint64_t *total_bytes);

/*
 * Returns the memory of the device, for neap_step_ops.memory; owned by the device. move and fill
 * are done in the order of the work on neap_device_stream, and may return before they are done.
 */
NEAP_API const struct neap_memory_ops *neap_device_memory(const struct neap_device *device);
/*
 * Returns the stream (a CUstream) on which a model's callbacks must do their work: tiers copy after
 * the work that is on it when a transfer starts.
 */
NEAP_API void *neap_device_stream(const struct neap_device *device);
/*
 * Waits until all work on the stream is done, as the `fence` of neap_step_ops must. Returns the
 * first error of this work. A model needs a fence, since move and fill return early.
 */
NEAP_API int neap_device_wait(const struct neap_device *device);

/*
 * Opens the tiers of a list for records in the device's memory, fastest first, as neap_tiers_open
 * does for ordinary memory. "pinned:SIZE" is pinned memory of the host, to which the device copies
 * while it computes. Items of neap_tiers_open, such as "/scratch" and "mem:SIZE", are reached
 * through 4 MiB of pinned memory each. options (may be NULL) apply to the files; `keep` does not.
 */
NEAP_API int neap_device_tiers_open(struct neap_device *device, struct neap_tier **tiers,
	int *count, const char *list, const struct neap_file_options *options);

#ifdef __cplusplus
}
#endif
#endif

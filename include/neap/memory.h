/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h: the memory of an arena, if it is not ordinary memory of the process, such as memory of
 * a device. A sweep passes pointers into it to the model's callbacks, to tiers and to these
 * functions, and never reads or writes through them itself.
 */
#ifndef NEAP_MEMORY_H
#define NEAP_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Functions that map, copy and fill memory of another kind (`memory` of neap_step_ops,
 * neap_stage_ops and neap_join_ops; only the arena counts against the budget). The sweep copies
 * the struct and borrows `user` until it is freed.
 *
 * All functions are required. They are called by the thread that runs the sweep, not while one
 * of its callbacks runs, and return when the copy is complete; if the model has a `fence`, move and
 * fill may return before that, and are done in the order of the model's calls. They return 0 or a
 * negative code, which ends the run. A fence precedes read, write and unmap. Pointers into the
 * memory are plain addresses: the sweep adds offsets to what `map` returned. `host` is ordinary
 * memory.
 *
 * Slow tiers are passed pointers into this memory and must be able to read and write it; neap's
 * own tiers can if the processor addresses it. They use their own buffers instead of a part of
 * the arena. With neap_sweep_options.check, and for a journal, bytes are copied to a buffer of
 * 1 MiB by `read`.
 */
struct neap_memory_ops {
	uint32_t size; /* sizeof(struct neap_memory_ops) */
	uint32_t reserved;
	void *user;
	/*
	 * Maps `bytes`, a multiple of 4096, at a multiple of 4096. NULL: there is not as much; set
	 * the reason with neap_detail_set.
	 */
	void *(*map)(void *user, uint64_t bytes);
	void (*unmap)(void *user, void *at, uint64_t bytes);
	/* Copies from one range of the memory to another; the ranges may overlap. */
	int (*move)(void *user, void *to, const void *from, uint64_t bytes);
	/* Sets `bytes` bytes to the value `byte`. */
	int (*fill)(void *user, void *at, int byte, uint64_t bytes);
	/* Copies to and from the host. */
	int (*read)(void *user, void *host, const void *at, uint64_t bytes);
	int (*write)(void *user, void *at, const void *host, uint64_t bytes);
};

#ifdef __cplusplus
}
#endif
#endif

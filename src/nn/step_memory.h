/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_memory.h: memory for states and tapes of a caller who runs steps without a sweep. `ops` is
 * what neap__net_memory returns; NULL: memory of this process.
 */
#ifndef NEAP_NN_STEP_MEMORY_H
#define NEAP_NN_STEP_MEMORY_H

#include <neap/memory.h>

#include <stddef.h>

/* Maps `bytes` bytes of zeros. 0 or a negative code. */
int neap__step_memory_map(const struct neap_memory_ops *ops, void **at, size_t bytes);
void neap__step_memory_unmap(const struct neap_memory_ops *ops, void *at, size_t bytes);
/* Fills a part with zeros; copies within it. 0 or a negative code. */
int neap__step_memory_zero(const struct neap_memory_ops *ops, void *at, size_t bytes);
int neap__step_memory_move(
	const struct neap_memory_ops *ops, void *to, const void *from, size_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* loader_memory.h: the memory that a loader takes at most. */
#ifndef NEAP_DATA_LOADER_MEMORY_H
#define NEAP_DATA_LOADER_MEMORY_H

#include <neap/data.h>

/*
 * Sets *bytes to what a loader's batches, its windows and the sample being read take at most, from
 * the extents of its samples. 0 or the code of an extent that cannot be read.
 */
int neap__loader_most(const struct neap_loader *loader, uint64_t *bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_tiles.h: rows of `bench kernels` for products in tiles and, for comparison, sums over
 * lists. */
#ifndef NEAP_BENCH_KERNEL_TILES_H
#define NEAP_BENCH_KERNEL_TILES_H

#include "bench/benchmark.h"

int neap__bench_tiles(struct neap__bench *bench);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_products.h: rows of `bench kernels` for dense products, beside OpenBLAS where it is. */
#ifndef NEAP_BENCH_KERNEL_PRODUCTS_H
#define NEAP_BENCH_KERNEL_PRODUCTS_H

#include "bench/benchmark.h"
#include "sys/isa.h"

int neap__bench_products(struct neap__bench *bench, enum neap__isa isa);

#endif

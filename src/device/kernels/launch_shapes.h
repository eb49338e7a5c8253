/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_shapes.h: threads, blocks and bytes of shared memory of launches, from the arguments of
 * kernels; a part of kernels.h, which includes it. The sizes of shared memory are the sums of the
 * arrays that the kernels declare.
 */
#ifndef NEAP_DEVICE_KERNELS_LAUNCH_SHAPES_H
#define NEAP_DEVICE_KERNELS_LAUNCH_SHAPES_H

/* Bytes of an array in shared memory (dialect.h). */
static inline unsigned neap__shared_array(int count, unsigned bytes)
{
	return ((unsigned)count * bytes + 15) & ~15u;
}

/* Threads that compute the units of a layer: a multiple of 32, each with the same number of units.
 */
static inline int neap__device_unit_threads(int units)
{
	int each = (units + DEVICE_UNIT_THREADS - 1) / DEVICE_UNIT_THREADS;
	int threads = (units + each - 1) / each;
	return (threads + 31) & ~31;
}

/* Threads of a block of lif_forward and lif_backward. */
static inline int neap__device_lif_threads(
	int unit_threads, const struct neap__device_readout *readout)
{
	return unit_threads + (readout->classes ? DEVICE_READERS : 0);
}

/* Bytes of shared memory of the kernels: the sums of the arrays that they declare. */
static inline unsigned neap__shared_lif_forward(const struct lif_forward_arguments *a)
{
	int n = a->layer.units, words = (n + 31) / 32, classes = a->readout.classes;
	int below = a->layer.is_first ? 0 : a->layer.below, below_words = (below + 31) / 32;
	int second = a->layer.cell == DEVICE_LIF ? 0 : n;
	int late = a->readout.delays.most ? (1 + a->readout.delays.learns) * words : 0;
	int mixes = !a->layer.is_first && a->layer.delays.learns;

	return 2 * neap__shared_array(3 * words, 4) + neap__shared_array(late, 4) +
	       2 * neap__shared_array(n, 4) + neap__shared_array(n, 2) +
	       neap__shared_array((1 + mixes) * below_words, 4) + neap__shared_array(below, 2) +
	       neap__shared_array(mixes ? below : 0, 4) + neap__shared_array(2, 4) +
	       neap__shared_array(second, 4) + neap__shared_array(classes, 4) +
	       2 * neap__shared_array(classes, 8);
}

static inline unsigned neap__shared_lif_backward(const struct lif_backward_arguments *a)
{
	int n = a->layer.units, classes = a->readout.classes;
	int masks = a->layer.reset == DEVICE_ZERO || a->layer.reset == DEVICE_HARD ? n : 0;
	int extra = a->layer.reset == DEVICE_ZERO && !a->layer.detach ? n : 0;
	int second = a->layer.cell == DEVICE_LIF ? 0 : n;
	int third = a->layer.cell == DEVICE_ADLIF ? n : 0;

	return 3 * neap__shared_array(n, 4) + neap__shared_array(n, 2) + neap__shared_array(n, 1) +
	       neap__shared_array(masks, 1) + neap__shared_array(extra, 4) +
	       neap__shared_array(extra, 2) + neap__shared_array(second, 4) +
	       neap__shared_array(third, 4) + neap__shared_array(a->above_units, 4) +
	       neap__shared_array(classes, 4);
}

static inline unsigned neap__shared_lif_forward_cluster(
	const struct lif_forward_cluster_arguments *a)
{
	int n = a->lif.layer.units, words = (n + 31) / 32, classes = a->lif.readout.classes;
	int below = a->lif.layer.is_first ? 0 : a->lif.layer.below, slots = a->shape.slots;
	int own = a->shape.columns * slots, second = a->lif.layer.cell == DEVICE_LIF ? 0 : own;
	int reads = classes * ((slots + a->shape.blocks - 1) / a->shape.blocks);

	return neap__shared_array(n * a->shape.columns, 4) +
	       2 * neap__shared_array(3 * words * slots, 4) + 2 * neap__shared_array(own, 4) +
	       neap__shared_array(n * slots, 2) + neap__shared_array((below + 31) / 32 * slots, 4) +
	       neap__shared_array(below * slots, 2) + neap__shared_array(2 * slots, 4) +
	       neap__shared_array(second, 4) + neap__shared_array(reads, 4) +
	       2 * neap__shared_array(reads, 8);
}

static inline unsigned neap__shared_lif_backward_cluster(
	const struct lif_backward_cluster_arguments *a)
{
	const struct neap__device_lif *layer = &a->lif.layer;
	int n = layer->units, slots = a->shape.slots, own = a->shape.columns * slots;
	int masks = layer->reset == DEVICE_ZERO || layer->reset == DEVICE_HARD ? own : 0;
	int extra = layer->reset == DEVICE_ZERO && !layer->detach ? own : 0;
	int second = layer->cell == DEVICE_LIF ? 0 : own;
	int third = layer->cell == DEVICE_ADLIF ? own : 0;

	return neap__shared_array(a->shape.columns * a->stride, 4) +
	       neap__shared_array(2 * n * slots, 4) + 2 * neap__shared_array(own, 4) +
	       neap__shared_array(n * slots, 2) + neap__shared_array(own, 1) +
	       neap__shared_array(masks, 1) + neap__shared_array(extra, 4) +
	       neap__shared_array(extra, 2) + neap__shared_array(second, 4) +
	       neap__shared_array(third, 4) + neap__shared_array(a->lif.above_units * slots, 4) +
	       neap__shared_array(a->lif.readout.classes * slots, 4) +
	       neap__shared_array(2 * slots, 4);
}

/* Blocks of all clusters, for so many samples. */
static inline int neap__cluster_blocks(const struct neap__cluster_shape *shape, int samples)
{
	return (samples + shape->slots - 1) / shape->slots * shape->blocks;
}

/* Threads of a block of lif_forward_cluster: each block reads out every `blocks`th sample. */
static inline int neap__cluster_threads(const struct neap__cluster_shape *shape, int classes)
{
	int reads = classes ? (shape->slots + shape->blocks - 1) / shape->blocks : 0;
	return shape->slots * shape->unit_threads + reads * DEVICE_READERS;
}

/*
 * Numbers from a row of n weights to the next in shared memory: an odd multiple of 16, so that two
 * groups of 16 threads read different banks of half of all pairs of rows.
 */
static inline int neap__cluster_stride(int n)
{
	return ((n + 15) / 16 | 1) * 16;
}

/* Threads for so many items, one each, at most 256. */
static inline int neap__device_threads(int items)
{
	return items < 256 ? (items + 31) & ~31 : 256;
}

/* Blocks of a kernel of dense products for so many rows and columns. */
static inline int neap__device_tiles(int rows, int high, int columns, int wide)
{
	return (rows + high - 1) / high * ((columns + wide - 1) / wide);
}

static inline int neap__device_unit_tiles(int samples, int units)
{
	return neap__device_tiles(samples, DEVICE_TILE_SAMPLES, units, DEVICE_TILE_UNITS);
}

/* Bytes of the tiles in shared memory: lines of `terms` numbers, padded (dense_tile.k). */
static inline unsigned neap__shared_tile(int lines, int terms)
{
	return neap__shared_array(lines * (terms + 4), 4);
}

/* The same of all stages of tiles for tensor cores (dense_math.k). */
static inline unsigned neap__shared_math(int room)
{
	return neap__shared_array(DEVICE_MATH_STAGES * room, 4);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_blocks.h: products whose samples ask for different rows of a matrix take the rows in blocks:
 * a block stays in a near cache until every sample has had its rows of the block.
 */
#ifndef NEAP_KERN_ROW_BLOCKS_H
#define NEAP_KERN_ROW_BLOCKS_H

#include "kern/kern.h"

enum {
	NEAP__BLOCK_BYTES = 128 * 1024, /* of a block: stays in a second-level cache */
	NEAP__BLOCK_SAMPLES = 64, /* that share blocks, at most: a counter each on the stack */
	NEAP__BLOCK_LEAST = 16	  /* rows of each sample in a block, about: fills tiles */
};

/* Rows of a block: few enough to stay near, with enough rows of each sample; 0: all fit in one. */
static inline int neap__block_rows(
	const struct neap__matrix *m, const struct neap__sample_rows *sample, int samples)
{
	int rows = NEAP__BLOCK_BYTES / (int)sizeof(real) / m->columns + 1, span = 1, all = 1;

	for (int s = 0; s < samples; s++) {
		int count = sample[s].count, end = count ? sample[s].id[count - 1] + 1 : 1;
		span = end > span ? end : span;
		all += count;
	}
	int64_t filled = (int64_t)NEAP__BLOCK_LEAST * samples * span / all;
	filled = filled < rows ? rows : filled;
	return filled < span ? (int)filled : 0;
}

/* Calls rows(m, sample, from, to) for block after block, and sample after sample the entries [from,
 * to) of its list that are in the block. */
static inline void neap__blocks(const struct neap__matrix *m,
	const struct neap__sample_rows *sample, int samples,
	void (*rows)(const struct neap__matrix *m, const struct neap__sample_rows *sample, int from,
		int to))
{
	int at[NEAP__BLOCK_SAMPLES] = {0}, left = 0;

	for (; samples > NEAP__BLOCK_SAMPLES; samples -= NEAP__BLOCK_SAMPLES) {
		neap__blocks(m, sample, NEAP__BLOCK_SAMPLES, rows);
		sample += NEAP__BLOCK_SAMPLES;
	}
	int step = neap__block_rows(m, sample, samples);
	for (int s = 0; s < samples; s++)
		if (step)
			left += sample[s].count;
		else if (sample[s].count)
			rows(m, sample + s, 0, sample[s].count);
	for (int64_t end = step; left > 0; end += step)
		for (int s = 0; s < samples; s++) {
			int to = at[s];
			while (to < sample[s].count && sample[s].id[to] < end)
				to++;
			if (to > at[s])
				rows(m, sample + s, at[s], to);
			left -= to - at[s];
			at[s] = to;
		}
}

#endif

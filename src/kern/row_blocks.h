/* SPDX-License-Identifier: Apache-2.0 */
/* row_blocks.h: rows in blocks that stay near until every sample has had its own of them. */
#ifndef NEAP_KERN_ROW_BLOCKS_H
#define NEAP_KERN_ROW_BLOCKS_H

#include "kern/kern.h"

enum {
	NEAP__BLOCK_BYTES = 128 * 1024,
	NEAP__BLOCK_SAMPLES = 64, /* at most, that take turns */
	NEAP__BLOCK_LEAST = 16	  /* rows of each sample in a block, about: fills tiles */
};

/* Rows of a block: near enough, and with enough of each sample's. 0: one block has them all. */
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

/* Block after block, sample after sample, the rows [from, to) of its list. */
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_share.h: which groups of samples of a batch each of several processes has: whole groups, in
 * ascending order. Where there are fewer groups than ranks, the first ranks have one each.
 */
#ifndef NEAP_RANKS_RANK_SHARE_H
#define NEAP_RANKS_RANK_SHARE_H

#include <stddef.h>
#include <stdint.h>

/* The first group of a rank; that of the rank after is where its groups end. */
static inline int neap__rank_first(int rank, int ranks, int groups)
{
	if (groups <= ranks)
		return rank < groups ? rank : groups;
	return (int)((int64_t)rank * groups / ranks);
}

/* The first sample of a rank in a batch of so many, of which `group` are summed together. */
static inline int neap__rank_sample(int rank, int ranks, int samples, int group)
{
	int64_t first = (int64_t)neap__rank_first(rank, ranks, (samples - 1) / group + 1) * group;
	return first < samples ? (int)first : samples;
}

/*
 * Numbers of all tensors are divided among ranks in whole blocks, of which norms are sums: the
 * first number of a rank.
 */
enum { NEAP__SLICE_BLOCK = 512 };
static inline size_t neap__rank_number(int rank, int ranks, size_t numbers)
{
	uint64_t blocks = (numbers + NEAP__SLICE_BLOCK - 1) / NEAP__SLICE_BLOCK;
	size_t first = (size_t)((unsigned __int128)blocks * (unsigned)rank / (unsigned)ranks) *
		       NEAP__SLICE_BLOCK;
	return first < numbers ? first : numbers;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tape_sizes.c: bytes by blocks, and the worst mean over a window of blocks. */
#include "measure/tape_sizes.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>

#define BLOCK 64

int neap__tape_sizes_make(struct neap__tape_sizes *tapes, int64_t steps)
{
	*tapes = (struct neap__tape_sizes){.steps = steps, .blocks = (steps + BLOCK - 1) / BLOCK};
	tapes->bytes = calloc((size_t)tapes->blocks + 1, sizeof *tapes->bytes);
	if (!tapes->bytes)
		return neap__fail_errno(ENOMEM, "%lld steps", (long long)steps);
	return 0;
}

void neap__tape_sizes_free(struct neap__tape_sizes *tapes)
{
	free(tapes->bytes);
	*tapes = (struct neap__tape_sizes){0};
}

void neap__tape_sizes_add(struct neap__tape_sizes *tapes, int64_t t0, int64_t t1, size_t bytes)
{
	double each = t1 > t0 ? (double)bytes / (double)(t1 - t0) : 0;

	for (int64_t t = t0; t < t1 && t < tapes->steps;) {
		int64_t end = (t / BLOCK + 1) * BLOCK;
		end = end < t1 ? end : t1;
		tapes->bytes[t / BLOCK] += each * (double)(end - t);
		t = end;
	}
}

double neap__tape_sizes_worst(const struct neap__tape_sizes *tapes, int64_t window)
{
	int64_t blocks = (window + BLOCK - 1) / BLOCK, last;
	double sum = 0, worst = 0;

	if (tapes->steps == 0)
		return 0;
	if (blocks < 1)
		blocks = 1;
	if (blocks > tapes->blocks)
		blocks = tapes->blocks;
	for (last = 0; last < tapes->blocks; last++) {
		sum += tapes->bytes[last];
		if (last >= blocks)
			sum -= tapes->bytes[last - blocks];
		if (last + 1 < blocks)
			continue;
		int64_t end = (last + 1) * BLOCK < tapes->steps ? (last + 1) * BLOCK : tapes->steps;
		double mean = sum / (double)(end - (last + 1 - blocks) * BLOCK);
		worst = mean > worst ? mean : worst;
	}
	return worst;
}

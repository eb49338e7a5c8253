/* SPDX-License-Identifier: Apache-2.0 */
/* coordinate_search.c: first-improvement descent. */
#include "plan/blocks/coordinate_search.h"

#include <math.h>
#include <string.h>
#include "base/fail.h"
#include "plan/blocks/block_seeds.h"

void neap__coordinate_scale(int64_t *number, double factor)
{
	int64_t old = *number;
	*number = neap__block_whole((double)old * factor + 0.5);
	if (*number == old)
		*number = factor < 1 ? old - 1 : old + 1;
}

int neap__coordinate_neighbour(const struct neap__coordinates *c, const void *from, int n, void *to)
{
	int scaled = c->nnumbers * c->nfactors;
	memcpy(to, from, c->bytes);
	if (n >= scaled)
		return c->change(c->search, to, n - scaled);
	neap__coordinate_scale(
		(int64_t *)((char *)to + c->numbers[n / c->nfactors]), c->factors[n % c->nfactors]);
	return 1;
}

int neap__coordinate_round(const struct neap__coordinates *c, void *plan, double *score)
{
	for (int n = 0; neap__coordinate_neighbour(c, plan, n, c->trial); n++) {
		double found;
		NEAP_TRY(c->score(c->search, c->trial, *score, &found));
		if (found < *score) {
			memcpy(plan, c->trial, c->bytes);
			*score = found;
		}
	}
	return 0;
}

int neap__coordinate_descend(const struct neap__coordinates *c, void *plan, double *score,
	double gain, const int64_t *effort)
{
	double before = INFINITY;
	while (*effort > 0 && *score < before * (1 - gain)) {
		before = *score;
		NEAP_TRY(neap__coordinate_round(c, plan, score));
	}
	return 0;
}

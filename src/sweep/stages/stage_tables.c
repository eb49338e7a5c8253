/* SPDX-License-Identifier: Apache-2.0 */
/* stage_tables.c: the order in which buffers end, and the arena's pages after a run. */
#include "sweep/stages/stage_sweep.h"
#include "base/checked.h"
#include "base/fail.h"
#include "store/tier_state.h"

#include <errno.h>
#include <stdlib.h>

static int by_end(const void *a, const void *b, void *buffers)
{
	const struct neap__stage_buffer *rows = buffers;
	int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
	if (rows[i].to != rows[j].to)
		return rows[i].to < rows[j].to ? -1 : 1;
	return i < j ? -1 : i > j;
}

int neap__stage_sort_ends(const struct neap__stage_program *p, int64_t **ends)
{
	*ends = malloc((size_t)p->nbuffers * sizeof **ends);
	if (!*ends)
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	for (int64_t i = 0; i < p->nbuffers; i++)
		(*ends)[i] = i;
	qsort_r(*ends, (size_t)p->nbuffers, sizeof **ends, by_end, p->buffers);
	return 0;
}

void neap__stage_unmap(struct neap_stage_sweep *s)
{
	uint64_t stays = 0;
	if (!s->mapping)
		return;
	for (int i = 0; i < s->problem.ntiers; i++)
		if (s->units[i] && neap__tier_holds_staging(s->tiers[i]))
			stays = s->staging[i] + s->problem.tiers[i].staging;
	stays = neap__round_up(stays, 4096);
	if (stays < s->mapped)
		neap__memory_unmap(&s->memory, s->mapping + stays, s->mapped - stays);
	s->mapping = s->base = NULL;
	s->mapped = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* arena_logs.c: the logs of steps among the extents of the arena. */
#include "sweep/arena/arena_logs.h"
#include "sweep/steps/counts.h"

static int is_log(const struct neap__arena_extent *extent)
{
	return extent->slot == NEAP__LOG_EXTENT;
}

const struct neap__arena_extent *neap__log_find(const struct neap_sweep *s, int64_t t)
{
	const struct neap__arena *arena = &s->arena;
	for (int64_t i = 0; s->ops.replay && i < arena->nextents; i++) {
		const struct neap__arena_extent *extent = &arena->extents[i];
		if (is_log(extent) && extent->flight < 0 && extent->t0 <= t && t < extent->t1)
			return extent;
	}
	return NULL;
}

void neap__log_drop(struct neap_sweep *s, int64_t t0, int64_t t1)
{
	struct neap__arena *arena = &s->arena;
	for (int64_t i = arena->nextents - 1; i >= 0; i--) {
		struct neap__arena_extent *extent = &arena->extents[i];
		if (is_log(extent) && extent->flight < 0 && extent->t0 >= t0 && extent->t1 <= t1)
			neap__arena_pop(arena, extent);
	}
}

/* Gives up the log of the earliest steps, which is needed last. */
int neap__log_evict(struct neap_sweep *s)
{
	struct neap__arena_extent *first = NULL;
	for (int64_t i = 0; i < s->arena.nextents; i++) {
		struct neap__arena_extent *extent = &s->arena.extents[i];
		if (is_log(extent) && !extent->pinned && (!first || extent->t0 < first->t0))
			first = extent;
	}
	if (!first)
		return 0;
	neap__count_overflow(s, first->t0, first->t1);
	neap__arena_pop(&s->arena, first);
	return 1;
}

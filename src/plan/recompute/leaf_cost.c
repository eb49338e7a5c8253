/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_cost.c: Revolve with leaves (leaf_revolve.h) for parts whose lengths become known one
 * by one, as they do where states were kept before the length of the chain was known
 * (online_schedule.h). A part that the tables cover is split as they say. Any other part is
 * split so that one of its parts is full, by the split whose two parts cost least, where the
 * hull stands for a cost that is not known. In a classic problem the hull is the cost, so
 * the split is optimal.
 */
#include "plan/recompute/leaf_revolve.h"

/* Levels of the full part: these many from the one that holds the whole part down, and 1. */
#define LEVELS_TRIED 4

struct neap__leaf_part neap__leaf_revolve_part(
	const struct neap__leaf_revolve *x, int64_t l, int64_t j)
{
	struct neap__leaf_part part = {.l = l, .j = j};
	int64_t cost;
	if (j + 1 < x->slots && !neap__leaf_revolve_known(x, l, j, &part, &cost))
		part.level = NEAP__LEAF_LOOSE;
	return part;
}

int64_t neap__leaf_revolve_cost(const struct neap__leaf_revolve *x, int64_t l, int64_t j)
{
	struct neap__leaf_part part;
	struct neap__leaf_use use;
	int64_t cost;
	if (l <= neap__leaf_revolve_fit(x, j))
		return 0;
	if (j >= x->slots)
		return NEAP__LEAF_NEVER;
	if (j == x->slots - 1)
		return neap__leaf_revolve_one_slot(x, l, j, &use) < 0 ||
				       use.advances > NEAP__LEAF_NEVER
			       ? NEAP__LEAF_NEVER
			       : use.advances;
	if (l <= x->exact_most && neap__leaf_revolve_known(x, l, j, &part, &cost))
		return cost;
	double hull = neap__leaf_revolve_chord(x, l, j) + 0.5;
	return hull < (double)NEAP__LEAF_NEVER ? (int64_t)hull : NEAP__LEAF_NEVER;
}

int64_t neap__leaf_revolve_split_loose(const struct neap__leaf_revolve *x,
	const struct neap__leaf_part *part, struct neap__leaf_part *left,
	struct neap__leaf_part *right)
{
	int64_t l = part->l, j = part->j, top = neap__leaf_revolve_level(x, l, j);
	int64_t best = INT64_MAX, y = 0;
	for (int64_t down = 0; down <= LEVELS_TRIED; down++)
		for (int side = 0; side < 2; side++) { /* the full part: right, left */
			int64_t level = down == LEVELS_TRIED ? 1 : top - down;
			if (level < 1 || level > x->levels)
				continue;
			int64_t full = neap__leaf_vertex(x, level, side ? j : j + 1)->l;
			int64_t at = side ? full : l - full;
			if (full < 1 || full >= l)
				continue;
			int64_t cost = at + neap__leaf_revolve_cost(x, at, j) +
				       neap__leaf_revolve_cost(x, l - at, j + 1);
			if (cost < best)
				best = cost, y = at;
		}
	*left = neap__leaf_revolve_part(x, y, j);
	*right = neap__leaf_revolve_part(x, l - y, j + 1);
	return y;
}

/* The actions of a part that is not loose; advances -1 where they exceed 63 bits. */
static struct neap__leaf_use measure(
	const struct neap__leaf_revolve *x, struct neap__leaf_part part)
{
	struct neap__leaf_use use;
	if (part.j != x->slots - 1 || part.l <= neap__leaf_revolve_fit(x, part.j))
		return neap__leaf_revolve_measure_known(x, part);
	if (neap__leaf_revolve_one_slot(x, part.l, part.j, &use) < 0)
		use.advances = -1;
	return use;
}

static void add(struct neap__leaf_use *all, const struct neap__leaf_use *more)
{
	all->advances += more->advances;
	all->saves += more->saves;
	all->loads += more->loads;
	all->peak = more->peak > all->peak ? more->peak : all->peak;
	all->slots = more->slots > all->slots ? more->slots : all->slots;
}

/* One part of each loose split is full, so the loose parts form a single path. */
struct neap__leaf_use neap__leaf_revolve_measure(
	const struct neap__leaf_revolve *x, int64_t l, int64_t j)
{
	struct neap__leaf_part part = neap__leaf_revolve_part(x, l, j), left, right;
	struct neap__leaf_use all = {0}, more;
	while (part.level == NEAP__LEAF_LOOSE) {
		int64_t y = neap__leaf_revolve_split_loose(x, &part, &left, &right);
		int go_left = left.level == NEAP__LEAF_LOOSE;
		more = measure(x, go_left ? right : left);
		more.advances += y;
		more.loads++;
		more.saves += right.l > neap__leaf_revolve_fit(x, right.j);
		add(&all, &more);
		part = go_left ? left : right;
	}
	more = measure(x, part);
	add(&all, &more);
	return all;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/recompute/recompute_cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"

#define CELLS_MOST ((int64_t)1 << 21)
#define SATURATED ((int64_t)1 << 62)

typedef __int128 wide;

static int64_t sat_add(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) || sum > SATURATED ? SATURATED : sum;
}

static int64_t sat_mul(int64_t a, int64_t b)
{
	int64_t product;
	return __builtin_mul_overflow(a, b, &product) || product > SATURATED ? SATURATED : product;
}

static struct neap__recompute_cell *cell(const struct neap__recompute *phi, int64_t t, int64_t j)
{
	return &phi->cells[t * (phi->slots + 1) + j];
}

int64_t neap__recompute_leaf(const struct neap__recompute *phi, int64_t j)
{
	int64_t bytes = phi->pool - j * phi->state;
	int64_t leaf = phi->steps;
	if (bytes < phi->tape || bytes < 0)
		return 0;
	if (phi->tape > 0 && bytes / phi->tape < leaf)
		leaf = bytes / phi->tape;
	return phi->leaf_most > 0 && phi->leaf_most < leaf ? phi->leaf_most : leaf;
}

static int reserve(struct neap__recompute *phi, int64_t cells)
{
	if (cells <= phi->room)
		return 0;
	int64_t room = cells > 2 * phi->room ? cells : 2 * phi->room;
	void *grown = realloc(phi->cells, (size_t)room * sizeof *phi->cells);
	if (!grown)
		return neap__fail(-ENOMEM, "plan: out of memory");
	phi->cells = grown;
	phi->room = room;
	return 0;
}

static void next_row(struct neap__recompute *phi, int64_t t)
{
	for (int64_t j = phi->slots; j >= 0; j--) {
		int64_t leaf = neap__recompute_leaf(phi, j);
		struct neap__recompute_cell *x = cell(phi, t, j);
		*x = (struct neap__recompute_cell){sat_mul(t, leaf), leaf};
		if (j == phi->slots)
			continue;
		const struct neap__recompute_cell *left = cell(phi, t - 1, j),
						  *right = cell(phi, t, j + 1);
		int64_t value = sat_add(left->value, right->value);
		int64_t length = sat_add(left->length, right->length);
		if (value > x->value || (value == x->value && length > x->length))
			*x = (struct neap__recompute_cell){value, length};
	}
}

int neap__recompute_make(struct neap__recompute *phi, int64_t steps, int64_t pool, int64_t state,
	int64_t tape, int64_t leaf_most)
{
	phi->steps = steps;
	phi->pool = pool;
	phi->state = state;
	phi->tape = tape;
	phi->leaf_most = leaf_most;
	phi->slots = pool < tape + state ? 0 : (pool - tape) / state;
	if (phi->slots > steps - 1)
		phi->slots = steps - 1;
	if (phi->slots > CELLS_MOST / 8)
		phi->slots = CELLS_MOST / 8;
	NEAP_TRY(reserve(phi, phi->slots + 1));
	memset(phi->cells, 0, (size_t)(phi->slots + 1) * sizeof *phi->cells);
	phi->levels = 0;
	phi->reach = 0;
	while (phi->reach < steps && (phi->levels + 2) * (phi->slots + 1) <= CELLS_MOST) {
		NEAP_TRY(reserve(phi, (phi->levels + 2) * (phi->slots + 1)));
		next_row(phi, ++phi->levels);
		phi->reach = cell(phi, phi->levels, 0)->length;
		if (phi->slots == 0)
			break;
	}
	if (phi->reach > steps)
		phi->reach = steps;
	return 0;
}

void neap__recompute_free(struct neap__recompute *phi)
{
	free(phi->cells);
	memset(phi, 0, sizeof *phi);
}

/* The level whose line is the hull's at length l: the first t with Phi_{t+1} - Phi_t >= l. */
static int64_t level(const struct neap__recompute *phi, int64_t l, int64_t j)
{
	int64_t low = 0, high = phi->levels;
	while (low < high) {
		int64_t t = (low + high) / 2;
		if (cell(phi, t + 1, j)->value - cell(phi, t, j)->value >= l)
			high = t;
		else
			low = t + 1;
	}
	return low;
}

static wide hull(const struct neap__recompute *phi, int64_t l, int64_t j)
{
	int64_t t = level(phi, l, j);
	wide extra = (wide)t * l - cell(phi, t, j)->value;
	return extra > 0 ? extra : 0;
}

double neap__recompute_extra(const struct neap__recompute *phi, int64_t l, int64_t j)
{
	return (double)hull(phi, l, j);
}

/* The last t with L_t(j) <= l. */
static int64_t level_within(const struct neap__recompute *phi, int64_t l, int64_t j)
{
	int64_t low = 0, high = phi->levels;
	while (low < high) {
		int64_t t = (low + high + 1) / 2;
		if (cell(phi, t, j)->length <= l)
			low = t;
		else
			high = t - 1;
	}
	return low;
}

struct cut {
	wide cost;
	int64_t y;
};

static void consider(
	const struct neap__recompute *phi, struct cut *best, int64_t l, int64_t j, int64_t y)
{
	if (y < 1 || y >= l)
		return;
	if (l - y > neap__recompute_leaf(phi, j + 1) && j + 1 >= phi->slots)
		return;
	wide cost = y + hull(phi, l - y, j + 1) + hull(phi, y, j);
	if (best->y == 0 || cost < best->cost || (cost == best->cost && y > best->y))
		*best = (struct cut){cost, y};
}

/*
 * The sum of the two hulls is least on an interval; its ends are lengths at which
 * one of the parts meets the hull exactly, so those are the candidates.
 */
int64_t neap__recompute_split(const struct neap__recompute *phi, int64_t l, int64_t j)
{
	struct cut best = {0, 0};
	int64_t left = level_within(phi, l - 1, j), right = level_within(phi, l - 1, j + 1);
	for (int64_t t = left - 2; t <= left; t++)
		if (t >= 1)
			consider(phi, &best, l, j, cell(phi, t, j)->length);
	for (int64_t t = left - 2; t <= left + 2; t++)
		if (t >= 1 && t <= phi->levels && t <= right)
			consider(phi, &best, l, j, l - cell(phi, t, j + 1)->length);
	consider(phi, &best, l, j, l - neap__recompute_leaf(phi, j + 1));
	return best.y;
}

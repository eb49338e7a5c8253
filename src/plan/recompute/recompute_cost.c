/* SPDX-License-Identifier: Apache-2.0 */
/* recompute_cost.c: fills the table of Phi_t and L_t row by row, and looks up hull and split. */
#include "plan/recompute/recompute_cost.h"

#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"

#define CELLS_MOST ((int64_t)1 << 21) /* 32 MiB of cells */
#define ROWS_LEAST 8		      /* rows that CELLS_MOST must leave room for */
#define SATURATED ((int64_t)1 << 62)  /* two of them still fit into 63 bits and a sign */

typedef __int128 wide;

static int64_t saturating_add(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) || sum > SATURATED ? SATURATED : sum;
}

static int64_t saturating_multiply(int64_t a, int64_t b)
{
	int64_t product;
	return __builtin_mul_overflow(a, b, &product) || product > SATURATED ? SATURATED : product;
}

static struct neap__recompute_cell *cell(const struct neap__recompute *costs, int64_t t, int64_t j)
{
	return &costs->cells[t * (costs->slots + 1) + j];
}

int64_t neap__recompute_leaf(const struct neap__recompute *costs, int64_t j)
{
	int64_t bytes = costs->pool - j * costs->state;
	int64_t leaf = costs->steps;
	if (bytes < costs->tape || bytes < 0)
		return 0;
	if (costs->tape > 0 && bytes / costs->tape < leaf)
		leaf = bytes / costs->tape;
	return costs->leaf_most > 0 && costs->leaf_most < leaf ? costs->leaf_most : leaf;
}

int64_t neap__recompute_length(const struct neap__recompute *costs, int64_t t)
{
	return cell(costs, t < costs->levels ? t : costs->levels, 0)->length;
}

static int reserve_cells(struct neap__recompute *costs, int64_t cells)
{
	int rc = neap__grow(&costs->cells, &costs->room, cells, sizeof *costs->cells);
	return rc < 0 ? neap__fail(rc, "plan: out of memory") : 0;
}

static void next_row(struct neap__recompute *costs, int64_t t)
{
	for (int64_t j = costs->slots; j >= 0; j--) {
		int64_t leaf = neap__recompute_leaf(costs, j);
		struct neap__recompute_cell *x = cell(costs, t, j);
		*x = (struct neap__recompute_cell){saturating_multiply(t, leaf), leaf};
		if (j == costs->slots)
			continue;
		const struct neap__recompute_cell *left = cell(costs, t - 1, j),
						  *right = cell(costs, t, j + 1);
		int64_t value = saturating_add(left->value, right->value);
		int64_t length = saturating_add(left->length, right->length);
		if (value > x->value || (value == x->value && length > x->length))
			*x = (struct neap__recompute_cell){value, length};
	}
}

int neap__recompute_make(struct neap__recompute *costs, int64_t steps, int64_t pool, int64_t state,
	int64_t tape, int64_t leaf_most)
{
	costs->steps = steps;
	costs->pool = pool;
	costs->state = state;
	costs->tape = tape;
	costs->leaf_most = leaf_most;
	costs->slots = pool < tape + state ? 0 : (pool - tape) / state;
	if (costs->slots > steps - 1)
		costs->slots = steps - 1;
	if (costs->slots > CELLS_MOST / ROWS_LEAST)
		costs->slots = CELLS_MOST / ROWS_LEAST;
	NEAP_TRY(reserve_cells(costs, costs->slots + 1));
	memset(costs->cells, 0, (size_t)(costs->slots + 1) * sizeof *costs->cells);
	costs->levels = 0;
	costs->reach = 0;
	while (costs->reach < steps && (costs->levels + 2) * (costs->slots + 1) <= CELLS_MOST) {
		NEAP_TRY(reserve_cells(costs, (costs->levels + 2) * (costs->slots + 1)));
		next_row(costs, ++costs->levels);
		costs->reach = cell(costs, costs->levels, 0)->length;
		if (costs->slots == 0)
			break;
	}
	if (costs->reach > steps)
		costs->reach = steps;
	return 0;
}

void neap__recompute_free(struct neap__recompute *costs)
{
	free(costs->cells);
	memset(costs, 0, sizeof *costs);
}

/* Whether level t is the last one, or the next grows by l or more. */
static int is_steep(const struct neap__recompute *costs, int64_t t, int64_t l, int64_t j)
{
	return t >= costs->levels || cell(costs, t + 1, j)->value - cell(costs, t, j)->value >= l;
}

/*
 * The level t whose line t l - Phi_t is the highest at length l: the first t with
 * Phi_{t+1} - Phi_t >= l, since Phi is convex in t. Looked for around `hint`, in steps that double.
 */
static int64_t hull_level(const struct neap__recompute *costs, int64_t l, int64_t j, int64_t hint)
{
	int64_t low = 0, high = costs->levels, step = 1;
	if (hint > high)
		hint = high;
	if (is_steep(costs, hint, l, j)) {
		high = hint;
		for (; high - step >= low && is_steep(costs, high - step, l, j); step *= 2)
			high -= step;
		low = high - step > low ? high - step + 1 : low;
	} else {
		low = hint + 1;
		for (; low + step <= high && !is_steep(costs, low + step - 1, l, j); step *= 2)
			low += step;
		high = low + step - 1 < high ? low + step - 1 : high;
	}
	while (low < high) {
		int64_t t = (low + high) / 2;
		if (is_steep(costs, t, l, j))
			high = t;
		else
			low = t + 1;
	}
	return low;
}

/* max_t ( t l - Phi_t ) beside j kept states; `hint` is about the t. */
static wide hull_extra(const struct neap__recompute *costs, int64_t l, int64_t j, int64_t hint)
{
	int64_t t = hull_level(costs, l, j, hint);
	wide extra = (wide)t * l - cell(costs, t, j)->value;
	return extra > 0 ? extra : 0;
}

double neap__recompute_extra(const struct neap__recompute *costs, int64_t l, int64_t j)
{
	return (double)hull_extra(costs, l, j, costs->levels / 2);
}

/* The last level t with L_t <= l beside j kept states. */
static int64_t level_within(const struct neap__recompute *costs, int64_t l, int64_t j)
{
	int64_t low = 0, high = costs->levels;
	while (low < high) {
		int64_t t = (low + high + 1) / 2;
		if (cell(costs, t, j)->length <= l)
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

/*
 * Takes the split after y steps into account where both parts can be done; `left` and `right` are
 * about the levels of their hulls.
 */
static void consider(const struct neap__recompute *costs, struct cut *best, int64_t l, int64_t j,
	int64_t y, int64_t left, int64_t right)
{
	if (y < 1 || y >= l)
		return;
	if (l - y > neap__recompute_leaf(costs, j + 1) && j + 1 >= costs->slots)
		return;
	wide cost = y + hull_extra(costs, l - y, j + 1, right) + hull_extra(costs, y, j, left);
	if (best->y == 0 || cost < best->cost || (cost == best->cost && y > best->y))
		*best = (struct cut){cost, y};
}

/*
 * The sum of the hulls of both parts is least on an interval of y. At the ends of the interval
 * one of the parts has a length L_t, at which the hull is its cost. So only such y are tried:
 * L_t(j) for the last levels whose length is below l, and l - L_t(j+1) for levels around them.
 */
int64_t neap__recompute_split(const struct neap__recompute *costs, int64_t l, int64_t j)
{
	struct cut best = {0, 0};
	if (j + 1 >= costs->slots) /* the right part is a leaf, the longer the better */
		return j + 1 > costs->slots ? 0 : l - neap__recompute_leaf(costs, j + 1);
	int64_t left = level_within(costs, l - 1, j), right = level_within(costs, l - 1, j + 1);
	for (int64_t t = left - 2; t <= left; t++)
		if (t >= 1)
			consider(costs, &best, l, j, cell(costs, t, j)->length, t, t);
	for (int64_t t = left - 2; t <= left + 2; t++)
		if (t >= 1 && t <= costs->levels && t <= right)
			consider(costs, &best, l, j, l - cell(costs, t, j + 1)->length, t, t);
	consider(costs, &best, l, j, l - neap__recompute_leaf(costs, j + 1), left, 1);
	return best.y;
}

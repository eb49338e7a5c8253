/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_revolve.c: finds the splits of a chain in three ways. Short parts are split by a table of
 * exact costs (dynamic programme). Full parts are split into full parts. Any other length is a path
 * of splits from the root down: one part of each split is full or a leaf, the other part continues
 * the path. A beam search chooses the path; it estimates the cost of the remaining part by the
 * convex hull.
 *
 * Parts whose lengths become known one by one, as they do where states were kept before the length
 * of the chain was known (online_schedule.h), are loose if no table contains their split. Such a
 * part is split so that one of its parts is full, by the split whose two parts cost least, where
 * the hull stands for a cost that is not known. In a classic problem the hull is the cost, so the
 * split is optimal.
 */
#include "plan/recompute/leaf_revolve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"

/*
 * Limits of memory and planning time; all values are chosen. A cell of full parts has 48 bytes, a
 * cell of exact costs 4 bytes. The unit of *_WORK is one sum of two costs in the exact table.
 * Tables for parts of any length (open, reach) are smaller, because a sweep with an unknown number
 * of steps makes them when it starts.
 */
#define VERTICES_MOST 1500000 /* cells of full parts: 72 MB */
#define REACH_MOST 131072     /* VERTICES_MOST for parts of any length: 6 MiB */
#define EXACT_CELLS 65536     /* cells of exact costs: 256 KiB */
#define EXACT_WORK 10000000   /* sums */
#define OPEN_CELLS 8192	      /* EXACT_CELLS for parts of any length: 32 KiB */
#define OPEN_WORK 200000      /* EXACT_WORK for parts of any length */
#define BEAM_MOST 8	      /* nodes per generation of the beam search */
#define BEAM_NODES 200000     /* nodes of all generations: longer paths get narrower beams */
#define LEVELS_TRIED 4	      /* levels of the full part of a loose split, and level 1 */
#define LEVELS_NEAR 3	      /* levels tried below the level that contains a part */

/* A full length beyond the chain, and the limit of advance steps: a sum of two fits in 63 bits. */
#define BEYOND (INT64_MAX / 4)
#define ADVANCES_MOST (INT64_MAX / 4)
#define NEVER (INT32_MAX / 4) /* exact cost of a part that cannot be reversed */

typedef __int128 wide;
typedef struct neap__leaf_use use_t;

/* The full part of a level (from 1) with j slots in use. */
static const struct neap__leaf_vertex *vertex_of(
	const struct neap__leaf_revolve *x, int64_t level, int64_t j)
{
	return &x->vertex[(level - 1) * (x->slots + 1) + j];
}

static int64_t split_loose(const struct neap__leaf_revolve *x, const struct neap__leaf_part *part,
	struct neap__leaf_part *left, struct neap__leaf_part *right);

/* Numbers of actions of a leaf of l steps with j checkpoints; its record is not counted. */
static use_t leaf_use(const struct neap__leaf_revolve *x, int64_t l, int64_t j)
{
	return (use_t){.peak = j * x->state + l * x->tape, .slots = j};
}

/* Numbers of actions of a part that is split after y steps. */
static use_t join(const use_t *left, const use_t *right, int64_t y)
{
	return (use_t){
		.advances = y + left->advances + right->advances,
		.saves = left->saves + right->saves + (right->loads > 0),
		.loads = 1 + left->loads + right->loads,
		.peak = left->peak > right->peak ? left->peak : right->peak,
		.slots = left->slots > right->slots ? left->slots : right->slots,
	};
}

/* Fills row `level` of the full parts. Lengths longer than the chain become BEYOND. */
static void fill_row(struct neap__leaf_revolve *x, int64_t level)
{
	struct neap__leaf_vertex *row = x->vertex + (level - 1) * (x->slots + 1);
	for (int64_t j = x->slots; j >= 0; j--) {
		int64_t m = neap__leaf_revolve_fit(x, j);
		row[j] = (struct neap__leaf_vertex){m, leaf_use(x, m, j)};
		if (level == 1 || j == x->slots)
			continue;
		const struct neap__leaf_vertex *left = vertex_of(x, level - 1, j),
					       *right = &row[j + 1];
		wide advances = (wide)left->l + left->use.advances + right->use.advances;
		if (left->l >= BEYOND || right->l >= BEYOND || left->l + right->l > x->steps ||
			advances > ADVANCES_MOST) {
			row[j].l = BEYOND;
			continue;
		}
		use_t both = join(&left->use, &right->use, left->l);
		wide value = (wide)level * (left->l + right->l) - both.advances;
		if (value >= (wide)level * m)
			row[j] = (struct neap__leaf_vertex){left->l + right->l, both};
	}
}

static int make_rows(struct neap__leaf_revolve *x, int64_t room)
{
	void *more = realloc(x->vertex, (size_t)(room * (x->slots + 1)) * sizeof *x->vertex);
	if (!more)
		return neap__fail(-ENOMEM, "plan: out of memory");
	x->vertex = more;
	x->room = room;
	return 0;
}

/* Adds rows until L_t(j) >= l. NEAP_EINFEASIBLE if that needs more than `most` cells. */
static int fill_rows(struct neap__leaf_revolve *x, int64_t l, int64_t j, int64_t most)
{
	int64_t width = x->slots + 1;
	while (x->levels == 0 || vertex_of(x, x->levels, j)->l < l) {
		if ((x->levels + 1) * width > most)
			return NEAP_EINFEASIBLE;
		if (x->levels == x->room)
			NEAP_TRY(make_rows(x, x->room ? 2 * x->room : 4));
		fill_row(x, ++x->levels);
	}
	return 0;
}

static int32_t *exact_row(const struct neap__leaf_revolve *x, int64_t j)
{
	return x->exact_cost + j * (x->exact_most + 1);
}

/* Makes the table of C(l,j) for as many steps as `cells` cells and `work` sums permit. */
static int fill_exact(struct neap__leaf_revolve *x, int64_t cells, int64_t work)
{
	int64_t width = x->slots + 1, most = cells / width - 1;
	while (most > 0 && most * most / 2 > work / width)
		most = most * 7 / 8;
	x->exact_most = most < x->steps ? most : x->steps;
	if (x->exact_most < 0)
		x->exact_most = 0;
	x->exact_cost = malloc((size_t)(width * (x->exact_most + 1)) * sizeof *x->exact_cost);
	if (!x->exact_cost)
		return neap__fail(-ENOMEM, "plan: out of memory");
	for (int64_t j = x->slots; j >= 0; j--) {
		int32_t *row = exact_row(x, j);
		const int32_t *right = j < x->slots ? exact_row(x, j + 1) : NULL;
		int64_t m = neap__leaf_revolve_fit(x, j);
		for (int64_t l = 0; l <= x->exact_most; l++) {
			int32_t best = l <= m ? 0 : NEVER;
			for (int64_t y = 1; l > m && right && y < l; y++) {
				int32_t cost = (int32_t)y + right[l - y] + row[y];
				best = cost < best ? cost : best;
			}
			row[l] = best;
		}
	}
	return 0;
}

/* The first level t with L_t(j) >= l; levels + 1 if there is none. */
static int64_t level_of(const struct neap__leaf_revolve *x, int64_t l, int64_t j)
{
	int64_t low = 1, high = x->levels + 1;
	while (low < high) {
		int64_t middle = (low + high) / 2;
		if (vertex_of(x, middle, j)->l >= l)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Returns 1 if C(l,j) is known and sets *part and *cost; otherwise 0. */
static int known_cost(const struct neap__leaf_revolve *x, int64_t l, int64_t j,
	struct neap__leaf_part *part, int64_t *cost)
{
	*part = (struct neap__leaf_part){.l = l, .j = j};
	*cost = 0;
	if (l <= neap__leaf_revolve_fit(x, j))
		return 1;
	if (l <= x->exact_most) {
		*cost = exact_row(x, j)[l];
		return *cost < NEVER;
	}
	int64_t level = level_of(x, l, j);
	if (level > x->levels || vertex_of(x, level, j)->l != l)
		return 0;
	part->level = level;
	*cost = vertex_of(x, level, j)->use.advances;
	return 1;
}

/* The hull of C at l: the chord between the full lengths around l, in advance steps. */
static double chord(const struct neap__leaf_revolve *x, int64_t l, int64_t j)
{
	int64_t level = level_of(x, l, j);
	if (level == 1)
		return 0;
	const struct neap__leaf_vertex *a = vertex_of(x, level - 1, j);
	if (level > x->levels || vertex_of(x, level, j)->l >= BEYOND)
		return (double)a->use.advances + (double)level * (double)(l - a->l);
	const struct neap__leaf_vertex *b = vertex_of(x, level, j);
	return (double)a->use.advances + (double)(b->use.advances - a->use.advances) *
						 (double)(l - a->l) / (double)(b->l - a->l);
}

/* A node of the beam search: a part that remains, reached by `split` from its parent. */
struct leaf_node {
	int64_t l, j;
	int64_t cost;	/* advance steps of all splits and full parts on the path to the node */
	double value;	/* cost plus the hull of the remaining part: a lower bound */
	int64_t parent; /* index of a node */
	struct neap__leaf_split split;
};

struct beam {
	const struct neap__leaf_revolve *x;
	struct leaf_node *nodes;
	int64_t count, room;		  /* nodes in use; allocated */
	int64_t width;			  /* limit of nodes per generation */
	struct leaf_node best[BEAM_MOST]; /* the next generation, best value first */
	int64_t chosen;
	struct leaf_node end; /* the best node whose part has a known cost; l = 0: none */
	struct neap__leaf_part end_part;
};

/* Inserts a node among the `width` best of its generation; equal parts are stored once. */
static void offer(struct beam *b, const struct leaf_node *n)
{
	struct neap__leaf_part part;
	int64_t cost, at = b->chosen;
	if (n->l < 1 || (n->j == b->x->slots && n->l > neap__leaf_revolve_fit(b->x, n->j)))
		return;
	if (known_cost(b->x, n->l, n->j, &part, &cost)) {
		if (b->end.l == 0 || n->cost + cost < b->end.cost) {
			b->end = *n;
			b->end.cost += cost;
			b->end_part = part;
		}
		return;
	}
	for (int64_t i = 0; i < b->chosen; i++)
		if (b->best[i].l == n->l && b->best[i].j == n->j) {
			if (n->value >= b->best[i].value)
				return;
			memmove(b->best + i, b->best + i + 1,
				(size_t)(b->chosen - i - 1) * sizeof *n);
			at = --b->chosen;
		}
	while (at > 0 && b->best[at - 1].value > n->value)
		at--;
	if (at == b->width)
		return;
	if (b->chosen == b->width)
		b->chosen--;
	memmove(b->best + at + 1, b->best + at, (size_t)(b->chosen - at) * sizeof *n);
	b->best[at] = *n;
	b->chosen++;
}

/* Offers both splits of a node in which one part is the full part of this level. */
static void expand_node(struct beam *b, int64_t parent, int64_t level)
{
	const struct neap__leaf_revolve *x = b->x;
	struct leaf_node from = b->nodes[parent];
	for (int side = 0; side < 2; side++) { /* the full part: right, left */
		int64_t j = side ? from.j : from.j + 1;
		if (level < 1 || level > x->levels || j > x->slots)
			continue;
		const struct neap__leaf_vertex *v = vertex_of(x, level, j);
		if (v->l >= from.l || v->l < 1)
			continue;
		struct leaf_node n = {.l = from.l - v->l,
			.j = side ? from.j + 1 : from.j,
			.parent = parent,
			.split = {side ? v->l : from.l - v->l, level, side}};
		n.cost = from.cost + n.split.y + v->use.advances;
		n.value = (double)n.cost + chord(x, n.l, n.j);
		offer(b, &n);
	}
}

static int next_generation(struct beam *b, int64_t first, int64_t last)
{
	b->chosen = 0;
	for (int64_t i = first; i < last; i++) {
		int64_t level = level_of(b->x, b->nodes[i].l, b->nodes[i].j);
		for (int64_t near = level - LEVELS_NEAR; near <= level; near++)
			if (near > 1)
				expand_node(b, i, near);
		expand_node(b, i, 1);
	}
	if (neap__grow(&b->nodes, &b->room, b->count + b->chosen, sizeof *b->nodes) < 0)
		return neap__fail(-ENOMEM, "plan: out of memory");
	for (int64_t i = 0; i < b->chosen; i++)
		if (b->end.l == 0 || b->best[i].cost < b->end.cost)
			b->nodes[b->count++] = b->best[i];
	return 0;
}

/* Stores the splits from the root to the best complete node. */
static int trace_path(struct neap__leaf_revolve *x, const struct beam *b)
{
	int64_t n = 1;
	for (int64_t i = b->end.parent; i > 0; i = b->nodes[i].parent)
		n++;
	x->path = malloc((size_t)n * sizeof *x->path);
	if (!x->path)
		return neap__fail(-ENOMEM, "plan: out of memory");
	x->splits = n;
	x->path[--n] = b->end.split;
	for (int64_t i = b->end.parent; i > 0; i = b->nodes[i].parent)
		x->path[--n] = b->nodes[i].split;
	x->end = b->end_part;
	x->root.level = -1;
	return 0;
}

static int beam_search(struct neap__leaf_revolve *x)
{
	struct beam b = {.x = x, .count = 1};
	int64_t depth = x->levels + x->slots, first = 0;
	b.width = BEAM_NODES / depth < BEAM_MOST ? BEAM_NODES / depth : BEAM_MOST;
	if (b.width < 1)
		b.width = 1;
	if (neap__grow(&b.nodes, &b.room, b.count, sizeof *b.nodes) < 0)
		return neap__fail(-ENOMEM, "plan: out of memory");
	b.nodes[0] = (struct leaf_node){.l = x->steps};
	int rc = 0;
	while (rc == 0 && first < b.count) {
		int64_t last = b.count;
		rc = next_generation(&b, first, last);
		first = last;
	}
	if (rc == 0)
		rc = b.end.l ? trace_path(x, &b) : NEAP_EINFEASIBLE;
	free(b.nodes);
	return rc;
}

static int64_t split_exact(const struct neap__leaf_revolve *x, int64_t l, int64_t j)
{
	const int32_t *row = exact_row(x, j), *right = exact_row(x, j + 1);
	for (int64_t y = 1; y < l; y++)
		if ((int32_t)y + right[l - y] + row[y] == row[l])
			return y;
	return 1;
}

int64_t neap__leaf_revolve_split(const struct neap__leaf_revolve *x,
	const struct neap__leaf_part *part, struct neap__leaf_part *left,
	struct neap__leaf_part *right)
{
	int64_t y, level = part->level;
	*left = (struct neap__leaf_part){.j = part->j};
	*right = (struct neap__leaf_part){.j = part->j + 1};
	if (part->j == x->slots - 1 && (x->slots == 1 || (level == 0 && part->l > x->exact_most))) {
		y = part->l - neap__leaf_revolve_fit(x, x->slots);
	} else if (level > 0) {
		y = vertex_of(x, level - 1, part->j)->l;
		left->level = level - 1;
		right->level = level;
	} else if (level == 0) {
		y = split_exact(x, part->l, part->j);
	} else if (level == NEAP__LEAF_LOOSE) {
		return split_loose(x, part, left, right);
	} else {
		const struct neap__leaf_split *split = &x->path[-1 - level];
		int64_t next = -level < x->splits ? level - 1 : x->end.level;
		y = split->y;
		left->level = split->full_left ? split->level : next;
		right->level = split->full_left ? next : split->level;
	}
	left->l = y;
	right->l = part->l - y;
	return y;
}

static use_t measure_known(const struct neap__leaf_revolve *x, struct neap__leaf_part part)
{
	struct neap__leaf_part left, right;
	if (part.l <= neap__leaf_revolve_fit(x, part.j))
		return leaf_use(x, part.l, part.j);
	if (part.level > 0)
		return vertex_of(x, part.level, part.j)->use;
	int64_t y = neap__leaf_revolve_split(x, &part, &left, &right);
	use_t a = measure_known(x, left), b = measure_known(x, right);
	return join(&a, &b, y);
}

/* Numbers of actions of the whole path, added from its end to the root without recursion. */
static use_t measure_path(const struct neap__leaf_revolve *x)
{
	use_t all = measure_known(x, x->end);
	struct neap__leaf_part part = x->end;
	for (int64_t i = x->splits - 1; i >= 0; i--) {
		const struct neap__leaf_split *split = &x->path[i];
		int64_t j = split->full_left ? part.j - 1 : part.j;
		use_t full = vertex_of(x, split->level, split->full_left ? j : j + 1)->use;
		all = split->full_left ? join(&full, &all, split->y) : join(&all, &full, split->y);
		part.j = j;
	}
	return all;
}

/*
 * Numbers of actions of a part of l > m_j steps with one slot left: k leaves of m_{j+1} steps from
 * the end, each reached by advancing from the start, and a first leaf of at most m_j. Returns 0, or
 * NEAP_EINFEASIBLE if advances exceed 63 bits.
 */
static int measure_one_slot(const struct neap__leaf_revolve *x, int64_t l, int64_t j, use_t *use)
{
	int64_t m0 = neap__leaf_revolve_fit(x, j), m1 = neap__leaf_revolve_fit(x, j + 1);
	int64_t k = (l - m0 - 1) / m1 + 1, first = l - k * m1;
	wide advances = (wide)k * l - (wide)m1 * k * (k + 1) / 2;
	if (advances > (wide)INT64_MAX)
		return NEAP_EINFEASIBLE;
	use_t a = leaf_use(x, first, j), b = leaf_use(x, m1, j + 1);
	*use = join(&a, &b, 0);
	use->advances = (int64_t)advances;
	use->loads = k;
	return 0;
}

/*
 * The number of useful slots: if m_0 + ... + m_j >= T, every step except those of the last leaf is
 * advanced once, and a further slot would only make that leaf shorter.
 */
static int64_t slots_useful(const struct neap__leaf_revolve *x)
{
	int64_t j = 0;
	for (wide all = neap__leaf_revolve_fit(x, 0); j < x->slots && all < x->steps; j++)
		all += neap__leaf_revolve_fit(x, j + 1);
	return j;
}

static int plan_slots(struct neap__leaf_revolve *x)
{
	if (x->slots == 1)
		return measure_one_slot(x, x->steps, 0, &x->use);
	NEAP_TRY(fill_exact(x, EXACT_CELLS, EXACT_WORK));
	if (x->exact_most == x->steps) {
		x->use = measure_known(x, x->root);
		return 0;
	}
	NEAP_TRY(fill_rows(x, x->steps, 0, VERTICES_MOST));
	struct neap__leaf_part part;
	int64_t cost;
	if (known_cost(x, x->steps, 0, &part, &cost)) {
		x->root = part;
		x->use = measure_known(x, x->root);
		return 0;
	}
	NEAP_TRY(beam_search(x));
	x->use = measure_path(x);
	return 0;
}

/* Limit of cells of full parts for parts of any length: REACH_MOST, but at least 16 rows. */
static int64_t cells_most(const struct neap__leaf_revolve *x)
{
	int64_t width = x->slots + 1;
	return width < REACH_MOST / 16 ? REACH_MOST : 16 * width;
}

int neap__leaf_revolve_reserve(struct neap__leaf_revolve *x, int64_t steps)
{
	int64_t rows = cells_most(x) / (x->slots + 1);
	if (x->slots < 2)
		return 0;
	if (steps < INT64_MAX)
		return neap__leaf_revolve_reach(x, steps, x->slots - 2);
	return x->room >= rows ? 0 : make_rows(x, rows);
}

int neap__leaf_revolve_reach(struct neap__leaf_revolve *x, int64_t l, int64_t j)
{
	int rc = x->slots - j < 2 ? 0 : fill_rows(x, l, j, cells_most(x));
	return rc == NEAP_EINFEASIBLE ? 0 : rc;
}

int neap__leaf_revolve_open(struct neap__leaf_revolve *x, int64_t pool, int64_t state, int64_t tape,
	int64_t slots, int64_t levels)
{
	*x = (struct neap__leaf_revolve){
		.steps = INT64_MAX / 8, .pool = pool, .state = state, .tape = tape, .slots = slots};
	if (slots < 2)
		return 0;
	NEAP_TRY(fill_exact(x, OPEN_CELLS, OPEN_WORK));
	int rc = neap__leaf_revolve_reach(x, 1, 0);
	for (int64_t before = 0; rc == 0 && x->levels < levels && x->levels > before;) {
		before = x->levels;
		rc = neap__leaf_revolve_reach(x, vertex_of(x, before, 0)->l + 1, 0);
	}
	return rc;
}

int neap__leaf_revolve_plan(struct neap__leaf_revolve *x, int64_t steps, int64_t pool,
	int64_t state, int64_t tape, int64_t slots)
{
	*x = (struct neap__leaf_revolve){
		.steps = steps, .pool = pool, .state = state, .tape = tape, .root.l = steps};
	if (steps <= neap__leaf_revolve_fit(x, 0)) {
		x->use = leaf_use(x, steps, 0);
		return 0;
	}
	x->slots = pool < tape ? 0 : (pool - tape) / state;
	if (x->slots > slots)
		x->slots = slots;
	if (x->slots > steps - 1)
		x->slots = steps - 1;
	if (x->slots >= VERTICES_MOST / 2)
		x->slots = VERTICES_MOST / 2 - 1;
	if (x->slots >= 1)
		x->slots = slots_useful(x);
	int rc = NEAP_EINFEASIBLE;
	for (; x->slots >= 1 && rc == NEAP_EINFEASIBLE; x->slots /= 2) {
		int64_t tried = x->slots;
		neap__leaf_revolve_free(x);
		rc = plan_slots(x);
		if (rc == 0 || rc == -ENOMEM) {
			x->slots = tried;
			return rc;
		}
	}
	return rc;
}

void neap__leaf_revolve_free(struct neap__leaf_revolve *x)
{
	free(x->vertex);
	free(x->exact_cost);
	free(x->path);
	x->vertex = NULL;
	x->exact_cost = NULL;
	x->path = NULL;
	x->splits = x->levels = x->room = 0;
}

struct neap__leaf_part neap__leaf_revolve_part(
	const struct neap__leaf_revolve *x, int64_t l, int64_t j)
{
	struct neap__leaf_part part = {.l = l, .j = j};
	int64_t cost;
	if (j + 1 < x->slots && !known_cost(x, l, j, &part, &cost))
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
		return measure_one_slot(x, l, j, &use) < 0 || use.advances > NEAP__LEAF_NEVER
			       ? NEAP__LEAF_NEVER
			       : use.advances;
	if (l <= x->exact_most && known_cost(x, l, j, &part, &cost))
		return cost;
	double hull = chord(x, l, j) + 0.5;
	return hull < (double)NEAP__LEAF_NEVER ? (int64_t)hull : NEAP__LEAF_NEVER;
}

static int64_t split_loose(const struct neap__leaf_revolve *x, const struct neap__leaf_part *part,
	struct neap__leaf_part *left, struct neap__leaf_part *right)
{
	int64_t l = part->l, j = part->j, top = level_of(x, l, j);
	int64_t best = INT64_MAX, y = 0;
	for (int64_t down = 0; down <= LEVELS_TRIED; down++)
		for (int side = 0; side < 2; side++) { /* the full part: right, left */
			int64_t level = down == LEVELS_TRIED ? 1 : top - down;
			if (level < 1 || level > x->levels)
				continue;
			int64_t full = vertex_of(x, level, side ? j : j + 1)->l;
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
static struct neap__leaf_use measure_any(
	const struct neap__leaf_revolve *x, struct neap__leaf_part part)
{
	struct neap__leaf_use use = {0};
	if (part.j != x->slots - 1 || part.l <= neap__leaf_revolve_fit(x, part.j))
		return measure_known(x, part);
	if (measure_one_slot(x, part.l, part.j, &use) < 0)
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
		int64_t y = split_loose(x, &part, &left, &right);
		int go_left = left.level == NEAP__LEAF_LOOSE;
		more = measure_any(x, go_left ? right : left);
		more.advances += y;
		more.loads++;
		more.saves += right.l > neap__leaf_revolve_fit(x, right.j);
		add(&all, &more);
		part = go_left ? left : right;
	}
	more = measure_any(x, part);
	add(&all, &more);
	return all;
}

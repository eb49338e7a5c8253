/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near_seeds.c: seeds over lengths of far blocks, of near blocks and of both tails, ranked by a
 * score in which computation and channels overlap fully. Ours; letters as in block_seeds.c.
 *
 *     part of l steps, blocks of J + k steps through the near tier, tail of x steps:
 *         n = (l-x) / (J+k)
 *         seconds = n (up + max(down, in)) + max(0, n (out - up) - min(x f, queue out))
 *                   + x (r+b) + f E(x)
 *     the chain: the same over far blocks with J (r+b) + f E(J) replaced by the seconds of the
 *         part of J steps, and the first pass over the last part in place of x f
 *
 * What a near tier of N bytes reaches at once is R = N / (S + k A) (J+k) + x steps. Where near
 * blocks only record (J = 0), the near tier makes leaves longer. Two tiers without limit count as
 * one with the sum of their rates.
 */
#include "plan/blocks/near_seeds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "plan/blocks/block_program.h"
#include "plan/core/sizing.h"

/* All values are chosen; the first two as in block_seeds.c. */
#define QUEUE_SHARE 0.9	 /* of the pool, for items that wait for their write */
#define CHUNKS_FIT 8	 /* chunks that fit into the pool */
#define NEAR_FILLED 0.98 /* of the near tier, by tapes */

/* Numbers of blocks: advanced and recorded steps, and the tail. */
struct numbers {
	double j, k, x;
};

static int64_t at_least_one(double x)
{
	return neap__block_whole(fmax(1, x));
}

double neap__near_places(const struct neap__near_costs *s)
{
	return fmax(1, floor(s->near.capacity / s->near.state));
}

/* Bytes that the blocks of a part of `steps` steps take at once, by states and by chunks. */
static void part_places(const struct neap_near *n, int64_t advance, int64_t record, int64_t tail,
	int64_t steps, int64_t *states, int64_t *chunks)
{
	int64_t unit = advance + record;
	int64_t blocks = unit > 0 && steps > tail ? neap__ceil_div(steps - tail, unit) : 0;
	if (advance > 0 && blocks > *states)
		*states = blocks;
	if (record > 0 && blocks * neap__ceil_div(record, n->chunk) > *chunks)
		*chunks = blocks * neap__ceil_div(record, n->chunk);
}

static int fits_near(const struct neap__near_costs *s, const struct neap__near_plan *x)
{
	const struct neap_near *n = &x->n;
	int64_t states = 0, chunks = 0;
	int64_t longest = n->record > n->last_record ? n->record : n->last_record;
	part_places(n, n->advance, n->record, n->tail, x->b.advance, &states, &chunks);
	part_places(n, n->last_advance, n->last_record, n->last_tail, x->b.tail, &states, &chunks);
	longest = longest < n->chunk ? longest : n->chunk;
	return (double)states * s->near.state + (double)(chunks * longest) * s->near.tape <=
	       s->near.capacity;
}

/* Clears the numbers of a part that fast memory reverses alone; returns 1 where it does not. */
static int part_used(int64_t *advance, int64_t *record, int64_t *tail, int64_t steps)
{
	if (*advance + *record > 0 && *tail < steps)
		return 1;
	*advance = *record = *tail = 0;
	return 0;
}

int neap__near_normalise(const struct neap__near_costs *s, struct neap__near_plan *x)
{
	struct neap_near *n = &x->n;
	int64_t chunk = at_least_one(s->far.pool / (CHUNKS_FIT * s->far.tape));
	if (n->advance < 0 || n->record < 0 || n->tail < 0 || n->last_advance < 0 ||
		n->last_record < 0 || n->last_tail < 0)
		return 0;
	if (s->far.p->chain.flags & NEAP_CHAIN_TAPES_STAY)
		x->b.record = n->record = n->last_record = 0;
	x->b.chunk = chunk;
	n->chunk = chunk;
	if (!neap__block_normalise(&s->far, &x->b) || x->b.tail >= s->far.p->chain.steps)
		return 0;
	if (s->spread)
		return n->share > 0 && n->share < NEAP_NEAR_SHARES;
	int used = part_used(&n->advance, &n->record, &n->tail, x->b.advance);
	used += part_used(&n->last_advance, &n->last_record, &n->last_tail, x->b.tail);
	return used > 0 && fits_near(s, x);
}

/* f E(l) of l steps, from the hull: optimistic. */
static double extra_seconds(const struct neap__near_costs *s, double steps)
{
	double reach = (double)s->far.extra.reach;
	int64_t l = neap__block_whole(fmin(steps, reach));
	return l > 0 ? s->far.f * neap__recompute_extra(&s->far.extra, l, 0) : 0;
}

static double alone(const struct neap__near_costs *s, double steps)
{
	return steps * (s->far.r + s->far.b) + extra_seconds(s, steps);
}

static double seconds_up(const struct neap__block_costs *c, struct numbers m)
{
	return m.j * c->f + m.k * (c->r + c->tape_lost) + (m.j > 0 ? c->state_lost : 0);
}

/* What n blocks write too late, less what the `first` seconds of a tail hide. */
static double late_seconds(
	const struct neap__block_costs *c, struct numbers m, double n, double first)
{
	double out = (m.j > 0 ? c->state_out : 0) + m.k * c->tape_out;
	double queue = floor(QUEUE_SHARE * c->pool / (m.k * c->tape + (m.j > 0 ? c->state : 0)));
	return fmax(0, n * (out - seconds_up(c, m)) - fmin(first, queue * out));
}

/* Seconds over blocks and a tail of t seconds, `first` of them its first pass. */
static double over_blocks(const struct neap__block_costs *c, double steps, struct numbers m,
	double down, double first, double t)
{
	double n = (steps - m.x) / (m.j + m.k);
	double in = (m.j > 0 ? c->state_in : 0) + m.k * c->tape_in;
	down += m.k * (c->b + c->tape_lost) + (m.j > 0 ? c->state_lost : 0);
	return n * (seconds_up(c, m) + fmax(down, in)) + late_seconds(c, m, n, first) + t;
}

/* Seconds to reverse a part through near blocks, *first of them on the way up. */
static double part_seconds(
	const struct neap__near_costs *s, double steps, struct numbers m, double *first)
{
	*first = steps * s->far.f;
	if (m.j + m.k < 1 || m.x >= steps)
		return alone(s, steps);
	return over_blocks(&s->near, steps, m, alone(s, m.j), m.x * s->far.f, alone(s, m.x));
}

/* The score of a plan. */
static double seconds(const struct neap__near_costs *s, const struct neap__near_plan *x)
{
	const struct neap_near *n = &x->n;
	struct numbers whole = {(double)x->b.advance, (double)x->b.record, (double)x->b.tail};
	struct numbers part = {(double)n->advance, (double)n->record, (double)n->tail};
	struct numbers last = {
		(double)n->last_advance, (double)n->last_record, (double)n->last_tail};
	double first, ignored;
	double tail = part_seconds(s, whole.x, last, &first);
	double down = part_seconds(s, whole.j, part, &ignored);
	return over_blocks(&s->far, (double)s->far.p->chain.steps, whole, down, first, tail);
}

double neap__near_late(
	const struct neap__near_costs *s, const struct neap__near_plan *x, double blocks)
{
	const struct neap_near *n = &x->n;
	struct numbers last = {
		(double)n->last_advance, (double)n->last_record, (double)n->last_tail};
	struct numbers whole = {(double)x->b.advance, (double)x->b.record, (double)x->b.tail};
	double first = whole.x * s->far.f;
	if (last.j + last.k > 0 && last.x < whole.x) {
		double parts = (whole.x - last.x) / (last.j + last.k);
		first += late_seconds(&s->near, last, parts, last.x * s->far.f);
	}
	return late_seconds(&s->far, whole, blocks, first);
}

static void seed(struct neap__near_seeds *seeds, const struct neap__near_costs *s,
	struct neap__near_plan x, int kind)
{
	x.n.tier = s->near.tier;
	if (seeds->count < NEAP__NEAR_SEEDS && neap__near_normalise(s, &x))
		seeds->row[seeds->count++] =
			(struct neap__near_seed){x, seconds(s, &x), 2 * kind + (x.b.record > 0)};
}

/* The tail during which the far writes that the blocks are late with end; 0: none are late. */
static double drain(const struct neap__near_costs *s, double j, double k)
{
	const struct neap__block_costs *c = &s->far;
	double out = (j > 0 ? c->state_out : 0) + k * c->tape_out, up = j * c->f + k * c->r;
	double g = (out - up) / (fmax(c->f, 1e-12) * (j + k));
	return g > 0 ? (double)c->p->chain.steps * g / (1 + g) : 0;
}

static void spread_seeds(
	struct neap__near_seeds *seeds, const struct neap__near_costs *s, double l1, double l2)
{
	static const double shares[] = {0, 0.05, 0.2, 0.5, 1}; /* chosen */
	const struct neap__block_costs *c = &s->far;
	double write = c->state_out / fmax(c->f, 1e-12), near = s->near.state_out;
	const double lengths[] = {0, l1, l1 * 0.97, l1 / 2, write, write * 0.9, write * 0.7,
		write * 2, write / 2, l2};
	int share = (int)lround(NEAP_NEAR_SHARES * (near > 0 ? c->state_out / near : 1));
	for (int i = 0; i < 10; i++)
		for (int k = 0; k < 5; k++) {
			double j = ceil(lengths[i]), recorded = shares[k] * j;
			if (i == 0)
				recorded = k ? l1 / (double)(2 << k) : 0;
			double x = drain(s, j, recorded);
			const double tails[] = {0, l1, x * 0.7, x, x * 1.05};
			for (int t = 0; t < (x > 0 ? 5 : 2); t++)
				seed(seeds, s,
					(struct neap__near_plan){
						{.advance = neap__block_whole(j),
							.record = neap__block_whole(recorded),
							.tail = neap__block_whole(tails[t])},
						{.share = share}},
					i);
		}
}

/* Near blocks of one kind: numbers, and how many the near tier holds. */
struct near_kind {
	struct numbers m;
	double blocks;
	int records; /* tapes go to the near tier */
	int number;
};

/* A plan, and the same with as many far tapes as the write channel has room for, or half. */
static void seed_records(struct neap__near_seeds *seeds, const struct neap__near_costs *s,
	struct neap__near_plan x, int kind)
{
	const struct neap__block_costs *c = &s->far;
	double room = (double)x.b.advance * c->f - c->state_out;
	double k = room > 0 && c->tape_out > c->r ? room / (c->tape_out - c->r)
						  : (double)x.b.advance / 10;
	seed(seeds, s, x, kind);
	for (int i = 1; i <= 2; i++) {
		x.b.record = at_least_one(k / i);
		seed(seeds, s, x, kind);
	}
}

static void far_seeds(struct neap__near_seeds *seeds, const struct neap__near_costs *s,
	const struct near_kind *kind, double l1, double l2)
{
	const struct neap__block_costs *c = &s->far;
	const struct numbers *m = &kind->m;
	double write = c->state_out / fmax(c->f, 1e-12);
	double reach = kind->blocks * (m->j + m->k) + m->x;
	const double lengths[] = {reach, reach / 2, reach / 4, write, 2 * write, 4 * write,
		write * 0.7, write * 0.4, l1, l2};
	for (int i = 0; i < 10; i++) {
		double j = fmax(1, ceil(lengths[i])), late = drain(s, j, 0);
		const double tails[] = {reach, fmax(l1, reach / 2), late, late * 0.8};
		for (int t = 0; t < (late > 0 ? 4 : 2); t++) {
			struct neap__near_plan x = {.b = {.advance = neap__block_whole(j)}};
			double tail = fmin(tails[t], (double)c->p->chain.steps - 1);
			double inner = m->j, last = m->j;
			if (kind->records && tail > reach)
				tail = reach;
			if (tail > reach)
				last = ceil((tail - m->x) / kind->blocks);
			if (!kind->records && j > reach)
				inner = ceil((j - m->x) / kind->blocks);
			x.b.tail = neap__block_whole(tail);
			x.n = (struct neap_near){.advance = neap__block_whole(inner),
				.record = neap__block_whole(m->k),
				.tail = neap__block_whole(m->x),
				.last_advance = neap__block_whole(last),
				.last_record = neap__block_whole(m->k),
				.last_tail = neap__block_whole(m->x)};
			seed_records(seeds, s, x, kind->number);
			if (i > 2 && t < 2) { /* the near tier in the last part alone */
				x.n.advance = x.n.record = x.n.tail = 0;
				seed_records(seeds, s, x, kind->number);
			}
		}
	}
}

static void near_seeds(
	struct neap__near_seeds *seeds, const struct neap__near_costs *s, double l1, double l2)
{
	const struct neap__block_costs *c = &s->near;
	double write = c->state_out / fmax(c->f, 1e-12), tapes = c->capacity / c->tape;
	const double lengths[] = {l1, l1 / 2, write, 2 * write, l2, l1 * 0.9, 0, l1, l1 / 2};
	const double tails[] = {0, l1, l2};
	for (int i = 0; i < 9; i++)
		for (int t = 0; t < 3; t++) {
			struct near_kind kind = {{fmax(1, ceil(lengths[i])), 0, tails[t]},
				neap__near_places(s), i > 5, 3 * i + t};
			struct numbers *m = &kind.m;
			if (i == 6) {
				double filled = floor(tapes * NEAR_FILLED);
				m->j = 0;
				m->k = fmax(1, fmin(floor(l1 / 4), filled));
				kind.blocks = floor(filled / m->k);
			} else if (i > 6) {
				m->j = fmax(1, floor(lengths[i]));
				m->k = fmax(1, floor(m->j / 8));
				kind.blocks = floor(c->capacity / (m->k * c->tape + c->state));
			}
			if (kind.blocks >= 1)
				far_seeds(seeds, s, &kind, l1, l2);
		}
}

int neap__near_by_score(const void *a, const void *b)
{
	const struct neap__near_seed *x = a, *y = b;
	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return memcmp(&x->x, &y->x, sizeof x->x);
}

void neap__near_seeds_make(struct neap__near_seeds *seeds, const struct neap__near_costs *s)
{
	double l1 = (double)neap__recompute_length(&s->far.extra, 1);
	double l2 = (double)neap__recompute_length(&s->far.extra, 2);
	seeds->count = 0;
	if (s->spread)
		spread_seeds(seeds, s, l1, l2);
	else
		near_seeds(seeds, s, l1, l2);
	qsort(seeds->row, (size_t)seeds->count, sizeof *seeds->row, neap__near_by_score);
}

static double both(double a, double b)
{
	return a > 0 && b > 0 ? 1 / (1 / a + 1 / b) : 0;
}

int neap__near_costs_init(
	struct neap__near_costs *s, const struct neap_problem *p, int far, int near)
{
	struct neap__block_costs *c = &s->far;
	int64_t pool = neap__pool_bytes(p, far) - (int64_t)p->tiers[near - 1].staging;
	neap__block_costs_fill(&s->near, p, near, pool);
	neap__block_costs_fill(c, p, far, pool);
	s->spread = s->near.capacity >= (double)p->chain.steps * (c->state + c->tape);
	if (s->spread) {
		c->state_out = both(c->state_out, s->near.state_out);
		c->state_in = both(c->state_in, s->near.state_in);
		c->tape_out = both(c->tape_out, s->near.tape_out);
		c->tape_in = both(c->tape_in, s->near.tape_in);
	}
	return neap__block_costs_tables(c);
}

void neap__near_costs_free(struct neap__near_costs *s)
{
	neap__block_costs_free(&s->far);
}

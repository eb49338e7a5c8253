/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_seeds.c: start plans (seeds) of all kinds of blocks, ranked by a fluid score, which assumes
 * that computation and both channels overlap fully. Our own method; J, k, q as in block_program.h.
 *
 *     f, r, b     seconds to advance, to record and to reverse a step
 *     tau         seconds of a transfer of a state (state_out, state_in)
 *     E(J)        extra advances inside a block of J steps (recompute_cost.h)
 *     a_out, a_in seconds to write and to read a tape
 *
 *     up  = k r + J f                         out = k a_out + tau
 *     down = k b + J (r+b) + f E(J)           in  = k a_in + tau
 *     score per step of a block = ( max(up, out) + max(down, in) ) / (J+k)
 *
 * The transfer overhead is added to up and down.
 *
 * Late blocks write more than their channel can transfer while they are computed: out > up. Items
 * that are not written yet wait in slots, and the queue drains during the forward pass over the
 * tail of x steps:
 *
 *     n = ceil((T-x) / (J+k)) blocks      g = (out - up) / (f (J+k))      x = T g / (1+g)
 *     score of all steps = n (up + max(down, in)) + x (r+b) + f E(x)
 *                          + max(0, n (out - up) - min(x f, queue out))
 *
 * The queue has QUEUE_SHARE of the pool, in items of S + k A bytes. Late plans can use blocks that
 * fast memory reverses with one advance per step, when other plans need longer blocks with two.
 */
#include "plan/blocks/block_seeds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "plan/blocks/block_program.h"
#include "plan/blocks/multiread.h"
#include "plan/core/sizing.h"

/* All values are chosen, unless a reason is given. */
#define MULTIREAD_SLOTS_MOST 10	 /* limit of slots of multiread.c */
#define MULTIREAD_STEPS_MOST 600 /* limit of J: the table of splits takes O(J^2) time */
#define PAIR_EVERY_MOST 5	 /* pairs of lengths: limit of `every` in seeds */
#define PAIR_PRICES 6		 /* pairs of lengths: prices of a transfer, see pair_seeds */
#define PAIR_PRICE_LEAST 0.3	 /* the least of them, in advances of a step */
#define PAIR_LONGEST 3		 /* pairs of lengths: the longest length over the mean one */
#define STEPS_LONGEST 1000000	 /* limit of J: length of the table of E(J) */
#define COUNT_MOST 1e12		 /* limit of steps, tapes and bytes, exact in a double */
#define QUEUE_SHARE 0.9		 /* share of the pool for items that wait to be written */
#define QUEUE_CHUNKS 8		 /* the pool holds this number of the chunks of late seeds */

/* Scales the score of multiread, which recomputes less than E(J); chosen. */
#define MULTIREAD_FACTOR 0.97
#define RESERVE_PRICE                                                                              \
	1e-9 /* seconds a byte: of equal scores, the smaller reserve; chosen: tiny                 \
	      */

int64_t neap__block_whole(double x)
{
	return x < 0 ? 0 : x > COUNT_MOST ? (int64_t)COUNT_MOST : (int64_t)(x + 1e-9);
}

/*
 * If the tier is too small for the plan, makes blocks longer: they keep the number of recorded
 * steps and advance more, all of them equally. Returns 0 if the tier is smaller than one block.
 */
static int within_capacity(const struct neap__block_costs *s, struct neap_blocks *b)
{
	int64_t body = s->p->chain.steps - b->tail;
	int64_t chunks = b->chunk ? (b->record + b->chunk - 1) / b->chunk : 0;
	double tapes = (double)(chunks * b->chunk) * s->tape;
	double fits = floor(s->capacity / (tapes + (b->advance ? s->state : 0)));
	if ((double)neap__block_count(b, body) <= fits)
		return 1;
	b->every = 0;
	fits = floor(s->capacity / (tapes + s->state));
	if (fits < 1)
		return 0;
	b->advance = neap__block_whole(ceil((double)body / fits)) - b->record;
	return b->advance > 0;
}

int neap__block_normalise(const struct neap__block_costs *s, struct neap_blocks *b)
{
	int64_t steps = s->p->chain.steps, fit = neap__block_whole(s->pool / fmax(s->tape, 1e-9));
	if (b->advance < 0 || b->record < 0 || b->tail < 0)
		return 0;
	if (b->record > 0 && s->p->chain.flags & (NEAP_CHAIN_TAPES_STAY | NEAP_CHAIN_CLASSIC))
		return 0;
	b->advance = b->advance < steps ? b->advance : steps;
	b->record = b->record < steps ? b->record : steps;
	b->tail = b->tail < steps ? b->tail : steps;
	if (b->chunk < 1)
		b->chunk = 1;
	if (b->chunk > b->record)
		b->chunk = b->record;
	if (b->chunk > fit)
		b->chunk = fit;
	if (b->inner != NEAP_BLOCKS_MULTIREAD || b->reserve_steps < 1 || b->advance < 1 ||
		b->reserve_steps > MULTIREAD_STEPS_MOST || b->reserve_steps == b->advance ||
		b->every < 2 || b->every > NEAP__BLOCK_EVERY_MOST)
		b->every = 0;
	if (b->advance + b->record < 1 || (b->record > 0 && b->chunk < 1) ||
		(s->capacity < INFINITY && !within_capacity(s, b)))
		return 0;
	if (b->reserve < 0 || (double)b->reserve > s->pool - s->tape)
		return 0;
	if (b->tail_reserve < 0 || (double)b->tail_reserve > s->pool - s->tape)
		return 0;
	if (b->inner == NEAP_BLOCKS_MULTIREAD &&
		(b->advance < 1 || b->advance > MULTIREAD_STEPS_MOST))
		return 0;
	if (b->inner != NEAP_BLOCKS_MULTIREAD)
		b->price = 0;
	if (b->inner == NEAP_BLOCKS_LEAF && b->advance > s->extra.reach)
		return 0;
	if (b->reserve_steps < 0)
		return 0;
	if (b->every == 0 &&
		(b->inner != NEAP_BLOCKS_LEAF || b->reserve == 0 || b->reserve_steps >= b->advance))
		b->reserve_steps = 0;
	return b->advance + b->record > 0 && (b->record == 0 || b->chunk > 0);
}

/* f E(l) for l steps, seconds; from the convex hull, so a lower bound. */
static double extra_seconds(const struct neap__block_costs *s, int64_t steps)
{
	int64_t l = steps < s->extra.reach ? steps : s->extra.reach;
	return l > 0 ? s->f * neap__recompute_extra(&s->extra, l, 0) : 0;
}

/* The fluid score times the number of steps: time of the whole chain, seconds. */
static double fluid_seconds(const struct neap__block_costs *s, const struct neap_blocks *b)
{
	double j = (double)b->advance, k = (double)b->record, q = fmax(1, (double)b->chunk);
	double out = b->advance ? s->state_out : 0, in = b->advance ? s->state_in : 0;
	const struct neap_tier_spec *t = &s->p->tiers[s->tier - 1];
	out += k * s->tape_out + ceil(k / q) * t->write_fixed;
	in += k * s->tape_in + ceil(k / q) * t->read_fixed;
	double lost = k * s->tape_lost + (b->advance ? s->state_lost : 0);
	lost += ceil(k / q) * neap_tier_lost(t, 0);
	double up = k * s->r + j * s->f + lost;
	double down = k * s->b + j * (s->r + s->b) + extra_seconds(s, b->advance) + lost;
	double body = (double)(s->p->chain.steps - b->tail) / (j + k);
	double rest =
		(double)b->tail * (s->r + s->b) + (b->tail ? extra_seconds(s, b->advance) / 4 : 0);
	if (b->inner == NEAP_BLOCKS_MULTIREAD)
		down = down * MULTIREAD_FACTOR + (double)b->reserve * RESERVE_PRICE;
	if (!(t->flags & NEAP_TIER_DUPLEX) && t->flags & NEAP_TIER_SYNC)
		return (up + out + down + in) * body + rest;
	return (fmax(up, out) + fmax(down, in)) * body + rest;
}

static void seed(
	struct neap__block_seeds *seeds, const struct neap__block_costs *s, struct neap_blocks b)
{
	if (seeds->count < NEAP__BLOCK_SEEDS && neap__block_normalise(s, &b))
		seeds->row[seeds->count++] = (struct neap__block_seed){b, fluid_seconds(s, &b)};
}

int neap__block_by_score(const void *a, const void *b)
{
	const struct neap__block_seed *x = a, *y = b;
	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return memcmp(&x->b, &y->b, sizeof x->b);
}

static void sort(struct neap__block_seeds *seeds)
{
	qsort(seeds->row, (size_t)seeds->count, sizeof *seeds->row, neap__block_by_score);
}

static void stream_seeds(struct neap__block_seeds *seeds, const struct neap__block_costs *s)
{
	for (double d = 2; d <= 32; d *= 2) {
		double q = fmax(1, floor(s->pool / (d * s->tape)));
		double tail = fmax(1, (1 - 1 / d) * s->pool / s->tape);
		seed(seeds, s,
			(struct neap_blocks){.record = neap__block_whole(q),
				.chunk = neap__block_whole(q),
				.tail = neap__block_whole(tail)});
	}
}

/* The largest k for which neither channel is overloaded, with J advanced steps. */
static double tapes_beside(const struct neap__block_costs *s, double j, double extra)
{
	double r = s->r + s->tape_lost, b = s->b + s->tape_lost;
	double out = s->state_out - s->state_lost, in = s->state_in - s->state_lost;
	double write = s->tape_out > r ? (j * s->f - out) / (s->tape_out - r) : COUNT_MOST;
	double read =
		s->tape_in > b ? (j * (s->r + s->b) + extra - in) / (s->tape_in - b) : COUNT_MOST;
	return fmax(0, fmin(write, read));
}

/* The J with which the states exactly fill the tier. */
static double full_tier(const struct neap__block_costs *s, double tail)
{
	double places = fmin(floor(s->capacity / s->state), (double)s->p->chain.steps);
	return fmax(1, ceil(((double)s->p->chain.steps - tail) / fmax(places, 1)));
}

static void leaf_seeds(struct neap__block_seeds *seeds, const struct neap__block_costs *s)
{
	double l1 = floor(s->pool / s->tape);
	double l2 = s->pool > s->state + s->tape ? l1 + floor((s->pool - s->state) / s->tape) : l1;
	double f = fmax(s->f, 1e-12), cycle = fmax(s->r + s->b, 1e-12);
	double lengths[] = {l1 / 2, l1, 2 * l1, sqrt(l1 * l2), l2, s->state_out / f,
		2 * s->state_out / f, 4 * s->state_out / f, 8 * s->state_out / f,
		s->state_in / cycle, 1, full_tier(s, 0), full_tier(s, l1)};
	double reserves[] = {0, s->state, 2 * s->state, s->pool / 4, s->pool / 2};
	static const double shares[] = {0, 0.5, 1, 1.3}; /* chosen: none, half, full, too much */
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
		for (int j = 0; j < 5; j++)
			for (int k = 0; k < 4; k++)
				for (int tail = 0; tail < 2; tail++) {
					struct neap_blocks b = {.advance = neap__block_whole(fmax(1,
									ceil(lengths[i] - 1e-9))),
						.tail = tail ? neap__block_whole(l1) : 0,
						.reserve = neap__block_whole(reserves[j]),
						.chunk = neap__block_whole(
							fmax(1, s->pool / (8 * s->tape)))};
					double n = tapes_beside(
						s, (double)b.advance, extra_seconds(s, b.advance));
					b.record = neap__block_whole(shares[k] * fmin(n, 4 * l1));
					if (k == 0 || b.record > 0)
						seed(seeds, s, b);
				}
}

static void multiread_seeds(struct neap__block_seeds *seeds, const struct neap__block_costs *s)
{
	static const double prices[] = {0, 0.02, 0.1, 0.3, 1}; /* of a read; chosen */
	double base = s->state_out / fmax(s->f, 1e-12);
	double lengths[] = {base, 2 * base, 4 * base, 8 * base, 32};
	if ((s->pool - s->tape) / s->state > MULTIREAD_SLOTS_MOST)
		return;
	for (int i = 0; i < 5; i++)
		for (int j = 0; j < 5; j++)
			for (int reserve = 0; reserve < 2; reserve++)
				for (int tail = 0; tail < 2; tail++)
					seed(seeds, s,
						(struct neap_blocks){
							.advance = neap__block_whole(
								fmax(1, ceil(lengths[i] - 1e-9))),
							.inner = NEAP_BLOCKS_MULTIREAD,
							.price = prices[j] * s->state_in,
							.reserve = reserve ? neap__block_whole(
										     s->state)
									   : 0,
							.tail = tail ? neap__block_whole(
									       s->pool / s->tape)
								     : 0});
}

void neap__block_seeds_make(struct neap__block_seeds *seeds, const struct neap__block_costs *s)
{
	seeds->count = 0;
	stream_seeds(seeds, s);
	leaf_seeds(seeds, s);
	multiread_seeds(seeds, s);
	sort(seeds);
}

/* Time to write a block; seconds_up: to compute it in the forward pass. */
static double seconds_out(const struct neap__block_costs *s, double j, double k, double q)
{
	const struct neap_tier_spec *t = &s->p->tiers[s->tier - 1];
	return (j > 0 ? s->state_out : 0) + k * s->tape_out +
	       (k > 0 ? ceil(k / q) * t->write_fixed : 0);
}

static double seconds_up(const struct neap__block_costs *s, double j, double k)
{
	return j * s->f + k * (s->r + s->tape_lost) + (j > 0 ? s->state_lost : 0);
}

int neap__block_late(const struct neap__block_costs *s, const struct neap_blocks *b)
{
	double j = (double)b->advance, k = (double)b->record, q = fmax(1, (double)b->chunk);
	if (b->every > 0)
		j += (double)(b->reserve_steps - b->advance) / b->every;
	return b->tail > 0 && seconds_out(s, j, k, q) > seconds_up(s, j, k);
}

double neap__block_floor(const struct neap__block_costs *s, const struct neap_blocks *b)
{
	int64_t steps = s->p->chain.steps, body = steps - b->tail;
	int64_t n = neap__block_plan_count(b, steps);
	if (n == 0)
		return 0;
	/* The first block may be shorter: it then has fewer recorded steps. */
	int64_t after = neap__block_steps(b, n - 1), first = body - after;
	int64_t longest = neap__block_longest(b);
	int64_t advanced = after - (n - 1) * b->record + (first < longest ? first : longest);
	double out = (b->advance ? (double)n * s->state_out : 0) +
		     (double)(body - advanced) * s->tape_out;
	return out + (double)body * s->b + (double)advanced * s->r;
}

/* The score of late blocks: time of the whole chain, seconds. */
static double late_seconds(const struct neap__block_costs *s, const struct neap_blocks *b)
{
	double j = (double)b->advance, k = (double)b->record, q = fmax(1, (double)b->chunk);
	double up = seconds_up(s, j, k), out = seconds_out(s, j, k, q);
	double in = k * s->tape_in + s->state_in;
	double down = fmax(k * (s->b + s->tape_lost) + j * (s->r + s->b) + s->state_lost +
				   extra_seconds(s, b->advance),
		in);
	double n = (double)(s->p->chain.steps - b->tail) / (j + k), tail = (double)b->tail;
	double queue = floor(QUEUE_SHARE * s->pool / (k * s->tape + s->state));
	double hidden = fmin(tail * s->f, queue * out);
	return n * (up + down) + fmax(0, n * (out - up) - hidden) + tail * (s->r + s->b) +
	       extra_seconds(s, b->tail);
}

/* Steps of the tail in which the write queue of late blocks drains; 0: blocks are not late. */
static double drain(const struct neap__block_costs *s, const struct neap_blocks *b)
{
	double j = (double)b->advance, k = (double)b->record, q = fmax(1, (double)b->chunk);
	double g = (seconds_out(s, j, k, q) - seconds_up(s, j, k)) / (fmax(s->f, 1e-12) * (j + k));
	return g > 0 ? (double)s->p->chain.steps * g / (1 + g) : 0;
}

static void late_seed(
	struct neap__block_seeds *seeds, const struct neap__block_costs *s, struct neap_blocks b)
{
	if (b.tail < s->p->chain.steps && seeds->count < NEAP__BLOCK_SEEDS &&
		neap__block_normalise(s, &b))
		seeds->row[seeds->count++] = (struct neap__block_seed){b, late_seconds(s, &b)};
}

void neap__block_seeds_late(struct neap__block_seeds *seeds, const struct neap__block_costs *s)
{
	/* Chosen: a late plan has few more steps or writes than its channel can take. */
	static const double shares[] = {0, 0.02, 0.05, 0.1, 0.25};
	static const double parts[] = {0.35, 0.7, 0.9, 1, 1.06};
	double f = fmax(s->f, 1e-12), write = s->state_out / f, l1 = floor(s->pool / s->tape);
	double read = s->state_in / fmax(s->r + s->b, 1e-12);
	const double lengths[] = {l1, l1 * 0.97, l1 * 0.9, l1 * 0.75, l1 / 2, l1 / 4, write * 0.95,
		write * 0.9, write * 0.8, write * 0.65, write / 2, write / 3, write / 4, read,
		read * 1.25, read * 1.6, read * 2.2};
	const double reserves[] = {0, s->state, 2 * s->state};
	seeds->count = 0;
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
		for (int k = 0; k < 5; k++)
			for (int r = 0; r < 3; r++) {
				struct neap_blocks b = {
					.advance = neap__block_whole(fmax(1, floor(lengths[i]))),
					.reserve = neap__block_whole(reserves[r])};
				b.record = neap__block_whole(shares[k] * (double)b.advance);
				double most = s->pool / (QUEUE_CHUNKS * s->tape);
				b.chunk = neap__block_whole(fmax(1, fmin((double)b.record, most)));
				double x = drain(s, &b);
				for (int t = 0; t < 5 && x > 0 && (k == 0 || b.record > 0); t++) {
					b.tail = neap__block_whole(parts[t] * x);
					late_seed(seeds, s, b);
				}
			}
	sort(seeds);
}

/*
 * Adds the pair of lengths J, J_2 of the lowest cost V1 (multiread.h) for each value of `every`.
 * The mean length is the number of steps that advance while a state is written. Of pairs of equal
 * cost, the one with the largest J is taken (chosen).
 */
static void pair_seeds(struct neap__block_seeds *seeds, const struct neap__block_costs *s,
	const struct neap__multiread *table, double price)
{
	double write = s->state_out / s->f;
	for (int32_t every = 2; every <= PAIR_EVERY_MOST; every++) {
		int64_t steps = neap__block_whole(ceil(every * write - 1e-9)), others = every - 1;
		struct neap_blocks b = {.inner = NEAP_BLOCKS_MULTIREAD,
			.price = price,
			.tail = neap__block_whole(s->pool / s->tape),
			.every = every};
		double least = INFINITY;
		for (int64_t j = 1; j <= table->steps; j++) {
			int64_t other = steps - others * j;
			if (other < 1 || other > table->steps || other == j)
				continue;
			double cost = (double)others * neap__multiread_cost(table, j) +
				      neap__multiread_cost(table, other);
			if (cost <= least * (1 + 1e-9)) {
				least = cost;
				b.advance = j;
				b.reserve_steps = other;
			}
		}
		if (least < INFINITY)
			seed(seeds, s, b);
	}
}

int neap__block_seeds_pairs(struct neap__block_seeds *seeds, const struct neap__block_costs *s)
{
	struct neap__multiread table = {0};
	double least = PAIR_PRICE_LEAST * s->f, most = s->state_in;
	double longest = PAIR_LONGEST * s->state_out / s->f;
	int rc = 0;
	seeds->count = 0;
	if (!(longest >= 2 && longest <= MULTIREAD_STEPS_MOST) ||
		(s->pool - s->tape) / s->state > MULTIREAD_SLOTS_MOST)
		return 0;
	for (int i = 0; i < PAIR_PRICES && rc == 0; i++) {
		double price = least * pow(most / least, (double)i / (PAIR_PRICES - 1));
		rc = neap__multiread_make(
			&table, &s->p->chain, neap__block_whole(longest), (int64_t)s->pool, price);
		if (rc == 0)
			pair_seeds(seeds, s, &table, price);
	}
	neap__multiread_free(&table);
	return rc == NEAP_EINFEASIBLE ? 0 : rc;
}

void neap__block_costs_fill(
	struct neap__block_costs *s, const struct neap_problem *p, int tier, int64_t pool)
{
	const struct neap_chain *c = &p->chain;
	const struct neap_tier_spec *t = &p->tiers[tier - 1];
	s->p = p;
	s->tier = tier;
	s->f = c->advance;
	s->r = c->record;
	s->b = c->backward;
	s->state = (double)c->state;
	s->tape = (double)c->tape;
	s->pool = (double)pool;
	s->capacity = t->capacity == NEAP_INFINITE ? INFINITY : (double)t->capacity;
	s->state_out = neap_tier_seconds(t, 1, c->state);
	s->state_in = neap_tier_seconds(t, 0, c->state);
	double sent = (double)neap__tape_sent(c);
	s->tape_out = t->write_rate > 0 ? sent / t->write_rate : 0;
	s->tape_in = t->read_rate > 0 ? sent / t->read_rate : 0;
	s->state_lost = neap_tier_lost(t, c->state);
	s->tape_lost = neap_tier_lost(t, neap__tape_sent(c)) - neap_tier_lost(t, 0);
}

int neap__block_costs_tables(struct neap__block_costs *s)
{
	const struct neap_chain *c = &s->p->chain;
	int64_t longest = c->steps < STEPS_LONGEST ? c->steps : STEPS_LONGEST;
	return neap__recompute_make(
		&s->extra, longest, (int64_t)s->pool, (int64_t)c->state, (int64_t)c->tape, 0);
}

int neap__block_costs_init(struct neap__block_costs *s, const struct neap_problem *p, int tier)
{
	neap__block_costs_fill(s, p, tier, neap__pool_bytes(p, tier));
	return neap__block_costs_tables(s);
}

void neap__block_costs_free(struct neap__block_costs *s)
{
	neap__recompute_free(&s->extra);
}

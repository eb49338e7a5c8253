/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_bound.c: for any weights of the two rows of X and of the two rows of Y, and any price of
 * a byte on the tiers, the least X + Y is at least the value of a fractional knapsack: which
 * tapes to keep in fast memory. So every choice of weights gives a bound, and the best weights
 * are searched for. Where computing waits for transfers (synchronous tiers), both rows of X
 * add up, and both of Y. Several tiers count as one with the sum of their rates. What a
 * transfer costs besides its bytes may be shared by many tapes and is left out.
 */
#include "plan/bound/stage_bound.h"

#include <math.h>
#include <stdlib.h>
#include "plan/bound/bound_memory.h"
#include "plan/core/stage_sizes.h"

#define ROUNDING 1e-9 /* relative, of sums over all stages */

#define ROUNDS 10	  /* of a ternary search: the weight to (2/3)^10, 2% */
#define PRICES_EACH_WAY 4 /* prices of a byte: powers of two around one, each way */

/* All tiers as one. */
struct link {
	double out, in; /* seconds a byte */
	double lost;	/* transfer overhead, seconds a byte either way */
	double bytes;	/* capacity */
	int sync, any;
};

/* A tape, and the weighted seconds that it saves where it stays in fast memory. */
struct bound_item {
	double bytes, saves;
};

struct stage_turn {
	const struct neap_chain *chain;
	struct link link;
	double room;
	struct bound_item *item;
};

struct weights {
	double before, after; /* of the rows of computing; the channels get the rest of 1 */
	double price;	      /* of a byte on the tiers */
};

static struct link link_of(const struct neap_problem *p)
{
	struct link l = {.sync = 1, .lost = INFINITY};
	double out = 0, in = 0, fastest_out = 0, fastest_in = 0;
	for (int i = 0; i < p->ntiers; i++) {
		const struct neap_tier_spec *t = &p->tiers[i];
		double write = t->write_rate > 0 ? t->write_rate : INFINITY;
		double read = t->read_rate > 0 ? t->read_rate : INFINITY;
		if (t->capacity == 0 || p->chain.flags & NEAP_CHAIN_TAPES_STAY)
			continue;
		l.any = 1;
		l.lost = fmin(l.lost, neap_tier_lost(t, 1) - neap_tier_lost(t, 0));
		l.bytes += t->capacity == NEAP_INFINITE ? INFINITY : (double)t->capacity;
		out += write;
		in += read;
		fastest_out = fmax(fastest_out, write);
		fastest_in = fmax(fastest_in, read);
		l.sync &= (t->flags & NEAP_TIER_SYNC) != 0;
	}
	if (l.any) {
		/* A schedule that waits for every transfer waits for the fastest tier. */
		l.out = 1 / (l.sync ? fastest_out : out);
		l.in = 1 / (l.sync ? fastest_in : in);
	}
	return l;
}

/* The item that saves most a byte first. */
static int by_worth(const void *a, const void *b)
{
	const struct bound_item *x = a, *y = b;
	double p = x->saves * y->bytes, q = y->saves * x->bytes;
	return (p < q) - (p > q);
}

/* The bound of these weights: each tape by its cheapest way, less what fast memory saves. */
static double weighted_bound(const struct stage_turn *m, struct weights w)
{
	const struct neap_stages *s = m->chain->stages;
	double all = s->backward[m->chain->steps], room = m->room;
	int64_t n = 0;
	for (int64_t i = 0; i < m->chain->steps; i++) {
		double bytes = (double)s->tape[i], record = neap__stage_record(s, i);
		double kept = w.before * record;
		double other = w.before * fmin(s->advance[i], record) + w.after * record;
		double out = m->link.out * bytes, in = m->link.in * bytes;
		double lost = m->link.any ? (w.before + w.after) * m->link.lost * bytes : 0;
		if (m->link.any && m->link.sync)
			other = fmin(other, kept + out + in + w.price * bytes);
		else if (m->link.any)
			other = fmin(other, kept + lost + (1 - w.before) * out +
						    (1 - w.after) * in + w.price * bytes);
		all += w.after * s->backward[i] + other;
		if (other > kept)
			m->item[n++] = (struct bound_item){bytes, other - kept};
	}
	if (w.price > 0)
		all -= w.price * m->link.bytes;
	qsort(m->item, (size_t)n, sizeof *m->item, by_worth);
	for (int64_t k = 0; k < n && room >= 0; k++) {
		double share = m->item[k].bytes > room ? room / m->item[k].bytes : 1;
		all -= share * m->item[k].saves;
		room -= m->item[k].bytes;
	}
	return all;
}

/*
 * The best bound over the weight of X (row 0) and then that of Y (row 1). The value is concave in
 * every weight, so a ternary search finds the best one.
 */
static double best_weights(const struct stage_turn *m, struct weights w, int row)
{
	double low = 0, high = 1, best = 0, *weight = row == 0 ? &w.before : &w.after;
	if (row > 1)
		return weighted_bound(m, w);
	for (int k = 0; k < ROUNDS; k++) {
		double p = low + (high - low) / 3, q = high - (high - low) / 3, at_p, at_q;
		*weight = p;
		at_p = best_weights(m, w, row + 1);
		*weight = q;
		at_q = best_weights(m, w, row + 1);
		best = fmax(best, fmax(at_p, at_q));
		*(at_p < at_q ? &low : &high) = at_p < at_q ? p : q;
	}
	*weight = 1;
	return fmax(best, best_weights(m, w, row + 1));
}

static double best_bound(const struct stage_turn *m, double price)
{
	return best_weights(m, (struct weights){1, 1, price}, m->link.any && !m->link.sync ? 0 : 2);
}

double neap__stage_bound(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	int64_t last = c->steps;
	double least = neap__stages_least_time(c), bytes = 0, found;
	struct stage_turn m = {.chain = c, .link = link_of(p)};
	for (int64_t i = 0; i < last; i++)
		bytes += (double)c->stages->tape[i];
	m.room = (double)p->memory - (double)neap__stage_gradient(c, last) -
		 (double)neap__stage_backward_tmp(c->stages, last);
	if (m.room < 0 || bytes <= m.room || last < 1)
		return least;
	m.item = malloc((size_t)last * sizeof *m.item);
	if (!m.item) {
		neap__bound_note_memory();
		return least;
	}
	found = best_bound(&m, 0);
	/* Where the tiers do not hold all tapes: prices around what recomputing a byte costs. */
	for (int k = -PRICES_EACH_WAY; k <= PRICES_EACH_WAY && m.link.any && m.link.bytes < bytes;
		k++)
		found = fmax(found, best_bound(&m, ldexp(least / bytes, k)));
	free(m.item);
	/* Less what rounding of the sums can have added. */
	return fmax(least, found - ROUNDING * least);
}

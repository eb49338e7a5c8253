/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stagebound: what memory and channels force on a chain of unequal stages, seen from
 * the turn. Every stage ran before it, within X seconds, and is reversed after it,
 * within Y. The tape that backward i uses
 *
 *     lies in fast memory at the turn, or is on its way there or from there,
 *     or was recorded and written before the turn and is read after it,
 *     or is recorded after it, for which stage i runs a second time.
 *
 * With shares k_i, s_i, z_i of 1, r record, f advance, b backward, A bytes, w and v
 * seconds to write and to read the tape of i, l what either costs the computation, M what the
 * gradient of x_L and the loss leave of the budget, and S bytes on all tiers:
 *
 *     sum k_i A_i <= M        sum s_i A_i <= S
 *     X >= sum (k_i + s_i) r_i + z_i min(f_i, r_i) + s_i l_i      X >= sum s_i w_i
 *     Y >= sum b_i + z_i r_i + s_i l_i                            Y >= sum s_i v_i
 *
 * and nothing is faster than X + Y + the loss at their least. Any weights of the two
 * rows of X and of Y, and any price of a byte of S, leave a fractional knapsack whose
 * value is a bound; the best are searched for. Where computing waits for transfers
 * both rows are added. Several tiers are one with the sum of their rates; what a
 * transfer takes besides its bytes may be shared by many tapes and is left out.
 */
#include "plan/bound/stage_bound.h"

#include <math.h>
#include <stdlib.h>
#include "plan/core/stage_sizes.h"

struct link {
	double out, in; /* seconds a byte */
	double lost;	/* of computing, a byte either way */
	double bytes;	/* capacity */
	int sync, any;
};

struct bound_item {
	double bytes, saves; /* by being kept */
};

struct stage_turn {
	const struct neap_chain *chain;
	struct link link;
	double room;
	struct bound_item *item;
};

struct weights {
	double before, after; /* of computing; the channels have the rest of 1 */
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

/* What saves most a byte first. */
static int by_worth(const void *a, const void *b)
{
	const struct bound_item *x = a, *y = b;
	double p = x->saves * y->bytes, q = y->saves * x->bytes;
	return (p < q) - (p > q);
}

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

#define ROUNDS 10

/* The value is concave in every weight. */
static double best_after(const struct stage_turn *m, struct weights w)
{
	double low = 0, high = 1, best = 0;
	for (int k = 0; k < ROUNDS; k++) {
		double p = low + (high - low) / 3, q = high - (high - low) / 3, at_p, at_q;
		w.after = p;
		at_p = weighted_bound(m, w);
		w.after = q;
		at_q = weighted_bound(m, w);
		best = fmax(best, fmax(at_p, at_q));
		*(at_p < at_q ? &low : &high) = at_p < at_q ? p : q;
	}
	w.after = 1;
	return fmax(best, weighted_bound(m, w));
}

static double best_before(const struct stage_turn *m, double price)
{
	double low = 0, high = 1, best = 0;
	struct weights w = {1, 1, price};
	if (!m->link.any || m->link.sync)
		return weighted_bound(m, w);
	for (int k = 0; k < ROUNDS; k++) {
		double p = low + (high - low) / 3, q = high - (high - low) / 3, at_p, at_q;
		w.before = p;
		at_p = best_after(m, w);
		w.before = q;
		at_q = best_after(m, w);
		best = fmax(best, fmax(at_p, at_q));
		*(at_p < at_q ? &low : &high) = at_p < at_q ? p : q;
	}
	w.before = 1;
	return fmax(best, best_after(m, w));
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
	if (!m.item)
		return least;
	found = best_before(&m, 0);
	/* Prices around what recomputing a byte costs, where there are too few. */
	for (int k = -4; k <= 4 && m.link.any && m.link.bytes < bytes; k++)
		found = fmax(found, best_before(&m, ldexp(least / bytes, k)));
	free(m.item);
	/* Off by more than rounding can have cost. */
	return fmax(least, found - 1e-9 * least);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* pofo_propose.c: the table of F, and its path as a choice of what is kept and what is sent. */
#include "plan/offload/pofo_propose.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"

/* Chosen: 2 MB and some tenths of a second for a table. */
#define CELLS 500000   /* of the table */
#define LEVELS_MOST 26 /* levels of memory for each of m, q and b */
#define LEVELS_LEAST 5 /* with fewer the proposals are of no use */
#define GROUP_MOST 64  /* stages of a group */
#define EVER 1e300     /* seconds: cannot be done; sums of a few are finite */

struct fluid {
	const struct neap_problem *p;
	const struct neap_stages *s;
	int64_t n;
	int levels, holds, needs, sync, stay;
	double memory, unit;
	double out, in, out_fixed, in_fixed; /* bytes a second; seconds a transfer */
	double lost;			     /* seconds of computing a byte, there and back */
	float *f; /* [n + 1][x_i in a tape][m][q][b]; negative: not yet */
};

struct pofo_choice {
	int64_t next; /* the boundary after it */
	int record;   /* one stage recorded; else a group */
	int sends;    /* bit 0: the tape, bit 1: x_i */
};

struct at {
	int64_t i;
	int in_tape; /* x_i is in a tape */
	double m, q, b;
};

static double bytes_of_state(const struct fluid *x, int64_t t)
{
	return (double)x->s->state[t];
}

static double gradient(const struct fluid *x, int64_t t)
{
	return (double)neap__stage_gradient(&x->p->chain, t);
}

static double value(struct fluid *x, const struct at *a, struct pofo_choice *best);

/* Waits on the way up until so many bytes fit. */
static double wait_up(const struct fluid *x, double need, double *q)
{
	double excess = need + *q - x->memory;
	if (excess <= 0)
		return 0;
	if (excess > *q)
		return EVER;
	*q -= excess;
	return excess / x->out;
}

/* The same on the way down; `need` does not include the bytes that are read back. */
static double wait_down(const struct fluid *x, double need, double b)
{
	double excess = need + b - x->memory;
	if (excess <= 0)
		return 0;
	return excess > b ? EVER : excess / x->in;
}

/* Sends bytes: into the queue and back, or at once if the tier is synchronous. */
static double send(const struct fluid *x, double bytes, double *q, double *b)
{
	double there = bytes / x->out + x->out_fixed, back = bytes / x->in + x->in_fixed;
	if (x->sync)
		return there + back;
	*q += bytes + x->out_fixed * x->out;
	*b += bytes + x->in_fixed * x->in;
	return bytes * x->lost;
}

/* A unit of stages: seconds up and down, bytes needed in addition to what is kept. */
struct pofo_unit {
	double up, down, need_up, need_down;
};

static double pass_unit(
	struct fluid *x, const struct at *a, const struct pofo_unit *u, struct pofo_choice c)
{
	struct at next = {.i = c.next, .in_tape = c.record && x->holds, .m = a->m};
	double q = a->q, b = fmax(0, a->b - x->in * u->down), cost = 0;
	int source = !a->in_tape && (!c.record || x->needs);
	cost += wait_up(x, a->m + u->need_up, &q) + wait_down(x, a->m + u->need_down, a->b);
	q = fmax(0, q - x->out * u->up);
	if (source && c.sends & 2)
		cost += send(x, bytes_of_state(x, a->i), &q, &b);
	else if (source)
		next.m += bytes_of_state(x, a->i);
	if (c.record && c.sends & 1)
		cost += send(x, (double)x->s->tape[a->i], &q, &b);
	else if (c.record)
		next.m += (double)x->s->tape[a->i];
	if (cost >= EVER || next.m > x->memory)
		return EVER;
	next.q = q;
	next.b = b;
	return cost + u->up + u->down + value(x, &next, NULL);
}

static void consider(struct fluid *x, const struct at *a, const struct pofo_unit *u,
	struct pofo_choice c, double *least, struct pofo_choice *best)
{
	for (int sends = 0; sends < 4; sends++) {
		if (sends & 1 && (!c.record || x->stay))
			continue;
		if (sends & 2 && (a->in_tape || (c.record && !x->needs)))
			continue;
		c.sends = sends;
		double all = pass_unit(x, a, u, c);
		if (all < *least) {
			*least = all;
			*best = c;
		}
	}
}

static double options(struct fluid *x, const struct at *a, struct pofo_choice *best)
{
	const struct neap_stages *s = x->s;
	double least = EVER, input = bytes_of_state(x, a->i), tapes = 0, widest = 0;
	struct pofo_unit u = {0};
	for (int64_t k = a->i; k < x->n && k < a->i + GROUP_MOST; k++) {
		double output = bytes_of_state(x, k + 1), tape = (double)s->tape[k];
		double separate = x->holds ? 0 : output;
		double kept = k > a->i ? bytes_of_state(x, k) : 0;
		tapes += tape;
		double back = tapes + gradient(x, k) + gradient(x, k + 1) +
			      (double)neap__stage_backward_tmp(s, k);
		double again = tapes + separate + (double)neap__stage_record_tmp(s, k);
		if (k == a->i) {
			struct pofo_unit one = {neap__stage_record(s, k), s->backward[k],
				input + again, (x->needs ? input : 0) + back};
			consider(x, a, &one, (struct pofo_choice){k + 1, 1, 0}, &least, best);
		}
		widest = fmax(widest, kept + output + (double)neap__stage_advance_tmp(s, k));
		u.up += s->advance[k];
		u.down += neap__stage_record(s, k) + s->backward[k];
		u.need_up = input + widest;
		u.need_down = fmax(u.need_down, input + back);
		double all = fmax(u.need_down, input + again + gradient(x, k + 1));
		if (input + tapes > x->memory)
			break;
		struct pofo_unit group = {u.up, u.down, u.need_up, all};
		consider(x, a, &group, (struct pofo_choice){k + 1, 0, 0}, &least, best);
	}
	return least;
}

static double at_turn(const struct fluid *x, const struct at *a)
{
	double q = a->q, loss = x->s->backward[x->n];
	double need = a->m + gradient(x, x->n) + (a->in_tape ? 0 : bytes_of_state(x, x->n)) +
		      (double)neap__stage_backward_tmp(x->s, x->n);
	return wait_up(x, need, &q) + fmax(0, q / x->out - loss) + loss + a->b / x->in;
}

static int64_t level(const struct fluid *x, double bytes)
{
	double k = bytes / x->unit + 0.5;
	return k < x->levels ? (int64_t)k : x->levels;
}

static double value(struct fluid *x, const struct at *a, struct pofo_choice *best)
{
	int64_t wide = x->levels + 1;
	struct pofo_choice unused = {0};
	if (a->i == x->n)
		return at_turn(x, a);
	float *f = &x->f[((((a->i * 2 + a->in_tape) * wide + level(x, a->m)) * wide) +
				 level(x, a->q)) *
				 wide +
			 level(x, a->b)];
	if (*f >= 0 && !best)
		return *f < 3e38f ? *f : EVER;
	double least = options(x, a, best ? best : &unused);
	*f = least < 3e38 ? (float)least : 3.1e38f;
	return least;
}

/* The rates of a tier; one that takes no time is as fast as makes no difference. */
static void set_rates(struct fluid *x, const struct neap_tier_spec *tier)
{
	x->out = tier->write_rate > 0 ? tier->write_rate : 1e30;
	x->in = tier->read_rate > 0 ? tier->read_rate : 1e30;
	x->out_fixed = tier->write_fixed;
	x->in_fixed = tier->read_fixed;
	x->lost = 2 * (neap_tier_lost(tier, 1) - neap_tier_lost(tier, 0));
	x->sync = (tier->flags & NEAP_TIER_SYNC) != 0;
}

static void trace(struct fluid *x, struct neap__offload_choice *o, int tier)
{
	struct at a = {0};
	memset(o->tape, NEAP__NOT_KEPT, (size_t)o->n);
	memset(o->state, NEAP__NOT_KEPT, (size_t)o->n);
	memset(o->ahead, 1, (size_t)o->n);
	while (a.i < x->n) {
		struct pofo_choice c = {.next = a.i + 1, .record = 1};
		double down = 0, up = 0;
		value(x, &a, &c);
		for (int64_t k = a.i; k < c.next; k++) {
			up += c.record ? neap__stage_record(x->s, k) : x->s->advance[k];
			down += x->s->backward[k] + (c.record ? 0 : neap__stage_record(x->s, k));
		}
		struct at next = {c.next, c.record && x->holds, a.m, fmax(0, a.q - x->out * up),
			fmax(0, a.b - x->in * down)};
		if (c.record) {
			o->tape[a.i] = (uint8_t)(NEAP__STAYS + (c.sends & 1 ? tier : 0));
			if (c.sends & 1)
				send(x, (double)x->s->tape[a.i], &next.q, &next.b);
			else
				next.m += (double)x->s->tape[a.i];
		}
		if (!a.in_tape && (!c.record || x->needs)) {
			o->state[a.i] = (uint8_t)(NEAP__STAYS + (c.sends & 2 ? tier : 0));
			if (c.sends & 2)
				send(x, bytes_of_state(x, a.i), &next.q, &next.b);
			else
				next.m += bytes_of_state(x, a.i);
		}
		a = next;
	}
}

/* The proposal for a tier and a budget. Returns 1, 0 if there is none, or -ENOMEM. */
static int propose(
	struct neap__offload_choice *o, const struct neap_problem *p, int tier, double memory)
{
	const struct neap_stages *s = p->chain.stages;
	struct fluid x = {.p = p,
		.s = s,
		.n = p->chain.steps,
		.memory = memory,
		.holds = neap__tape_holds_output(s),
		.needs = neap__backward_needs_input(s),
		.stay = (p->chain.flags & NEAP_CHAIN_TAPES_STAY) != 0};
	double cells = CELLS / (2.0 * (double)(x.n + 1));
	x.levels = (int)fmin(LEVELS_MOST, cbrt(cells) - 1);
	if (x.levels < LEVELS_LEAST)
		return 0;
	x.unit = memory / x.levels;
	set_rates(&x, &p->tiers[tier - 1]);
	int64_t wide = x.levels + 1, all = (x.n + 1) * 2 * wide * wide * wide;
	x.f = malloc((size_t)all * sizeof *x.f);
	if (!x.f)
		return neap__fail(-ENOMEM, "plan: out of memory");
	for (int64_t k = 0; k < all; k++)
		x.f[k] = -1;
	struct at start = {0};
	int found = memory > 0 && value(&x, &start, NULL) < EVER;
	if (found)
		trace(&x, o, tier);
	free(x.f);
	return found;
}

int neap__pofo_propose(struct neap__offload_search *x)
{
	static const double shares[] = {
		1, 0.94, 0.88, 0.8}; /* chosen: the fluid model is optimistic */
	const struct neap_problem *p = x->problem;
	double makespan;
	for (int tier = 1; tier <= p->ntiers; tier++)
		for (int k = 0; k < 4; k++) {
			double memory = ((double)p->memory - (double)p->tiers[tier - 1].staging) *
					shares[k];
			int rc = propose(&x->trial, p, tier, memory);
			if (rc > 0)
				rc = neap__offload_search_relieve(x, &x->trial, &makespan);
			if (rc < 0)
				return rc;
		}
	return 0;
}

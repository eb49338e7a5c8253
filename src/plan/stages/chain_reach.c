/* SPDX-License-Identifier: Apache-2.0 */
/* chain_reach.c: bytes that leaves take as they grow, how far parts reach, and where to split. */
#include "plan/stages/chain_reach.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/core/stage_sizes.h"

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t state_of(const struct neap__chain_reach *x, int64_t i)
{
	return (int64_t)x->chain->stages->state[i];
}

/* Bytes of the gradient that is there while [i,n) is done. */
static int64_t after(const struct neap__chain_reach *x, int64_t n)
{
	return n <= x->steps ? neap__stage_gradient(x->chain, n) : 0;
}

/* x_i may be given up before it is reversed. */
static int64_t given_up(const struct neap__chain_reach *x, int64_t i)
{
	const struct neap_stages *s = x->chain->stages;
	return neap__tape_holds_output(s) || neap__backward_needs_input(s) ? 0 : state_of(x, i);
}

static void measure_stage(struct neap__chain_reach *x, int64_t i, int64_t tape)
{
	const struct neap_stages *s = x->chain->stages;
	int holds = neap__tape_holds_output(s), needs = neap__backward_needs_input(s);
	int64_t output = holds ? 0 : state_of(x, i + 1);
	x->held[i] = tape + (needs ? output : 0);
	x->recording[i] = tape + output + neap__stage_record_tmp(s, i);
	x->before[i] = holds || needs ? 0 : state_of(x, i);
	x->reversing[i] = tape + neap__stage_gradient(x->chain, i) +
			  neap__stage_gradient(x->chain, i + 1) + neap__stage_backward_tmp(s, i);
	x->clock[i + 1] = x->clock[i] + s->advance[i];
}

/* The loss is a stage that leaves no tape: x_L lives while it is done. */
static void measure_loss(struct neap__chain_reach *x)
{
	const struct neap_stages *s = x->chain->stages;
	int64_t i = x->steps;
	x->held[i] = x->recording[i] = 0;
	x->before[i] =
		neap__tape_holds_output(s) || neap__backward_needs_input(s) ? 0 : state_of(x, i);
	x->reversing[i] =
		neap__stage_gradient(x->chain, i) + neap__stage_backward_tmp(s, i) + x->before[i];
	x->clock[i + 1] = x->clock[i];
}

/* Bytes of a leaf of stage i only. */
static int64_t single_leaf(const struct neap__chain_reach *x, int64_t i)
{
	if (i == x->steps)
		return x->reversing[i] - x->before[i];
	return larger(x->recording[i] + after(x, i + 1), x->reversing[i] - given_up(x, i));
}

static void measure_least(struct neap__chain_reach *x)
{
	const struct neap_stages *s = x->chain->stages;
	int64_t gradient = 0;
	for (int64_t i = 0; i <= x->steps; i++)
		gradient = larger(gradient, neap__stage_gradient(x->chain, i));
	for (int64_t i = 0; i <= x->steps; i++) {
		x->least[i] = state_of(x, i) + single_leaf(x, i);
		if (i < x->steps) /* passed on the way further on */
			x->least[i] = larger(x->least[i], state_of(x, i) + state_of(x, i + 1) +
								  neap__stage_advance_tmp(s, i) +
								  gradient);
	}
}

int neap__chain_reach_init(struct neap__chain_reach *x, const struct neap_chain *chain, int worst)
{
	const struct neap_stages *s = chain->stages;
	int64_t n = chain->steps, rows = n + 2, largest = 0;
	memset(x, 0, sizeof *x);
	x->chain = chain;
	x->steps = n;
	x->block = malloc((size_t)rows * (5 * sizeof(int64_t) + sizeof(double)));
	if (!x->block)
		return neap__fail(-ENOMEM, "plan: out of memory");
	x->held = x->block;
	x->recording = x->held + rows;
	x->before = x->recording + rows;
	x->reversing = x->before + rows;
	x->least = x->reversing + rows;
	x->clock = (double *)(x->least + rows);
	x->clock[0] = 0;
	for (int64_t i = 0; i < n; i++)
		largest = larger(largest, (int64_t)s->tape[i]);
	for (int64_t i = 0; i < n; i++)
		measure_stage(x, i, worst ? largest : (int64_t)s->tape[i]);
	measure_loss(x);
	measure_least(x);
	return 0;
}

void neap__chain_reach_free(struct neap__chain_reach *x)
{
	free(x->block);
	memset(x, 0, sizeof *x);
}

/* Bytes that a leaf from i takes as it grows. */
struct reach_leaf {
	int64_t i, n; /* [i,n) */
	int64_t held, recording, reversing;
};

static void leaf_grow(const struct neap__chain_reach *x, struct reach_leaf *l)
{
	int64_t k = l->n++;
	int64_t recording = l->held + x->recording[k] + (k > l->i ? x->before[k] : 0);
	int64_t reversing = l->held + x->reversing[k];
	if (k == x->steps) { /* the loss: nothing is recorded, x_L is there if it is x_i */
		recording = 0;
		reversing -= k == l->i ? x->before[k] : 0;
	}
	if (k < x->steps || k > l->i)
		reversing -= given_up(x, l->i);
	l->recording = larger(l->recording, recording);
	l->reversing = larger(l->reversing, reversing);
	l->held += x->held[k];
}

static int64_t leaf_bytes(const struct neap__chain_reach *x, const struct reach_leaf *l)
{
	return larger(l->recording + after(x, l->n), l->reversing);
}

/* R_0, up to `limit`. */
static int64_t leaf_end(struct neap__chain_reach *x, int64_t i, int64_t p, int64_t limit)
{
	struct reach_leaf l = {i, i, 0, 0, 0};
	int64_t end = i;
	while (l.n < limit && l.held <= p && l.reversing <= p) {
		leaf_grow(x, &l);
		if (leaf_bytes(x, &l) <= p)
			end = l.n;
	}
	x->scanned += l.n - i;
	return end;
}

int neap__chain_reach_leaf(struct neap__chain_reach *x, int64_t i, int64_t n, int64_t p)
{
	return leaf_end(x, i, p, n) == n;
}

uint64_t neap__chain_reach_least(const struct neap__chain_reach *x)
{
	struct reach_leaf all = {0};
	int64_t least = single_leaf(x, 0);
	for (int64_t i = 1; i <= x->steps; i++)
		least = larger(least, x->least[i]);
	if (x->steps > 0) /* the way to x_1 */
		least = larger(least, x->least[0] - state_of(x, 0));
	while (all.n <= x->steps)
		leaf_grow(x, &all);
	int64_t together = leaf_bytes(x, &all);
	return (uint64_t)(state_of(x, 0) + (together < least ? together : least));
}

struct end {
	int64_t n;
	double seconds;
};

/* R_s and K_s; ends early at `limit` and before a stage that needs more than p. */
static struct end reach(struct neap__chain_reach *x, int64_t i, int64_t p, int64_t s, int64_t limit)
{
	double before = 0;
	for (;;) {
		struct end e = {leaf_end(x, i, p, limit), 0};
		if (e.n == i)
			return (struct end){i, before};
		for (int64_t k = 1; k < s && e.n < limit && x->least[e.n] <= p; k++) {
			struct end right = reach(x, e.n, p - state_of(x, e.n), k, limit);
			e.seconds += x->clock[e.n] - x->clock[i] + right.seconds;
			e.n = right.n;
		}
		if (s == 0 || e.n >= limit || x->least[e.n] > p)
			return (struct end){e.n, before + e.seconds};
		before += x->clock[e.n] - x->clock[i] + e.seconds;
		p -= state_of(x, e.n);
		i = e.n;
	}
}

/* The ends of [i, .) as long as they are before n. */
struct ends {
	int64_t last, one_before; /* R_{s-1}, R_{s-2} for the least s with R_s >= n */
	double seconds;		  /* of [i,n), about; INFINITY: cannot be done */
};

static struct ends ends_before(struct neap__chain_reach *x, int64_t i, int64_t n, int64_t p)
{
	struct ends ends = {leaf_end(x, i, p, n), i, 0};
	if (ends.last == i)
		ends.seconds = INFINITY;
	for (int64_t s = 1; ends.last < n && ends.seconds < INFINITY; s++) {
		int64_t j = ends.last;
		double way = x->clock[j] - x->clock[i];
		if (x->least[j] > p) {
			ends.seconds = INFINITY;
			break;
		}
		struct end right = reach(x, j, p - state_of(x, j), s, n);
		if (right.n >= n) {
			ends.seconds += (double)s * (x->clock[n] - x->clock[j]);
			break;
		}
		ends.seconds += way + right.seconds;
		ends.one_before = j;
		ends.last = right.n;
	}
	return ends;
}

static double split_seconds(struct neap__chain_reach *x, int64_t i, int64_t n, int64_t p, int64_t j)
{
	if (x->least[j] > p)
		return INFINITY;
	return x->clock[j] - x->clock[i] + ends_before(x, i, j, p).seconds +
	       ends_before(x, j, n, p - state_of(x, j)).seconds;
}

int64_t neap__chain_reach_last(struct neap__chain_reach *x, int64_t i, int64_t n, int64_t p)
{
	if (n - i < 2 || x->least[n - 1] > p)
		return -1;
	int64_t j = n - 1, stride = 1;
	while (stride > 0) {
		int64_t next = j - stride;
		if (next > i && x->least[next] <= p &&
			neap__chain_reach_leaf(x, next, n, p - state_of(x, next))) {
			j = next;
			stride *= 2;
		} else {
			stride /= 2;
		}
	}
	return j;
}

int64_t neap__chain_reach_split(
	struct neap__chain_reach *x, int64_t i, int64_t n, int64_t p, int tries)
{
	int64_t end = n - 1, room = p - state_of(x, end);
	if (n - i < 2 || x->least[end] > p)
		return -1;
	if (room < x->least[end]) /* no room for a second state */
		return neap__chain_reach_last(x, i, n, p);
	struct ends ends = ends_before(x, i, n, p);
	if (!(ends.seconds < INFINITY))
		return neap__chain_reach_last(x, i, n, p);
	int64_t best = ends.last, low = ends.one_before + 1, high = ends.last;
	double least = tries ? split_seconds(x, i, n, p, best) : 0;
	for (int k = 0; k < tries; k++) {
		int64_t j = low + (high - low) * k / tries;
		double seconds = split_seconds(x, i, n, p, j);
		if (seconds < least) {
			least = seconds;
			best = j;
		}
	}
	return best;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* binomial.c: the closed forms; products are taken in 128 bits, quotients are exact. */
#include "plan/recompute/binomial.h"

#include "plan/core/sizing.h"

typedef unsigned __int128 wide;

/* Returns 1 where beta(s,t) = below (s+t) / t is l or more. */
static int holds(const struct neap__binomial *x)
{
	return (wide)x->below * (wide)(x->s + x->t) / (wide)x->t >= (wide)x->l;
}

/* Raises t to the least that holds l steps; on entry below = beta(s, t-1) < l. */
static void raise(struct neap__binomial *x)
{
	while (!holds(x)) {
		x->below = (int64_t)((wide)x->below * (wide)(x->s + x->t) / (wide)x->t);
		x->t++;
	}
}

struct neap__binomial neap__binomial(int64_t l, int64_t s)
{
	struct neap__binomial x = {.l = l, .s = s < l - 1 ? s : l - 1, .t = 1, .below = 1};
	if (x.s == 1) { /* beta(1,t) = t + 1 */
		x.t = l - 1;
		x.below = l - 1;
	}
	raise(&x);
	return x;
}

/* beta(s-1, t-1) from beta(s, t-1). */
static int64_t beta_fewer(const struct neap__binomial *x)
{
	return (int64_t)((wide)x->below * (wide)x->s / (wide)(x->s + x->t - 1));
}

/* beta(s, t-2) from beta(s, t-1); 0 for t = 1. */
static int64_t beta_less(const struct neap__binomial *x)
{
	return (int64_t)((wide)x->below * (wide)(x->t - 1) / (wide)(x->s + x->t - 1));
}

int64_t neap__binomial_split(const struct neap__binomial *x)
{
	int64_t rest = x->l - beta_fewer(x);
	return x->below < rest ? x->below : rest;
}

struct neap__binomial neap__binomial_left(const struct neap__binomial *x, int64_t y)
{
	struct neap__binomial left = {.l = y, .s = x->s, .t = x->t - 1, .below = beta_less(x)};
	if (left.below == y) {
		left.t--;
		left.below = (int64_t)((wide)left.below * (wide)left.t / (wide)(left.s + left.t));
	}
	return left;
}

struct neap__binomial neap__binomial_right(const struct neap__binomial *x, int64_t y)
{
	struct neap__binomial right = {
		.l = x->l - y, .s = x->s - 1, .t = x->t, .below = beta_fewer(x)};
	if (right.below == right.l) {
		right.t--;
		right.below =
			(int64_t)((wide)right.below * (wide)right.t / (wide)(right.s + right.t));
	}
	return right;
}

int64_t neap__binomial_extra(const struct neap__binomial *x)
{
	wide all = (wide)x->t * (wide)x->l;
	wide saved = (wide)x->below * (wide)(x->s + x->t) / (wide)(x->s + 1);
	return all - saved > (wide)INT64_MAX ? -1 : (int64_t)(all - saved);
}

int64_t neap__revolve_extra(int64_t steps, int64_t slots)
{
	if (steps < 2)
		return 0;
	struct neap__binomial x = neap__binomial(steps, slots);
	return neap__binomial_extra(&x);
}

/* Saves of a full part besides the first: C(s-1+t, t) - 1, which is l s / (s+t) - 1. */
static int64_t saves_full(const struct neap__binomial *x)
{
	return (int64_t)((wide)x->l * (wide)x->s / (wide)(x->s + x->t)) - 1;
}

int neap__binomial_full(const struct neap__binomial *x)
{
	return (wide)x->below * (wide)(x->s + x->t) == (wide)x->l * (wide)x->t;
}

int64_t neap__binomial_saves(struct neap__binomial x)
{
	int64_t count = 0;
	for (;;) {
		if (neap__binomial_full(&x))
			return count + saves_full(&x);
		if (x.t == 1) /* a state is kept before every step but the last */
			return count + x.l - 2;
		int64_t y = neap__binomial_split(&x);
		struct neap__binomial left = {0}, right = {0};
		if (y >= 2)
			left = neap__binomial_left(&x, y);
		if (x.l - y >= 2 && x.s >= 2) {
			right = neap__binomial_right(&x, y);
			count++;
		}
		int go_left = left.l && !neap__binomial_full(&left),
		    go_right = right.l && !neap__binomial_full(&right);
		if (!go_right && right.l)
			count += saves_full(&right);
		if (!go_left && left.l)
			count += saves_full(&left);
		if (!go_left && !go_right)
			return count;
		x = go_left ? left : right;
	}
}

int64_t neap__binomial_slots_least(int64_t steps)
{
	int64_t s = steps > 1;
	while (s > 0 && s < steps - 1) {
		struct neap__binomial x = neap__binomial(steps, s);
		if (neap__binomial_extra(&x) >= 0)
			break;
		s++;
	}
	return s;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_anneal.c: local search over choices (offload_choice.h). First the entries of each
 * stage (its tape, its state, its look-ahead) are changed one at a time while that helps; then one
 * to three at a time, selected by a fixed sequence of random numbers, with worse choices accepted
 * less and less often (simulated annealing: Kirkpatrick, Gelatt and Vecchi, 1983).
 */
#include <math.h>
#include "base/fail.h"
#include "base/philox.h"
#include "plan/offload/offload_search.h"

/* Chosen. */
#define AHEAD_VALUES 4 /* a group leaves room for 0 to 3 records */
#define HOT 0.01       /* of the cost: the temperature that the search begins with, */
#define COLD 0.005     /* and by what the temperature has fallen at its end */

static int better(double a, double b)
{
	return a < b * (1 - 1e-12);
}

/* Entry `which` of stage i (0 tape, 1 state, 2 look-ahead) becomes its k-th next value. */
static void next_value(
	const struct neap_problem *p, struct neap__offload_choice *o, int64_t i, int which, int k)
{
	int values = 2 + p->ntiers;
	uint8_t *at = which == 0 ? &o->tape[i] : which == 1 ? &o->state[i] : &o->ahead[i];
	int count = which == 2 ? AHEAD_VALUES : values;
	*at = (uint8_t)((*at + k) % count);
	if (which == 0 && *at > NEAP__STAYS && p->chain.flags & NEAP_CHAIN_TAPES_STAY)
		*at = NEAP__NOT_KEPT;
}

/* Each entry of each stage, the last stage first, until no change helps or `most` is spent. */
static int descend(struct neap__offload_search *x, double *cost, int64_t most)
{
	int64_t n = x->now.n, idle = 0, stop = x->left - most;
	int values = 2 + x->problem->ntiers;
	for (int64_t at = 0; idle < 3 * n && x->left > 0 && x->left > stop; at++) {
		int which = (int)(at % 3);
		int64_t i = n - 1 - at / 3 % n;
		int count = which == 2 ? AHEAD_VALUES : values, found = 0;
		for (int k = 1; k < count && !found; k++) {
			double value;
			neap__offload_choice_copy(&x->trial, &x->now);
			next_value(x->problem, &x->trial, i, which, k);
			NEAP_TRY(neap__offload_search_try(x, &x->trial, &value));
			if (better(value, *cost)) {
				*cost = value;
				neap__offload_choice_copy(&x->now, &x->trial);
				found = 1;
			}
		}
		idle = found ? 0 : idle + 1;
	}
	return 0;
}

struct dice {
	uint64_t n;
};

static int64_t roll(struct dice *d, int64_t sides)
{
	return (int64_t)neap__random_below(1, NEAP__STREAM_PLAN, 0, d->n++, (uint64_t)sides);
}

static double chance(struct dice *d)
{
	return neap__random_uniform(1, NEAP__STREAM_PLAN, 1, d->n++);
}

static void swap_values(uint8_t *list, int64_t i, int64_t j)
{
	uint8_t a = list[i];
	list[i] = list[j];
	list[j] = a;
}

static void move(struct neap__offload_search *x, struct dice *d)
{
	struct neap__offload_choice *o = &x->trial;
	int64_t n = o->n, i = roll(d, n), j;
	int values = 2 + x->problem->ntiers;
	switch (roll(d, 7)) {
	case 0: /* two stages swap what becomes of their tapes */
		j = roll(d, n);
		swap_values(o->tape, i, j);
		break;
	case 1: /* or neighbours of everything */
		j = i + 1 < n ? i + 1 : i;
		swap_values(o->tape, i, j);
		swap_values(o->state, i, j);
		break;
	case 2: /* a kept state moves a little */
		j = i + 1 < n ? i + 1 : i;
		swap_values(o->state, i, j);
		break;
	case 3:
		next_value(x->problem, o, i, 2, 1 + (int)roll(d, 3));
		break;
	case 4:
		next_value(x->problem, o, i, 1, 1 + (int)roll(d, values - 1));
		break;
	default:
		next_value(x->problem, o, i, 0, 1 + (int)roll(d, values - 1));
		if (roll(d, 2))
			next_value(x->problem, o, roll(d, n), 0, 1 + (int)roll(d, values - 1));
		break;
	}
}

int neap__offload_search_improve(struct neap__offload_search *x, double bound)
{
	double cost = x->makespan, value;
	struct dice d = {0};
	if (!(cost < INFINITY))
		return 0;
	neap__offload_choice_copy(&x->now, &x->best);
	NEAP_TRY(descend(x, &cost, x->left / 2));
	double all = (double)x->left, hot = HOT * cost;
	while (x->left > 0 && better(bound, x->makespan)) {
		double t = hot * pow(COLD, 1 - (double)x->left / all);
		neap__offload_choice_copy(&x->trial, &x->now);
		move(x, &d);
		NEAP_TRY(neap__offload_search_try(x, &x->trial, &value));
		if (isinf(value) && x->left > 0 && roll(&d, 2)) {
			/* The choice may fit when more is sent away. */
			NEAP_TRY(neap__offload_search_relieve(x, &x->trial, &value));
		}
		if (value <= cost || (value < INFINITY && chance(&d) < exp((cost - value) / t))) {
			cost = value;
			neap__offload_choice_copy(&x->now, &x->trial);
		}
	}
	return 0;
}

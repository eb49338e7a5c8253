/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks_cost.c: seconds and bytes of training, or of a collective sweep, on several ranks, by
 * counting (neap_ranks_predict, plan.h). Sums of gradients go over the tree of groups whose node
 * (i, k) has the groups [i 2^k, (i + 1) 2^k), cut at the number of groups.
 */
#include <neap/plan.h>
#include "base/fail.h"
#include "base/struct_size.h"

#include <math.h>

#define RANKS_MOST (1 << 20)
#define POLLS 10 /* agreements a second of a sweep, beside those at waits */

/* Of src/nn and src/train, which tests/train/test_rank_training.c compares with these. */
enum {
	ROUND_NUMBERS = (4 << 20) / 8, /* gradients that a rank sends or receives in a round */
	SLICE_BLOCK = 512,	       /* gradients whose squares are one number */
	GATHERS = 7,		       /* calls beside those for weights and sums */
	COUNT_BYTES = 48,	       /* counts of the turn, and of the support */
	AGREED_BYTES = 8 * 35	       /* values of both agreements */
};

/* Whole nodes of the tree of `groups` that make up [begin, end). */
static int nodes_of(int64_t begin, int64_t end, int64_t groups)
{
	int nodes = 0;

	while (begin < end) {
		int64_t width = 1;
		while (begin % (2 * width) == 0 && width < groups &&
			(begin + 2 * width <= end || end == groups))
			width *= 2;
		begin += width;
		nodes++;
	}
	return nodes;
}

static int log2_up(int n)
{
	int k = 0;
	while ((int64_t)1 << k < n)
		k++;
	return k;
}

/* Whole nodes of the tree: of all ranks, and of the rank that has most. */
struct node_counts {
	int64_t all;
	int most;
};

static struct node_counts count_nodes(int64_t groups, int ranks)
{
	struct node_counts found = {0, 0};
	int64_t share = groups > ranks ? groups : ranks; /* of fewer groups, ranks have one each */

	for (int64_t r = 0; r < ranks; r++) {
		int64_t begin = r * share / ranks, end = (r + 1) * share / ranks;
		int nodes = nodes_of(begin, end < groups ? end : groups, groups);
		found.most = nodes > found.most ? nodes : found.most;
		found.all += nodes;
	}
	return found;
}

static double rounds_of(int64_t groups, int ranks, int threads)
{
	int64_t most = (groups + ranks - 1) / ranks;
	return (double)((most + threads - 1) / threads);
}

/*
 * A batch has calls that gather parts of all ranks, or take the least of them, by halves: counts,
 * losses, outputs of units, units inside the support, squares of gradients, the weights of each
 * tensor, and two agreements. Sums of gradients go to their owners in rounds of 4 MiB.
 */
static void exchange(struct neap_ranks_cost *out, const struct neap_ranks *q, int64_t groups)
{
	struct node_counts nodes = count_nodes(groups, q->ranks);
	double n = (double)q->parameters, others = q->ranks - 1, share = others / q->ranks;
	double a_slice = ceil(n / q->ranks), halves = log2_up(q->ranks);
	double own = ROUND_NUMBERS / ((double)nodes.most * q->ranks);
	double room = ROUND_NUMBERS / (double)nodes.all;
	double a_round = fmax(1, floor(fmin(own, room)));
	double rounds = ceil(a_slice / a_round);
	double calls = GATHERS + (q->tensors > 0 ? q->tensors : NEAP_RANKS_TENSORS);
	double messages = rounds * others + halves * calls;
	double sums = 8.0 * nodes.most * n, weights = 4 * n, squares = 8 * n / SLICE_BLOCK;
	double turn = 8.0 * nodes.most * (double)q->units * others + 8.0 * q->batch * share;
	double sent = (sums + weights + squares) * share + turn + COUNT_BYTES * others +
		      AGREED_BYTES * halves;

	out->messages = (int64_t)fmin(messages, 9e18);
	out->sent = (uint64_t)fmin(sent, 9e18);
	out->exchanged = messages * q->alpha + (q->rate > 0 ? sent / q->rate : 0);
}

static void train(
	struct neap_ranks_cost *out, const struct neap_plan *plan, const struct neap_ranks *q)
{
	int64_t groups = ((int64_t)q->batch + q->group - 1) / q->group;
	double alone = plan->makespan * rounds_of(groups, 1, q->threads);

	out->idle = groups < q->ranks ? q->ranks - (int)groups : 0;
	out->computed = plan->makespan * rounds_of(groups, q->ranks, q->threads);
	if (q->ranks > 1)
		exchange(out, q, groups);
	double together = out->computed + out->exchanged;
	out->efficiency = together > 0 ? fmin(1, alone / together / q->ranks) : 1;
}

/* Waits for transfers in the plan's schedule; negative: a code. */
static int64_t waits_of(const struct neap_problem *problem, const struct neap_plan *plan)
{
	struct neap_schedule *schedule;
	struct neap_action a;
	int64_t waits = 0;
	int rc = neap_schedule_open(&schedule, problem, plan);

	if (rc < 0)
		return rc;
	while ((rc = neap_schedule_next(schedule, &a)) > 0)
		waits += a.kind == NEAP_WAIT;
	neap_schedule_close(schedule);
	return rc < 0 ? rc : waits;
}

static int sweep(struct neap_ranks_cost *out, const struct neap_problem *problem,
	const struct neap_plan *plan, const struct neap_ranks *q)
{
	int64_t waits = q->ranks > 1 ? waits_of(problem, plan) : 0;

	if (waits < 0)
		return (int)waits;
	out->computed = plan->makespan;
	if (q->ranks > 1) {
		double agreements = (double)waits + ceil(POLLS * plan->makespan);
		double messages = fmin(2 * log2_up(q->ranks) * agreements, 9e18);
		out->messages = (int64_t)messages;
		out->exchanged = messages * q->alpha;
	}
	out->efficiency = out->computed > 0 ? out->computed / (out->computed + out->exchanged) : 1;
	return 0;
}

int neap_ranks_predict(struct neap_ranks_cost *cost, const struct neap_problem *problem,
	const struct neap_plan *plan, const struct neap_ranks *ranks)
{
	NEAP_NEED(cost, problem, plan, ranks);
	struct neap_ranks_cost found = {.size = sizeof found};

	NEAP_TRY(neap__struct_size(cost->size, sizeof found, sizeof found, "neap_ranks_cost"));
	NEAP_TRY(neap__struct_size(ranks->size, sizeof *ranks, sizeof *ranks, "neap_ranks"));
	if (ranks->ranks < 1 || ranks->ranks > RANKS_MOST)
		return neap__fail(NEAP_EUSAGE, "ranks is %d; it must be between 1 and %d",
			ranks->ranks, RANKS_MOST);
	if (!(ranks->alpha >= 0 && ranks->rate >= 0) || isinf(ranks->alpha))
		return neap__fail(NEAP_EUSAGE, "alpha and beta must be finite and not negative");
	if (ranks->parameters < 0 || ranks->units < 0)
		return neap__fail(NEAP_EUSAGE, "parameters and units must not be negative");
	if (ranks->parameters > 0 && (ranks->batch < 1 || ranks->group < 1 || ranks->threads < 1))
		return neap__fail(NEAP_EUSAGE, "batch, group and threads must be at least 1");
	if (!plan->feasible)
		return neap__fail(NEAP_EUSAGE, "%s is infeasible: %s", plan->strategy, plan->why);
	if (ranks->parameters > 0)
		train(&found, plan, ranks);
	else
		NEAP_TRY(sweep(&found, problem, plan, ranks));
	*cost = found;
	return 0;
}

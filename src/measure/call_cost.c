/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_cost.c: the price of a call shows in a sweep only: the net's threads were idle
 * for a moment, its state was copied by another one, lists are read again. Both sweeps
 * run in turns: machines change their pace by more than that, but not at once. The median
 * of the turns counts.
 */
#include "measure/call_cost.h"
#include "measure/batch_sampling.h"
#include "measure/tier_cost.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { TURNS = 9, STEPS_MOST = 512, STEPS_LEAST = 16 };
#define SECONDS 0.05 /* a sweep, about */
#define LONG 2e-3    /* seconds a step, beyond which a call is no part of it worth knowing */
#define MEMORY ((uint64_t)32 << 20)

struct pair {
	struct neap_net *net;
	struct neap_batch cut;
	struct neap_sweep *ranges, *single;
};

static int make(struct neap_sweep **sweep, const struct pair *pair, const struct neap__costs *costs,
	const char *strategy, uint64_t memory)
{
	struct neap_step_ops ops;
	struct neap_sweep_options so = {.size = sizeof so,
		.steps = pair->cut.steps,
		.memory = memory,
		.strategy = strategy,
		.advance = costs->advance,
		.record = costs->record,
		.backward = costs->backward};

	neap__net_steps_fill(&ops, pair->net);
	ops.grad_save = NULL;
	ops.grad_load = NULL;
	if (ops.tape_bytes < ops.tape_max_bytes) /* vary: none may overflow */
		ops.tape_bytes = ops.tape_max_bytes - 1;
	if (strategy[0] == 's') /* `standard`: half of the steps are passed twice */
		so.params.chunk = (so.steps + 1) / 2;
	NEAP_TRY(neap_sweep_create(sweep, &ops, pair->net, &so));
	return neap_sweep_touch(*sweep);
}

/* Seconds of the model's and the sweep's own work, waits and copies apart. */
static double work(const struct neap_sweep_stats *stats)
{
	return stats->seconds - stats->copies - stats->stall;
}

/* What the copies of a sweep take, by what they are said to. */
static double copies_said(const struct neap_sweep *sweep, const struct neap__costs *costs)
{
	struct neap_problem problem = *neap_sweep_problem(sweep);
	struct neap_simulation simulation = {.size = sizeof simulation};
	struct neap_schedule *schedule;

	problem.chain.slot_write = costs->slot_write;
	problem.chain.slot_read = costs->slot_read;
	if (neap_schedule_open(&schedule, &problem, neap_sweep_plan(sweep)) < 0)
		return 0;
	int rc = neap_simulate(&simulation, &problem, schedule);
	neap_schedule_close(schedule);
	return rc < 0 ? 0 : simulation.copies;
}

/* Seconds a call, by one turn. */
static double price(const struct neap_sweep_stats *ranges, const struct neap_sweep_stats *single)
{
	int64_t calls = single->advance_calls + single->record_calls + single->backward_calls;
	double alone =
		ranges->advance / (double)ranges->advance_steps * (double)single->advance_steps +
		ranges->record / (double)ranges->record_steps * (double)single->record_steps +
		ranges->backward / (double)ranges->backward_steps * (double)single->backward_steps;
	return (work(single) - alone) / (double)calls;
}

static int run(struct pair *pair, struct neap_sweep *sweep, const struct neap_objective *objective,
	struct neap_sweep_stats *stats)
{
	double loss;

	NEAP_TRY(neap_net_begin(pair->net, &pair->cut, objective));
	int rc = neap_sweep_run(sweep, NULL, NULL, &loss, stats);
	int ended = neap_net_end(pair->net);
	return rc < 0 ? rc : ended;
}

/* The first turn warms up. */
static int measure(
	struct neap__costs *costs, struct pair *pair, const struct neap_objective *objective)
{
	double prices[TURNS], copies[TURNS], said = copies_said(pair->single, costs);
	struct neap_sweep_stats ranges = {.size = sizeof ranges}, single = {.size = sizeof single};
	int n = 0;

	for (int turn = 0; turn <= TURNS; turn++) {
		NEAP_TRY(run(pair, pair->ranges, objective, &ranges));
		NEAP_TRY(run(pair, pair->single, objective, &single));
		if (turn == 0 || ranges.overflows > 0 || single.overflows > 0 ||
			ranges.advance_steps == 0)
			continue;
		prices[n] = price(&ranges, &single);
		copies[n++] = single.copies;
	}
	if (n == 0)
		return 0;
	costs->call = fmax(neap__timing_of(prices, n).median, 0);
	if (said > 0) {
		double times = neap__timing_of(copies, n).median / said;
		costs->slot_write *= times;
		costs->slot_read *= times;
	}
	return 0;
}

static int steps_of(const struct neap__costs *costs)
{
	double step = 2 * costs->advance + costs->record + costs->backward;
	return (int)fmin(STEPS_MOST, SECONDS / fmax(step, 1e-9));
}

int neap__call_cost_measure(struct neap__costs *costs, struct neap_net *net,
	const struct neap_batch *batch, const struct neap_objective *objective, uint64_t memory)
{
	struct neap_sequence *sequences = calloc((size_t)batch->size, sizeof *sequences);
	struct pair pair = {.net = net};
	int rc = NEAP_EINFEASIBLE, begun = 0;

	costs->call = 0;
	if (!sequences)
		return neap__fail_errno(ENOMEM, "a batch of %d samples", batch->size);
	memory = memory < MEMORY ? memory : MEMORY;
	for (int steps = steps_of(costs); rc == NEAP_EINFEASIBLE && steps >= STEPS_LEAST &&
					  costs->record + costs->backward < LONG;
		steps /= 2) {
		pair.cut = neap__batch_cut(batch, sequences, steps);
		if (pair.cut.steps < STEPS_LEAST)
			break;
		rc = neap_net_begin(net, &pair.cut, objective);
		begun = rc == 0;
		if (rc == 0)
			rc = make(&pair.ranges, &pair, costs, "standard", memory);
		if (rc == 0)
			rc = make(&pair.single, &pair, costs, "revolve", memory);
		if (begun) {
			int ended = neap_net_end(net);
			rc = rc < 0 ? rc : ended;
		}
		if (rc == 0)
			rc = measure(costs, &pair, objective);
		neap_sweep_free(pair.ranges);
		neap_sweep_free(pair.single);
		pair.ranges = pair.single = NULL;
	}
	free(sequences);
	return rc == NEAP_EINFEASIBLE ? 0 : rc;
}

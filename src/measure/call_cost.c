/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_cost.c: compares a sweep that calls the net step by step with a sweep that calls it for
 * ranges. The overhead of a call shows in a sweep only: threads were idle before it, another
 * thread copied the state, and spike lists are read again. The sweeps run in turns, because
 * the pace of a machine changes by more than this overhead; the median counts.
 */
#include "measure/call_cost.h"
#include "measure/batch_sampling.h"
#include "store/tier_cost.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { PAIRS = 9, STEPS_MOST = 512, STEPS_LEAST = 16 };
#define SECONDS 0.05 /* of a sweep, about */
#define LONG 2e-3    /* seconds a step, compared with which a call does not count */

struct sweep_pair {
	struct neap_net *net;
	struct neap_batch cut;
	struct neap_sweep *ranges, *single;
};

static int make(struct neap_sweep **sweep, const struct sweep_pair *pair,
	const struct neap__costs *costs, const char *strategy, uint64_t memory)
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
	if (ops.tape_bytes < ops.tape_max_bytes) /* tapes vary, and none may overflow */
		ops.tape_bytes = ops.tape_max_bytes - 1;
	if (strategy[0] == 's') /* `standard`: half of the steps are passed twice */
		so.params.chunk = (so.steps + 1) / 2;
	return neap_sweep_create(sweep, &ops, pair->net, &so);
}

/* Seconds of a sweep without its copies and stalls. */
static double work(const struct neap_sweep_stats *stats)
{
	return stats->seconds - stats->copies - stats->stall;
}

/* Seconds that the copies of a sweep take at the costs given. */
static double planned_copies(const struct neap_sweep *sweep, const struct neap__costs *costs)
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

/* Seconds a call, by one pair of sweeps. */
static double call_seconds(
	const struct neap_sweep_stats *ranges, const struct neap_sweep_stats *single)
{
	int64_t calls = single->advance_calls + single->record_calls + single->backward_calls;
	double steps =
		ranges->advance / (double)ranges->advance_steps * (double)single->advance_steps +
		ranges->record / (double)ranges->record_steps * (double)single->record_steps +
		ranges->backward / (double)ranges->backward_steps * (double)single->backward_steps;
	return (work(single) - steps) / (double)calls;
}

static int run(struct sweep_pair *pair, struct neap_sweep *sweep,
	const struct neap_objective *objective, struct neap_sweep_stats *stats)
{
	double loss;

	NEAP_TRY(neap_net_begin(pair->net, &pair->cut, objective));
	int rc = neap_sweep_touch(sweep);
	if (rc == 0)
		rc = neap_sweep_run(sweep, NULL, NULL, &loss, stats);
	neap_sweep_release(sweep); /* one arena at a time */
	int ended = neap_net_end(pair->net);
	return rc < 0 ? rc : ended;
}

/* The first pair warms up. */
static int measure(
	struct neap__costs *costs, struct sweep_pair *pair, const struct neap_objective *objective)
{
	double calls[PAIRS], copies[PAIRS], planned = planned_copies(pair->single, costs);
	struct neap_sweep_stats ranges = {.size = sizeof ranges}, single = {.size = sizeof single};
	int n = 0;

	for (int i = 0; i <= PAIRS; i++) {
		NEAP_TRY(run(pair, pair->ranges, objective, &ranges));
		NEAP_TRY(run(pair, pair->single, objective, &single));
		if (i == 0 || ranges.overflows > 0 || single.overflows > 0 ||
			ranges.advance_steps == 0)
			continue;
		calls[n] = call_seconds(&ranges, &single);
		copies[n++] = single.copies;
	}
	if (n == 0)
		return 0;
	costs->call = fmax(neap__timing_of(calls, n).median, 0);
	if (planned > 0) {
		double times = neap__timing_of(copies, n).median / planned;
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
	struct sweep_pair pair = {.net = net};
	int rc = NEAP_EINFEASIBLE, begun = 0;

	costs->call = 0;
	if (!sequences)
		return neap__fail_errno(ENOMEM, "a batch of %d samples", batch->size);
	memory = memory < NEAP__MEASURE_MOST ? memory : NEAP__MEASURE_MOST;
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/comparison.h"

/* All that the processors do takes `pace` times as long; what the tiers do does not. */
static void take_turn(struct neap_problem *problem, const struct neap__pace_now *turn)
{
	struct neap_chain *c = &problem->chain;

	c->advance = turn->costs.advance;
	c->record = turn->costs.record;
	c->backward = turn->costs.backward;
	c->replay *= turn->pace;
	c->call *= turn->pace;
	c->slot_write = turn->pace * turn->costs.slot_write;
	c->slot_read = turn->pace * turn->costs.slot_read;
	for (int i = 0; i < problem->ntiers; i++) {
		problem->tiers[i].cpu *= turn->pace;
		problem->tiers[i].cpu_fixed *= turn->pace;
	}
}

double neap__comparison_predicted(const struct neap_sweep *sweep, const struct neap__pace_now *turn)
{
	struct neap_problem problem = *neap_sweep_problem(sweep);
	const struct neap_plan *plan = neap_sweep_plan(sweep);
	struct neap_simulation simulation = {.size = sizeof simulation};
	struct neap_schedule *schedule;

	if (neap_schedule_open(&schedule, &problem, plan) < 0)
		return plan->makespan * turn->pace;
	take_turn(&problem, turn);
	int rc = neap_simulate(&simulation, &problem, schedule);
	neap_schedule_close(schedule);
	return rc < 0 ? plan->makespan * turn->pace : simulation.makespan;
}

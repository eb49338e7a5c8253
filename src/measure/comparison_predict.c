/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_predict.c: simulates a plan at the costs of one moment. */
#include "measure/comparison.h"

/* The pace scales copies and calls, the work of processors; transfers of tiers keep their seconds.
 */
static void take_turn(struct neap_problem *problem, const struct neap__pace_now *now)
{
	struct neap_chain *c = &problem->chain;

	c->advance = now->costs.advance;
	c->record = now->costs.record;
	c->backward = now->costs.backward;
	c->replay *= now->pace;
	c->call *= now->pace;
	c->slot_write = now->pace * now->costs.slot_write;
	c->slot_read = now->pace * now->costs.slot_read;
	for (int i = 0; i < problem->ntiers; i++) {
		problem->tiers[i].cpu *= now->pace;
		problem->tiers[i].cpu_fixed *= now->pace;
	}
}

double neap__comparison_predict(const struct neap_sweep *sweep, const struct neap__pace_now *now)
{
	struct neap_problem problem = *neap_sweep_problem(sweep);
	const struct neap_plan *plan = neap_sweep_plan(sweep);
	struct neap_simulation simulation = {.size = sizeof simulation};
	struct neap_schedule *schedule;

	if (neap_schedule_open(&schedule, &problem, plan) < 0)
		return plan->makespan * now->pace;
	take_turn(&problem, now);
	int rc = neap_simulate(&simulation, &problem, schedule);
	neap_schedule_close(schedule);
	return rc < 0 ? plan->makespan * now->pace : simulation.makespan;
}

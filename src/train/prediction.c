/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comparison.h"

/* All that the processors do takes `pace` times as long; what the tiers do does not. */
static void slow_down(struct neap_problem *problem, double pace)
{
	struct neap_chain *c = &problem->chain;
	double *const costs[] = {&c->advance, &c->record, &c->backward, &c->replay, &c->slot_write,
		&c->slot_read, &c->call};

	for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++)
		*costs[i] *= pace;
	for (int i = 0; i < problem->ntiers; i++) {
		problem->tiers[i].cpu *= pace;
		problem->tiers[i].cpu_fixed *= pace;
	}
}

double neap__comparison_predicted(
	const struct neap__comparison *c, const struct neap_sweep *sweep, double pace)
{
	struct neap_problem problem = *neap_sweep_problem(sweep);
	const struct neap_plan *plan = neap_sweep_plan(sweep);
	struct neap_simulation simulation;
	struct neap_schedule *schedule;

	if (neap_schedule_open(&schedule, &problem, plan) < 0)
		return plan->makespan * pace;
	problem.chain.slot_write = c->costs.slot_write;
	problem.chain.slot_read = c->costs.slot_read;
	slow_down(&problem, pace);
	int rc = neap_simulate(&simulation, &problem, schedule);
	neap_schedule_close(schedule);
	return rc < 0 ? plan->makespan * pace : simulation.makespan;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comparison.h"

double neap__comparison_predicted(const struct neap__comparison *c, const struct neap_sweep *sweep)
{
	struct neap_problem problem = *neap_sweep_problem(sweep);
	const struct neap_plan *plan = neap_sweep_plan(sweep);
	struct neap_simulation simulation;
	struct neap_schedule *schedule;

	if (neap_schedule_open(&schedule, &problem, plan) < 0)
		return plan->makespan;
	problem.chain.slot_write = c->costs.slot_write;
	problem.chain.slot_read = c->costs.slot_read;
	int rc = neap_simulate(&simulation, &problem, schedule);
	neap_schedule_close(schedule);
	return rc < 0 ? plan->makespan : simulation.makespan;
}

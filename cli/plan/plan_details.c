/* SPDX-License-Identifier: Apache-2.0 */
/* plan_details.c: one plan in full, as lines of text. */
#include "plan_command.h"

#include <inttypes.h>
#include <string.h>

static void print_tier(const struct neap_problem *p, const struct neap_tier_spec *spec,
	const struct neap_tier_use *use)
{
	char peak[24], written[24], read[24], room[NEAP__PLAIN_TEXT];
	const char *name = neap__plain_text(room, spec->name);
	if (use->written == 0 && use->read == 0) {
		printf("tier          %s: not used\n", name);
		return;
	}
	printf("tier          %s: peak %s, written %s, read %s\n", name,
		cli_show_room(peak, p, use->peak_bytes), cli_show_room(written, p, use->written),
		cli_show_room(read, p, use->read));
}

static void print_memory(const struct neap_problem *p, const struct neap_plan *plan)
{
	char peak[24], budget[24];
	int classic = (p->chain.flags & NEAP_CHAIN_CLASSIC) != 0;
	printf("peak          %s of %s%s\n", cli_show_room(peak, p, plan->peak_bytes),
		p->memory == NEAP_INFINITE ? "no limit" : cli_show_room(budget, p, p->memory),
		classic ? " slots" : "");
	for (int i = 0; i < p->ntiers; i++)
		print_tier(p, &p->tiers[i], &plan->tiers[i]);
}

static void print_time(const struct neap_problem *p, const struct neap_plan *plan)
{
	char time[24], stall[24], percent[24];
	double steps = (double)p->chain.steps + (double)p->chain.join;
	double estimate = neap_estimate(p, plan->bound);
	printf("forward       %" PRId64 " steps without tape, %" PRId64 " with",
		plan->advance_steps, plan->record_steps);
	if (steps > 0)
		printf(": %.3g per step of the chain",
			(double)(plan->advance_steps + plan->record_steps) / steps);
	printf("\nmakespan      %s, %s of it waiting for transfers",
		neap__show_time(time, plan->makespan), neap__show_time(stall, plan->stall));
	if (plan->lost > 0)
		printf(", %s computing slowed by them", neap__show_time(stall, plan->lost));
	printf("\n");
	if (plan->overhead < -0.0005) /* logs, where the costs of making tapes are high */
		printf("overhead      none: %s less time than storing everything\n",
			cli_show_percent(percent, -plan->overhead));
	else
		printf("overhead      %s over storing everything\n",
			cli_show_percent(percent, plan->overhead));
	printf("bound         %s: no schedule is faster; gap %s\n",
		neap__show_time(time, plan->bound), cli_show_percent(percent, plan->gap));
	if (estimate > plan->bound)
		printf("estimate      %s: expected minimum, not proved; gap %s\n",
			neap__show_time(time, estimate),
			cli_show_percent(percent, plan->makespan / estimate - 1));
	if (plan->model_bound > 0)
		printf("model bound   %s: no schedule of its own model is faster; gap %s\n",
			neap__show_time(time, plan->model_bound),
			cli_show_percent(percent, plan->makespan / plan->model_bound - 1));
}

int cli_plan_details(const struct neap_problem *p, const struct neap_plan *plan)
{
	char params[160], least[24];
	const char *about = neap_strategy_about(plan->strategy);
	int classic = (p->chain.flags & NEAP_CHAIN_CLASSIC) != 0;
	printf("strategy      %s%s%s\n", plan->strategy, about ? ": " : "", about ? about : "");
	if (!plan->feasible) {
		printf("infeasible    %s%s\n", plan->why, cli_why_hint(plan->why));
		if (plan->least_bytes)
			printf("least         %s%s; increase --%s\n",
				cli_show_least(least, p, plan->least_bytes),
				classic ? " slots" : "", classic ? "slots" : "memory");
		return cli_finish("plan");
	}
	if (strcmp(plan->chosen, plan->strategy) != 0)
		printf("chosen        %s: %s\n", plan->chosen,
			neap_strategy_about(plan->chosen) ? neap_strategy_about(plan->chosen) : "");
	if (plan->actions)
		printf("schedule      a list of %" PRId64 " actions\n", plan->action_count);
	if (cli_show_params(params, &plan->params)[0])
		printf("parameters    %s\n", params);
	print_memory(p, plan);
	print_time(p, plan);
	return cli_finish("plan");
}

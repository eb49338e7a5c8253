/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_table.c: a table of the plans of one problem, the fastest first. Each row but the fastest
 * says why its plan is slower; infeasible plans come last, with the budget that they need.
 */
#include "plan_command.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { WHY = 160 /* bytes */ };

const char *cli_show_percent(char room[24], double ratio)
{
	if (!isfinite(ratio))
		snprintf(room, 24, "-");
	else if (ratio < -0.0005) /* more than rounding */
		snprintf(room, 24, "faster");
	else
		snprintf(room, 24, fabs(ratio) < 100 ? "%.1f%%" : "%.0f%%", 100 * fabs(ratio));
	return room;
}

const char *cli_show_room(char room[24], const struct neap_problem *problem, uint64_t bytes)
{
	if (problem->chain.flags & NEAP_CHAIN_CLASSIC)
		snprintf(room, 24, "%" PRIu64, bytes);
	else
		neap__show_size(room, bytes);
	return room;
}

const char *cli_show_least(char room[24], const struct neap_problem *problem, uint64_t bytes)
{
	if (problem->chain.flags & NEAP_CHAIN_CLASSIC)
		return cli_show_room(room, problem, bytes);
	return neap__show_least(room, bytes);
}

/* Forward steps, with tape or without, for each step of the chain. */
static double forward(const struct neap_problem *p, const struct neap_plan *plan)
{
	double steps = (double)p->chain.steps + (double)p->chain.join;
	return steps > 0 ? (double)(plan->advance_steps + plan->record_steps) / steps : 0;
}

/*
 * Below 0 where row a comes before row b: feasible before infeasible, fast before slow, and of
 * infeasible ones the least budget first, without a known budget last.
 */
static int compare(const struct neap_plan *a, const struct neap_plan *b)
{
	if (a->feasible != b->feasible)
		return b->feasible - a->feasible;
	if (a->feasible)
		return (a->makespan > b->makespan * (1 + 1e-12)) -
		       (b->makespan > a->makespan * (1 + 1e-12));
	if (!a->least_bytes != !b->least_bytes)
		return !a->least_bytes - !b->least_bytes;
	return (a->least_bytes > b->least_bytes) - (a->least_bytes < b->least_bytes);
}

/* An insertion sort: equal rows stay in the order of strategies, auto before them. */
static void sort(const struct neap_plan **rows, const struct cli_plans *plans)
{
	for (int i = 0; i < plans->count; i++) {
		const struct neap_plan *plan = &plans->plan[i];
		int to = i;
		int first = (neap_strategy_traits(plan->strategy) & NEAP_STRATEGY_CHOOSES) != 0;
		for (; to > 0 && compare(plan, rows[to - 1]) < first; to--)
			rows[to] = rows[to - 1];
		rows[to] = plan;
	}
}

/* The tier that the plan waits for: its own, or the tier with the most bytes moved. */
static const char *waited_for(const struct neap_problem *p, const struct neap_plan *plan)
{
	int best = 0;
	for (int i = 1; i < p->ntiers; i++)
		if (plan->tiers[i].written + plan->tiers[i].read >
			plan->tiers[best].written + plan->tiers[best].read)
			best = i;
	return plan->tier > 0 ? p->tiers[plan->tier - 1].name : p->tiers[best].name;
}

static void why_slower(char room[WHY], const struct neap_problem *p, const struct neap_plan *plan,
	const struct neap_plan *best)
{
	char slower[24];
	double more = plan->makespan - best->makespan, stall = plan->stall - best->stall;
	double again = forward(p, plan) - forward(p, best);
	double lost = plan->lost - best->lost;
	double steps = (double)p->chain.steps + (double)p->chain.join;
	if (more <= 0.0005 * best->makespan) {
		snprintf(room, WHY, "as fast");
		return;
	}
	size_t n = (size_t)snprintf(room, WHY, "%s slower: ",
		cli_show_percent(slower, best->makespan > 0 ? more / best->makespan : INFINITY));
	if (p->ntiers > 0 && stall > 0.5 * more)
		snprintf(room + n, WHY - n, "waits for %.16s %.0f%%", waited_for(p, plan),
			100 * plan->stall / plan->makespan);
	else if (lost > 0.5 * more)
		snprintf(room + n, WHY - n, "loses %.0f%% to transfers",
			100 * plan->lost / plan->makespan);
	else if (again > 0)
		snprintf(
			room + n, WHY - n, "recomputes %.2gx", (double)plan->advance_steps / steps);
	else
		snprintf(room + n, WHY - n, "copies states");
}

const char *cli_why_hint(const char *why)
{
	static const struct {
		const char *begin, *hint;
	} hints[] = {{"needs a slow tier", ": add --tier"}, {"needs a log", ": add --log BYTES"},
		{"needs bytes", ": pass --memory, --state and --tape, not --slots"},
		{"needs a uniform chain", ": the steps of --chain differ"},
		{"needs steps that differ", "; --chain FILE can list them"},
		{"needs two chains", ": --steps 500,300 is two"}};

	for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
		if (strncmp(why, hints[i].begin, strlen(hints[i].begin)) == 0)
			return hints[i].hint;
	return "";
}

static void why_not(char room[WHY], const struct neap_problem *p, const struct neap_plan *plan,
	const struct neap_plan *best)
{
	char least[24];
	int classic = (p->chain.flags & NEAP_CHAIN_CLASSIC) != 0;
	if (plan->feasible)
		why_slower(room, p, plan, best);
	else if (plan->least_bytes)
		snprintf(room, WHY, "needs %s%s", cli_show_least(least, p, plan->least_bytes),
			classic ? " slots" : "");
	else
		snprintf(room, WHY, "%.80s%s", plan->why, cli_why_hint(plan->why));
}

static void print_row(const struct neap_problem *p, const struct neap_plan *plan,
	const struct neap_plan *best, int chosen)
{
	char peak[24], slow[24], time[24], over[24], gap[24], why[WHY];
	if (chosen)
		cli_show_params(why, &plan->params);
	else
		why_not(why, p, plan, best);
	if (!plan->feasible) {
		printf("  %-13s %s\n", plan->strategy, why);
		return;
	}
	printf("%s %-13s %9s %9s %7.2f %9s %9s %8s%s%s\n", chosen ? "*" : " ", plan->strategy,
		cli_show_room(peak, p, plan->peak_bytes),
		plan->slow_bytes ? cli_show_room(slow, p, plan->slow_bytes) : "-", forward(p, plan),
		neap__show_time(time, plan->makespan), cli_show_percent(over, plan->overhead),
		cli_show_percent(gap, plan->gap), why[0] ? "  " : "", why);
}

int cli_plans_table(const struct cli_plans *plans)
{
	const struct neap_plan *rows[CLI_PLANS_MAX];
	const struct neap_problem *p = plans->problem;
	char time[24];
	sort(rows, plans);
	const struct neap_plan *best = rows[0];
	double estimate = neap_estimate(p, best->bound);
	printf("  %-13s %9s %9s %7s %9s %9s %8s  %s\n", "strategy",
		p->chain.flags & NEAP_CHAIN_CLASSIC ? "slots" : "peak", "slow", "forward",
		"makespan", "overhead", "gap", "why not");
	for (int i = 0; i < plans->count; i++)
		print_row(p, rows[i], best,
			best->feasible &&
				(rows[i] == best || strcmp(rows[i]->strategy, best->chosen) == 0));
	printf("\n");
	if (best->feasible)
		printf("* fastest; forward: forward steps per step of the chain\n");
	printf("bound: no schedule is faster than %s\n", neap__show_time(time, best->bound));
	if (estimate > best->bound)
		printf("estimate: the expected minimum, not proved, is %s\n",
			neap__show_time(time, estimate));
	return cli_finish("plan");
}

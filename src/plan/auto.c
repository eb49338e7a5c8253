/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auto: the fastest feasible strategy, by predicted makespan; ties go to the
 * earlier row of the table. Never worse than any of them by construction.
 */
#include <string.h>
#include "base/fail.h"
#include "strategy.h"

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	const char *name = plan->strategy;
	uint64_t least = 0;
	int found = 0;
	for (int i = 0; neap__strategies[i]; i++) {
		struct neap_plan trial;
		if (neap__strategies[i] == &neap__auto)
			continue;
		NEAP_TRY(neap__plan_row(&trial, neap__strategies[i], problem, fixed));
		if (trial.feasible && (!found || trial.makespan < plan->makespan * (1 - 1e-12))) {
			*plan = trial;
			found = 1;
		}
		if (!trial.feasible && trial.least_bytes && (!least || trial.least_bytes < least))
			least = trial.least_bytes;
	}
	plan->strategy = name;
	if (!found) {
		int classic = (problem->chain.flags & NEAP_CHAIN_CLASSIC) != 0;
		neap__refuse(plan, least,
			least ? "no strategy fits %llu %s"
			      : "no strategy solves this problem (budget %llu %s)",
			(unsigned long long)problem->memory, classic ? "slots" : "bytes");
	}
	return 0;
}

const struct neap__strategy neap__auto = {
	"auto", "the fastest feasible of all strategies, by simulation", solve, NULL};

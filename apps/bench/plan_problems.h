/* SPDX-License-Identifier: Apache-2.0 */
/* plan_problems.h: the problems that the planner's benchmark plans. */
#ifndef NEAP_BENCH_PLAN_PROBLEMS_H
#define NEAP_BENCH_PLAN_PROBLEMS_H

#include <neap/plan.h>

struct neap__plan_problem {
	const char *name; /* a few words: what makes it hard or usual */
	struct neap_problem problem;
};

/* T = 10^6, usual and adversarial ones; count in *n. */
const struct neap__plan_problem *neap__million_problems(int *n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_problem.c: what is done with a problem that came through parsing. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#define STEPS_WALKED 300  /* schedules are walked up to so many steps */
#define STAGES_PLANNED 40 /* stages that are planned: the tables are cubic */
#define STEPS_PROVED 30	  /* h-revolve proves its plan the best, which takes its time */

/* Equal but for the order of sums. */
static int near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b)) + 1e-12;
}

void fuzz_schedule(const struct neap_problem *p, const struct neap_plan *plan)
{
	struct neap_schedule *s;
	struct neap_verdict v = {.size = sizeof v};
	struct neap_simulation m = {.size = sizeof m};
	int rc = neap_schedule_open(&s, p, plan);
	FUZZ_CHECK(rc == 0, "%s: open: %s", plan->chosen, neap_detail());
	rc = neap_verify(&v, p, s);
	neap_schedule_close(s);
	FUZZ_CHECK(rc == 0, "%s: verify: %s", plan->chosen, neap_detail());
	FUZZ_CHECK(v.peak_bytes <= plan->peak_bytes && v.arena_bytes <= plan->arena_bytes,
		"%s: peak %llu, planned %llu", plan->chosen, (unsigned long long)v.peak_bytes,
		(unsigned long long)plan->peak_bytes);
	FUZZ_CHECK(v.advance_steps == plan->advance_steps && v.record_steps == plan->record_steps,
		"%s: %lld advance %lld record, planned %lld %lld", plan->chosen,
		(long long)v.advance_steps, (long long)v.record_steps,
		(long long)plan->advance_steps, (long long)plan->record_steps);
	FUZZ_CHECK(neap_schedule_open(&s, p, plan) == 0, "%s", neap_detail());
	rc = neap_simulate(&m, p, s);
	neap_schedule_close(s);
	FUZZ_CHECK(rc == 0, "%s: simulate: %s", plan->chosen, neap_detail());
	FUZZ_CHECK(near(m.makespan, plan->makespan), "%s: makespan %.17g, planned %.17g",
		plan->chosen, m.makespan, plan->makespan);
}

static void check_plan(
	const struct neap_problem *p, const struct neap_plan *plan, double bound, int walk)
{
	if (!plan->feasible) {
		FUZZ_CHECK(plan->why[0], "%s: infeasible without a reason", plan->strategy);
		return;
	}
	FUZZ_CHECK(plan->arena_bytes <= p->memory || p->chain.steps == 0, "%s: %llu bytes of %llu",
		plan->chosen, (unsigned long long)plan->arena_bytes, (unsigned long long)p->memory);
	FUZZ_CHECK(isfinite(plan->makespan) && plan->makespan >= bound * (1 - 1e-9),
		"%s: makespan %.17g, bound %.17g", plan->chosen, plan->makespan, bound);
	if (walk && p->chain.steps > 0 && !p->chain.join) /* join has no actions */
		fuzz_schedule(p, plan);
}

void fuzz_plan(const struct neap_problem *p, const struct neap_params *given, uint64_t seed)
{
	struct neap_params params = *given;
	struct neap_plan plan = {.size = sizeof plan};
	int64_t steps = p->chain.steps + p->chain.join;
	int count = 0;
	if (neap_problem_check(p) < 0) {
		FUZZ_CHECK(neap_detail()[0], "a problem refused without a line");
		return;
	}
	while (neap_strategy_name(count))
		count++;
	const char *name = neap_strategy_name((int)(seed % (uint64_t)count));
	/* Where steps differ most strategies only say so. */
	static const char *const unequal[] = {"chain", "pofo", "auto"};
	if (p->chain.stages && seed >> 8 & 7)
		name = unequal[(seed >> 8 & 7) % 3];
	int tables = strstr("auto h-revolve disk-revolve", name) != NULL;
	int64_t most = p->chain.stages ? STAGES_PLANNED : tables ? STEPS_PROVED : STEPS_WALKED;
	if (steps > most && (tables || p->chain.stages || seed >> 12 & 7))
		return; /* long chains now and then, and by closed forms */
	params.effort = 1 + (int64_t)(seed >> 16 & 15);
	double bound = neap_bound(p);
	FUZZ_CHECK(bound >= 0 && isfinite(bound), "bound %g", bound);
	int rc = neap_plan_make(&plan, p, name, &params);
	FUZZ_CHECK(rc == 0, "%s: %s", name, neap_detail());
	check_plan(p, &plan, bound, steps <= STEPS_WALKED);
}

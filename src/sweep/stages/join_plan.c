/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_plan.c: the strategy `join` for branches of stages. It plans in slots, each for one state
 * of any size; how many slots fit the budget is found by trying, since what a plan takes in bytes
 * shows only in its program.
 */
#include "sweep/stages/join_sweep.h"
#include "base/fail.h"

/* The plan in so many slots, and its program. */
static int plan_with(struct neap_stage_sweep *s, int64_t slots)
{
	const struct neap__stage_layout *layout = &s->layout;
	struct neap_problem classic = NEAP_PROBLEM_INIT;
	struct neap_schedule *schedule;
	classic.chain.steps = neap__layout_end(layout, 0);
	classic.chain.join = neap__layout_end(layout, 1) - layout->start[1];
	classic.chain.flags = NEAP_CHAIN_CLASSIC;
	classic.chain.state = 1;
	classic.memory = (uint64_t)slots;
	neap__stage_program_free(&s->program);
	s->program = (struct neap__stage_program){0};
	s->plan = (struct neap_plan){.size = sizeof s->plan};
	NEAP_TRY(neap_plan_make(&s->plan, &classic, "join", NULL));
	if (!s->plan.feasible)
		return neap__fail(NEAP_EINFEASIBLE, "two branches: %s", s->plan.why);
	NEAP_TRY(neap_schedule_open(&schedule, &classic, &s->plan));
	int rc = neap__stage_walk(&s->program, &s->problem, layout, schedule);
	neap_schedule_close(schedule);
	return rc;
}

/* What the calls take by the stages' seconds. */
static double seconds_of(const struct neap_stage_sweep *s)
{
	const struct neap__stage_program *p = &s->program;
	const struct neap_stages *stages = &s->stages;
	double sum = 0;
	for (int64_t k = 0; k < p->ncalls; k++) {
		int64_t i = p->calls[k].i;
		switch (p->calls[k].kind) {
		case NEAP_ADVANCE:
			sum += stages->advance[i];
			break;
		case NEAP_RECORD:
			sum += neap__stage_record(stages, i);
			break;
		case NEAP_TURN:
		case NEAP_BACKWARD:
			sum += stages->backward[i];
			break;
		default:
			break;
		}
	}
	return sum;
}

/* The most slots in [4, most] whose program fits the budget. */
static int most_slots(struct neap_stage_sweep *s, int64_t most, int64_t *slots)
{
	int64_t low = 4, high = most;
	NEAP_TRY(plan_with(s, 4));
	if (s->program.peak > s->problem.memory)
		return neap__fail(NEAP_EINFEASIBLE,
			"a budget of %llu bytes does not hold 4 states and a tape of two branches. "
			"Use at least %llu bytes",
			(unsigned long long)s->problem.memory, (unsigned long long)s->program.peak);
	while (low < high) {
		int64_t middle = high - (high - low) / 2;
		NEAP_TRY(plan_with(s, middle));
		if (s->program.peak <= s->problem.memory)
			low = middle;
		else
			high = middle - 1;
	}
	*slots = low;
	return 0;
}

int neap__join_plan(struct neap_stage_sweep *s)
{
	int64_t states = s->problem.chain.steps + 1, asked = s->options.params.checkpoints,
		slots = 4;
	int64_t most = states > 4 ? states : 4;
	if (asked > 0)
		slots = asked < most ? asked : most;
	else
		NEAP_TRY(most_slots(s, most, &slots));
	NEAP_TRY(plan_with(s, slots));
	s->plan.makespan = seconds_of(s);
	s->plan.peak_bytes = s->plan.arena_bytes = s->program.peak;
	return 0;
}

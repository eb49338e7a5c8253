/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_fallback.c: finishes a sweep whose plan cannot go on, since a tier lost what there is no
 * room to make again beside what the plan keeps. All is dropped but the gradient; the stages that
 * are left are planned anew for fast memory alone (strategy `chain`), from x_0. There is no room
 * for that only where the budget is below what a plan without tiers needs.
 */
#include "sweep/stages/stage_journal.h"
#include "sweep/trace/trace_ring.h"
#include "base/checked.h"
#include "base/fail.h"
#include "plan/core/stage_sizes.h"
#include "sys/clock.h"
#include "base/debug_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stage_rest {
	struct neap_problem problem; /* of the stages that are left */
	struct neap_stages stages;
	struct neap__stage_layout layout;
	uint64_t *backward_tmp; /* with that of another turn */
	struct neap__stage_program program;
	int64_t *ends;
	uint64_t *now;
	struct neap__stage_interval *taken;
	unsigned char *given; /* gradients of branches that have turned, aside from all arenas */
	uint64_t given_bytes;
	void *pages;
	uint64_t mapped;
};

/* The branches up to x_left, which is the end of the last one. */
static void cut(struct stage_rest *rest, int64_t left)
{
	struct neap__stage_layout *layout = &rest->layout;
	layout->branches = neap__layout_branch(layout, left) + 1;
	layout->start[layout->branches] = left + 1;
	neap__layout_hold(layout, &rest->problem.chain);
}

static uint64_t end_gradient(const struct stage_rest *rest, int branch)
{
	return (uint64_t)neap__stage_gradient(
		&rest->problem.chain, neap__layout_end(&rest->layout, branch));
}

/* Keeps the gradients that the turn of the rest gives. */
static void keep_gradients(struct stage_rest *rest, const struct stage_run *r)
{
	unsigned char *to = rest->given;
	int last = rest->layout.branches - 1;
	for (int k = 0; k <= last; k++) {
		uint64_t from = k < last ? r->now[r->program->end_gradient[k]] : r->gradient;
		neap__memory_read(&r->s->memory, to, r->base + from, end_gradient(rest, k));
		to += end_gradient(rest, k);
	}
}

/* r->fallen is 0: the plan is given up now; else it was, before the journal's commit. */
static int describe(struct stage_rest *rest, const struct stage_run *r)
{
	const struct neap_stage_sweep *s = r->s;
	int64_t n = s->problem.chain.steps, adjoint = r->fallen ? r->fallen - 1 : r->adjoint,
		left = adjoint > n ? n : adjoint;
	rest->problem = s->problem;
	rest->stages = s->stages;
	rest->layout = s->layout;
	rest->problem.ntiers = 0;
	rest->problem.chain.stages = &rest->stages;
	rest->problem.chain.steps = left;
	if (adjoint > n)
		return 0;
	cut(rest, left);
	for (int k = 0; k < rest->layout.branches; k++)
		rest->given_bytes += end_gradient(rest, k);
	rest->backward_tmp = malloc((size_t)(left + 1) * sizeof *rest->backward_tmp);
	rest->given = malloc(rest->given_bytes + 1);
	if (!rest->backward_tmp || !rest->given)
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	memcpy(rest->backward_tmp, s->stages.backward_tmp,
		(size_t)left * sizeof *rest->backward_tmp);
	rest->backward_tmp[left] = rest->layout.turn_held;
	rest->stages.backward_tmp = rest->backward_tmp;
	if (!r->fallen)
		keep_gradients(rest, r);
	return 0;
}

static int make_plan(void *user, struct neap_plan *plan)
{
	const struct neap_problem *p = user;
	plan->size = sizeof *plan;
	NEAP_TRY(neap_plan_make(plan, p, "chain", NULL));
	if (!plan->feasible)
		return neap__fail(NEAP_EINFEASIBLE,
			"slow memory lost data that the sweep needs, and a budget of %llu bytes is "
			"too small to continue without it. Use at least %llu bytes",
			(unsigned long long)p->memory, (unsigned long long)plan->least_bytes);
	return 0;
}

/* The calls of a plan for fast memory alone. */
static int make_calls(struct stage_rest *rest, struct neap__agree_state *a)
{
	struct neap_problem *p = &rest->problem;
	struct neap_plan plan = {.size = sizeof plan};
	struct neap_saved *saved = NULL;
	struct neap_schedule *schedule;
	int rc = neap__agrees(a) ? neap__agree_plan(a, p, make_plan, p, &saved)
				 : make_plan(p, &plan);

	if (rc == 0)
		rc = neap_schedule_open(
			&schedule, saved ? saved->problem : p, saved ? saved->plan : &plan);
	if (rc == 0) {
		rc = neap__stage_walk(&rest->program, p, &rest->layout, schedule);
		neap_schedule_close(schedule);
	}
	neap_saved_free(saved);
	return rc;
}

/*
 * The calls, and places for their buffers. As in join_sweep.c, the plan does not count what is laid
 * aside while an earlier branch is passed again: where the budget is exceeded so, the plan gets
 * that much less of it.
 */
static int make_program(struct stage_rest *rest, struct neap__agree_state *a)
{
	struct neap_problem *p = &rest->problem;
	const struct neap__stage_layout *layout = &rest->layout;
	uint64_t budget = neap__sat_add(p->memory, layout->spare) & ~(uint64_t)63;

	NEAP_TRY(make_calls(rest, a));
	if (rest->program.peak > budget && layout->branches > 1 && layout->spare == 0) {
		uint64_t held = layout->held[layout->branches - 1];
		p->memory = p->memory > held + 64 ? p->memory - held : 64;
		neap__stage_program_free(&rest->program);
		rest->program = (struct neap__stage_program){0};
		NEAP_TRY(make_calls(rest, a));
	}
	if (rest->program.peak > budget)
		return neap__fail(NEAP_EINFEASIBLE,
			"slow memory lost data that the sweep needs, and a budget of %llu bytes is "
			"too small to continue without it. Use at least %llu bytes",
			(unsigned long long)budget, (unsigned long long)rest->program.peak);
	int rc = neap__stage_place(&rest->program, budget);
	NEAP_TRY(rc ? rc : neap__stage_move(&rest->program, budget));
	rest->now = calloc((size_t)rest->program.nbuffers, sizeof *rest->now);
	rest->taken = calloc((size_t)rest->program.nbuffers + 8, sizeof *rest->taken);
	if (!rest->now || !rest->taken)
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	return neap__stage_sort_ends(&rest->program, &rest->ends);
}

/* The arena of the rest takes the place of the sweep's, which must not be there meanwhile. */
static int map(struct stage_rest *rest, struct neap_stage_sweep *s)
{
	uint64_t arena = s->staging_bytes + s->program.arena;
	rest->mapped = neap__round_up(rest->program.arena, 4096);
	rest->mapped = rest->mapped ? rest->mapped : 4096;
	neap__stage_unmap(s);
	NEAP_TRY(neap__memory_map(&s->memory, &rest->pages, rest->mapped, rest->mapped));
	if (rest->program.arena > arena)
		s->stats.arena_bytes = rest->program.arena;
	if (s->poison)
		neap__memory_fill(&s->memory, rest->pages, NEAP__POISON, rest->mapped);
	return 0;
}

/* From x_0 on; what was passed before is not passed first. */
static int restart(struct stage_run *run)
{
	const struct neap_stage_sweep *s = run->s;
	run->fallen = run->adjoint + 1;
	run->adjoint = s->problem.chain.steps + 1;
	run->next = run->call = run->entered = run->left = 0;
	run->bytes = run->gradient = 0;
	return 0;
}

static int finish(struct stage_rest *rest, struct stage_run *r)
{
	struct neap_stage_sweep *s = r->s;
	struct neap__agree_state *a = &s->agreement;
	double now = neap__seconds();
	NEAP_TRY(neap__agree_code(a, NEAP__AGREE_FALLBACK, describe(rest, r)));
	uint64_t *memory = &rest->problem.memory;
	*memory -= rest->given_bytes < *memory ? rest->given_bytes : *memory;
	*memory &= ~(uint64_t)63;
	NEAP_TRY(neap__agree_code(a, NEAP__AGREE_FALLBACK, make_program(rest, a)));
	neap__debug("slow memory lost too much: the remaining stages are planned without it");
	neap__trace_add(s->options.trace,
		&(struct neap__event){.start = now, .end = now, .kind = NEAP__EVENT_REPLAN});
	NEAP_TRY(neap__agree_code(a, NEAP__AGREE_FALLBACK, map(rest, s)));
	struct stage_run run = *r;
	run.program = &rest->program;
	run.base = rest->pages;
	run.ends = rest->ends;
	run.now = rest->now;
	run.taken = rest->taken;
	run.layout = &rest->layout;
	run.given = rest->given;
	run.given_bytes = rest->given_bytes;
	int rc = r->fallen ? neap__stage_commit_load(&run) : restart(&run);
	NEAP_TRY(neap__agree_code(a, NEAP__AGREE_FALLBACK, rc));
	return neap__stage_perform(&run);
}

int neap__stage_finish_without_tiers(struct stage_run *r)
{
	struct stage_rest rest = {0};
	int rc = finish(&rest, r);
	neap__fence_wait(&r->s->memory.fence); /* before the unmap, also of a failed rest */
	neap__stage_program_free(&rest.program);
	neap__memory_unmap(&r->s->memory, rest.pages, rest.mapped);
	free(rest.ends);
	free(rest.now);
	free(rest.taken);
	free(rest.backward_tmp);
	free(rest.given);
	return rc;
}

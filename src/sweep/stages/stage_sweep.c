/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_sweep.c: makes a sweep over a chain of stages: the plan, its calls, and the place of
 * every buffer. Sizes are rounded up to 64 bytes, so that every buffer is aligned and the peak
 * of the plan is that of the run.
 */
#include "sweep/stages/stage_sweep.h"
#include "sweep/log_plan.h"
#include "sweep/infeasible.h"
#include "sweep/stages/join_sweep.h"
#include "sweep/stages/stage_journal.h"
#include "sweep/steps/model_checks.h"
#include "sweep/sweep_options.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "store/tier_state.h"
#include "sys/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHRINKS 4 /* chosen: attempts at a plan that uses most of a tier */

static int check(const struct neap_stage_ops *ops, const struct neap_sweep_options *o)
{
	if (!ops->advance || !ops->record || !ops->turn || !ops->backward)
		return neap__fail(NEAP_EUSAGE,
			"neap_stage_ops: advance, record, turn and backward are required");
	NEAP_TRY(neap__check_real("neap_stage_ops", ops->adjoint_real, ops->adjoint_bytes));
	NEAP_TRY(neap__sweep_options_check(o));
	if (o->ntiers < 0 || o->ntiers > NEAP_TIERS_MAX || (o->ntiers > 0 && !o->tiers))
		return neap__fail(NEAP_EUSAGE, "neap_sweep_options: %d tiers", o->ntiers);
	return 0;
}

static uint64_t *copy_bytes(uint64_t **to, const uint64_t *from, int64_t n)
{
	uint64_t *copy = *to;
	for (int64_t i = 0; i < n; i++)
		copy[i] = from ? neap__round_up(from[i], 64) : 0;
	*to += n;
	return copy;
}

static double *copy_seconds(double **to, const double *from, int64_t n)
{
	double *copy = memcpy(*to, from, (size_t)n * sizeof *copy);
	*to += n;
	return copy;
}

static int copy_stages(struct neap_stage_sweep *s, const struct neap_stages *from)
{
	int64_t n = s->problem.chain.steps;
	const uint64_t *record_tmp = from->record_tmp ? from->record_tmp : from->advance_tmp;
	double *seconds = malloc((size_t)(n + 1) * (3 * sizeof(double) + 6 * sizeof(uint64_t)));
	if (!seconds)
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	s->numbers = seconds;
	for (int k = 0; k < s->layout.branches; k++) {
		size_t adjoint = s->ops.adjoint_bytes;
		s->x0_bytes[k] = from->state[s->layout.start[k]];
		s->dx0_bytes[k] = adjoint ? adjoint : s->x0_bytes[k];
	}
	s->stages = (struct neap_stages){.flags = from->flags};
	s->stages.advance = copy_seconds(&seconds, from->advance, n);
	s->stages.record = copy_seconds(&seconds, from->record ? from->record : from->advance, n);
	s->stages.backward = copy_seconds(&seconds, from->backward, n + 1);
	uint64_t *bytes = (uint64_t *)seconds;
	s->stages.state = copy_bytes(&bytes, from->state, n + 1);
	s->stages.tape = copy_bytes(&bytes, from->tape, n);
	s->stages.advance_tmp = copy_bytes(&bytes, from->advance_tmp, n);
	s->stages.record_tmp = copy_bytes(&bytes, record_tmp, n);
	s->stages.backward_tmp = copy_bytes(&bytes, from->backward_tmp, n + 1);
	s->exact = memcpy(bytes, from->state, (size_t)(n + 1) * sizeof *bytes);
	s->problem.chain.stages = &s->stages;
	s->problem.chain.adjoint = neap__round_up(s->ops.adjoint_bytes, 64);
	return neap_problem_check(&s->problem);
}

static int describe(struct neap_stage_sweep *s, const struct neap_stages *stages)
{
	s->problem = (struct neap_problem)NEAP_PROBLEM_INIT;
	s->problem.chain.steps = s->options.steps;
	s->problem.chain.stages = stages;
	s->problem.chain.adjoint = s->ops.adjoint_bytes;
	s->problem.memory = s->options.memory ? s->options.memory : NEAP_INFINITE;
	NEAP_TRY(neap_problem_check(&s->problem));
	if (s->layout.branches == 0)
		s->layout = (struct neap__stage_layout){
			.branches = 1, .start = {0, s->options.steps + 1}};
	NEAP_TRY(copy_stages(s, stages));
	uint64_t spare = s->layout.spare;
	s->problem.memory = s->problem.memory > spare + 64 ? s->problem.memory - spare : 64;
	NEAP_TRY(neap__tiers_take(s->tiers, s->options.tiers, s->options.ntiers, 0, s->ops.memory));
	return neap__stage_tiers_describe(s);
}

static int make_plan(void *user, struct neap_plan *plan)
{
	const struct neap_stage_sweep *s = user;
	const char *strategy = s->options.strategy ? s->options.strategy : "auto";
	plan->size = sizeof *plan;
	NEAP_TRY(neap_plan_make(plan, &s->problem, strategy, &s->options.params));
	if (plan->least_bytes)
		plan->least_bytes += s->layout.spare;
	return neap__refuse_plan(plan, s->options.memory);
}

static int open_saved(struct neap_stage_sweep *s, struct neap_schedule **schedule)
{
	int rc = neap__stage_saved_plan(s, schedule);
	if (!neap__agrees(&s->agreement))
		return rc;
	const struct neap_saved *saved = s->options.saved;
	const struct neap__agree_row row = {
		"the saved plan", rc < 0 ? 0 : neap__agree_plan_hash(saved->plan, saved->problem)};
	int all = neap__agree_same(&s->agreement, NEAP__AGREE_PLAN, rc, &row, 1);
	if (all < 0 && rc == 0)
		neap_schedule_close(*schedule);
	return all;
}

static int open_plan(struct neap_stage_sweep *s, struct neap_schedule **schedule)
{
	if (s->options.saved)
		return open_saved(s, schedule);
	if (!neap__agrees(&s->agreement)) {
		NEAP_TRY(make_plan(s, &s->plan));
		return neap_schedule_open(schedule, &s->problem, &s->plan);
	}
	NEAP_TRY(neap__agree_plan(&s->agreement, &s->problem, make_plan, s, &s->agreed_plan));
	s->plan = *s->agreed_plan->plan;
	return neap_schedule_open(schedule, s->agreed_plan->problem, &s->plan);
}

static int plan(struct neap_stage_sweep *s)
{
	struct neap_schedule *schedule;
	if (s->layout.interleaved)
		return neap__join_plan(s);
	NEAP_TRY(open_plan(s, &schedule));
	int rc = neap__stage_walk(&s->program, &s->problem, &s->layout, schedule);
	neap_schedule_close(schedule);
	return rc;
}

/*
 * The planner counts bytes of a tier, but records of different sizes leave gaps between them, and
 * padding is counted as an average. If the places that a plan needs exceed a tier, plans again with
 * less of it. Ranks count padding at its most instead, since they must agree on one plan.
 */
static int plan_in_capacity(struct neap_stage_sweep *s)
{
	NEAP_TRY(plan(s));
	if (neap__agrees(&s->agreement) || s->options.saved)
		return 0;
	for (int i = 0;; i++) { /* from SHRINKS on each round takes a tier out of the plan */
		NEAP_TRY(neap__stage_tiers_reserve(s));
		if (!neap__stage_tiers_shrink(s, i >= SHRINKS))
			return 0;
		neap__stage_program_free(&s->program);
		s->program = (struct neap__stage_program){0};
		NEAP_TRY(plan(s));
	}
}

/*
 * Plans. The error of a plan that does not fit contains a budget that fits if a tier holds
 * as many bytes as its capacity; with gaps between records it may hold fewer. Such budgets are
 * tried, and the error contains the first one that has a plan.
 */
static int plan_or_name_budget(struct neap_stage_sweep *s)
{
	int rc = plan_in_capacity(s);
	struct neap_plan refused = s->plan;
	if (rc != NEAP_EINFEASIBLE || s->problem.ntiers == 0 || refused.least_bytes == 0 ||
		neap__agrees(&s->agreement))
		return rc;
	do {
		refused.least_bytes = s->plan.least_bytes;
		s->problem.memory = refused.least_bytes - s->layout.spare;
		NEAP_TRY(neap__stage_tiers_describe(s));
		rc = plan_in_capacity(s);
	} while (rc == NEAP_EINFEASIBLE && s->plan.least_bytes > refused.least_bytes);
	return rc < 0 && rc != NEAP_EINFEASIBLE ? rc
						: neap__refuse_plan(&refused, s->options.memory);
}

static int place(struct neap_stage_sweep *s)
{
	NEAP_TRY(neap__stage_tiers_reserve(s));
	if (s->options.saved && s->options.saved != s->journal.base.plan)
		NEAP_TRY(neap__stage_saved_plan_fits(s));
	uint64_t most = neap__sat_add(s->problem.memory, s->layout.spare) & ~(uint64_t)63;
	uint64_t staging = s->staging_bytes;
	uint64_t budget = most > staging ? most - staging : 0;
	/* The plan does not count what is laid aside while states travel, nor x_0 of no steps. */
	s->schedule_peak = s->plan.peak_bytes;
	if (s->program.peak + staging > s->plan.peak_bytes)
		s->plan.peak_bytes = s->program.peak + staging;
	if (s->program.peak > budget) /* no steps: the plan counts nothing */
		return neap__fail(NEAP_EINFEASIBLE,
			"a budget of %llu bytes does not hold what the plan keeps. Use at least "
			"%llu bytes",
			(unsigned long long)s->problem.memory,
			(unsigned long long)(s->program.peak + staging));
	if (s->moving)
		return neap__stage_move(&s->program, s->program.peak);
	int rc = neap__stage_place(&s->program, budget);
	return rc ? rc : neap__stage_move(&s->program, budget);
}

/* The tables that a run uses. */
static int make_tables(struct neap_stage_sweep *s)
{
	const struct neap__stage_program *p = &s->program;
	if (s->options.check)
		NEAP_TRY(neap__state_hashes_init(&s->hashes, s->problem.chain.steps + 1));
	s->poison |= s->options.check != 0;
	s->now = calloc((size_t)p->nbuffers, sizeof *s->now);
	s->taken = calloc((size_t)p->nbuffers + 8, sizeof *s->taken);
	s->flights = calloc((size_t)p->nflights + 1, sizeof *s->flights);
	s->spans = calloc((size_t)p->nparts + 1, sizeof *s->spans);
	s->lost = calloc((size_t)p->nrecords + 1, sizeof *s->lost);
	if (!s->now || !s->taken || !s->flights || !s->spans || !s->lost)
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	return neap__stage_sort_ends(p, &s->ends);
}

/* Checks and describes; nothing here is the same on all ranks yet. */
static int describe_all(struct neap_stage_sweep *s, const struct neap_stages *stages)
{
	NEAP_TRY(check(&s->ops, &s->options));
	NEAP_TRY(neap__memory_init(&s->memory, s->ops.memory, s->ops.fence, s->user));
	if (s->ops.memory) /* the caller's struct may be gone later */
		s->ops.memory = &s->memory.ops;
	neap__sweep_options_own(&s->options);
	return describe(s, stages);
}

/* Of ranks: refuses sweeps that are not the same; then all have the same problem. */
static int agree_on_sweep(struct neap_stage_sweep *s, int rc)
{
	struct neap__agree_state *a = &s->agreement;
	const struct neap_sweep_options *o = &s->options;
	const struct neap__agree_row rows[] = {
		{"steps", (uint64_t)o->steps},
		{"adjoint_bytes", s->ops.adjoint_bytes},
		{"the number of slow tiers", (uint64_t)o->ntiers},
		{"having a journal", o->journal != NULL},
		{"having a saved plan", o->saved != NULL},
		{"check", o->check != 0},
		{"the strategy", neap__agree_hash_name(o->strategy)},
		{"the parameters of the plan", neap__agree_hash(&o->params, sizeof o->params)},
		{"the bytes of the stages", rc < 0 ? 0 : neap__stage_sizes_hash(s) >> 2},
	};
	int64_t n = s->problem.chain.steps;
	NEAP_TRY(neap__agree_same(
		a, NEAP__AGREE_OPTIONS, rc, rows, (int)(sizeof rows / sizeof rows[0])));
	NEAP_TRY(neap__agree_list(a, (double *)(uintptr_t)s->stages.advance, n));
	NEAP_TRY(neap__agree_list(a, (double *)(uintptr_t)s->stages.record, n));
	NEAP_TRY(neap__agree_list(a, (double *)(uintptr_t)s->stages.backward, n + 1));
	return neap__agree_problem(a, 0, &s->problem);
}

/* The arena and the calls are the same on all ranks; the places on their tiers need not be. */
static int agree_on_program(struct neap_stage_sweep *s, int rc)
{
	const struct neap__agree_row rows[] = {
		{"the arena", s->staging_bytes + s->program.arena},
		{"the calls", rc < 0 ? 0 : neap__stage_calls_hash(s) >> 2},
	};
	return neap__agree_same(&s->agreement, NEAP__AGREE_CREATED, rc, rows, 2);
}

static int finish_tables(struct neap_stage_sweep *s)
{
	NEAP_TRY(place(s));
	if (!s->ops.memory)
		NEAP_TRY(neap__refuse_arena(
			neap__sat_add(s->staging_bytes, s->program.arena), s->plan.strategy));
	return make_tables(s);
}

static int prepare(struct neap_stage_sweep *s, const struct neap_stage_ops *ops,
	const struct neap_stages *stages, const struct neap_sweep_options *options)
{
	NEAP_TRY(neap__struct_take(&s->ops, sizeof s->ops, ops, "neap_stage_ops"));
	NEAP_TRY(neap__struct_take(&s->options, sizeof s->options, options, "neap_sweep_options"));
	neap__agree_take(&s->agreement, &s->options);
	int rc = describe_all(s, stages);
	NEAP_TRY(neap__agrees(&s->agreement) ? agree_on_sweep(s, rc) : rc);
	NEAP_TRY(neap__stage_journal_attach(s));
	double start = neap__seconds();
	NEAP_TRY(neap__agree_code(&s->agreement, NEAP__AGREE_PLAN, plan_or_name_budget(s)));
	neap__log_plan(&s->problem, &s->plan, s->tiers, neap__seconds() - start);
	neap__stage_journal_budget(s);
	rc = finish_tables(s);
	return neap__agrees(&s->agreement) ? agree_on_program(s, rc) : rc;
}

int neap__stage_sweep_make(struct neap_stage_sweep **sweep, const struct neap_stage_ops *ops,
	void *user, const struct neap_stages *stages, const struct neap_sweep_options *options,
	const struct neap__stage_layout *layout, const struct neap_join_sweep *join, int moving)
{
	struct neap_stage_sweep *s = calloc(1, sizeof *s);
	if (!s)
		return neap__fail_errno(ENOMEM, "sweep");
	s->user = user;
	s->moving = moving;
	s->join = join;
	if (layout)
		s->layout = *layout;
	int rc = prepare(s, ops, stages, options);
	if (rc < 0) {
		neap_stage_sweep_free(s);
		return rc;
	}
	*sweep = s;
	return 0;
}

int neap_stage_sweep_create(struct neap_stage_sweep **sweep, const struct neap_stage_ops *ops,
	void *user, const struct neap_stages *stages, const struct neap_sweep_options *options)
{
	NEAP_NEED(sweep, ops, stages, options);
	return neap__stage_sweep_make(sweep, ops, user, stages, options, NULL, NULL, 0);
}

int neap__stage_sweep_create_moving(struct neap_stage_sweep **sweep,
	const struct neap_stage_ops *ops, void *user, const struct neap_stages *stages,
	const struct neap_sweep_options *options)
{
	return neap__stage_sweep_make(sweep, ops, user, stages, options, NULL, NULL, 1);
}

void neap_stage_sweep_free(struct neap_stage_sweep *s)
{
	if (!s || neap__gate_enter(&s->gate, __func__, "sweep") < 0)
		return;
	neap__stage_journal_detach(s);
	neap__stage_unmap(s);
	neap__memory_fini(&s->memory);
	neap__tiers_drop(s->tiers, NEAP_TIERS_MAX);
	neap__stage_program_free(&s->program);
	neap_saved_free(s->agreed_plan);
	free(s->numbers);
	free(s->ends);
	free(s->now);
	free(s->taken);
	free(s->flights);
	free(s->spans);
	free(s->lost);
	neap__state_hashes_free(&s->hashes);
	free(s);
}

const struct neap_plan *neap_stage_sweep_plan(const struct neap_stage_sweep *s)
{
	if (!s)
		return NULL;
	return &s->plan;
}

const struct neap_problem *neap_stage_sweep_problem(const struct neap_stage_sweep *s)
{
	if (!s)
		return NULL;
	return &s->problem;
}

void neap__stage_sweep_poison(struct neap_stage_sweep *s, int on)
{
	s->poison = on;
}

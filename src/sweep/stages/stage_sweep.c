/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_sweep.c: makes a sweep over a chain of stages: the plan, its calls, and the place of
 * every buffer. Sizes are rounded up to 64 bytes, so that every buffer is aligned and the peak
 * of the plan is that of the run.
 */
#include "sweep/stages/stage_journal.h"
#include "sweep/stages/join_sweep.h"
#include "sweep/infeasible.h"
#include "sweep/sweep.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "sys/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int check(const struct neap_stage_ops *ops, const struct neap_sweep_options *o)
{
	if (!ops->advance || !ops->record || !ops->turn || !ops->backward)
		return neap__fail(NEAP_EUSAGE,
			"neap_stage_ops: advance, record, turn and backward are required");
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
	double *seconds = malloc((size_t)(n + 1) * (3 * sizeof(double) + 5 * sizeof(uint64_t)));
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
	return neap__stage_tiers_describe(s);
}

static int make_plan(struct neap_stage_sweep *s, struct neap_schedule **schedule)
{
	const char *strategy = s->options.strategy ? s->options.strategy : "auto";
	s->plan.size = sizeof s->plan;
	NEAP_TRY(neap_plan_make(&s->plan, &s->problem, strategy, &s->options.params));
	if (s->plan.least_bytes)
		s->plan.least_bytes += s->layout.spare;
	NEAP_TRY(neap__refuse_plan(&s->plan, s->options.memory));
	return neap_schedule_open(schedule, &s->problem, &s->plan);
}

static int plan(struct neap_stage_sweep *s)
{
	struct neap_schedule *schedule;
	if (s->layout.interleaved)
		return neap__join_plan(s);
	NEAP_TRY(s->options.saved ? neap__stage_saved_plan(s, &schedule) : make_plan(s, &schedule));
	int rc = neap__stage_walk(&s->program, &s->problem, &s->layout, schedule);
	neap_schedule_close(schedule);
	return rc;
}

static int place(struct neap_stage_sweep *s)
{
	NEAP_TRY(neap__stage_tiers_reserve(s));
	if (s->options.saved && s->options.saved != s->journal.plan)
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
			"%llu bytes do not hold what the plan keeps: %llu bytes would do",
			(unsigned long long)s->problem.memory,
			(unsigned long long)(s->program.peak + staging));
	if (s->moving)
		return neap__stage_move(&s->program, s->program.peak);
	int rc = neap__stage_place(&s->program, budget);
	return rc ? rc : neap__stage_move(&s->program, budget);
}

static int by_end(const void *a, const void *b, void *buffers)
{
	const struct neap__stage_buffer *rows = buffers;
	int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
	if (rows[i].to != rows[j].to)
		return rows[i].to < rows[j].to ? -1 : 1;
	return i < j ? -1 : i > j;
}

int neap__stage_sort_ends(const struct neap__stage_program *p, int64_t **ends)
{
	*ends = malloc((size_t)p->nbuffers * sizeof **ends);
	if (!*ends)
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	for (int64_t i = 0; i < p->nbuffers; i++)
		(*ends)[i] = i;
	qsort_r(*ends, (size_t)p->nbuffers, sizeof **ends, by_end, p->buffers);
	return 0;
}

/* The tables that a run uses. */
static int make_tables(struct neap_stage_sweep *s)
{
	const struct neap__stage_program *p = &s->program;
	s->now = calloc((size_t)p->nbuffers, sizeof *s->now);
	s->taken = calloc((size_t)p->nbuffers + 8, sizeof *s->taken);
	s->flights = calloc((size_t)p->nflights + 1, sizeof *s->flights);
	s->spans = calloc((size_t)p->nparts + 1, sizeof *s->spans);
	s->lost = calloc((size_t)p->nrecords + 1, sizeof *s->lost);
	if (!s->now || !s->taken || !s->flights || !s->spans || !s->lost)
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	return neap__stage_sort_ends(p, &s->ends);
}

static int prepare(struct neap_stage_sweep *s, const struct neap_stage_ops *ops,
	const struct neap_stages *stages, const struct neap_sweep_options *options)
{
	NEAP_TRY(neap__struct_take(&s->ops, sizeof s->ops, ops, "neap_stage_ops"));
	NEAP_TRY(neap__struct_take(&s->options, sizeof s->options, options, "neap_sweep_options"));
	NEAP_TRY(check(&s->ops, &s->options));
	neap__sweep_options_own(&s->options);
	NEAP_TRY(describe(s, stages));
	NEAP_TRY(neap__stage_journal_attach(s));
	NEAP_TRY(plan(s));
	neap__stage_journal_budget(s);
	NEAP_TRY(place(s));
	return make_tables(s);
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

void neap__stage_unmap(struct neap_stage_sweep *s)
{
	uint64_t stays = 0;
	if (!s->mapping)
		return;
	for (int i = 0; i < s->problem.ntiers; i++)
		if (s->units[i] && neap_tier_holds_staging(s->tiers[i]))
			stays = s->staging[i] + s->problem.tiers[i].staging;
	stays = neap__round_up(stays, 4096);
	if (stays < s->mapped)
		neap__unmap_pages(s->mapping + stays, s->mapped - stays);
	s->mapping = s->base = NULL;
	s->mapped = 0;
}

void neap_stage_sweep_free(struct neap_stage_sweep *s)
{
	if (!s)
		return;
	neap__stage_journal_detach(s);
	neap__stage_unmap(s);
	neap__stage_program_free(&s->program);
	free(s->numbers);
	free(s->ends);
	free(s->now);
	free(s->taken);
	free(s->flights);
	free(s->spans);
	free(s->lost);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* stage_run.c: the life of a run of a stage program: maps the arena, formats tiers, resumes, and
 * ends. */
#include "sweep/stages/stage_journal.h"
#include "sweep/trace/trace_ring.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "store/tier_state.h"
#include "sys/clock.h"
#include "sys/memory.h"

#include <stdatomic.h>
#include <string.h>

/* Maps staging and arena, in one piece. */
static int map_arena(struct neap_stage_sweep *s, struct neap__populate **populate)
{
	static atomic_uint_least64_t mappings;
	void *pages;
	uint64_t whole = neap__round_up(s->staging_bytes + s->program.arena, 4096);
	whole = whole ? whole : 4096;
	if (s->mapping)
		return 0;
	NEAP_TRY(neap__memory_map(&s->memory, &pages, whole, whole));
	s->mapping = pages;
	s->base = s->mapping + s->staging_bytes;
	s->mapped = whole;
	s->mapping_number = atomic_fetch_add_explicit(&mappings, 1, memory_order_relaxed);
	if (!neap__memory_is_foreign(&s->memory))
		*populate = neap__populate_start(pages, s->mapped);
	return 0;
}

static void begin(struct neap_stage_sweep *s)
{
	static atomic_uint_least64_t generations; /* tags tell the records of sweeps apart */
	s->generation = atomic_fetch_add_explicit(&generations, 1, memory_order_relaxed);
	s->stats = (struct neap_sweep_stats){
		.size = sizeof(struct neap_sweep_stats),
		.arena_bytes = s->staging_bytes + s->program.arena,
		.peak_planned = s->plan.peak_bytes,
		.predicted = s->plan.makespan,
		.predicted_stall = s->plan.stall,
		.predicted_lost = s->plan.lost,
	};
	memset(s->flights, 0, (size_t)s->program.nflights * sizeof *s->flights);
	memset(s->lost, 0, (size_t)s->program.nrecords);
	neap__state_hashes_reset(&s->hashes);
	neap__memory_begin_run(&s->memory);
	if (s->poison)
		neap__memory_fill(&s->memory, s->base, NEAP__POISON, s->mapped - s->staging_bytes);
}

/* What the calls took by the plan's costs; PUTs and GETs beside them. */
static double planned_compute(const struct neap_stage_sweep *s)
{
	return s->plan.makespan - s->plan.stall;
}

/* Performs the program, or what the journal says is left of it. */
static int run(struct stage_run *r)
{
	struct neap_stage_sweep *s = r->s;
	const struct neap__stage_program *p = &s->program;
	int resumes = neap__stage_journal_start(r);
	NEAP_TRY(resumes);
	if (r->fallen)
		return neap__stage_finish_without_tiers(r);
	if (resumes)
		NEAP_TRY(neap__agree_code(
			&s->agreement, NEAP__AGREE_JOURNAL, neap__stage_commit_load(r)));
	int rc = neap__stage_perform(r);
	rc = neap__memory_end_run(&s->memory, rc);
	if (rc < 0)
		rc = neap__agree_end(&s->agreement, rc);
	neap__stage_drain(r);
	if (rc == 0)
		rc = neap__stage_untouched(r, p->arena, s->mapped - s->staging_bytes - p->arena);
	return rc > 0 ? neap__stage_finish_without_tiers(r) : rc;
}

/* Maps the arena and formats the tiers. */
static int get_ready(struct neap_stage_sweep *s, struct neap__populate **populate)
{
	NEAP_TRY(map_arena(s, populate));
	return neap__stage_tiers_format(s);
}

/* The sweep and its tiers are this run's alone; rc: whether they are. */
static int run_alone(
	struct neap_stage_sweep *s, int rc, double *loss, struct neap_sweep_stats *stats)
{
	struct neap__populate *populate = NULL;
	if (rc == 0)
		rc = get_ready(s, &populate);
	rc = neap__agree_code(&s->agreement, NEAP__AGREE_START, rc);
	if (rc < 0) {
		neap__populate_end(populate);
		return rc;
	}
	struct stage_run r = {.s = s,
		.program = &s->program,
		.layout = &s->layout,
		.base = s->base,
		.ends = s->ends,
		.now = s->now,
		.taken = s->taken,
		.loss = loss,
		.adjoint = s->problem.chain.steps + 1};
	double began = neap__seconds();
	begin(s);
	neap__trace_begin(s->options.trace, &s->problem, &s->plan, began);
	rc = run(&r);
	rc = neap__memory_end_run(&s->memory, rc);
	rc = neap__agree_end(&s->agreement, rc);
	s->stats.seconds = neap__seconds() - began;
	neap__stage_journal_end(s, rc);
	neap__populate_end(populate);
	s->stats.slowdown = s->stats.compute - planned_compute(s);
	neap__trace_end(s->options.trace, &s->stats);
	if (stats)
		neap__struct_give(stats, &s->stats, sizeof s->stats);
	return rc;
}

int neap__stage_sweep_run(struct neap_stage_sweep *s, double *loss, struct neap_sweep_stats *stats)
{
	neap__agree_begin_run(&s->agreement);
	int rc = 0;
	if (stats)
		rc = neap__struct_size(
			stats->size, sizeof stats->size, sizeof *stats, "neap_sweep_stats");
	if (rc == 0)
		rc = neap__tiers_claim(s->tiers, s->problem.ntiers, "neap_stage_sweep_run");
	int claimed = rc == 0;
	rc = run_alone(s, rc, loss, stats);
	if (claimed)
		neap__tiers_leave(s->tiers, s->problem.ntiers);
	return rc;
}

int neap_stage_sweep_run(struct neap_stage_sweep *s, const void *x0, void *dx0, double *loss,
	struct neap_sweep_stats *stats)
{
	NEAP_NEED(s);
	NEAP_TRY(neap__gate_enter(&s->gate, __func__, "sweep"));
	s->x0[0] = x0;
	s->dx0[0] = dx0;
	int rc = neap__stage_sweep_run(s, loss, stats);
	neap__gate_leave(&s->gate);
	return rc;
}

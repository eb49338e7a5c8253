/* SPDX-License-Identifier: Apache-2.0 */
/* stage_run.c: runs the calls of a stage program, one after the other, in the arena. */
#include "sweep/stages/stage_journal.h"
#include "sweep/trace/trace_ring.h"
#include "store/tier_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "sys/clock.h"
#include "sys/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xAA /* a byte that no sensible number is made of */

static void *at(const struct stage_run *r, const struct neap__stage_call *call, int role)
{
	return call->at[role] == NEAP__NOTHING ? NULL : r->base + call->at[role];
}

/* With poison: checks that nobody wrote to [from, from + bytes), which was free. */
static int untouched(const struct stage_run *r, uint64_t from, uint64_t bytes)
{
	for (uint64_t k = from; r->s->poison && k < from + bytes; k++)
		if (r->base[k] != POISON)
			return neap__fail(NEAP_EMODEL,
				"byte %llu of the arena was written while it was free",
				(unsigned long long)k);
	return 0;
}

static void poison(const struct stage_run *r, uint64_t from, uint64_t bytes)
{
	if (r->s->poison && bytes)
		memset(r->base + from, POISON, bytes);
}

/* Bytes that a call makes in this role; 0 for a buffer that was there before. */
static uint64_t made(const struct stage_run *r, const struct neap__stage_call *call, int role)
{
	const struct neap_stage_sweep *s = r->s;
	int64_t i = call->i;
	int forward = call->kind == NEAP_ADVANCE || call->kind == NEAP_RECORD;
	if (!forward && call->kind != NEAP_TURN && call->kind != NEAP_BACKWARD)
		return 0;
	if (role == NEAP__Y && forward && call->at[NEAP__Y] != call->at[NEAP__TAPE])
		return s->stages.state[i + 1];
	if (role == NEAP__TAPE && call->kind == NEAP_RECORD)
		return s->stages.tape[i];
	if (role == NEAP__DX && !forward && !neap__layout_link(r->layout, i))
		return (uint64_t)neap__stage_gradient(&s->problem.chain, i);
	if (role == NEAP__TMP)
		return neap__layout_tmp(r->layout, &s->stages, call->kind, i);
	return 0;
}

/* Begins the lives of the buffers of a call. */
static int enter(struct stage_run *r, const struct neap__stage_call *call)
{
	struct neap_stage_sweep *s = r->s;
	const struct neap__stage_program *p = r->program;
	for (; r->entered < p->nbuffers && p->buffers[r->entered].from == r->call; r->entered++) {
		r->bytes += p->buffers[r->entered].bytes;
		r->now[r->entered] = p->buffers[r->entered].offset;
	}
	if (r->bytes + s->staging_bytes > s->stats.peak_measured)
		s->stats.peak_measured = r->bytes + s->staging_bytes;
	for (int role = 0; s->poison && role < NEAP__ROLES; role++)
		if (call->at[role] != NEAP__NOTHING)
			NEAP_TRY(untouched(r, (uint64_t)call->at[role], made(r, call, role)));
	return 0;
}

static void leave(struct stage_run *r)
{
	const struct neap__stage_program *p = r->program;
	const int64_t *ends = r->ends;
	for (; r->left < p->nbuffers && p->buffers[ends[r->left]].to == r->call; r->left++) {
		const struct neap__stage_buffer *b = &p->buffers[ends[r->left]];
		r->bytes -= b->bytes;
		if (r->call < p->buffers[ends[p->nbuffers - 1]].to) /* dx_0 is still wanted */
			poison(r, r->now[ends[r->left]], b->bytes);
	}
}

/* Moves a buffer; the bytes that it leaves become free. */
static int move(struct stage_run *r, const struct neap__stage_call *call)
{
	uint64_t from = (uint64_t)call->at[0], to = (uint64_t)call->at[1];
	uint64_t bytes = r->program->buffers[call->i].bytes;
	uint64_t by = from > to ? from - to : to - from;
	by = by < bytes ? by : bytes;
	NEAP_TRY(untouched(r, from > to ? to : to + bytes - by, by));
	memmove(r->base + to, r->base + from, bytes);
	poison(r, from > to ? from + bytes - by : from, by);
	r->now[call->i] = to;
	if (r->program->buffers[call->i].kind == NEAP__BUFFER_GRADIENT && r->gradient == from)
		r->gradient = to;
	r->s->stats.moved += bytes;
	return 0;
}

/* Counts a call; answers where its seconds go. */
static double *count(struct neap_sweep_stats *stats, int kind)
{
	switch (kind) {
	case NEAP_ADVANCE:
		stats->advance_steps++;
		stats->advance_calls++;
		return &stats->advance;
	case NEAP_RECORD:
		stats->record_steps++;
		stats->record_calls++;
		return &stats->record;
	case NEAP_BACKWARD:
		stats->backward_steps++;
		stats->backward_calls++;
		return &stats->backward;
	default:
		return &stats->backward;
	}
}

static int call_ops(
	struct stage_run *r, int kind, int64_t i, void *const at[NEAP__ROLES], int first)
{
	struct neap_stage_sweep *s = r->s;
	if (kind == NEAP_TURN) {
		int rc = neap__stage_turn(r, at, &s->loss);
		if (r->loss)
			*r->loss = s->loss;
		return rc;
	}
	if (neap__layout_link(r->layout, i)) {
		neap__stage_link(r, kind, i, at);
		return 0;
	}
	if (kind == NEAP_ADVANCE)
		return s->ops.advance(s->user, i, at[NEAP__X], at[NEAP__Y], at[NEAP__TMP], first);
	if (kind == NEAP_RECORD)
		return s->ops.record(
			s->user, i, at[NEAP__X], at[NEAP__Y], at[NEAP__TAPE], at[NEAP__TMP], first);
	return s->ops.backward(
		s->user, i, at[NEAP__X], at[NEAP__TAPE], at[NEAP__DY], at[NEAP__DX], at[NEAP__TMP]);
}

int neap__stage_call_model(
	struct stage_run *r, int kind, int64_t i, void *const at[NEAP__ROLES], int first)
{
	struct neap_stage_sweep *s = r->s;
	static const uint32_t events[] = {[NEAP_ADVANCE] = NEAP__EVENT_ADVANCE,
		[NEAP_RECORD] = NEAP__EVENT_RECORD,
		[NEAP_TURN] = NEAP__EVENT_TURN,
		[NEAP_BACKWARD] = NEAP__EVENT_BACKWARD};
	neap_detail_set(NULL);
	double start = neap__seconds();
	int rc = call_ops(r, kind, i, at, first);
	double end = neap__seconds();
	*count(&s->stats, kind) += end - start;
	s->stats.compute += end - start;
	neap__trace_add(s->options.trace, &(struct neap__event){.start = start,
						  .end = end,
						  .t0 = i,
						  .t1 = kind == NEAP_TURN ? i : i + 1,
						  .kind = events[kind]});
	if (rc > 0)
		return neap__fail(NEAP_EMODEL, "the model's %s of stage %lld answered %d",
			neap_action_name(kind), (long long)i, rc);
	if (rc < 0 || kind > NEAP_RECORD || neap__layout_link(r->layout, i))
		return rc;
	if (!s->hashes.rows)
		return 0;
	int branch = neap__layout_branch(r->layout, i);
	return neap__stage_say_branch(r, branch,
		neap__check_state(&s->hashes, at[NEAP__Y], s->exact[i + 1], neap_action_name(kind),
			i + 1, i + 1 - r->layout->start[branch]));
}

static int call_model(struct stage_run *r, const struct neap__stage_call *call)
{
	void *pointers[NEAP__ROLES];
	for (int role = 0; role < NEAP__ROLES; role++)
		pointers[role] = at(r, call, role);
	int first = call->first && call->i >= r->passed;
	r->s->stats.recomputed +=
		r->fallen && (call->kind == NEAP_ADVANCE || call->kind == NEAP_RECORD);
	NEAP_TRY(neap__stage_call_model(r, call->kind, call->i, pointers, first));
	if (call->kind == NEAP_TURN || call->kind == NEAP_BACKWARD) {
		r->adjoint = call->i;
		r->gradient = (uint64_t)call->at[NEAP__DX];
	} else if (first) {
		r->passed = call->i + 1;
	}
	return neap__stage_branch_done(r, call);
}

static int perform(struct stage_run *r, const struct neap__stage_call *call)
{
	switch (call->kind) {
	case NEAP_PUT:
	case NEAP_GET:
		return neap__stage_issue(r, call->i);
	case NEAP_WAIT:
		return neap__stage_wait(r, call->i);
	case NEAP__ORIGIN:
		neap__stage_origin(r, (int)call->i, at(r, call, NEAP__Y));
		return 0;
	default:
		return call_model(r, call);
	}
}

static int by_offset(const void *a, const void *b)
{
	const struct neap__stage_interval *x = a, *y = b;
	return x->from < y->from ? -1 : x->from > y->from;
}

int64_t neap__stage_list_taken(struct stage_run *r)
{
	const struct neap__stage_program *p = r->program;
	int64_t n = 0;
	for (int64_t b = 0; b < r->entered; b++)
		if (p->buffers[b].to >= r->call && p->buffers[b].bytes)
			r->taken[n++] = (struct neap__stage_interval){
				r->now[b], r->now[b] + p->buffers[b].bytes};
	qsort(r->taken, (size_t)n, sizeof *r->taken, by_offset);
	return n;
}

/* Of ranks: all come here after the same work. */
static int poll(struct stage_run *r)
{
	struct neap_stage_sweep *s = r->s;
	const struct neap_sweep_options *o = &s->options;
	struct neap__agree_state *a = &s->agreement;
	int64_t work = s->stats.advance_steps + s->stats.record_steps + s->stats.backward_steps;
	a->asked |= o->interrupted && o->interrupted(o->interrupted_user);
	NEAP_TRY(neap__agree_poll(a, work, neap__stage_commit_is_due(r), o->journal_seconds < 0));
	if (a->interrupted)
		a->known = NEAP_EINTERRUPTED;
	return a->interrupted;
}

static int interrupted(struct stage_run *r)
{
	const struct neap_sweep_options *o = &r->s->options;
	if (neap__agrees(&r->s->agreement))
		return poll(r);
	return o->interrupted && o->interrupted(o->interrupted_user);
}

int neap__stage_perform(struct stage_run *r)
{
	int rc = 0;
	for (; r->next < r->program->ncalls && rc == 0; r->next++) {
		const struct neap__stage_call *call = &r->program->calls[r->next];
		if (call->kind == NEAP__MOVE) {
			NEAP_TRY(move(r, call));
			continue;
		}
		if (call->kind == NEAP__END_EARLY) {
			neap__stage_end_flight(r, call->i, NEAP_STALL_ROOM);
			continue;
		}
		int ends = interrupted(r);
		NEAP_TRY(ends);
		if (ends) {
			neap__stage_commit_now(r);
			return neap__fail(NEAP_EINTERRUPTED, "the sweep was interrupted");
		}
		neap__stage_commit_if_due(r);
		NEAP_TRY(enter(r, call));
		rc = perform(r, call);
		NEAP_TRY(rc);
		leave(r);
		r->call++;
	}
	return rc;
}

/* Maps staging and arena, in one piece. */
static int map_arena(struct neap_stage_sweep *s, struct neap__populate **populate)
{
	static atomic_uint_least64_t mappings;
	void *pages;
	uint64_t whole = neap__round_up(s->staging_bytes + s->program.arena, 4096);
	whole = whole ? whole : 4096;
	if (s->mapping)
		return 0;
	NEAP_TRY(neap__map_pages(&pages, whole));
	s->mapping = pages;
	s->base = s->mapping + s->staging_bytes;
	s->mapped = whole;
	s->mapping_number = atomic_fetch_add_explicit(&mappings, 1, memory_order_relaxed);
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
	if (s->poison)
		memset(s->base, POISON, s->mapped - s->staging_bytes);
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
	if (rc < 0)
		rc = neap__agree_end(&s->agreement, rc);
	neap__stage_drain(r);
	if (rc == 0)
		rc = untouched(r, p->arena, s->mapped - s->staging_bytes - p->arena);
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
	rc = neap__agree_end(&s->agreement, run(&r));
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

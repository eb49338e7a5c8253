/* SPDX-License-Identifier: Apache-2.0 */
/* stage_calls.c: calls the model's stages, with the lives of the buffers that they use. */
#include "sweep/stages/stage_sweep.h"
#include "sweep/trace/trace_ring.h"
#include "base/fail.h"
#include "sys/clock.h"

#include <stdlib.h>

void *neap__stage_at(const struct stage_run *r, const struct neap__stage_call *call, int role)
{
	return call->at[role] == NEAP__NOTHING ? NULL : r->base + call->at[role];
}

/* With poison: checks that nobody wrote to [from, from + bytes), which was free. */
int neap__stage_untouched(const struct stage_run *r, uint64_t from, uint64_t bytes)
{
	uint64_t k = bytes;
	if (r->s->poison)
		k = neap__memory_unpoisoned(&r->s->memory, r->base + from, bytes);
	if (k == bytes)
		return 0;
	return neap__fail(NEAP_EMODEL, "byte %llu of the arena was written while it was free",
		(unsigned long long)(from + k));
}

static void poison(const struct stage_run *r, uint64_t from, uint64_t bytes)
{
	if (r->s->poison && bytes)
		neap__memory_fill(&r->s->memory, r->base + from, NEAP__POISON, bytes);
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
int neap__stage_enter(struct stage_run *r, const struct neap__stage_call *call)
{
	struct neap_stage_sweep *s = r->s;
	const struct neap__stage_program *p = r->program;
	for (; r->entered < p->nbuffers && p->buffers[r->entered].from == r->call; r->entered++) {
		r->bytes += p->buffers[r->entered].bytes;
		r->now[r->entered] = p->buffers[r->entered].offset;
	}
	/* What finishes without tiers has an arena without staging. */
	uint64_t bytes = r->bytes + (r->fallen ? 0 : s->staging_bytes);
	if (bytes > s->stats.peak_measured)
		s->stats.peak_measured = bytes;
	for (int role = 0; s->poison && role < NEAP__ROLES; role++)
		if (call->at[role] != NEAP__NOTHING)
			NEAP_TRY(neap__stage_untouched(
				r, (uint64_t)call->at[role], made(r, call, role)));
	return 0;
}

void neap__stage_leave(struct stage_run *r)
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
int neap__stage_move_buffer(struct stage_run *r, const struct neap__stage_call *call)
{
	uint64_t from = (uint64_t)call->at[0], to = (uint64_t)call->at[1];
	uint64_t bytes = r->program->buffers[call->i].bytes;
	uint64_t by = from > to ? from - to : to - from;
	by = by < bytes ? by : bytes;
	NEAP_TRY(neap__stage_untouched(r, from > to ? to : to + bytes - by, by));
	neap__memory_move(&r->s->memory, r->base + to, r->base + from, bytes);
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

/* Seconds that the plan counts with for stage i. */
static double planned_seconds(const struct neap_stage_sweep *s, int kind, int64_t i)
{
	const struct neap_stages *stages = &s->stages;
	if (kind == NEAP_BACKWARD)
		return stages->backward[i];
	return kind == NEAP_RECORD && stages->record ? stages->record[i] : stages->advance[i];
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
	struct neap__fence *fence = &s->memory.fence;
	double *seconds = count(&s->stats, kind);
	int early = kind != NEAP_TURN && !neap__layout_link(r->layout, i);
	if (!early)
		neap__fence_wait(fence);
	NEAP_TRY(neap__memory_answer(&s->memory));
	neap__fence_before(fence, seconds);
	neap_detail_set(NULL);
	double start = neap__seconds();
	int rc = call_ops(r, kind, i, at, first);
	double end = neap__seconds();
	if (early)
		neap__fence_after(
			fence, &s->stats, s->options.trace, seconds, planned_seconds(s, kind, i));
	*seconds += end - start;
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
		neap__check_state(&s->hashes, &s->memory, at[NEAP__Y], s->exact[i + 1],
			neap_action_name(kind), i + 1, i + 1 - r->layout->start[branch]));
}

int neap__stage_perform_call(struct stage_run *r, const struct neap__stage_call *call)
{
	void *pointers[NEAP__ROLES];
	for (int role = 0; role < NEAP__ROLES; role++)
		pointers[role] = neap__stage_at(r, call, role);
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

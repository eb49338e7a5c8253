/* SPDX-License-Identifier: Apache-2.0 */
/* stage_run.c: runs the calls of a stage program, one after the other, in the arena. */
#include "sweep/stages/stage_sweep.h"
#include "sweep/sweep_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "plan/core/stage_sizes.h"
#include "sys/clock.h"
#include "sys/memory.h"

#include <string.h>

#define POISON 0xAA /* a byte that no sensible number is made of */

struct stage_run {
	struct neap_stage_sweep *s;
	double *loss;
	int64_t entered, left; /* buffers whose lives have begun, and have ended */
	uint64_t bytes;	       /* of the buffers that live */
};

static void *at(const struct neap_stage_sweep *s, const struct neap__stage_call *call, int role)
{
	return call->at[role] == NEAP__NOTHING ? NULL : s->base + call->at[role];
}

/* With poison: checks that nobody wrote to [from, from + bytes), which was free. */
static int untouched(const struct neap_stage_sweep *s, uint64_t from, uint64_t bytes)
{
	for (uint64_t k = from; s->poison && k < from + bytes; k++)
		if (s->base[k] != POISON)
			return neap__fail(NEAP_EMODEL,
				"byte %llu of the arena was written while it was free",
				(unsigned long long)k);
	return 0;
}

static void poison(const struct neap_stage_sweep *s, uint64_t from, uint64_t bytes)
{
	if (s->poison && bytes)
		memset(s->base + from, POISON, bytes);
}

/* Bytes that a call makes in this role; 0 for a buffer that was there before. */
static uint64_t made(
	const struct neap_stage_sweep *s, const struct neap__stage_call *call, int role)
{
	const struct neap_stages *stages = &s->stages;
	int64_t i = call->i;
	int forward = call->kind == NEAP_ADVANCE || call->kind == NEAP_RECORD;
	if (role == NEAP__Y)
		return forward && call->at[NEAP__Y] != call->at[NEAP__TAPE] ? stages->state[i + 1]
									    : 0;
	if (role == NEAP__TAPE)
		return call->kind == NEAP_RECORD ? stages->tape[i] : 0;
	if (role == NEAP__DX)
		return forward ? 0 : (uint64_t)neap__stage_gradient(&s->problem.chain, i);
	if (role == NEAP__TMP)
		return (uint64_t)(call->kind == NEAP_ADVANCE ? neap__stage_advance_tmp(stages, i)
				  : call->kind == NEAP_RECORD
					  ? neap__stage_record_tmp(stages, i)
					  : neap__stage_backward_tmp(stages, i));
	return 0;
}

/* Begins the lives of the buffers of call k. */
static int enter(struct stage_run *r, const struct neap__stage_call *call, int64_t k)
{
	struct neap_stage_sweep *s = r->s;
	const struct neap__stage_program *p = &s->program;
	for (; r->entered < p->nbuffers && p->buffers[r->entered].from == k; r->entered++)
		r->bytes += p->buffers[r->entered].bytes;
	if (r->bytes > s->stats.peak_measured)
		s->stats.peak_measured = r->bytes;
	for (int role = 0; s->poison && role < NEAP__ROLES; role++)
		if (call->at[role] != NEAP__NOTHING)
			NEAP_TRY(untouched(s, (uint64_t)call->at[role], made(s, call, role)));
	return 0;
}

static void leave(struct stage_run *r, int64_t k)
{
	const struct neap__stage_program *p = &r->s->program;
	for (; r->left < p->nbuffers && p->buffers[r->s->ends[r->left]].to == k; r->left++) {
		const struct neap__stage_buffer *b = &p->buffers[r->s->ends[r->left]];
		r->bytes -= b->bytes;
		if (k < p->buffers[r->s->ends[p->nbuffers - 1]].to) /* dx_0 is still wanted */
			poison(r->s, b->offset, b->bytes);
	}
}

/* Moves a buffer down; the bytes that it leaves become free. */
static int move(struct neap_stage_sweep *s, const struct neap__stage_call *call)
{
	uint64_t from = (uint64_t)call->at[0], to = (uint64_t)call->at[1];
	uint64_t bytes = (uint64_t)call->i, by = from - to < bytes ? from - to : bytes;
	NEAP_TRY(untouched(s, to, by));
	memmove(s->base + to, s->base + from, bytes);
	poison(s, from + bytes - by, by);
	s->stats.moved += bytes;
	return 0;
}

static int perform(struct stage_run *r, const struct neap__stage_call *call)
{
	struct neap_stage_sweep *s = r->s;
	void *x = at(s, call, NEAP__X), *y = at(s, call, NEAP__Y), *tmp = at(s, call, NEAP__TMP);
	void *tape = at(s, call, NEAP__TAPE), *dx = at(s, call, NEAP__DX);
	double loss = 0, start = neap__seconds(), *kind = &s->stats.backward;
	static const uint32_t events[] = {[NEAP_ADVANCE] = NEAP__EVENT_ADVANCE,
		[NEAP_RECORD] = NEAP__EVENT_RECORD,
		[NEAP_TURN] = NEAP__EVENT_TURN,
		[NEAP_BACKWARD] = NEAP__EVENT_BACKWARD};
	int rc;

	neap_detail_set(NULL);
	if (call->kind == NEAP_ADVANCE) {
		rc = s->ops.advance(s->user, call->i, x, y, tmp, call->first);
		kind = &s->stats.advance;
		s->stats.advance_steps++;
	} else if (call->kind == NEAP_RECORD) {
		rc = s->ops.record(s->user, call->i, x, y, tape, tmp, call->first);
		kind = &s->stats.record;
		s->stats.record_steps++;
	} else if (call->kind == NEAP_TURN) {
		rc = s->ops.turn(s->user, x, dx, tmp, &loss);
		if (r->loss)
			*r->loss = loss;
	} else {
		rc = s->ops.backward(s->user, call->i, x, tape, at(s, call, NEAP__DY), dx, tmp);
		s->stats.backward_steps++;
	}
	double end = neap__seconds();
	*kind += end - start;
	s->stats.compute += end - start;
	neap__trace_add(
		s->options.trace, &(struct neap__event){.start = start,
					  .end = end,
					  .t0 = call->i,
					  .t1 = call->kind == NEAP_TURN ? call->i : call->i + 1,
					  .kind = events[call->kind]});
	if (rc > 0)
		return neap__fail(NEAP_EMODEL, "the model's %s of stage %lld answered %d",
			neap_action_name(call->kind), (long long)call->i, rc);
	return rc;
}

static int perform_all(struct stage_run *r)
{
	struct neap_stage_sweep *s = r->s;
	int64_t k = 0;
	for (int64_t c = 0; c < s->program.ncalls; c++) {
		const struct neap__stage_call *call = &s->program.calls[c];
		if (call->kind == NEAP__MOVE) {
			NEAP_TRY(move(s, call));
			continue;
		}
		if (s->options.interrupted && s->options.interrupted(s->options.interrupted_user))
			return neap__fail(NEAP_EINTERRUPTED, "the sweep was interrupted");
		NEAP_TRY(enter(r, call, k));
		NEAP_TRY(perform(r, call));
		leave(r, k++);
	}
	return 0;
}

static int map_arena(struct neap_stage_sweep *s, struct neap__populate **populate)
{
	void *pages;
	uint64_t whole = neap__round_up(s->program.arena, 4096);
	if (s->base)
		return 0;
	NEAP_TRY(neap__map_pages(&pages, whole ? whole : 4096));
	s->base = pages;
	s->mapped = whole ? whole : 4096;
	*populate = neap__populate_start(pages, s->mapped);
	return 0;
}

int neap_stage_sweep_run(struct neap_stage_sweep *s, const void *x0, void *dx0, double *loss,
	struct neap_sweep_stats *stats)
{
	NEAP_NEED(s);
	struct stage_run r = {.s = s, .loss = loss};
	struct neap__populate *populate = NULL;
	const struct neap__stage_program *p = &s->program;
	if (stats)
		NEAP_TRY(neap__struct_size(
			stats->size, sizeof stats->size, sizeof *stats, "neap_sweep_stats"));
	NEAP_TRY(map_arena(s, &populate));
	s->stats = (struct neap_sweep_stats){
		.size = sizeof(struct neap_sweep_stats),
		.arena_bytes = p->arena,
		.peak_planned = s->plan.peak_bytes,
		.predicted = s->plan.makespan,
	};
	double start = neap__seconds();
	neap__trace_begin(s->options.trace, &s->problem, &s->plan, start);
	if (s->poison)
		memset(s->base, POISON, s->mapped);
	if (x0)
		memcpy(s->base + p->start, x0, s->x0_bytes);
	else
		memset(s->base + p->start, 0, s->x0_bytes);
	int rc = perform_all(&r);
	if (rc == 0)
		rc = untouched(s, p->arena, s->mapped - p->arena);
	if (rc == 0 && dx0)
		memcpy(dx0, at(s, &p->calls[p->ncalls - 1], NEAP__DX), s->dx0_bytes);
	neap__populate_end(populate);
	s->stats.seconds = neap__seconds() - start;
	s->stats.slowdown = s->stats.compute - s->plan.makespan;
	neap__trace_end(s->options.trace, &s->stats);
	if (stats)
		neap__struct_give(stats, &s->stats, sizeof s->stats);
	return rc;
}

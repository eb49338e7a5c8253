/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_program.c: the calls that a schedule of stages makes and the buffers that it keeps.
 * A state lies in a buffer of its own or in the tape that holds it, once, however many slots
 * name it: SAVE, LOAD and DROP change the number of its holders (stage_memory.h) and copy
 * nothing.
 */
#include "sweep/stages/stage_program.h"
#include "sweep/stages/stage_walk.h"
#include "plan/core/schedule.h"

#include <stdlib.h>
#include <string.h>

typedef long long ll;

static int temporary(struct program_walk *w, struct neap__stage_call *call)
{
	uint64_t bytes = neap__layout_tmp(w->layout, w->stages, call->kind, call->i);
	if (!bytes)
		return 0;
	return neap__walk_begin(w, &call->at[NEAP__TMP], bytes, NEAP__BUFFER_TEMPORARY, call->i);
}

static void state_ends(void *user, int64_t t)
{
	struct program_walk *w = user;
	neap__walk_end(w, &w->state[t]);
}

static int live_at(const struct program_walk *w, int64_t t)
{
	if (w->memory.live != t)
		return NEAP__ILLEGAL("the live state is not at %lld, where it is needed", (ll)t);
	return 0;
}

/* The buffer x_{i+1} is written to: kept, unless it is somewhere already. */
static int output(struct program_walk *w, int64_t i, struct neap__stage_call *call)
{
	int there =
		neap__stage_memory_in_tape(&w->memory, i + 1) || w->state[i + 1] != NEAP__NOTHING;
	NEAP_TRY(neap__walk_begin(
		w, &call->at[NEAP__Y], w->stages->state[i + 1], NEAP__BUFFER_STATE, i + 1));
	if (!there)
		w->state[i + 1] = call->at[NEAP__Y];
	return 0;
}

static struct neap__stage_call call_of(struct program_walk *w, int kind, int64_t i)
{
	struct neap__stage_call call = {.kind = (uint8_t)kind, .i = i};
	for (int k = 0; k < NEAP__ROLES; k++)
		call.at[k] = NEAP__NOTHING;
	if (kind == NEAP_ADVANCE || kind == NEAP_RECORD) {
		call.first = i >= w->seen;
		w->seen = call.first ? i + 1 : w->seen;
	}
	return call;
}

/* A link lays the end of a branch aside, until the turn. */
static int lay_aside(struct program_walk *w, const struct neap__stage_call *call)
{
	int k = neap__layout_branch(w->layout, call->i);
	if (!call->first || !neap__layout_link(w->layout, call->i))
		return 0;
	return neap__walk_begin(
		w, &w->out->end_state[k], w->stages->state[call->i], NEAP__BUFFER_STATE, call->i);
}

static int advance(struct program_walk *w, int64_t i)
{
	struct neap__stage_call call = call_of(w, NEAP_ADVANCE, i);
	NEAP_TRY(live_at(w, i));
	NEAP_TRY(neap__walk_find(w, i, &call.at[NEAP__X]));
	NEAP_TRY(output(w, i, &call));
	NEAP_TRY(lay_aside(w, &call));
	NEAP_TRY(temporary(w, &call));
	NEAP_TRY(neap__stage_program_call(w->out, &call));
	neap__walk_apply(w, NEAP_ADVANCE, i);
	return 0;
}

static int record(struct program_walk *w, int64_t i)
{
	struct neap__stage_call call = call_of(w, NEAP_RECORD, i);
	NEAP_TRY(live_at(w, i));
	NEAP_TRY(neap__walk_find(w, i, &call.at[NEAP__X]));
	if (w->tape[i] != NEAP__NOTHING)
		return NEAP__ILLEGAL("a tape of %lld is there already", (ll)i);
	NEAP_TRY(neap__walk_begin(
		w, &call.at[NEAP__TAPE], w->stages->tape[i], NEAP__BUFFER_TAPE, i));
	if (neap__tape_holds_output(w->stages))
		call.at[NEAP__Y] = call.at[NEAP__TAPE];
	else
		NEAP_TRY(output(w, i, &call));
	NEAP_TRY(lay_aside(w, &call));
	NEAP_TRY(temporary(w, &call));
	NEAP_TRY(neap__stage_program_call(w->out, &call));
	w->tape[i] = call.at[NEAP__TAPE];
	if (w->layout->interleaved && neap__backward_needs_input(w->stages))
		neap__stage_memory_hold(&w->memory, i); /* until backward has read it */
	neap__walk_apply(w, NEAP_RECORD, i);
	return 0;
}

/* The end of a branch before the last, as the turn finds it, and room for its gradient. */
static int turn_branch(struct program_walk *w, int k)
{
	struct neap__stage_program *p = w->out;
	int64_t end = neap__layout_end(w->layout, k);
	if (w->layout->interleaved && w->others[k].live != end)
		return NEAP__ILLEGAL("branch %d is not at its end", k);
	if (w->layout->interleaved)
		NEAP_TRY(neap__walk_find(w, end, &p->end_state[k]));
	if (p->end_state[k] == NEAP__NOTHING)
		return NEAP__ILLEGAL("branch %d was never laid aside", k);
	return neap__walk_begin(w, &p->end_gradient[k],
		(uint64_t)neap__stage_gradient(w->chain, end), NEAP__BUFFER_GRADIENT, end);
}

/* After the turn. */
static void branch_turned(struct program_walk *w, int k)
{
	struct neap__stage_program *p = w->out;
	int64_t end = neap__layout_end(w->layout, k);
	if (w->layout->interleaved)
		neap__stage_memory_let_go(&w->memory, end);
	else
		p->buffers[p->end_state[k]].to = p->ncalls - 1;
	w->others[k] = (struct neap__walk_branch){
		.live = NEAP__NOTHING, .gradient = p->end_gradient[k], .adjoint = end};
}

static int turn(struct program_walk *w)
{
	struct neap__stage_call call = call_of(w, NEAP_TURN, w->n);
	int last = w->layout->branches - 1;
	if (w->adjoint != NEAP__NOTHING)
		return NEAP__ILLEGAL("a second turn");
	NEAP_TRY(live_at(w, w->n));
	NEAP_TRY(neap__walk_find(w, w->n, &call.at[NEAP__X]));
	for (int k = 0; k < last; k++)
		NEAP_TRY(turn_branch(w, k));
	NEAP_TRY(neap__walk_begin(w, &call.at[NEAP__DX],
		(uint64_t)neap__stage_gradient(w->chain, w->n), NEAP__BUFFER_GRADIENT, w->n));
	NEAP_TRY(temporary(w, &call));
	NEAP_TRY(neap__stage_program_call(w->out, &call));
	w->gradient = call.at[NEAP__DX];
	w->adjoint = w->n;
	neap__stage_memory_live(&w->memory, NEAP__NOTHING);
	for (int k = 0; k < last; k++)
		branch_turned(w, k);
	return 0;
}

/* Where the gradient of x_i goes: back over a link, that of the branch's end is there. */
static int gradient_of(struct program_walk *w, int64_t i, struct neap__stage_call *call)
{
	if (!neap__layout_link(w->layout, i))
		return neap__walk_begin(w, &call->at[NEAP__DX],
			(uint64_t)neap__stage_gradient(w->chain, i), NEAP__BUFFER_GRADIENT, i);
	int k = neap__layout_branch(w->layout, i);
	call->at[NEAP__DX] = w->others[k].gradient;
	w->others[k].gradient = NEAP__NOTHING;
	return 0;
}

static int backward(struct program_walk *w, int64_t i)
{
	struct neap__stage_call call = call_of(w, NEAP_BACKWARD, i);
	int needs = neap__backward_needs_input(w->stages);
	if (w->adjoint != i + 1)
		return NEAP__ILLEGAL("the adjoint is not at %lld, where it is needed", (ll)i + 1);
	if (w->tape[i] == NEAP__NOTHING)
		return NEAP__ILLEGAL("the tape of %lld is not there", (ll)i);
	if (!needs || w->memory.live != i)
		neap__stage_memory_live(&w->memory, NEAP__NOTHING);
	if (needs)
		NEAP_TRY(neap__walk_find(w, i, &call.at[NEAP__X]));
	call.at[NEAP__TAPE] = w->tape[i];
	call.at[NEAP__DY] = w->gradient;
	NEAP_TRY(gradient_of(w, i, &call));
	NEAP_TRY(temporary(w, &call));
	NEAP_TRY(neap__stage_program_call(w->out, &call));
	neap__walk_apply(w, NEAP_BACKWARD, i);
	if (w->layout->interleaved && needs)
		neap__stage_memory_let_go(&w->memory, i);
	neap__walk_tape_ends(w, i);
	neap__walk_end(w, &w->gradient);
	w->gradient = call.at[NEAP__DX];
	w->adjoint = i;
	if (w->layout->interleaved && i == w->layout->start[w->branch])
		neap__walk_end(w, &w->gradient); /* the caller has it */
	return 0;
}

static int slot_of(struct program_walk *w, const struct neap_action *a, int64_t **slot)
{
	if (a->slot < 0 || a->slot > w->n + 1)
		return NEAP__ILLEGAL("no slot %lld", (ll)a->slot);
	*slot = &w->slots[a->slot];
	return 0;
}

static int slots(struct program_walk *w, const struct neap_action *a)
{
	int64_t *slot = NULL;
	if (a->kind == NEAP_LOAD && a->payload == NEAP_TAPE) {
		if (a->t0 < 0 || a->t0 > w->n || !neap__stage_memory_in_tape(&w->memory, a->t0))
			return NEAP__ILLEGAL("no tape holds the state at %lld", (ll)a->t0);
		neap__walk_apply(w, NEAP_LOAD, a->t0);
		return 0;
	}
	NEAP_TRY(slot_of(w, a, &slot));
	if (a->kind == NEAP_SAVE) {
		NEAP_TRY(live_at(w, a->t0));
		if (*slot != NEAP__NOTHING || a->t0 < 0)
			return NEAP__ILLEGAL("slot %lld is in use", (ll)a->slot);
	} else if (*slot != a->t0 || a->t0 < 0) {
		return NEAP__ILLEGAL("slot %lld does not hold step %lld", (ll)a->slot, (ll)a->t0);
	}
	if (a->kind != NEAP_LOAD)
		*slot = a->kind == NEAP_SAVE ? a->t0 : NEAP__NOTHING;
	neap__walk_apply(w, a->kind, a->t0);
	return 0;
}

static int ranges(struct program_walk *w, const struct neap_action *a)
{
	if (a->t0 < 0 || a->t1 <= a->t0 || a->t1 > w->n)
		return NEAP__ILLEGAL("range [%lld, %lld)", (ll)a->t0, (ll)a->t1);
	for (int64_t i = a->t0; i < a->t1 && a->kind != NEAP_BACKWARD; i++)
		NEAP_TRY(a->kind == NEAP_ADVANCE ? advance(w, i) : record(w, i));
	for (int64_t i = a->t1 - 1; i >= a->t0 && a->kind == NEAP_BACKWARD; i--)
		NEAP_TRY(backward(w, i));
	return 0;
}

/* Of an interleaved layout: another branch goes on. */
static void go_on(struct program_walk *w, int branch)
{
	if (branch == w->branch)
		return;
	w->others[w->branch] =
		(struct neap__walk_branch){w->memory.live, w->memory.part, w->gradient, w->adjoint};
	w->memory.live = w->others[branch].live;
	w->memory.part = w->others[branch].part;
	w->gradient = w->others[branch].gradient;
	w->adjoint = w->others[branch].adjoint;
	w->branch = branch;
}

static int action(struct program_walk *w, const struct neap_action *a)
{
	if (w->layout->interleaved)
		go_on(w, neap__layout_branch(w->layout, a->t0));
	switch (a->kind) {
	case NEAP_ADVANCE:
	case NEAP_RECORD:
	case NEAP_BACKWARD:
		return ranges(w, a);
	case NEAP_TURN:
		return turn(w);
	case NEAP_SAVE:
	case NEAP_LOAD:
	case NEAP_DROP:
		return slots(w, a);
	default:
		return neap__walk_transfer(w, a);
	}
}

/* What is still there at the end stays to the end, the gradient of x_0 above all. */
static void end_all(struct program_walk *w)
{
	for (int64_t t = 0; t <= w->n; t++) {
		neap__walk_end(w, &w->state[t]);
		neap__walk_end(w, &w->tape[t]);
	}
	neap__walk_end(w, &w->gradient);
	for (int k = 0; k < w->layout->branches; k++)
		neap__walk_end(w, &w->others[k].gradient);
}

/* Bytes at each call; the most of them. */
static int measure(struct neap__stage_program *p)
{
	uint64_t *change = calloc((size_t)p->ncalls + 1, sizeof *change), bytes = 0;
	if (!change)
		return neap__stage_tables_short();
	for (int64_t b = 0; b < p->nbuffers; b++) {
		change[p->buffers[b].from] += p->buffers[b].bytes;
		change[p->buffers[b].to + 1] -= p->buffers[b].bytes;
	}
	for (int64_t k = 0; k < p->ncalls; k++) {
		bytes += change[k];
		p->peak = bytes > p->peak ? bytes : p->peak;
	}
	free(change);
	return 0;
}

/* x_0 of a branch comes from the caller. */
static int origin(struct program_walk *w, int k)
{
	struct neap__stage_call call = call_of(w, NEAP__ORIGIN, k);
	int64_t t = w->layout->start[k];
	NEAP_TRY(neap__walk_begin(w, &w->state[t], w->stages->state[t], NEAP__BUFFER_STATE, t));
	call.at[NEAP__Y] = w->state[t];
	return neap__stage_program_call(w->out, &call);
}

/* Interleaved branches are all there from the beginning, the others come by links. */
static int begin(struct program_walk *w)
{
	NEAP_TRY(origin(w, 0));
	neap__stage_memory_begin(&w->memory);
	for (int k = 0; k < NEAP_BRANCHES_MAX; k++) {
		w->out->end_state[k] = w->out->end_gradient[k] = NEAP__NOTHING;
		w->others[k] =
			(struct neap__walk_branch){NEAP__NOTHING, 0, NEAP__NOTHING, NEAP__NOTHING};
	}
	for (int k = 1; w->layout->interleaved && k < w->layout->branches; k++) {
		NEAP_TRY(origin(w, k));
		w->others[k].live = w->layout->start[k];
		neap__stage_memory_hold(&w->memory, w->layout->start[k]);
	}
	return 0;
}

static int complete(struct program_walk *w)
{
	int branches = w->layout->interleaved ? w->layout->branches : 1;
	for (int k = 0; k < branches; k++) {
		go_on(w, k);
		if (w->adjoint != w->layout->start[k])
			return NEAP__ILLEGAL(
				"the schedule ends with the adjoint at %lld", (ll)w->adjoint);
	}
	return 0;
}

static int walk(struct program_walk *w, struct neap_schedule *schedule)
{
	struct neap_action a;
	int64_t count = 0;
	int rc;
	NEAP_TRY(begin(w));
	while ((rc = neap_schedule_next(schedule, &a)) > 0) {
		rc = action(w, &a);
		if (rc < 0)
			return neap__fail_in(
				rc, "action %lld (%s): ", (ll)count, neap_action_name(a.kind));
		count++;
	}
	NEAP_TRY(rc);
	NEAP_TRY(complete(w));
	end_all(w);
	neap__walk_end_records(w);
	return measure(w->out);
}

int neap__stage_walk(struct neap__stage_program *program, const struct neap_problem *problem,
	const struct neap__stage_layout *layout, struct neap_schedule *schedule)
{
	int64_t n = problem->chain.steps;
	size_t rows = (size_t)n + 2;
	struct program_walk w = {.out = program,
		.layout = layout,
		.chain = &problem->chain,
		.stages = problem->chain.stages,
		.n = n,
		.ntiers = problem->ntiers,
		.gradient = NEAP__NOTHING,
		.adjoint = NEAP__NOTHING};
	int64_t *all = malloc(3 * rows * sizeof *all);
	*program = (struct neap__stage_program){0};
	int rc = all ? neap__stage_memory_init(&w.memory, w.chain) : neap__stage_tables_short();
	if (rc == 0) {
		memset(all, 0xff, 3 * rows * sizeof *all); /* NEAP__NOTHING */
		w.slots = all;
		w.state = all + rows;
		w.tape = all + 2 * rows;
		w.memory.state_ends = state_ends;
		w.memory.user = &w;
		neap__walk_no_flights(&w);
		rc = walk(&w, schedule);
	}
	neap__stage_memory_fini(&w.memory);
	neap__walk_free(&w);
	free(all);
	return rc;
}

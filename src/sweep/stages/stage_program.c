/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_program.c: the calls that a schedule of stages makes and the buffers that it keeps.
 * A state lies in a buffer of its own or in the tape that holds it, once, however many slots
 * name it: SAVE, LOAD and DROP change the number of its holders (stage_memory.h) and copy
 * nothing.
 */
#include "sweep/stages/stage_walk.h"
#include "base/grow.h"
#include "plan/core/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef long long ll;

int neap__stage_tables_short(void)
{
	return neap__fail_errno(ENOMEM, "tables of a sweep");
}

int neap__stage_program_call(struct neap__stage_program *p, const struct neap__stage_call *call)
{
	if (neap__grow(&p->calls, &p->calls_room, p->ncalls + 1, sizeof *call) < 0)
		return neap__stage_tables_short();
	p->calls[p->ncalls++] = *call;
	return 0;
}

int neap__stage_program_buffer(struct neap__stage_program *p, uint64_t bytes, int kind, int64_t t)
{
	if (neap__grow(&p->buffers, &p->buffers_room, p->nbuffers + 1, sizeof *p->buffers) < 0)
		return neap__stage_tables_short();
	/* For the call that comes next; kept for longer where its end is set later. */
	p->buffers[p->nbuffers++] = (struct neap__stage_buffer){.bytes = bytes,
		.from = p->ncalls,
		.to = p->ncalls,
		.ready = p->ncalls,
		.t = t,
		.kind = (uint8_t)kind};
	return 0;
}

void neap__stage_program_free(struct neap__stage_program *p)
{
	free(p->calls);
	free(p->buffers);
	free(p->records);
	free(p->flights);
	free(p->parts);
}

void neap__walk_end(struct program_walk *w, int64_t *buffer)
{
	if (*buffer != NEAP__NOTHING) {
		struct neap__stage_buffer *b = &w->out->buffers[*buffer];
		int64_t last = w->out->ncalls - 1 > b->from ? w->out->ncalls - 1 : b->from;
		b->to = last > b->to ? last : b->to;
	}
	*buffer = NEAP__NOTHING;
}

int neap__walk_begin(struct program_walk *w, int64_t *buffer, uint64_t bytes, int kind, int64_t t)
{
	NEAP_TRY(neap__stage_program_buffer(w->out, bytes, kind, t));
	*buffer = w->out->nbuffers - 1;
	return 0;
}

static int temporary(struct program_walk *w, struct neap__stage_call *call, int64_t bytes)
{
	if (!bytes)
		return 0;
	return neap__walk_begin(
		w, &call->at[NEAP__TMP], (uint64_t)bytes, NEAP__BUFFER_TEMPORARY, call->i);
}

int neap__walk_find(const struct program_walk *w, int64_t t, int64_t *buffer)
{
	*buffer = neap__stage_memory_in_tape(&w->memory, t) ? w->tape[t - 1] : w->state[t];
	if (*buffer == NEAP__NOTHING)
		return NEAP__ILLEGAL("the state at %lld is needed and is not there", (ll)t);
	return 0;
}

static void state_ends(void *user, int64_t t)
{
	struct program_walk *w = user;
	neap__walk_end(w, &w->state[t]);
}

/* After the call of one stage, or a SAVE, LOAD or DROP. */
static void apply(struct program_walk *w, int kind, int64_t i)
{
	neap__stage_memory_apply(
		&w->memory, &(struct neap_action){.kind = (uint8_t)kind, .t0 = i, .t1 = i + 1});
}

/* The tape of stage i is not needed any more. It stays where a slot holds the state in it. */
void neap__walk_tape_ends(struct program_walk *w, int64_t i)
{
	if (w->memory.held[i + 1] > 0 && w->state[i + 1] == NEAP__NOTHING) {
		w->state[i + 1] = w->tape[i];
		w->tape[i] = NEAP__NOTHING;
	}
	neap__walk_end(w, &w->tape[i]);
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

static int advance(struct program_walk *w, int64_t i)
{
	struct neap__stage_call call = call_of(w, NEAP_ADVANCE, i);
	NEAP_TRY(live_at(w, i));
	NEAP_TRY(neap__walk_find(w, i, &call.at[NEAP__X]));
	NEAP_TRY(output(w, i, &call));
	NEAP_TRY(temporary(w, &call, neap__stage_advance_tmp(w->stages, i)));
	NEAP_TRY(neap__stage_program_call(w->out, &call));
	apply(w, NEAP_ADVANCE, i);
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
	NEAP_TRY(temporary(w, &call, neap__stage_record_tmp(w->stages, i)));
	NEAP_TRY(neap__stage_program_call(w->out, &call));
	w->tape[i] = call.at[NEAP__TAPE];
	apply(w, NEAP_RECORD, i);
	return 0;
}

static int turn(struct program_walk *w)
{
	struct neap__stage_call call = call_of(w, NEAP_TURN, w->n);
	if (w->adjoint != NEAP__NOTHING)
		return NEAP__ILLEGAL("a second turn");
	NEAP_TRY(live_at(w, w->n));
	NEAP_TRY(neap__walk_find(w, w->n, &call.at[NEAP__X]));
	NEAP_TRY(neap__walk_begin(w, &call.at[NEAP__DX],
		(uint64_t)neap__stage_gradient(w->chain, w->n), NEAP__BUFFER_GRADIENT, w->n));
	NEAP_TRY(temporary(w, &call, neap__stage_backward_tmp(w->stages, w->n)));
	NEAP_TRY(neap__stage_program_call(w->out, &call));
	w->gradient = call.at[NEAP__DX];
	w->adjoint = w->n;
	neap__stage_memory_live(&w->memory, NEAP__NOTHING);
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
	NEAP_TRY(neap__walk_begin(w, &call.at[NEAP__DX],
		(uint64_t)neap__stage_gradient(w->chain, i), NEAP__BUFFER_GRADIENT, i));
	NEAP_TRY(temporary(w, &call, neap__stage_backward_tmp(w->stages, i)));
	NEAP_TRY(neap__stage_program_call(w->out, &call));
	apply(w, NEAP_BACKWARD, i);
	neap__walk_tape_ends(w, i);
	neap__walk_end(w, &w->gradient);
	w->gradient = call.at[NEAP__DX];
	w->adjoint = i;
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
		apply(w, NEAP_LOAD, a->t0);
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
	apply(w, a->kind, a->t0);
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

static int action(struct program_walk *w, const struct neap_action *a)
{
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

static int walk(struct program_walk *w, struct neap_schedule *schedule)
{
	struct neap_action a;
	int64_t count = 0;
	int rc;
	NEAP_TRY(neap__walk_begin(w, &w->state[0], w->stages->state[0], NEAP__BUFFER_STATE, 0));
	w->out->buffers[0].ready = -1;
	neap__stage_memory_begin(&w->memory);
	while ((rc = neap_schedule_next(schedule, &a)) > 0) {
		rc = action(w, &a);
		if (rc < 0)
			return neap__fail_in(
				rc, "action %lld (%s): ", (ll)count, neap_action_name(a.kind));
		count++;
	}
	NEAP_TRY(rc);
	if (w->adjoint != 0)
		return NEAP__ILLEGAL("the schedule ends with the adjoint at %lld", (ll)w->adjoint);
	end_all(w);
	neap__walk_end_records(w);
	return measure(w->out);
}

int neap__stage_walk(struct neap__stage_program *program, const struct neap_problem *problem,
	struct neap_schedule *schedule)
{
	int64_t n = problem->chain.steps;
	size_t rows = (size_t)n + 2;
	struct program_walk w = {.out = program,
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

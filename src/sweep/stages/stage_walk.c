/* SPDX-License-Identifier: Apache-2.0 */
/* stage_walk.c: calls and buffers that are appended to a stage program, and where states and tapes
 * are. */
#include "sweep/stages/stage_walk.h"
#include "base/grow.h"
#include "plan/core/schedule.h"

#include <errno.h>
#include <stdlib.h>

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

/* Appends a buffer; -ENOMEM. */
static int add_buffer(struct neap__stage_program *p, uint64_t bytes, int kind, int64_t t)
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
	NEAP_TRY(add_buffer(w->out, bytes, kind, t));
	*buffer = w->out->nbuffers - 1;
	return 0;
}

int neap__walk_find(const struct program_walk *w, int64_t t, int64_t *buffer)
{
	*buffer = neap__stage_memory_in_tape(&w->memory, t) ? w->tape[t - 1] : w->state[t];
	if (*buffer == NEAP__NOTHING)
		return NEAP__ILLEGAL("the state at %lld is needed and is not there", (ll)t);
	return 0;
}

/* After the call of one stage, or a SAVE, LOAD or DROP. */
void neap__walk_apply(struct program_walk *w, int kind, int64_t i)
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

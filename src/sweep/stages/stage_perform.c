/* SPDX-License-Identifier: Apache-2.0 */
/* stage_perform.c: performs the calls of a stage program, one after the other. */
#include "sweep/stages/stage_journal.h"
#include "sweep/stages/stage_sweep.h"
#include "base/fail.h"

/* WAIT: makes again what could not be read. 1: there is no room for that; or a negative code. */
static int wait_for_flight(struct stage_run *r, int64_t number)
{
	const struct neap__stage_flight *f = &r->program->flights[number];
	struct neap__stage_transfer *flight = &r->s->flights[number];
	neap__stage_end_flight(r, number, f->put ? NEAP_STALL_PUT : NEAP_STALL_GET);
	flight->state = NEAP__TRANSFER_OVER;
	if (flight->request.answer >= 0)
		return 0;
	neap__stage_mark_lost(r, f->record);
	return f->put ? 0 : neap__stage_repair(r, number);
}

static int perform(struct stage_run *r, const struct neap__stage_call *call)
{
	switch (call->kind) {
	case NEAP_PUT:
	case NEAP_GET:
		return neap__stage_issue(r, call->i);
	case NEAP_WAIT:
		return wait_for_flight(r, call->i);
	case NEAP__ORIGIN:
		neap__stage_origin(r, (int)call->i, neap__stage_at(r, call, NEAP__Y));
		return 0;
	default:
		return neap__stage_perform_call(r, call);
	}
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
			NEAP_TRY(neap__stage_move_buffer(r, call));
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
		NEAP_TRY(neap__stage_enter(r, call));
		rc = perform(r, call);
		if (rc == 0)
			rc = neap__memory_answer(&r->s->memory);
		NEAP_TRY(rc);
		neap__stage_leave(r);
		r->call++;
	}
	return rc;
}

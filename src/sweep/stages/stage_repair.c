/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_repair.c: makes again what a tier lost. The nearest earlier state is taken from a buffer,
 * from a tape that holds it, from a record that is still there, or from x_0; the stages from there
 * are done again, in bytes of the arena that no buffer takes now. Where these are too few, the
 * plan is given up (stage_fallback.c).
 */
#include "sweep/stages/stage_sweep.h"
#include "sweep/trace/trace_ring.h"
#include "plan/core/stage_sizes.h"
#include "sys/clock.h"

#include <string.h>

#define NO_ROOM 1

struct stage_repair {
	struct stage_run *r;
	struct neap__stage_interval *taken; /* by offset */
	int64_t ntaken;
};

/* A state that was found or made: where it lies, and whether in bytes of the repair's own. */
struct found_state {
	int64_t t;
	unsigned char *at;
	int own;
};

/* Takes the lowest gap of so many bytes; NULL: there is none. Of 0 bytes any place will do. */
static unsigned char *take(struct stage_repair *x, uint64_t bytes)
{
	uint64_t at = 0;
	int64_t k = 0;
	if (bytes == 0)
		return x->r->base;
	for (; k < x->ntaken && x->taken[k].from - at < bytes; k++)
		at = x->taken[k].to;
	if (k == x->ntaken && x->r->program->arena - at < bytes)
		return NULL;
	memmove(x->taken + k + 1, x->taken + k, (size_t)(x->ntaken - k) * sizeof *x->taken);
	x->taken[k] = (struct neap__stage_interval){at, at + bytes};
	x->ntaken++;
	return x->r->base + at;
}

static void give_back(struct stage_repair *x, const unsigned char *at, uint64_t bytes)
{
	uint64_t from = (uint64_t)(at - x->r->base);
	if (bytes == 0)
		return;
	if (x->r->s->poison)
		neap__memory_fill(&x->r->s->memory, x->r->base + from, NEAP__POISON, bytes);
	for (int64_t k = 0; k < x->ntaken; k++)
		if (x->taken[k].from == from) {
			x->ntaken--;
			memmove(x->taken + k, x->taken + k + 1,
				(size_t)(x->ntaken - k) * sizeof *x->taken);
			return;
		}
}

/* The latest state from x_from to x_t that lies in a buffer or in a tape; t -1: there is none. */
static struct found_state in_memory(const struct stage_repair *x, int64_t from, int64_t t)
{
	const struct stage_run *r = x->r;
	const struct neap__stage_program *p = r->program;
	struct found_state best = {.t = -1};
	for (int64_t b = 0; b < p->nbuffers && p->buffers[b].from <= r->call; b++) {
		const struct neap__stage_buffer *buffer = &p->buffers[b];
		int64_t holds = buffer->t;
		if (buffer->to < r->call || buffer->ready >= r->call)
			continue;
		if (buffer->kind == NEAP__BUFFER_TAPE && neap__tape_holds_output(&r->s->stages))
			holds++;
		else if (buffer->kind != NEAP__BUFFER_STATE)
			continue;
		if (holds >= from && holds <= t && holds > best.t)
			best = (struct found_state){holds, r->base + r->now[b], 0};
	}
	return best;
}

/* The record of the latest state in (after, t] that a tier should have; -1: none. */
static int64_t latest_record(const struct stage_repair *x, int64_t after, int64_t t)
{
	const struct stage_run *r = x->r;
	int64_t best = -1;
	for (int64_t i = 0; i < r->program->nrecords; i++) {
		const struct neap__stage_record *record = &r->program->records[i];
		int there = record->t0 == record->t1 && record->from < r->call &&
			    record->to >= r->call && !r->s->lost[i] && record->bytes > 0;
		if (there && record->t0 > after && record->t0 <= t &&
			(best < 0 || record->t0 > r->program->records[best].t0))
			best = i;
	}
	return best;
}

/* Finds a state to begin with: the latest one up to x_t. 0, or NO_ROOM. */
static int find_start(struct stage_repair *x, int64_t t, struct found_state *out)
{
	struct neap_stage_sweep *s = x->r->s;
	int branch = neap__layout_branch(x->r->layout, t);
	int64_t record, origin = x->r->layout->start[branch];
	*out = in_memory(x, origin, t);
	int64_t after = out->t < origin ? origin - 1 : out->t;
	while ((record = latest_record(x, after, t)) >= 0) {
		int64_t from = x->r->program->records[record].t0;
		unsigned char *at = take(x, s->stages.state[from]);
		if (!at)
			break; /* an earlier one may be smaller, x_0 is given */
		if (neap__stage_fetch(x->r, record, at) == 0) {
			*out = (struct found_state){from, at, 1};
			return 0;
		}
		give_back(x, at, s->stages.state[from]);
	}
	if (out->t >= 0)
		return 0;
	unsigned char *at = take(x, s->stages.state[origin]);
	if (!at)
		return NO_ROOM;
	neap__stage_origin(x->r, branch, at);
	*out = (struct found_state){origin, at, 1};
	return 0;
}

static void let_go(struct stage_repair *x, const struct found_state *state)
{
	if (state->own)
		give_back(x, state->at, x->r->s->stages.state[state->t]);
}

/* Calls the model for one stage forward; tape NULL: advances. 0, NO_ROOM or a negative code. */
static int forward(struct stage_repair *x, int64_t i, unsigned char *from, unsigned char *to,
	unsigned char *tape)
{
	uint64_t bytes = neap__layout_tmp(
		x->r->layout, &x->r->s->stages, tape ? NEAP_RECORD : NEAP_ADVANCE, i);
	unsigned char *tmp = take(x, bytes);
	if (!tmp)
		return NO_ROOM;
	void *at[NEAP__ROLES] = {[NEAP__X] = from,
		[NEAP__Y] = to,
		[NEAP__TAPE] = tape,
		[NEAP__TMP] = bytes ? tmp : NULL};
	int rc = neap__stage_call_model(x->r, tape ? NEAP_RECORD : NEAP_ADVANCE, i, at, 0);
	x->r->s->stats.recomputed++;
	give_back(x, tmp, bytes);
	return rc;
}

/* Makes x_t; at `to`, or anywhere where that is NULL. 0, NO_ROOM or a negative code. */
static int make_state(struct stage_repair *x, int64_t t, unsigned char *to, struct found_state *out)
{
	const uint64_t *bytes = x->r->s->stages.state;
	int rc = find_start(x, t, out);
	if (rc)
		return rc;
	while (out->t < t) {
		int last = out->t + 1 == t && to;
		struct found_state next = {out->t + 1, to, 0};
		if (!last) {
			next.at = take(x, bytes[next.t]);
			next.own = 1;
		}
		if (!next.at)
			return NO_ROOM;
		rc = forward(x, out->t, out->at, next.at, NULL);
		if (rc)
			return rc;
		let_go(x, out);
		*out = next;
	}
	if (to && out->at != to) {
		neap__memory_move(&x->r->s->memory, to, out->at, bytes[t]);
		let_go(x, out);
		*out = (struct found_state){t, to, 0};
	}
	return 0;
}

/* Makes the tape of stage i at `tape`. */
static int make_tape(struct stage_repair *x, int64_t i, unsigned char *tape)
{
	const struct neap_stages *stages = &x->r->s->stages;
	int holds = neap__tape_holds_output(stages);
	struct found_state from = {i, x->r->base, 0};
	/* A link reads no state. */
	int rc = neap__layout_link(x->r->layout, i) ? 0 : make_state(x, i, NULL, &from);
	if (rc)
		return rc;
	unsigned char *to = holds ? tape : take(x, stages->state[i + 1]);
	rc = to ? forward(x, i, from.at, to, tape) : NO_ROOM;
	if (to && !holds)
		give_back(x, to, stages->state[i + 1]);
	let_go(x, &from);
	return rc;
}

int neap__stage_repair(struct stage_run *r, int64_t flight)
{
	const struct neap__stage_program *p = r->program;
	const struct neap__stage_flight *f = &p->flights[flight];
	const struct neap__stage_record *record = &p->records[f->record];
	struct stage_repair x = {.r = r, .taken = r->taken};
	struct found_state made;
	double start = neap__seconds();
	int rc = 0;
	x.ntaken = neap__stage_list_taken(r);
	for (int64_t k = 0; k < f->count && rc == 0; k++) {
		unsigned char *to = r->base + r->now[p->parts[f->first + k].buffer];
		rc = record->t0 == record->t1 ? make_state(&x, record->t0, to, &made)
					      : make_tape(&x, record->t0 + k, to);
	}
	neap__trace_add(r->s->options.trace, &(struct neap__event){.start = start,
						     .end = neap__seconds(),
						     .t0 = record->t0,
						     .t1 = record->t1,
						     .kind = NEAP__EVENT_RECOVER,
						     .tier = record->tier});
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_moves.c: places for buffers in a budget that no fixed places fit. In the order of the
 * calls, buffers with a long life go to the lowest gap, buffers that end after a call or two
 * to the highest. Where no gap is large enough, neighbours are moved together until one is,
 * those with the least bytes to move. What a tier reads or fills cannot move; where that is in
 * the way, the oldest transfer is ended early. The bytes at a call never exceed the peak, so this
 * succeeds in any budget from the peak up.
 */
#include "sweep/stages/stage_program.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_LIFE 2 /* calls: a buffer that lives for fewer goes to the top */

struct buffer_mover {
	struct neap__stage_program in, out; /* out: the calls with moves, buffers are in's */
	uint64_t budget;
	int64_t *lying; /* numbers of the buffers that live, by offset; none of 0 bytes */
	int64_t nlying, call;
	uint64_t *entered; /* offsets at which buffers began */
	int32_t *pins;	   /* transfers that read or fill a buffer now */
	uint8_t *flying;   /* by flight: 1 from its issue to its WAIT, or its early end */
	int64_t oldest;	   /* no flight before this one is flying */
};

static struct neap__stage_buffer *lying(const struct buffer_mover *m, int64_t k)
{
	return &m->in.buffers[m->lying[k]];
}

/* Bytes before the k-th buffer that lives; k = nlying: after the last one. */
static uint64_t gap(const struct buffer_mover *m, int64_t k)
{
	uint64_t from = k ? lying(m, k - 1)->offset + lying(m, k - 1)->bytes : 0;
	return (k < m->nlying ? lying(m, k)->offset : m->budget) - from;
}

static void insert(struct buffer_mover *m, int64_t k, int64_t buffer, uint64_t offset)
{
	memmove(m->lying + k + 1, m->lying + k, (size_t)(m->nlying++ - k) * sizeof *m->lying);
	m->lying[k] = buffer;
	m->in.buffers[buffer].offset = m->entered[buffer] = offset;
}

static void leave(struct buffer_mover *m)
{
	int64_t kept = 0;
	for (int64_t k = 0; k < m->nlying; k++)
		if (lying(m, k)->to >= m->call)
			m->lying[kept++] = m->lying[k];
	m->nlying = kept;
}

/* Bytes to copy where the k-th moves: 0 if nothing was written to it yet. */
static uint64_t weight(const struct buffer_mover *m, int64_t k)
{
	int64_t buffer = m->lying[k];
	return lying(m, k)->from < m->call || buffer == 0 ? lying(m, k)->bytes : 0;
}

static int slide(struct buffer_mover *m, int64_t k, uint64_t to)
{
	struct neap__stage_buffer *b = lying(m, k);
	struct neap__stage_call call = {
		.kind = NEAP__MOVE, .i = m->lying[k], .at = {(int64_t)b->offset, (int64_t)to}};
	uint64_t bytes = weight(m, k);
	if (b->offset == to)
		return 0;
	b->offset = to;
	m->out.moved += bytes;
	if (!bytes)
		m->entered[m->lying[k]] = to;
	return bytes ? neap__stage_program_call(&m->out, &call) : 0;
}

static void pin(struct buffer_mover *m, int64_t flight, int by)
{
	const struct neap__stage_flight *f = &m->in.flights[flight];
	m->flying[flight] = by > 0;
	for (int64_t k = 0; k < f->count; k++)
		m->pins[m->in.parts[f->first + k].buffer] += by;
}

/* Ends the oldest transfer, so that what it pins can move. */
static int end_oldest(struct buffer_mover *m)
{
	while (m->oldest < m->in.nflights && !m->flying[m->oldest])
		m->oldest++;
	if (m->oldest == m->in.nflights || m->in.flights[m->oldest].from >= m->call)
		return neap__fail(NEAP_EILLEGAL, "the plan takes more than its peak");
	pin(m, m->oldest, -1);
	return neap__stage_program_call(
		&m->out, &(struct neap__stage_call){.kind = NEAP__END_EARLY, .i = m->oldest});
}

/* A run of neighbours that can be moved together: between two gaps. */
struct mover_run {
	int64_t from, to;
	uint64_t bytes; /* to copy; UINT64_MAX: there is no such run */
};

/* The run with the fewest bytes to copy whose gaps together have `bytes`. */
static struct mover_run best_run(const struct buffer_mover *m, uint64_t bytes)
{
	struct mover_run best = {.bytes = UINT64_MAX};
	uint64_t free_bytes = 0, copied = 0;
	int64_t first = 0;
	for (int64_t j = 0; j <= m->nlying; j++) { /* gaps first..j, buffers first..j-1 */
		if (j > 0 && m->pins[m->lying[j - 1]] > 0) {
			free_bytes = copied = 0;
			first = j;
		} else if (j > 0) {
			copied += weight(m, j - 1);
		}
		free_bytes += gap(m, j);
		while (free_bytes - gap(m, first) >= bytes && first < j) {
			free_bytes -= gap(m, first);
			copied -= weight(m, first);
			first++;
		}
		if (free_bytes >= bytes && copied < best.bytes)
			best = (struct mover_run){first, j, copied};
	}
	return best;
}

/* Moves neighbours down until the gap behind them holds `bytes`. *k: the index behind the run. */
static int close_up(struct buffer_mover *m, uint64_t bytes, int64_t *k)
{
	struct mover_run run = best_run(m, bytes);
	while (run.bytes == UINT64_MAX) {
		NEAP_TRY(end_oldest(m));
		run = best_run(m, bytes);
	}
	uint64_t at = run.from ? lying(m, run.from - 1)->offset + lying(m, run.from - 1)->bytes : 0;
	for (int64_t j = run.from; j < run.to; j++) {
		NEAP_TRY(slide(m, j, at));
		at += lying(m, j)->bytes;
	}
	*k = run.to;
	return 0;
}

static int enter(struct buffer_mover *m, int64_t buffer)
{
	const struct neap__stage_buffer *b = &m->in.buffers[buffer];
	int short_lived = b->to - b->from < SHORT_LIFE;
	int64_t k = NEAP__NOTHING;
	if (b->bytes == 0)
		return 0;
	for (int64_t j = 0; j <= m->nlying && k == NEAP__NOTHING; j++) {
		int64_t try = short_lived ? m->nlying - j : j;
		if (gap(m, try) >= b->bytes)
			k = try;
	}
	if (k == NEAP__NOTHING)
		NEAP_TRY(close_up(m, b->bytes, &k));
	uint64_t low = k ? lying(m, k - 1)->offset + lying(m, k - 1)->bytes : 0;
	insert(m, k, buffer, short_lived ? low + gap(m, k) - b->bytes : low);
	return 0;
}

/* Appends the call: all of its buffers have places, and stay there until it is over. */
static int emit(struct buffer_mover *m)
{
	struct neap__stage_call call = m->in.calls[m->call];
	for (int role = 0; role < NEAP__ROLES; role++)
		if (call.at[role] != NEAP__NOTHING)
			call.at[role] = (int64_t)m->in.buffers[call.at[role]].offset;
	if (call.kind == NEAP_WAIT && m->flying[call.i])
		pin(m, call.i, -1);
	if (call.kind == NEAP_PUT || call.kind == NEAP_GET) {
		const struct neap__stage_flight *f = &m->in.flights[call.i];
		for (int64_t k = 0; k < f->count; k++) {
			struct neap__stage_part *part = &m->in.parts[f->first + k];
			part->offset = m->in.buffers[part->buffer].offset;
		}
		pin(m, call.i, 1);
	}
	return neap__stage_program_call(&m->out, &call);
}

static int move(struct buffer_mover *m)
{
	int64_t next = 0;
	for (m->call = 0; m->call < m->in.ncalls; m->call++) {
		leave(m);
		for (; next < m->in.nbuffers && m->in.buffers[next].from == m->call; next++)
			NEAP_TRY(enter(m, next));
		NEAP_TRY(emit(m));
	}
	return 0;
}

int neap__stage_move(struct neap__stage_program *program, uint64_t budget)
{
	struct buffer_mover m = {.in = *program, .budget = budget};
	size_t n = (size_t)program->nbuffers;
	m.lying = malloc(n * sizeof *m.lying);
	m.entered = calloc(n, sizeof *m.entered);
	m.pins = calloc(n, sizeof *m.pins);
	m.flying = calloc((size_t)program->nflights + 1, sizeof *m.flying);
	int rc = m.lying && m.entered && m.pins && m.flying
			 ? move(&m)
			 : neap__fail_errno(ENOMEM, "tables of a sweep");
	for (size_t b = 0; rc == 0 && b < n; b++)
		program->buffers[b].offset = m.entered[b];
	free(m.lying);
	free(m.entered);
	free(m.pins);
	free(m.flying);
	program->moved = m.out.moved;
	program->arena = budget;
	free(program->calls);
	program->calls = m.out.calls;
	program->ncalls = m.out.ncalls;
	program->calls_room = m.out.calls_room;
	return rc;
}

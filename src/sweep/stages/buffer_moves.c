/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_moves.c: places for buffers in a budget that no fixed places fit. In the order of the
 * calls, buffers with a long life go to the lowest gap, buffers that end after a call or two
 * to the highest. Where no gap is large enough, neighbours are moved together until one is,
 * those with the least bytes to move. The bytes at a call never exceed the peak, so this
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
	m->in.buffers[buffer].offset = offset;
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
	struct neap__stage_call call = {.kind = NEAP__MOVE,
		.i = (int64_t)b->bytes,
		.at = {(int64_t)b->offset, (int64_t)to}};
	uint64_t bytes = weight(m, k);
	if (b->offset == to)
		return 0;
	b->offset = to;
	m->out.moved += bytes;
	return bytes ? neap__stage_program_call(&m->out, &call) : 0;
}

/*
 * Moves neighbours down until the gap behind them holds `bytes`: of all runs of neighbours for
 * which that works, the one with the fewest bytes to copy. *k becomes the index behind the run.
 */
static int close_up(struct buffer_mover *m, uint64_t bytes, int64_t *k)
{
	uint64_t least = UINT64_MAX, free_bytes = 0, copied = 0;
	int64_t first = 0, from = 0, last = 0;
	for (int64_t j = 0; j <= m->nlying; j++) { /* gaps first..j, buffers first..j-1 */
		free_bytes += gap(m, j);
		copied += j ? weight(m, j - 1) : 0;
		while (free_bytes - gap(m, first) >= bytes && first < j) {
			free_bytes -= gap(m, first);
			copied -= weight(m, first);
			first++;
		}
		if (free_bytes >= bytes && copied < least) {
			least = copied;
			from = first;
			last = j;
		}
	}
	if (least == UINT64_MAX)
		return neap__fail(NEAP_EILLEGAL, "the plan takes more than its peak");
	uint64_t at = from ? lying(m, from - 1)->offset + lying(m, from - 1)->bytes : 0;
	for (int64_t j = from; j < last; j++) {
		NEAP_TRY(slide(m, j, at));
		at += lying(m, j)->bytes;
	}
	*k = last;
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
	return neap__stage_program_call(&m->out, &call);
}

static int move(struct buffer_mover *m)
{
	int64_t next = 0;
	for (m->call = 0; m->call < m->in.ncalls; m->call++) {
		leave(m);
		for (; next < m->in.nbuffers && m->in.buffers[next].from == m->call; next++) {
			NEAP_TRY(enter(m, next));
			if (next == 0)
				m->out.start = m->in.buffers[0].offset;
		}
		NEAP_TRY(emit(m));
	}
	return 0;
}

int neap__stage_move(struct neap__stage_program *program, uint64_t budget)
{
	struct buffer_mover m = {.in = *program, .budget = budget};
	m.lying = malloc((size_t)program->nbuffers * sizeof *m.lying);
	if (!m.lying)
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	int rc = move(&m);
	free(m.lying);
	program->moved = m.out.moved;
	program->start = m.out.start;
	program->arena = budget;
	free(program->calls);
	program->calls = m.out.calls;
	program->ncalls = m.out.ncalls;
	program->calls_room = m.out.calls_room;
	return rc;
}

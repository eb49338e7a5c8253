/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_commit.c: what a commit holds, when it is taken, and how it comes back. A commit first
 * ends every transfer, whose answers wait for their WAIT as always, and has the tiers flush their
 * records. Then tables, arena and what the model gathered follow each other in one stream.
 */
#include "sweep/journal/journal_commit.h"
#include "sweep/steps/copies.h"
#include "sweep/table_sizes.h"
#include "sweep/transfers/transfer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/scratch.h"

#define CALL_STEPS 256 /* that a call of the model is not cut below */

/* The first `count` rows of a table. */
#define ROWS(table, count)                                                                         \
	{                                                                                          \
		(table), (size_t)(count) * sizeof *(table)                                         \
	}

/* Writes or reads the numbers of a run. */
static int move_numbers(struct neap_sweep *s, neap__journal_mover *move)
{
	struct neap__arena *arena = &s->arena;
	struct neap__journal_run *journal = &s->journal;
	const struct neap__journal_field fields[] = {
		NEAP__JOURNAL_FIELD(journal->done),
		NEAP__JOURNAL_FIELD(journal->actions_hash),
		NEAP__JOURNAL_FIELD(journal->phase),
		NEAP__JOURNAL_FIELD(journal->period),
		NEAP__JOURNAL_FIELD(journal->loss),
		NEAP__JOURNAL_FIELD(s->walk.told_at),
		NEAP__JOURNAL_FIELD(s->walk.steps),
		NEAP__JOURNAL_FIELD(s->tickets),
		NEAP__JOURNAL_FIELD(s->issued),
		NEAP__JOURNAL_FIELD(s->waiting_gets),
		NEAP__JOURNAL_FIELD(s->nranges),
		NEAP__JOURNAL_FIELD(s->free_piece),
		NEAP__JOURNAL_FIELD(s->unused_piece),
		NEAP__JOURNAL_FIELD(s->free_span_rows),
		NEAP__JOURNAL_FIELD(s->recovery_records),
		NEAP__JOURNAL_FIELD(s->rewritten),
		NEAP__JOURNAL_FIELD(s->rewrite_failures),
		NEAP__JOURNAL_FIELD(s->fallback),
		NEAP__JOURNAL_FIELD(s->live_t),
		NEAP__JOURNAL_FIELD(s->live_puts),
		NEAP__JOURNAL_FIELD(s->passed),
		NEAP__JOURNAL_FIELD(s->position),
		NEAP__JOURNAL_FIELD(s->generation),
		NEAP__JOURNAL_FIELD(s->leaf_bytes),
		NEAP__JOURNAL_FIELD(s->recent_tape),
		NEAP__JOURNAL_FIELD(s->stats),
		NEAP__JOURNAL_FIELD(arena->positions),
		NEAP__JOURNAL_FIELD(arena->free_hint),
		NEAP__JOURNAL_FIELD(arena->nextents),
		NEAP__JOURNAL_FIELD(arena->top),
		NEAP__JOURNAL_FIELD(arena->held),
		NEAP__JOURNAL_FIELD(arena->used),
		NEAP__JOURNAL_FIELD(arena->peak),
		NEAP__JOURNAL_FIELD(arena->promised),
		NEAP__JOURNAL_FIELD(arena->moved),
	};
	return neap__journal_move(
		journal->base.file, fields, sizeof fields / sizeof fields[0], move);
}

static int move_tables(struct neap_sweep *s, neap__journal_mover *move)
{
	struct neap__arena *arena = &s->arena;
	const struct neap__journal_field tables[] = {
		ROWS(s->ranges, s->nranges),
		ROWS(s->pieces, s->unused_piece),
		ROWS(s->span_rows, s->sizes.span_rows),
		ROWS(arena->slots, arena->nslots),
		ROWS(arena->occupant, arena->nslots),
		ROWS(arena->extents, arena->nextents),
	};
	NEAP_TRY(neap__journal_move(
		s->journal.base.file, tables, sizeof tables / sizeof tables[0], move));
	for (int i = 0; i < s->problem.ntiers; i++) {
		const struct neap__journal_field records[] = {
			ROWS(s->state_records[i], s->places[i]),
			ROWS(s->tape_records[i], s->sizes.tape_places[i]),
		};
		NEAP_TRY(neap__journal_move(s->journal.base.file, records, 2, move));
	}
	return 0;
}

/* The pages of the arena in use, as two ranges: adjoint to last tape, and slots. */
static void used_pages(const struct neap__arena *arena, uint64_t from[2], uint64_t to[2])
{
	uint64_t slots = arena->bytes - (uint64_t)arena->positions * arena->state;
	from[0] = arena->adjoint / NEAP__PAGE * NEAP__PAGE;
	to[0] = neap__round_up(arena->top, NEAP__PAGE);
	from[1] = slots / NEAP__PAGE * NEAP__PAGE;
	to[1] = neap__round_up(arena->bytes, NEAP__PAGE);
	if (arena->positions == 0)
		from[1] = to[1];
	if (from[1] < to[0])
		from[1] = to[0];
}

static int write_commit(void *sweep)
{
	struct neap_sweep *s = sweep;
	struct neap__journal *file = s->journal.base.file;
	uint64_t from[2], to[2];
	if (s->live_t >= 0)
		NEAP_TRY(neap__copy_save(s, neap__transit(s)));
	neap__fence_wait(&s->arena.memory.fence);
	NEAP_TRY(neap__journal_commit_begin(file));
	NEAP_TRY(move_numbers(s, neap__journal_write_out));
	NEAP_TRY(move_tables(s, neap__journal_write_out));
	NEAP_TRY(neap__journal_save(file, s->ops.grad_save, s->user));
	used_pages(&s->arena, from, to);
	for (int i = 0; i < 2; i++)
		NEAP_TRY(neap__memory_show(&s->arena.memory, s->arena.base + from[i],
			to[i] - from[i], neap__commit_write_pages, file));
	return neap__journal_commit_end(file);
}

static void commit(struct neap_sweep *s)
{
	neap__fence_wait(&s->arena.memory.fence);
	for (int i = 0; i < NEAP_TICKETS; i++)
		if (s->tickets[i].state == NEAP__TICKET_IN_FLIGHT)
			neap__transfer_end(s, &s->tickets[i], NEAP_STALL_PUT);
	neap__journal_commit(s, write_commit);
	s->journal.period++;
}

/* 1 where the tables say all that is going on: between two calls of the model. */
static int may_commit(const struct neap_sweep *s)
{
	if (!s->journal.base.file || s->position == 0)
		return 0;
	if (s->recovering == 0)
		return 1;
	for (int i = 0; i < NEAP_TICKETS; i++)
		if (s->tickets[i].state == NEAP__TICKET_IN_FLIGHT && s->tickets[i].request.payload)
			return 0; /* its extents may be freed, and rows move under the recovery */
	return s->recovering == 1 && s->journal.in_hole;
}

int neap__commit_is_due(const struct neap_sweep *s)
{
	return neap__journal_is_due(&s->journal.base);
}

void neap__commit_if_due(struct neap_sweep *s)
{
	/* Of ranks, one that is due makes all commit. */
	int due = neap__agrees(&s->agreement) ? s->agreement.due : neap__commit_is_due(s);
	if (due && may_commit(s))
		commit(s);
}

int64_t neap__commit_stop_before(const struct neap_sweep *s, int64_t t, int64_t t1)
{
	double every = neap__journal_every(s->options.journal_seconds, 0), steps = CALL_STEPS;
	if (!s->journal.base.file)
		return t1;
	if (s->stats.advance > 0 && every > 0 && !neap__agrees(&s->agreement))
		steps = every / 4 * (double)s->stats.advance_steps / s->stats.advance;
	if (steps < CALL_STEPS)
		steps = CALL_STEPS;
	return (double)(t1 - t) <= steps ? t1 : t + (int64_t)steps;
}

void neap__commit_now(struct neap_sweep *s)
{
	if (may_commit(s))
		commit(s);
}

/* Checks the numbers that index tables: a checksum says that this very code wrote them. */
static int check(const struct neap_sweep *s)
{
	const struct neap__arena *arena = &s->arena;
	int good = s->nranges >= 0 && s->nranges <= s->sizes.ranges && s->unused_piece >= 0 &&
		   s->unused_piece <= s->sizes.pieces && arena->nextents >= 0 &&
		   arena->nextents <= arena->extents_max && arena->positions >= 0 &&
		   arena->positions <= arena->nslots && arena->top >= arena->tapes &&
		   arena->top <= arena->bytes && s->journal.done >= 0;
	return good ? 0 : neap__journal_senseless(&s->journal.base);
}

int neap__commit_load(struct neap_sweep *s)
{
	struct neap__journal *file = s->journal.base.file;
	uint64_t from[2], to[2];
	NEAP_TRY(move_numbers(s, neap__journal_read_in));
	NEAP_TRY(check(s));
	NEAP_TRY(move_tables(s, neap__journal_read_in));
	NEAP_TRY(neap__journal_load(file, s->ops.grad_load, s->user));
	used_pages(&s->arena, from, to);
	for (int i = 0; i < 2; i++)
		NEAP_TRY(neap__memory_take(&s->arena.memory, s->arena.base + from[i],
			to[i] - from[i], neap__commit_read_pages, file));
	if (s->live_t >= 0)
		NEAP_TRY(neap__copy_load(s, neap__transit(s), s->live_t));
	if (s->loss && s->position >= 0)
		*s->loss = s->journal.loss;
	return 0;
}

uint64_t neap__commit_largest(const struct neap_sweep *s, uint64_t gathered)
{
	const struct neap__table_sizes *v = &s->sizes;
	const uint64_t rows[][2] = {
		{1, sizeof *s},
		{(uint64_t)v->ranges, sizeof *s->ranges},
		{(uint64_t)v->pieces, sizeof *s->pieces},
		{(uint64_t)v->span_rows, sizeof *s->span_rows},
		{(uint64_t)s->arena.nslots, sizeof *s->arena.slots + sizeof *s->arena.occupant},
		{(uint64_t)s->arena.extents_max, sizeof *s->arena.extents},
		{1, gathered},
		{1, s->arena.mapped},
	};
	uint64_t sum = 0;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		sum = neap__sat_add(sum, neap__sat_mul(rows[i][0], rows[i][1]));
	for (int i = 0; i < s->problem.ntiers; i++) {
		uint64_t states =
			neap__sat_mul((uint64_t)s->places[i], sizeof *s->state_records[i]);
		uint64_t tapes =
			neap__sat_mul((uint64_t)v->tape_places[i], sizeof *s->tape_records[i]);
		sum = neap__sat_add(sum, neap__sat_add(states, tapes));
	}
	return sum;
}

struct neap__journal_owner neap__journal_own(struct neap_sweep *s)
{
	return (struct neap__journal_owner){&s->journal.base, &s->options, &s->agreement, &s->stats,
		s->tiers, s->problem.ntiers};
}

void neap__journal_commit(struct neap_sweep *s, int (*write)(void *sweep))
{
	const struct neap__journal_owner own = neap__journal_own(s);
	neap__journal_take_commit(&own, write, s);
}

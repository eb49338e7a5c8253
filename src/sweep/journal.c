/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c: commits, and going on from the last one.
 *
 * A commit first ends every transfer, whose answers wait for their WAIT as always, and
 * has the tiers make sure of their records; then tables, arena and what the model
 * gathered follow each other in one stream. What happened after the last commit is
 * rolled back by going on, on the tiers too as far as it matters: a record that was
 * overwritten since is one that was lost, and is recomputed.
 */
#include "sweep/internal.h"
#include "base/checked.h"
#include "base/fail.h"
#include "store/tier.h"
#include "sys/clock.h"
#include "sys/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS 30.0 /* between commits */
#define SHARE 30.0   /* and at least so many times what the last one took */

typedef int mover(struct neap__journal *file, void *bytes, size_t count);

static int write_out(struct neap__journal *file, void *bytes, size_t count)
{
	return neap__journal_write(file, bytes, count);
}

static int read_in(struct neap__journal *file, void *bytes, size_t count)
{
	return neap__journal_read(file, bytes, count);
}

struct field {
	void *at;
	size_t bytes;
};

#define FIELD(x)                                                                                   \
	{                                                                                          \
		&(x), sizeof(x)                                                                    \
	}

/* The numbers of a run. */
static int move_numbers(struct neap_sweep *s, mover *move)
{
	struct neap__arena *arena = &s->arena;
	struct neap__book *book = &s->book;
	const struct field fields[] = {
		FIELD(book->done),
		FIELD(book->told),
		FIELD(book->stage),
		FIELD(book->period),
		FIELD(book->loss),
		FIELD(s->tickets),
		FIELD(s->issued),
		FIELD(s->later),
		FIELD(s->nranges),
		FIELD(s->free_piece),
		FIELD(s->fresh_piece),
		FIELD(s->free_lanes),
		FIELD(s->anchored),
		FIELD(s->live_t),
		FIELD(s->live_pins),
		FIELD(s->seen),
		FIELD(s->position),
		FIELD(s->generation),
		FIELD(s->leaf),
		FIELD(s->density),
		FIELD(s->stats),
		FIELD(arena->positions),
		FIELD(arena->free_hint),
		FIELD(arena->nextents),
		FIELD(arena->top),
		FIELD(arena->held),
		FIELD(arena->used),
		FIELD(arena->peak),
		FIELD(arena->promised),
		FIELD(arena->moved),
	};
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		NEAP_TRY(move(book->file, fields[i].at, fields[i].bytes));
	return 0;
}

/* Bytes of `count` rows. */
#define ROWS(table, count)                                                                         \
	{                                                                                          \
		(table), (size_t)(count) * sizeof *(table)                                         \
	}

static int move_tables(struct neap_sweep *s, mover *move)
{
	struct neap__arena *arena = &s->arena;
	const struct field tables[] = {
		ROWS(s->ranges, s->nranges),
		ROWS(s->pieces, s->fresh_piece),
		ROWS(s->lanes, s->survey.lanes),
		ROWS(arena->slots, arena->nslots),
		ROWS(arena->occupant, arena->nslots),
		ROWS(arena->extents, arena->nextents),
	};
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		NEAP_TRY(move(s->book.file, tables[i].at, tables[i].bytes));
	for (int i = 0; i < s->problem.ntiers; i++) {
		const struct field states = ROWS(s->records[i], s->places[i]);
		const struct field tapes = ROWS(s->sent[i], s->survey.tape_places[i]);
		NEAP_TRY(move(s->book.file, states.at, states.bytes));
		NEAP_TRY(move(s->book.file, tapes.at, tapes.bytes));
	}
	return 0;
}

/* Pages of the arena that are in use: from the adjoint to the last tape, and the slots. */
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

static int give(void *to, const void *bytes, size_t count)
{
	return neap__journal_write(to, bytes, count);
}

static int take(void *from, void *bytes, size_t count)
{
	return neap__journal_read(from, bytes, count);
}

static int count_bytes(void *to, const void *bytes, size_t count)
{
	uint64_t *sum = to;
	(void)bytes;
	*sum = neap__sat_add(*sum, count);
	return 0;
}

static int write_commit(struct neap_sweep *s)
{
	struct neap__journal *file = s->book.file;
	uint64_t from[2], to[2];
	if (s->live_t >= 0)
		NEAP_TRY(neap__copy_save(s, neap__live(s)));
	NEAP_TRY(neap__journal_commit_begin(file));
	NEAP_TRY(move_numbers(s, write_out));
	NEAP_TRY(move_tables(s, write_out));
	NEAP_TRY(s->ops.grad_save(s->user, give, file));
	used_pages(&s->arena, from, to);
	for (int i = 0; i < 2; i++)
		NEAP_TRY(neap__journal_write_pages(
			file, s->arena.base + from[i], (size_t)(to[i] - from[i])));
	return neap__journal_commit_end(file);
}

/* A commit that fails costs the chance to go on from it, not the run. */
static void commit(struct neap_sweep *s)
{
	struct neap__book *book = &s->book;
	double every = s->options.journal_seconds;
	int rc = 0;
	for (int i = 0; i < NEAP_TICKETS; i++)
		if (s->tickets[i].state == NEAP__TICKET_FLYING)
			neap__transfer_end(s, &s->tickets[i]);
	double start = neap__seconds();
	for (int i = 0; rc == 0 && i < s->problem.ntiers; i++)
		rc = neap__tier_sync(s->tiers[i]);
	s->stats.seconds = book->before + start - book->began;
	s->stats.commits++;
	if (rc == 0)
		rc = write_commit(s);
	s->stats.commits -= rc < 0;
	s->stats.commits_failed += rc < 0;
	book->period++;
	double end = neap__seconds(), took = end - start;
	s->stats.journal += took;
	every = every == 0 ? SECONDS : every;
	if (every > 0 && every < SHARE * took)
		every = SHARE * took;
	book->due = end + every;
}

/* Between two calls of the model: what is going on can be found again from the tables. */
static int may_commit(const struct neap_sweep *s)
{
	if (!s->book.file || s->position == 0)
		return 0;
	if (s->repairing == 0)
		return 1;
	for (int i = 0; i < NEAP_TICKETS; i++)
		if (s->tickets[i].state == NEAP__TICKET_FLYING && s->tickets[i].tapes)
			return 0; /* they may leave, and rows move */
	return s->repairing == 1 && s->book.filling;
}

void neap__journal_point(struct neap_sweep *s)
{
	if (s->book.file && neap__seconds() >= s->book.due && may_commit(s))
		commit(s);
}

void neap__journal_last(struct neap_sweep *s)
{
	if (may_commit(s))
		commit(s);
}

void neap__journal_told(struct neap_sweep *s, const struct neap_action *a)
{
	_Static_assert(sizeof *a == 40, "an action has no padding");
	s->book.stage = NEAP__NOT_BEGUN;
	s->book.done++;
	if (s->book.file)
		s->book.told = neap__journal_hash(s->book.told, a, sizeof *a);
}

int neap__journal_attach(struct neap_sweep *s)
{
	const struct neap_sweep_options *o = &s->options;
	if (!o->journal)
		return 0;
	if (!s->ops.grad_save || !s->ops.grad_load)
		return neap__fail(NEAP_EUSAGE,
			"a journal needs the model's grad_save and grad_load, which it lacks");
	if (s->ops.ended)
		return neap__fail(
			NEAP_EUSAGE, "a chain of unknown length cannot have a journal yet");
	s->book.directory = strdup(o->journal);
	if (!s->book.directory)
		return neap__fail_errno(ENOMEM, "a journal");
	NEAP_TRY(neap__journal_open(&s->book.file, o->journal, o->journal_in_memory));
	return neap__subject_take(s);
}

int neap_journal_there(const char *directory, int in_memory)
{
	struct neap__journal *file;
	size_t bytes;
	NEAP_TRY(neap__journal_open(&file, directory, in_memory));
	int there = neap__journal_subject(file, &bytes) != NULL;
	neap__journal_close(file);
	return there;
}

static void adopt(struct neap_sweep *s, uint64_t epoch)
{
	for (int i = 0; i < s->problem.ntiers; i++)
		(void)neap__tier_adopt(s->tiers[i], epoch);
}

/* Nothing of it is needed any more. */
static void drop(struct neap_sweep *s)
{
	if (!s->book.file)
		return;
	neap__journal_remove(s->book.file);
	s->book.file = NULL;
	s->book.goes_on = 0;
	adopt(s, 0);
}

void neap__journal_give_up(struct neap_sweep *s)
{
	if (s->book.finished)
		drop(s);
	neap__journal_close(s->book.file);
	neap_saved_free(s->book.plan);
	free(s->book.directory);
	s->book = (struct neap__book){0};
}

void neap__journal_inherit(struct neap_sweep *s, struct neap_sweep *old)
{
	drop(old);
	s->book.directory = old->book.directory;
	neap_saved_free(old->book.plan);
}

/* Bytes of the largest commit there can be, of `gathered` bytes of the model. */
static uint64_t largest(const struct neap_sweep *s, uint64_t gathered)
{
	const struct neap__survey *v = &s->survey;
	const uint64_t rows[][2] = {
		{1, sizeof *s},
		{(uint64_t)v->ranges, sizeof *s->ranges},
		{(uint64_t)v->pieces, sizeof *s->pieces},
		{(uint64_t)v->lanes, sizeof *s->lanes},
		{(uint64_t)s->arena.nslots, sizeof *s->arena.slots + sizeof *s->arena.occupant},
		{(uint64_t)s->arena.extents_max, sizeof *s->arena.extents},
		{1, gathered},
		{1, s->arena.mapped},
	};
	uint64_t sum = 0;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		sum = neap__sat_add(sum, neap__sat_mul(rows[i][0], rows[i][1]));
	for (int i = 0; i < s->problem.ntiers; i++) {
		uint64_t states = neap__sat_mul((uint64_t)s->places[i], sizeof *s->records[i]);
		uint64_t tapes = neap__sat_mul((uint64_t)v->tape_places[i], sizeof *s->sent[i]);
		sum = neap__sat_add(sum, neap__sat_add(states, tapes));
	}
	return sum;
}

static int start_anew(struct neap_sweep *s)
{
	uint64_t gathered = 0;
	NEAP_TRY(s->ops.grad_save(s->user, count_bytes, &gathered));
	NEAP_TRY(neap__subject_begin(s, gathered, largest(s, gathered)));
	adopt(s, s->book.subject.epoch);
	return 0;
}

/* What was read is what this very code wrote; a look at what would lead out of bounds. */
static int check(const struct neap_sweep *s)
{
	const struct neap__arena *arena = &s->arena;
	int good = s->nranges >= 0 && s->nranges <= s->survey.ranges && s->fresh_piece >= 0 &&
		   s->fresh_piece <= s->survey.pieces && arena->nextents >= 0 &&
		   arena->nextents <= arena->extents_max && arena->positions >= 0 &&
		   arena->positions <= arena->nslots && arena->top >= arena->tapes &&
		   arena->top <= arena->bytes && s->book.done >= 0;
	return good ? 0
		    : neap__fail(NEAP_EFORMAT, "the journal in '%s' makes no sense",
			      s->book.directory);
}

static int load(struct neap_sweep *s)
{
	struct neap__journal *file = s->book.file;
	uint64_t from[2], to[2];
	NEAP_TRY(move_numbers(s, read_in));
	NEAP_TRY(check(s));
	NEAP_TRY(move_tables(s, read_in));
	NEAP_TRY(s->ops.grad_load(s->user, take, file));
	used_pages(&s->arena, from, to);
	for (int i = 0; i < 2; i++)
		NEAP_TRY(neap__journal_read_pages(
			file, s->arena.base + from[i], (size_t)(to[i] - from[i])));
	if (s->live_t >= 0)
		NEAP_TRY(neap__copy_load(s, neap__live(s), s->live_t));
	if (s->loss && s->position >= 0)
		*s->loss = s->book.loss;
	return 0;
}

static int go_on(struct neap_sweep *s, struct neap_schedule *schedule)
{
	struct neap__book *book = &s->book;
	struct neap_action a;
	uint64_t told = 0;
	int more = 1;
	NEAP_TRY(neap__subject_same(s));
	NEAP_TRY(load(s));
	for (int64_t i = 0; more > 0 && i < book->done; i++) {
		more = neap_schedule_next(schedule, &a);
		told = neap__journal_hash(told, &a, sizeof a);
	}
	NEAP_TRY(more);
	if (told != book->told)
		return neap__fail(NEAP_EUSAGE,
			"the journal in '%s' is of another schedule; give another directory, or "
			"remove " NEAP__JOURNAL_NAME " to start over",
			book->directory);
	adopt(s, book->subject.epoch);
	book->period += 1 + (neap__unique() & 0xfff);
	book->before = s->stats.seconds;
	s->stats.spared = s->stats.advance_steps + s->stats.record_steps + s->stats.backward_steps;
	return 0;
}

int neap__journal_start(struct neap_sweep *s, struct neap_schedule *schedule)
{
	struct neap__book *book = &s->book;
	if (!book->directory)
		return 0;
	if (book->finished)
		drop(s);
	book->finished = 0;
	if (!book->file)
		NEAP_TRY(neap__journal_open(
			&book->file, book->directory, s->options.journal_in_memory));
	int there = neap__journal_load(book->file);
	NEAP_TRY(there);
	NEAP_TRY(there ? go_on(s, schedule) : start_anew(s));
	double every = s->options.journal_seconds;
	book->began = neap__seconds();
	book->due = book->began + (every == 0 ? SECONDS : every);
	return 0;
}

void neap__journal_end(struct neap_sweep *s, int rc)
{
	s->stats.seconds += s->book.before;
	s->book.finished = rc == 0 && s->book.file;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c: a journal from create to free, and a run that goes on from its last commit.
 *
 * What happened after that commit is rolled back, on the tiers too as far as it matters:
 * a record that was overwritten since is one that was lost, and is recomputed.
 */
#include "sweep/sweep_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "store/tier_state.h"
#include "sys/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	return neap__journal_identity_take(s);
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
	s->book = (struct neap__journal_run){0};
}

void neap__journal_inherit(struct neap_sweep *s, struct neap_sweep *old)
{
	drop(old);
	s->book.directory = old->book.directory;
	neap_saved_free(old->book.plan);
}

static int count_bytes(void *to, const void *bytes, size_t count)
{
	uint64_t *sum = to;
	(void)bytes;
	*sum = neap__sat_add(*sum, count);
	return 0;
}

static int start_anew(struct neap_sweep *s)
{
	uint64_t gathered = 0;
	NEAP_TRY(s->ops.grad_save(s->user, count_bytes, &gathered));
	NEAP_TRY(neap__journal_identity_begin(s, gathered, neap__commit_largest(s, gathered)));
	adopt(s, s->book.subject.epoch);
	return 0;
}

static int go_on(struct neap_sweep *s, struct neap_schedule *schedule)
{
	struct neap__journal_run *book = &s->book;
	struct neap_action a;
	uint64_t told = 0;
	int more = 1;
	NEAP_TRY(neap__journal_identity_same(s));
	NEAP_TRY(neap__commit_load(s));
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
	struct neap__journal_run *book = &s->book;
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
	book->due = book->began + (every == 0 ? NEAP__JOURNAL_SECONDS : every);
	return 0;
}

void neap__journal_end(struct neap_sweep *s, int rc)
{
	s->stats.seconds += s->book.before;
	s->book.finished = rc == 0 && s->book.file;
}

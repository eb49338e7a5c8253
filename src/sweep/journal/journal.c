/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c: a journal from create to free, and a run that resumes from its last commit. What
 * happened after that commit is rolled back, on the tiers, too, as far as it matters: a record
 * that was overwritten since then counts as lost, and is recomputed.
 */
#include "sweep/journal/journal_commit.h"
#include "sweep/journal/journal_identity.h"
#include "sweep/journal/journal_ranks.h"
#include "sweep/journal/journal_subject.h"
#include "sweep/online_sweep.h"
#include "sweep/steps.h"
#include "base/checked.h"
#include "base/fail.h"
#include "store/tier_state.h"
#include "sys/clock.h"
#include "sys/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void neap__journal_action_done(struct neap_sweep *s, const struct neap_action *a)
{
	_Static_assert(sizeof *a == 40, "an action has no padding");
	s->journal.phase = NEAP__ACTION_NOT_BEGUN;
	s->journal.done++;
	if (s->journal.file)
		s->journal.actions_hash = neap__journal_hash(s->journal.actions_hash, a, sizeof *a);
}

/* Opens the file, whose name is kept beside the directory. */
static int open_first(struct neap_sweep *s)
{
	const struct neap_sweep_options *o = &s->options;
	if (!s->ops.grad_save || !s->ops.grad_load)
		return neap__fail(NEAP_EUSAGE,
			"a journal needs the model's grad_save and grad_load, which it lacks");
	s->journal.directory = strdup(o->journal);
	if (!s->journal.directory)
		return neap__fail_errno(ENOMEM, "a journal");
	NEAP_TRY(neap__scratch_name(s->journal.name, NEAP__JOURNAL_NAME, o->journal_suffix));
	return neap__journal_open(
		&s->journal.file, o->journal, o->journal_suffix, o->journal_in_memory);
}

int neap__journal_attach(struct neap_sweep *s)
{
	struct neap__agree_state *a = &s->agreement;
	if (!s->options.journal)
		return 0;
	int rc = open_first(s);
	NEAP_TRY(neap__journal_meet(a, s->journal.file, rc));
	return neap__agree_code(a, NEAP__AGREE_JOURNAL, neap__journal_identity_take(s));
}

int neap_journal_there(const char *directory, const char *suffix, int in_memory)
{
	NEAP_NEED(directory);
	struct neap__journal *file;
	size_t bytes;
	NEAP_TRY(neap__journal_open(&file, directory, suffix, in_memory));
	int there = neap__journal_subject(file, &bytes) != NULL;
	neap__journal_close(file);
	return there;
}

static void adopt(struct neap_sweep *s, uint64_t epoch)
{
	for (int i = 0; i < s->problem.ntiers; i++)
		(void)neap__tier_adopt(s->tiers[i], epoch);
}

/* Removes the journal, and lets the tiers drop their records. */
static void drop(struct neap_sweep *s)
{
	if (!s->journal.file)
		return;
	neap__journal_remove(s->journal.file);
	s->journal.file = NULL;
	s->journal.resumes = 0;
	adopt(s, 0);
}

void neap__journal_detach(struct neap_sweep *s)
{
	if (s->journal.finished)
		drop(s);
	neap__journal_close(s->journal.file);
	neap_saved_free(s->journal.plan);
	free(s->journal.directory);
	s->journal = (struct neap__journal_run){0};
}

void neap__journal_inherit(struct neap_sweep *s, struct neap_sweep *old)
{
	drop(old);
	s->journal.directory = old->journal.directory;
	memcpy(s->journal.name, old->journal.name, sizeof s->journal.name);
	neap_saved_free(old->journal.plan);
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
	uint64_t gathered = 0, number;
	NEAP_TRY(neap__journal_draw_number(&s->agreement, &number));
	neap_detail_set(NULL);
	NEAP_TRY(neap__step_answer("grad_save", s->ops.grad_save(s->user, count_bytes, &gathered)));
	NEAP_TRY(neap__journal_identity_begin(
		s, number, gathered, neap__commit_largest(s, gathered)));
	adopt(s, s->journal.identity.epoch);
	return 0;
}

/* Passes over the actions that were done; *told becomes their hash. */
static int pass_over(struct neap_sweep *s, struct neap_schedule *schedule, uint64_t *told)
{
	struct neap_action a;
	int more = 1;
	if (s->ops.ended)
		return neap__online_replay(s, s->journal.done, told);
	for (int64_t i = 0; more > 0 && i < s->journal.done; i++) {
		more = neap_schedule_next(schedule, &a);
		*told = neap__journal_hash(*told, &a, sizeof a);
	}
	return more < 0 ? more : 0;
}

static int resume(struct neap_sweep *s, struct neap_schedule *schedule)
{
	struct neap__journal_run *journal = &s->journal;
	uint64_t told = 0;
	NEAP_TRY(neap__journal_identity_same(s));
	NEAP_TRY(neap__commit_load(s));
	NEAP_TRY(pass_over(s, schedule, &told));
	if (told != journal->actions_hash)
		return neap__fail(NEAP_EUSAGE,
			"the journal in '%s' is of another schedule; give another directory, or "
			"remove %s to start over",
			journal->directory, journal->name);
	adopt(s, journal->identity.epoch);
	journal->period += 1 + (neap__unique() & 0xfff);
	journal->seconds_before = s->stats.seconds;
	s->stats.spared = s->stats.advance_steps + s->stats.record_steps + s->stats.backward_steps;
	return 0;
}

int neap__journal_start(struct neap_sweep *s, struct neap_schedule *schedule)
{
	struct neap__journal_run *journal = &s->journal;
	if (!journal->directory)
		return 0;
	if (journal->finished)
		drop(s);
	journal->finished = 0;
	journal->seconds_before = 0;
	int rc = 0;
	if (!journal->file)
		rc = neap__journal_open(&journal->file, journal->directory,
			journal->name + sizeof NEAP__JOURNAL_NAME - 1,
			s->options.journal_in_memory);
	NEAP_TRY(neap__journal_meet(&s->agreement, journal->file, rc));
	int there = neap__journal_resume_from(&s->agreement, journal->file);
	NEAP_TRY(there);
	rc = there ? resume(s, schedule) : start_anew(s);
	NEAP_TRY(neap__agree_code(&s->agreement, NEAP__AGREE_JOURNAL, rc));
	journal->began_at = neap__seconds();
	journal->due_at = journal->began_at + neap__journal_every(s->options.journal_seconds, 0);
	return 0;
}

void neap__journal_end(struct neap_sweep *s, int rc)
{
	s->stats.seconds += s->journal.seconds_before;
	s->stats.started_over = s->agreement.started_over;
	s->agreement.started_over = 0;
	s->journal.finished = rc == 0 && s->journal.file;
}

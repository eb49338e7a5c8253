/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c: a journal from create to free, and a run that resumes from its last commit. What
 * happened after that commit is rolled back, on the tiers, too, as far as it matters: a record
 * that was overwritten since then counts as lost, and is recomputed.
 */
#include "sweep/journal/journal_commit.h"
#include "sweep/journal/journal_identity.h"
#include "sweep/journal/journal_ranks.h"
#include "sweep/online_sweep.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/clock.h"
#include "sys/scratch.h"

#include <string.h>

void neap__journal_action_done(struct neap_sweep *s, const struct neap_action *a)
{
	_Static_assert(sizeof *a == 40, "an action has no padding");
	s->journal.phase = NEAP__ACTION_NOT_BEGUN;
	s->journal.done++;
	if (s->journal.base.file)
		s->journal.actions_hash = neap__journal_hash(s->journal.actions_hash, a, sizeof *a);
}

static struct neap__journal_owner owner(struct neap_sweep *s)
{
	return (struct neap__journal_owner){&s->journal.base, &s->options, &s->agreement, &s->stats,
		s->tiers, s->problem.ntiers};
}

int neap__journal_attach(struct neap_sweep *s)
{
	const struct neap__journal_owner own = owner(s);
	if (!s->options.journal)
		return 0;
	NEAP_TRY(neap__journal_open_first(&own, s->ops.grad_save && s->ops.grad_load));
	return neap__agree_code(&s->agreement, NEAP__AGREE_JOURNAL, neap__journal_identity_take(s));
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

void neap__journal_detach(struct neap_sweep *s)
{
	const struct neap__journal_owner own = owner(s);
	neap__journal_let_go(&own);
	s->journal = (struct neap__journal_run){0};
}

void neap__journal_inherit(struct neap_sweep *s, struct neap_sweep *old)
{
	const struct neap__journal_owner own = owner(old);
	neap__journal_drop(&own);
	s->journal.base.directory = old->journal.base.directory;
	memcpy(s->journal.base.name, old->journal.base.name, sizeof s->journal.base.name);
	neap_saved_free(old->journal.base.plan);
}

static int start_anew(struct neap_sweep *s, const struct neap__journal_owner *own)
{
	uint64_t gathered, number;
	NEAP_TRY(neap__journal_draw_number(&s->agreement, &number));
	NEAP_TRY(neap__journal_count(s->ops.grad_save, s->user, &gathered));
	NEAP_TRY(neap__journal_identity_begin(
		s, number, gathered, neap__commit_largest(s, gathered)));
	neap__journal_adopt(own, s->journal.identity.epoch);
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

static int resume(
	struct neap_sweep *s, const struct neap__journal_owner *own, struct neap_schedule *schedule)
{
	struct neap__journal_run *journal = &s->journal;
	uint64_t told = 0;
	NEAP_TRY(neap__journal_identity_same(s));
	NEAP_TRY(neap__commit_load(s));
	NEAP_TRY(pass_over(s, schedule, &told));
	if (told != journal->actions_hash)
		return neap__fail(NEAP_EUSAGE,
			"the journal in '%s' is of another schedule. Choose another directory, or "
			"remove %s to start over",
			journal->base.directory, journal->base.name);
	neap__journal_adopt(own, journal->identity.epoch);
	journal->period += 1 + (neap__unique() & 0xfff);
	neap__journal_resumed(own);
	return 0;
}

int neap__journal_start(struct neap_sweep *s, struct neap_schedule *schedule)
{
	const struct neap__journal_owner own = owner(s);
	if (!s->journal.base.directory)
		return 0;
	int there = neap__journal_begin_run(&own);
	NEAP_TRY(there);
	int rc = there ? resume(s, &own, schedule) : start_anew(s, &own);
	NEAP_TRY(neap__agree_code(&s->agreement, NEAP__AGREE_JOURNAL, rc));
	neap__journal_run_began(&own);
	return 0;
}

void neap__journal_end(struct neap_sweep *s, int rc)
{
	const struct neap__journal_owner own = owner(s);
	neap__journal_end_run(&own, rc);
}

void neap__journal_commit(struct neap_sweep *s, int (*write)(void *sweep))
{
	const struct neap__journal_owner own = owner(s);
	neap__journal_take_commit(&own, write, s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c: a journal from create to free, and a run that resumes from its last commit. What
 * happened after that commit is rolled back, on the tiers, too, as far as it matters: a record
 * that was overwritten since then counts as lost, and is recomputed.
 */
#include "sweep/journal/journal.h"
#include "sweep/journal/journal_commit.h"
#include "sweep/journal/journal_identity.h"
#include "base/fail.h"

#include <string.h>

void neap__journal_action_done(struct neap_sweep *s, const struct neap_action *a)
{
	_Static_assert(sizeof *a == 40, "an action has no padding");
	s->journal.phase = NEAP__ACTION_NOT_BEGUN;
	s->journal.done++;
	if (s->journal.base.file)
		s->journal.actions_hash = neap__journal_hash(s->journal.actions_hash, a, sizeof *a);
}

int neap__journal_attach(struct neap_sweep *s)
{
	const struct neap__journal_owner own = neap__journal_own(s);
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
	const struct neap__journal_owner own = neap__journal_own(s);
	neap__journal_let_go(&own);
	s->journal = (struct neap__journal_run){0};
}

void neap__journal_inherit(struct neap_sweep *s, struct neap_sweep *old)
{
	const struct neap__journal_owner own = neap__journal_own(old);
	neap__journal_drop(&own);
	s->journal.base.directory = old->journal.base.directory;
	memcpy(s->journal.base.name, old->journal.base.name, sizeof s->journal.base.name);
	neap_saved_free(old->journal.base.plan);
}

void neap__journal_end(struct neap_sweep *s, int rc)
{
	const struct neap__journal_owner own = neap__journal_own(s);
	neap__journal_end_run(&own, rc);
}

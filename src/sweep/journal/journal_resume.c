/* SPDX-License-Identifier: Apache-2.0 */
/* journal_resume.c: the beginning of a run with a journal: at x_0, or at the last commit. */
#include "sweep/journal/journal_resume.h"
#include "sweep/journal/journal_commit.h"
#include "sweep/journal/journal_identity.h"
#include "sweep/journal/journal_ranks.h"
#include "sweep/online_sweep.h"
#include "base/fail.h"
#include "sys/clock.h"
#include "base/debug_log.h"

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
	neap__sweep_publish(s);
	neap__debug("the journal in %s continues a run after %lld actions", journal->base.directory,
		(long long)journal->done);
	return 0;
}

int64_t neap_sweep_spared(const struct neap_sweep *s)
{
	return s ? atomic_load_explicit(&s->shared.spared, memory_order_relaxed) : 0;
}

int neap__journal_start(struct neap_sweep *s, struct neap_schedule *schedule)
{
	const struct neap__journal_owner own = neap__journal_own(s);
	if (!s->journal.base.directory)
		return 0;
	neap__fence_wait(&s->arena.memory.fence);
	int there = neap__journal_begin_run(&own);
	NEAP_TRY(there);
	int rc = there ? resume(s, &own, schedule) : start_anew(s, &own);
	NEAP_TRY(neap__agree_code(&s->agreement, NEAP__AGREE_JOURNAL, rc));
	neap__journal_run_began(&own);
	return 0;
}

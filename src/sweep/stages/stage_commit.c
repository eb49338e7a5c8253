/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_commit.c: what a commit of a sweep of stages holds, when it is taken, and how it comes
 * back. A commit first ends every transfer, whose answers wait for their WAIT as always, and has
 * the tiers flush their records.
 */
#include "sweep/stages/stage_journal.h"
#include "sweep/journal/journal_ranks.h"
#include "sweep/journal/journal_subject.h"
#include "sweep/steps.h"
#include "base/checked.h"
#include "base/fail.h"
#include "store/tier_state.h"
#include "sys/clock.h"
#include "sys/scratch.h"

#define PROGRAM_MOST (64 << 20) /* bytes of the tables of a plan without tiers, at most */

typedef int mover(struct neap__journal *file, void *bytes, size_t count);

static int write_out(struct neap__journal *file, void *bytes, size_t count)
{
	return neap__journal_write(file, bytes, count);
}

static int read_in(struct neap__journal *file, void *bytes, size_t count)
{
	return neap__journal_read(file, bytes, count);
}

#define FIELD(x)                                                                                   \
	{                                                                                          \
		&(x), sizeof(x)                                                                    \
	}

/* Writes or reads the numbers of a run. */
static int move_numbers(struct stage_run *r, mover *move)
{
	struct neap_stage_sweep *s = r->s;
	const struct {
		void *at;
		size_t bytes;
	} fields[] = {
		FIELD(r->fallen),
		FIELD(r->next),
		FIELD(r->call),
		FIELD(r->entered),
		FIELD(r->left),
		FIELD(r->bytes),
		FIELD(r->adjoint),
		FIELD(r->gradient),
		FIELD(r->passed),
		FIELD(r->finished),
		FIELD(s->loss),
		FIELD(s->generation),
		FIELD(s->stats),
	};
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		NEAP_TRY(move(s->journal.file, fields[i].at, fields[i].bytes));
	return 0;
}

static int move_tables(struct stage_run *r, mover *move)
{
	struct neap_stage_sweep *s = r->s;
	struct neap__journal *file = s->journal.file;
	if (r->given)
		NEAP_TRY(move(file, r->given, (size_t)r->given_bytes));
	for (int k = 0; k < s->layout.branches; k++)
		if (r->finished >> k & 1 && s->dx0[k])
			NEAP_TRY(move(file, s->dx0[k], (size_t)s->dx0_bytes[k]));
	NEAP_TRY(move(file, r->now, (size_t)r->entered * sizeof *r->now));
	if (r->fallen)
		return 0; /* without tiers */
	NEAP_TRY(move(file, s->flights, (size_t)s->program.nflights * sizeof *s->flights));
	return move(file, s->lost, (size_t)s->program.nrecords * sizeof *s->lost);
}

/* Moves the pages that live buffers touch. */
static int move_pages(
	struct stage_run *r, int (*move)(struct neap__journal *file, void *bytes, size_t count))
{
	int64_t n = neap__stage_list_taken(r);
	uint64_t from = 0, to = 0;
	for (int64_t k = 0; k <= n; k++) {
		uint64_t page = k < n ? r->taken[k].from / NEAP__PAGE * NEAP__PAGE : UINT64_MAX;
		if (page > to) {
			NEAP_TRY(move(r->s->journal.file, r->base + from, (size_t)(to - from)));
			from = page;
		}
		if (k < n)
			to = neap__round_up(r->taken[k].to, NEAP__PAGE);
	}
	return 0;
}

static int write_pages(struct neap__journal *file, void *bytes, size_t count)
{
	return neap__journal_write_pages(file, bytes, count);
}

static int give(void *to, const void *bytes, size_t count)
{
	return neap__journal_write(to, bytes, count);
}

static int take(void *from, void *bytes, size_t count)
{
	return neap__journal_read(from, bytes, count);
}

static int write_commit(struct stage_run *r)
{
	struct neap_stage_sweep *s = r->s;
	struct neap__journal *file = s->journal.file;
	NEAP_TRY(neap__journal_commit_begin(file));
	NEAP_TRY(move_numbers(r, write_out));
	NEAP_TRY(move_tables(r, write_out));
	neap_detail_set(NULL);
	NEAP_TRY(neap__step_answer("grad_save", s->ops.grad_save(s->user, give, file)));
	NEAP_TRY(move_pages(r, write_pages));
	return neap__journal_commit_end(file);
}

/* Takes a commit. One that fails cannot be resumed from; the run goes on. */
void neap__stage_commit_now(struct stage_run *r)
{
	struct neap_stage_sweep *s = r->s;
	struct neap__stage_journal *journal = &s->journal;
	int rc = 0;
	if (!journal->file || (r->next == 0 && !r->fallen))
		return;
	if (!r->fallen)
		neap__stage_drain(r);
	double start = neap__seconds();
	for (int i = 0; rc == 0 && i < s->problem.ntiers; i++)
		rc = neap__tier_sync(s->tiers[i]);
	s->stats.seconds = journal->seconds_before + start - journal->began_at;
	s->stats.commits++;
	if (rc == 0)
		rc = write_commit(r);
	rc = neap__journal_settle_commit(&s->agreement, journal->file, rc);
	s->stats.commits -= rc < 0;
	s->stats.commits_failed += rc < 0;
	double end = neap__seconds(), took = end - start;
	s->stats.journal += took;
	journal->due_at = end + neap__journal_every(s->options.journal_seconds, took);
}

int neap__stage_commit_is_due(const struct stage_run *r)
{
	return r->s->journal.file && neap__seconds() >= r->s->journal.due_at;
}

void neap__stage_commit_if_due(struct stage_run *r)
{
	/* Of ranks, one that is due makes all commit. */
	const struct neap__agree_state *a = &r->s->agreement;
	if (neap__agrees(a) ? a->due : neap__stage_commit_is_due(r))
		neap__stage_commit_now(r);
}

int neap__stage_commit_numbers(struct stage_run *r)
{
	return move_numbers(r, read_in);
}

/* Checks the numbers that index tables: a checksum says that this very code wrote them. */
static int check(const struct stage_run *r)
{
	const struct neap__stage_program *p = r->program;
	int good = r->next >= 0 && r->next <= p->ncalls && r->call >= 0 && r->call <= r->next &&
		   r->entered >= 0 && r->entered <= p->nbuffers && r->left >= 0 &&
		   r->left <= r->entered;
	return good ? 0
		    : neap__fail(NEAP_EFORMAT, "the journal in '%s' makes no sense",
			      r->s->journal.directory);
}

int neap__stage_commit_load(struct stage_run *r)
{
	struct neap_stage_sweep *s = r->s;
	struct neap__journal *file = s->journal.file;
	NEAP_TRY(check(r));
	NEAP_TRY(move_tables(r, read_in));
	neap_detail_set(NULL);
	NEAP_TRY(neap__step_answer("grad_load", s->ops.grad_load(s->user, take, file)));
	if (r->loss && (r->given || r->adjoint <= s->problem.chain.steps))
		*r->loss = s->loss;
	return move_pages(r, neap__journal_read_pages);
}

uint64_t neap__stage_commit_largest(const struct neap_stage_sweep *s, uint64_t gathered)
{
	const struct neap__stage_program *p = &s->program;
	uint64_t all = 0, memory = s->problem.memory;
	for (int64_t i = 0; i <= s->problem.chain.steps; i++) {
		all = neap__sat_add(all, 2 * s->stages.state[i] + s->stages.backward_tmp[i]);
		if (i < s->problem.chain.steps)
			all = neap__sat_add(all, s->stages.tape[i]);
	}
	all = neap__sat_add(all, 2 * s->problem.chain.adjoint);
	all = all < memory ? all : memory;
	all = all > p->arena ? all : p->arena;
	uint64_t tables = neap__sat_mul((uint64_t)p->nbuffers, sizeof *s->now) +
			  neap__sat_mul((uint64_t)p->nflights, sizeof *s->flights) +
			  (uint64_t)p->nrecords + sizeof *s;
	tables = tables > PROGRAM_MOST ? tables : PROGRAM_MOST;
	return neap__sat_add(neap__sat_add(gathered, all), tables);
}

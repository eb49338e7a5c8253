/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_commit.c: what a commit of a sweep of stages holds, when it is taken, and how it comes
 * back. A commit first ends every transfer, whose answers wait for their WAIT as always, and has
 * the tiers flush their records.
 */
#include <neap/neap.h>
#include "sweep/stages/stage_journal.h"
#include "base/checked.h"
#include "base/fail.h"

#define PROGRAM_MOST (64 << 20) /* bytes of the tables of a plan without tiers, at most */

/* Writes or reads the numbers of a run. */
static int move_numbers(struct stage_run *r, neap__journal_mover *move)
{
	struct neap_stage_sweep *s = r->s;
	const struct neap__journal_field fields[] = {
		NEAP__JOURNAL_FIELD(r->fallen),
		NEAP__JOURNAL_FIELD(r->next),
		NEAP__JOURNAL_FIELD(r->call),
		NEAP__JOURNAL_FIELD(r->entered),
		NEAP__JOURNAL_FIELD(r->left),
		NEAP__JOURNAL_FIELD(r->bytes),
		NEAP__JOURNAL_FIELD(r->adjoint),
		NEAP__JOURNAL_FIELD(r->gradient),
		NEAP__JOURNAL_FIELD(r->passed),
		NEAP__JOURNAL_FIELD(r->finished),
		NEAP__JOURNAL_FIELD(s->loss),
		NEAP__JOURNAL_FIELD(s->generation),
		NEAP__JOURNAL_FIELD(s->stats),
	};
	return neap__journal_move(
		s->journal.base.file, fields, sizeof fields / sizeof fields[0], move);
}

static int move_tables(struct stage_run *r, neap__journal_mover *move)
{
	struct neap_stage_sweep *s = r->s;
	struct neap__journal *file = s->journal.base.file;
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

/* Writes or reads the pages that live buffers touch. */
static int move_pages(struct stage_run *r, int write)
{
	struct neap__journal *file = r->s->journal.base.file;
	struct neap__memory *m = &r->s->memory;
	int64_t n = neap__stage_list_taken(r);
	uint64_t from = 0, to = 0;
	for (int64_t k = 0; k <= n; k++) {
		uint64_t page = k < n ? r->taken[k].from / NEAP__PAGE * NEAP__PAGE : UINT64_MAX;
		if (page > to) {
			unsigned char *at = r->base + from;
			NEAP_TRY(write ? neap__memory_show(
						 m, at, to - from, neap__commit_write_pages, file)
				       : neap__memory_take(
						 m, at, to - from, neap__commit_read_pages, file));
			from = page;
		}
		if (k < n)
			to = neap__round_up(r->taken[k].to, NEAP__PAGE);
	}
	return 0;
}

static int write_commit(void *run)
{
	struct stage_run *r = run;
	struct neap_stage_sweep *s = r->s;
	struct neap__journal *file = s->journal.base.file;
	NEAP_TRY(neap__journal_commit_begin(file));
	NEAP_TRY(move_numbers(r, neap__journal_write_out));
	NEAP_TRY(move_tables(r, neap__journal_write_out));
	NEAP_TRY(neap__journal_save(file, s->ops.grad_save, s->user));
	NEAP_TRY(move_pages(r, 1));
	return neap__journal_commit_end(file);
}

void neap__stage_commit_now(struct stage_run *r)
{
	if (!r->s->journal.base.file || (r->next == 0 && !r->fallen))
		return;
	neap__fence_wait(&r->s->memory.fence);
	if (!r->fallen)
		neap__stage_drain(r);
	neap__stage_journal_commit(r, write_commit);
}

int neap__stage_commit_is_due(const struct stage_run *r)
{
	return neap__journal_is_due(&r->s->journal.base);
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
	return move_numbers(r, neap__journal_read_in);
}

/* Checks the numbers that index tables: a checksum says that this very code wrote them. */
static int check(const struct stage_run *r)
{
	const struct neap__stage_program *p = r->program;
	int good = r->next >= 0 && r->next <= p->ncalls && r->call >= 0 && r->call <= r->next &&
		   r->entered >= 0 && r->entered <= p->nbuffers && r->left >= 0 &&
		   r->left <= r->entered;
	return good ? 0 : neap__journal_senseless(&r->s->journal.base);
}

int neap__stage_commit_load(struct stage_run *r)
{
	struct neap_stage_sweep *s = r->s;
	struct neap__journal *file = s->journal.base.file;
	NEAP_TRY(check(r));
	neap__fence_wait(&s->memory.fence);
	NEAP_TRY(move_tables(r, neap__journal_read_in));
	NEAP_TRY(neap__journal_load(file, s->ops.grad_load, s->user));
	if (r->loss && (r->given || r->adjoint <= s->problem.chain.steps))
		*r->loss = s->loss;
	return move_pages(r, 0);
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

struct neap__journal_owner neap__stage_journal_own(struct neap_stage_sweep *s)
{
	return (struct neap__journal_owner){&s->journal.base, &s->options, &s->agreement, &s->stats,
		s->tiers, s->problem.ntiers};
}

void neap__stage_journal_commit(struct stage_run *r, int (*write)(void *run))
{
	const struct neap__journal_owner own = neap__stage_journal_own(r->s);
	neap__journal_take_commit(&own, write, r);
}

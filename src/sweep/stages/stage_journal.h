/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_journal.h: the journal of a sweep of stages. Commits are taken between two calls of the
 * program: how far it has come, what became of flights and records, the buffers that live, and
 * what the model gathered. A sweep that fell back on a plan without tiers commits that run.
 */
#ifndef NEAP_SWEEP_STAGES_STAGE_JOURNAL_H
#define NEAP_SWEEP_STAGES_STAGE_JOURNAL_H

#include "sweep/stages/stage_sweep.h"

/* At create, before the plan: opens the journal that the options ask for, and takes its plan. */
int neap__stage_journal_attach(struct neap_stage_sweep *s);
/* Hashes of the stages' bytes, and of the calls with their places in the arena. */
uint64_t neap__stage_sizes_hash(const struct neap_stage_sweep *s);
uint64_t neap__stage_calls_hash(const struct neap_stage_sweep *s);
/* After the plan: a journal that is there was made for this budget. */
void neap__stage_journal_budget(struct neap_stage_sweep *s);
/* At free: removes the journal if the last run ended, else leaves it. */
void neap__stage_journal_detach(struct neap_stage_sweep *s);
/*
 * A run begins, once its tiers are formatted. 1: it resumes; r says how far it was, and
 * r->fallen whether without tiers; then neap__stage_commit_load. 0: it starts at x_0.
 */
int neap__stage_journal_start(struct stage_run *r);
/* Takes a commit: what write(r) writes. */
void neap__stage_journal_commit(struct stage_run *r, int (*write)(void *run));
/* A run ended with the answer rc. */
void neap__stage_journal_end(struct neap_stage_sweep *s, int rc);

/* stage_commit.c: takes a commit if one is due. */
void neap__stage_commit_if_due(struct stage_run *r);
void neap__stage_commit_now(struct stage_run *r);
/* 1 where the time for a commit has come on this rank. */
int neap__stage_commit_is_due(const struct stage_run *r);
/* Reads the numbers of the commit; then, with r->program and r->base in place, the rest. */
int neap__stage_commit_numbers(struct stage_run *r);
int neap__stage_commit_load(struct stage_run *r);
/* Bytes of the largest commit that there can be, nearly; one that is larger fails. */
uint64_t neap__stage_commit_largest(const struct neap_stage_sweep *s, uint64_t gathered);

/* The sweep as the functions of journal_shared.h take it. */
struct neap__journal_owner neap__stage_journal_own(struct neap_stage_sweep *s);

#endif

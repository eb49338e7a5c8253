/* SPDX-License-Identifier: Apache-2.0 */
/* journal_commit.h: what a commit of a sweep holds, when it is taken, and how it comes back. */
#ifndef NEAP_SWEEP_JOURNAL_JOURNAL_COMMIT_H
#define NEAP_SWEEP_JOURNAL_JOURNAL_COMMIT_H

#include "sweep/sweep_state.h"

/* Takes a commit if one is due and may be taken. Transfers end; extents of tapes may leave. */
void neap__commit_if_due(struct neap_sweep *s);
/* 1 where the time for a commit has come on this rank. */
int neap__commit_is_due(const struct neap_sweep *s);
/* Takes a commit if one may be taken: the run is about to end early. */
void neap__commit_now(struct neap_sweep *s);
/* Where a call of the model from t towards t1 must stop, so that commits are taken in time. */
int64_t neap__commit_stop_before(const struct neap_sweep *s, int64_t t, int64_t t1);
/* Reads tables, arena and the model's part back; the schedule is still at its beginning. */
int neap__commit_load(struct neap_sweep *s);
/* Bytes of the largest commit that there can be; `gathered`: bytes of the model's part. */
uint64_t neap__commit_largest(const struct neap_sweep *s, uint64_t gathered);

/* Takes a commit: what write(s) writes. */
void neap__journal_commit(struct neap_sweep *s, int (*write)(void *sweep));
/* The sweep as the functions of journal_shared.h take it. */
struct neap__journal_owner neap__journal_own(struct neap_sweep *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_ranks.h: journals of a collective sweep, of both executors. Ranks resume from one commit:
 * the files of a run share its number, and a commit counts once all ranks have written it. A sweep
 * that is alone does the same with itself.
 */
#ifndef NEAP_SWEEP_JOURNAL_JOURNAL_RANKS_H
#define NEAP_SWEEP_JOURNAL_JOURNAL_RANKS_H

#include "store/journal_file.h"
#include "sweep/agree.h"

/*
 * After a journal was opened with the answer rc, which may have failed: where the ranks do not all
 * have the journal of one run, none of them has. 0, or the ranks' code.
 */
int neap__journal_meet(struct neap__agree_state *a, struct neap__journal *file, int rc);
/* Goes to the newest commit that all ranks have. 1; 0: there is none; or a negative code. */
int neap__journal_resume_from(struct neap__agree_state *a, struct neap__journal *file);
/* Draws the number of a run that begins. 0 of *number: the file draws its own. */
int neap__journal_draw_number(struct neap__agree_state *a, uint64_t *number);
/* After a commit was written with the answer rc: the ranks' answer, by which it counts. */
int neap__journal_settle_commit(struct neap__agree_state *a, struct neap__journal *file, int rc);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* journal_identity.h: which sweep a journal belongs to. */
#ifndef NEAP_SWEEP_JOURNAL_JOURNAL_IDENTITY_H
#define NEAP_SWEEP_JOURNAL_JOURNAL_IDENTITY_H

#include "sweep/sweep_state.h"

/* At create: compares with a journal that is there, NEAP_EUSAGE if it differs; takes its plan. */
int neap__journal_identity_take(struct neap_sweep *s);
/* After planning: records keep the sizes that the journal's have. */
void neap__journal_identity_size(struct neap_sweep *s);
/* At a run: compares what is known only now. */
int neap__journal_identity_same(const struct neap_sweep *s);
/* Starts the journal anew, for commits of at most `most` bytes. */
int neap__journal_identity_begin(
	struct neap_sweep *s, uint64_t number, uint64_t gathered, uint64_t most);

#endif

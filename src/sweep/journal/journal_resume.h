/* SPDX-License-Identifier: Apache-2.0 */
/* journal_resume.h: the beginning of a run with a journal. */
#ifndef NEAP_SWEEP_JOURNAL_JOURNAL_RESUME_H
#define NEAP_SWEEP_JOURNAL_JOURNAL_RESUME_H

#include "sweep/sweep_state.h"

/* A run begins: it resumes from the last commit, if there is one, else it starts at x_0. */
int neap__journal_start(struct neap_sweep *s, struct neap_schedule *schedule);

#endif

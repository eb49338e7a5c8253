/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_subject.h: what journals of both executors share: how a journal begins, the line that
 * refuses one of another sweep, and the time between commits.
 */
#ifndef NEAP_SWEEP_JOURNAL_JOURNAL_SUBJECT_H
#define NEAP_SWEEP_JOURNAL_JOURNAL_SUBJECT_H

#include <neap/plan.h>
#include "store/journal_file.h"

/* NEAP_EUSAGE, with the line; name: of the file in the directory. */
int neap__journal_differs(
	const char *directory, const char *name, const char *what, uint64_t there, uint64_t here);
int neap__journal_other_strategy(
	const char *directory, const char *name, const char *there, const char *here);

/*
 * Starts the journal anew. Its subject is the identity, `bytes` long, and behind it the plan as
 * text, whose length goes to *plan_bytes, a field of the identity; 0 where it cannot be written,
 * or where plan is NULL. Commits have `most` bytes at most. number: of the run, 0: any.
 */
int neap__journal_write_subject(struct neap__journal *file, uint64_t number, void *identity,
	size_t bytes, uint64_t *plan_bytes, const struct neap_plan *plan,
	const struct neap_problem *problem, uint64_t most);

/* Seconds between commits, where the options say `option` and the last one took `took`. */
double neap__journal_every(double option, double took);

#endif

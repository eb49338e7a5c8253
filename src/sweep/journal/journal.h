/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h: what a sweep with a journal knows of it (journal.c, journal_commit.c,
 * journal_identity.c).
 *
 * Commits are taken between two calls of the model, in mid-action too: everything the
 * run has in its tables and its arena, and what the model gathered. A sweep that goes
 * on finds itself where that commit was taken; of the schedule, the actions that were
 * done are pulled and not performed.
 */
#ifndef NEAP_SWEEP_JOURNAL_JOURNAL_H
#define NEAP_SWEEP_JOURNAL_JOURNAL_H

#include <neap/sweep.h>
#include "store/journal_file.h"

#define NEAP__JOURNAL_SECONDS 30.0 /* between commits */

/* What a journal is about: a sweep goes on only if all of it is the same. Text follows. */
struct neap__journal_identity {
	uint32_t version, ntiers;
	int64_t steps;
	uint64_t state, adjoint, tape, tape_max; /* as the model says */
	uint64_t log_max;
	uint64_t key, x0; /* x0: a hash of it */
	uint64_t arena;
	int64_t slots, extents, ranges, pieces, spans, lanes;
	int64_t places[NEAP_TIERS_MAX], tape_places[NEAP_TIERS_MAX];
	uint64_t record[NEAP_TIERS_MAX];
	uint64_t gathered; /* bytes that the model saves */
	uint64_t epoch;	   /* of the records on the tiers */
	char strategy[32];
	uint64_t plan; /* bytes of the plan as text, behind this; 0: it could not be written */
};

/* How far an action has come. */
enum neap__journal_phase { NEAP__NOT_BEGUN, NEAP__BEGUN, NEAP__OVERFLOWED };

struct neap__journal_run {
	char *directory;	    /* NULL: the sweep has no journal */
	struct neap__journal *file; /* open from create to the end of a run; may be NULL then */
	struct neap_saved *plan;    /* that of the journal, where one was there */
	struct neap__journal_identity subject;
	int goes_on;  /* there was one: `subject` is its */
	int finished; /* the last run came to its end: nobody needs the journal */

	/* of a run */
	int64_t done;	 /* actions */
	uint64_t told;	 /* a hash of them */
	int32_t stage;	 /* of the action after them */
	int32_t filling; /* in a hole of a BACKWARD */
	uint64_t period; /* commits so far, and more at every new start: see tape_transfer.c */
	double loss, began, before, due;
};

#endif

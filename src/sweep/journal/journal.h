/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h: the journal of a sweep. Commits are taken between two calls of the model, in
 * mid-action too: a commit holds all that the run has in its tables and its arena, and what the
 * model gathered. A sweep that resumes has the state of the commit; of the schedule, the actions
 * that were done are read and not performed.
 */
#ifndef NEAP_SWEEP_JOURNAL_JOURNAL_H
#define NEAP_SWEEP_JOURNAL_JOURNAL_H

#include <neap/sweep.h>
#include "sweep/journal/journal_shared.h"

/* Which sweep a journal belongs to: a sweep resumes only if all of it is the same. */
struct neap__journal_identity {
	uint32_t version, ntiers;
	int64_t steps;
	uint64_t state, adjoint, tape, tape_max; /* bytes, as the model says */
	uint64_t log_max;
	uint64_t key, x0; /* x0: a hash of it */
	uint64_t arena;	  /* bytes */
	int64_t slots, extents, ranges, pieces, spans, span_rows;
	int64_t places[NEAP_TIERS_MAX], tape_places[NEAP_TIERS_MAX];
	uint64_t tape_place_bytes[NEAP_TIERS_MAX];
	uint64_t gathered; /* bytes that the model saves */
	uint64_t epoch;	   /* of the records on the tiers */
	char strategy[32];
	/* Of a chain of unknown length, whose actions follow from these: costs and tiers. */
	struct neap_chain chain;
	struct neap_tier_spec tiers[NEAP_TIERS_MAX];
	uint64_t plan; /* bytes of the plan as text, behind this; 0: it could not be written */
};

/* How far the action after the last one that was done has come. */
enum neap__journal_phase {
	NEAP__ACTION_NOT_BEGUN,
	NEAP__ACTION_BEGUN,
	NEAP__ACTION_OVERFLOWED, /* a RECORD whose tapes do not fit: the rest is only advanced */
};

struct neap__journal_run {
	struct neap__journal_base base;
	struct neap__journal_identity identity;

	/* Of a run. */
	int64_t done;	       /* actions */
	uint64_t actions_hash; /* of the actions done */
	int32_t phase;	       /* enum neap__journal_phase */
	int32_t in_hole;       /* 1: the tapes of a hole of a BACKWARD are being recovered */
	uint64_t period;       /* commits so far, more at every resume: see tape_transfer.c */
	double loss;
};

/* At create: opens the journal that the options ask for. */
int neap__journal_attach(struct neap_sweep *s);
/* At free: removes the journal if the last run ended, else leaves it. */
void neap__journal_detach(struct neap_sweep *s);
/* `s` is a new plan for the sweep `old`: drops the old journal, and takes its directory. */
void neap__journal_inherit(struct neap_sweep *s, struct neap_sweep *old);
/* Notes that an action was performed. */
void neap__journal_action_done(struct neap_sweep *s, const struct neap_action *a);
/* A run ended with the answer rc. */
void neap__journal_end(struct neap_sweep *s, int rc);

#endif

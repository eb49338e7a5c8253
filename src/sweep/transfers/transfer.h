/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.h: PUT, GET and WAIT of states, and the tickets of all transfers. A schedule's ticket
 * is an index of s->tickets; the ticket of the tier is inside.
 */
#ifndef NEAP_SWEEP_TRANSFERS_TRANSFER_H
#define NEAP_SWEEP_TRANSFERS_TRANSFER_H

#include "sweep/sweep_state.h"

int neap__transfer_put(struct neap_sweep *s, const struct neap_action *action);
/* Takes a free ticket for the action. NEAP_EILLEGAL where ticket, slot or place is not free. */
int neap__ticket_begin(
	struct neap_sweep *s, const struct neap_action *a, struct neap__ticket **out);
/* Hands the ticket's request to its tier: of a state spans[0]. It is IN_FLIGHT or ANSWERED then. */
void neap__ticket_issue(struct neap_sweep *s, struct neap__ticket *ticket, uint64_t tag,
	const struct neap_span *spans, int count);
/* Sets an answer that is known without the tier; it waits for its WAIT like any other. */
void neap__ticket_answered(struct neap__ticket *ticket, int rc);

/* Waits for a ticket in flight; the answer stays for its WAIT. */
void neap__transfer_end(struct neap_sweep *s, struct neap__ticket *ticket, enum neap_stall reason);
/* Waits for what is in flight from or to `slot` (NEAP_LIVE: the live state). */
void neap__transfer_end_slot(struct neap_sweep *s, int64_t slot);
/* Waits for the oldest transfer whose memory cannot move. 0 if there is none. */
int neap__transfer_end_oldest(struct neap_sweep *s);
/* 1 if a tier reads or writes this slot. */
int neap__transfer_in_flight(const struct neap_sweep *s, int64_t slot);
/*
 * Takes back a GET in flight that will be issued again later. 1 if the tier had not begun it: the
 * ticket is ANSWERED then, with nothing read. Ranks take nothing back.
 */
int neap__transfer_cancel(struct neap_sweep *s, struct neap__ticket *ticket);

/* Ends what is in flight from or to the live state; GETs into it are issued again later. */
void neap__transfer_postpone(struct neap_sweep *s);
/* Issues those GETs again. 1 if there is one. */
int neap__transfer_resume(struct neap_sweep *s);

/* Counts a record that the tier lost: of state t, t1 == t, or of tapes of [t, t1). */
void neap__transfer_lost(struct neap_sweep *s, int tier, int64_t t, int64_t t1);
/* Marks the record of state t as lost, and counts it once. */
void neap__transfer_mark_bad(struct neap_sweep *s, int tier, int64_t place, int64_t t);
/* Reads the record of state t into the live state and waits; marks it where it is lost. */
int neap__transfer_fetch(struct neap_sweep *s, int tier, int64_t place, int64_t t);
/* Writes the live state and waits; *answer: what the tier said of it. */
int neap__transfer_store(struct neap_sweep *s, int tier, int64_t place, int *answer);
/* Writes the live state where tapes begin to be missing, to recover from, if a place is left. */
int neap__transfer_keep_state(struct neap_sweep *s);
/* At the end of a run: waits for all that is in flight and frees every ticket. */
void neap__transfer_drain(struct neap_sweep *s);

/* The step of the state whose record is at this place of a tier, or -1. */
int64_t *neap__transfer_record_at(struct neap_sweep *s, int tier, int64_t place);
/* Hands the GET of a state to its tier. */
void neap__transfer_issue_get(struct neap_sweep *s, struct neap__ticket *ticket);
/* The number of the ticket's row of spans. */
int neap__tape_transfer_number_of(const struct neap_sweep *s, const struct neap__ticket *ticket);
/* 1 if all tapes, or logs, of the ticket's kind have one size. */
int neap__tape_transfer_is_fixed(const struct neap_sweep *s, const struct neap__ticket *ticket);

/* The tier answered: frees the row of spans, and extents that nobody needs. */
void neap__tape_transfer_answered(struct neap_sweep *s, struct neap__ticket *ticket);

#endif

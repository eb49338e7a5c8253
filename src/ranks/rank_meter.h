/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_meter.h: what exchanges of ranks take. A meter stands in place of the peers of a run, and
 * measures each call of a batch by its number in it. A call that all wait for takes the rank that
 * comes last no longer than the exchange itself: the least over ranks is what was exchanged, and
 * the rest is waiting for slower ranks.
 */
#ifndef NEAP_RANKS_RANK_METER_H
#define NEAP_RANKS_RANK_METER_H

#include <neap/peers.h>

/* Calls of a batch that are told apart; those beyond are added to the last one. */
enum { NEAP__METER_CALLS = 32 };

/* All zero: no peers. */
struct neap__rank_meter {
	struct neap_peers peers;	  /* to be used in place of `to` */
	const struct neap_peers *to;	  /* borrowed */
	int is_open;			  /* calls are measured */
	int calls;			  /* of the batch */
	int64_t spent[NEAP__METER_CALLS]; /* nanoseconds in each */
	int64_t last;			  /* of the last one */
	uint64_t last_sent;
	uint64_t sent; /* bytes that this rank sent in the batch */
};

/* Returns the peers that measure; `peers` NULL: NULL. The meter may not move while they are used.
 */
const struct neap_peers *neap__rank_meter_take(
	struct neap__rank_meter *meter, const struct neap_peers *peers);

/* A batch begins, or what belongs to none: the numbers are 0. */
void neap__rank_meter_reset(struct neap__rank_meter *meter);
void neap__rank_meter_open(struct neap__rank_meter *meter);
/*
 * The batch has ended with a call that told the others its numbers; that call counts as the first
 * one of the next batch.
 */
void neap__rank_meter_close(struct neap__rank_meter *meter);
/* Seconds of all calls of the batch. */
double neap__rank_meter_spent(const int64_t spent[NEAP__METER_CALLS]);

#endif

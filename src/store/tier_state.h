/* SPDX-License-Identifier: Apache-2.0 */
/* tier_state.h: what the kinds of tiers, the sweep and tests see of a tier beyond neap/tier.h. */
#ifndef NEAP_STORE_TIER_STATE_H
#define NEAP_STORE_TIER_STATE_H

#include <neap/tier.h>
#include "base/gate.h"

#include <pthread.h>

/* Requests that a tier takes before the first is waited for: a schedule's, and recoveries. */
#define NEAP__REQUESTS (NEAP__TICKETS_OF_A_SCHEDULE + 64)
#define NEAP__TICKETS_OF_A_SCHEDULE 256

/*
 * Staging that a sweep hands to a tier. `mapping` numbers the mapping of the memory: engines keep
 * its pages registered, and a later mapping may have the same address.
 */
struct neap__staging {
	void *at;
	uint64_t bytes; /* 0: as many as neap_tier_describe says */
	uint64_t mapping;
};

struct neap_tier {
	struct neap_tier_ops ops;
	void *self;
	struct neap_tier_spec spec; /* capacity in bytes of the medium */
	char about[384];
	int forks;		   /* neap__forks() of the process that it belongs to */
	struct neap__gate gate;	   /* a call, or the run of a sweep */
	atomic_int holders;	   /* its owner, sweeps over it and calls: the last one frees it */
	atomic_int closed;	   /* by its owner */
	int gone;		   /* ops.close was called: all slots of ops are NULL */
	int held;		   /* what holds_staging answered then */
	pthread_mutex_t spec_lock; /* guards the rates and cpu of spec */
	/* As formatted last; bytes == 0: not at all. */
	uint64_t bytes;
	int64_t places;
	struct neap__staging staging;
	int own;	     /* 0: by a run, whose staging may be gone now */
	int running;	     /* a run has claimed the tier */
	uint64_t tape_bytes; /* of records of tapes */
	int64_t tape_places;
	int in_units;	/* a place for tapes is a unit, and a record takes several of them */
	int journalled; /* holds records of an interrupted sweep, not to be overwritten */
	/*
	 * Optional: damages what the medium holds, for tests. Flips the bits `mask`
	 * of a byte of the record at `place`; mask 0 cuts the medium short there.
	 */
	int (*poke)(void *self, int tapes, int64_t place, uint64_t offset, unsigned mask);
};

/* Places for records of one size: states, or tapes. */
struct neap__records {
	uint64_t bytes;
	int64_t places;
};

/* 0; NEAP_EFORKED in a child of the process that the tier belongs to; NEAP_EUSAGE: it is gone. */
int neap__tier_ours(const struct neap_tier *tier);

/*
 * A public call begins and ends: only one call, or one run of a sweep, has the tier at a time.
 * 0, NEAP_EFORKED, or NEAP_EUSAGE where it is in use or closed.
 */
int neap__tier_enter(struct neap_tier *tier, const char *function);
void neap__tier_leave(struct neap_tier *tier);

/*
 * For sweeps. take: checks and keeps the tiers of the options, which stay valid until drop, where
 * the last one frees a tier that its owner has closed meanwhile. `claimed`: the run that has them
 * plans again, so that one which is closed still serves it. `memory`: of the records, NULL:
 * ordinary memory. claim: a run has them alone, all or none, until leave; `function` is the public
 * call, for messages.
 */
int neap__tiers_take(struct neap_tier **tiers, struct neap_tier *const *from, int count,
	int claimed, const struct neap_memory_ops *memory);
void neap__tiers_drop(struct neap_tier **tiers, int count);
int neap__tiers_claim(struct neap_tier *const *tiers, int count, const char *function);
void neap__tiers_leave(struct neap_tier *const *tiers, int count);

/* The public calls of the same names for whoever has the tier; claimed_calls: some of them as a
 * table. */
extern const struct neap__tier_calls neap__tier_claimed_calls;
void neap__tier_lend(struct neap_tier *tier, uint64_t bytes);
int neap__tier_put(struct neap_tier *tier, int64_t place, uint64_t tag, const void *from,
	uint64_t bytes, int64_t *ticket);
int neap__tier_get(struct neap_tier *tier, int64_t place, uint64_t tag, void *into, uint64_t bytes,
	int64_t *ticket);
int neap__tier_put_spans(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
int neap__tier_get_spans(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
int neap__tier_format_tapes(
	struct neap_tier *tier, uint64_t bytes, int64_t places, uint64_t staging);
int neap__tier_put_tapes(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
int neap__tier_get_tapes(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket);
int neap__tier_wait(struct neap_tier *tier, int64_t ticket);
int neap__tier_wait_for(struct neap_tier *tier, int64_t ticket, double seconds);
int neap__tier_done(struct neap_tier *tier, int64_t ticket);
void neap__tier_set_patience(struct neap_tier *tier, double seconds);
int neap__tier_holds_staging(struct neap_tier *tier);
int neap__tier_forget(struct neap_tier *tier, int64_t place);
int neap__tier_measure(struct neap_tier *tier, uint64_t bytes, double seconds);

/* 1 when the last format still serves for such records and this staging. */
int neap__tier_fits(const struct neap_tier *tier, struct neap__records states,
	struct neap__records tapes, const struct neap__staging *staging);
#define NEAP__STAGING_SHARE 32 /* staging beyond the least takes 1 / 32 of a budget at most */
/*
 * Bytes of staging for records of `bytes` out of a budget: what makes the tier fastest, up to that
 * share of the budget, or the least that works.
 */
uint64_t neap__tier_staging(const struct neap_tier *tier, uint64_t bytes, uint64_t budget);
/* Bytes of the capacity that a record of `bytes` takes, at least 1. */
uint64_t neap__tier_footprint(const struct neap_tier *tier, uint64_t bytes);
/* neap_tier_format with staging whose bytes and mapping are known. */
int neap__tier_format(struct neap_tier *tier, uint64_t bytes, int64_t places,
	const struct neap__staging *staging);
/* Bytes of the capacity that such records take. Saturates. */
uint64_t neap__tier_needs(
	const struct neap_tier *tier, struct neap__records states, struct neap__records tapes);

/*
 * Records of tapes of any size up to `bytes`: how many places one of `bytes` takes, and the room
 * for `units` places, after neap__tier_format. Where the tier knows no units, a record takes one
 * place, and all places are as large as the largest.
 */
int64_t neap__tier_units(const struct neap_tier *tier, uint64_t bytes);
/* Bytes of the capacity that so many units take, for records of at most `bytes`. Saturates. */
uint64_t neap__tier_units_need(const struct neap_tier *tier, uint64_t bytes, int64_t units);
int neap__tier_format_units(
	struct neap_tier *tier, uint64_t bytes, int64_t units, uint64_t staging);

/* neap_tier_ops.cancel: 1 if the request was not begun and its ticket is gone. */
int neap__tier_cancel(struct neap_tier *tier, int64_t ticket);

/* neap_tier_ops.cached. */
int neap__tier_cached(struct neap_tier *tier, uint64_t *bytes);

/* neap_tier_ops.sync and adopt; nothing where the engine has none. */
int neap__tier_sync(struct neap_tier *tier);
int neap__tier_adopt(struct neap_tier *tier, uint64_t epoch);

/* tapes: of a record of tapes, else of a state's. */
int neap__tier_poke(
	struct neap_tier *tier, int tapes, int64_t place, uint64_t offset, unsigned mask);

#endif

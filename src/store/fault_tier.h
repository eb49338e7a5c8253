/* SPDX-License-Identifier: Apache-2.0 */
/* fault_tier.h: a tier around another one that fails on demand. For tests. */
#ifndef NEAP_STORE_FAULT_TIER_H
#define NEAP_STORE_FAULT_TIER_H

#include <stdatomic.h>
#include "store/tier_state.h"

/*
 * Puts and gets are numbered from 1 since the last format. 0: never. A put that is damaged reports
 * success and leaves the damage on the medium. `released` is sequentially consistent: a test sets
 * it from another thread.
 */
struct neap__faults {
	int code;	  /* what failing requests answer; 0: -EIO */
	int at_once;	  /* failing requests answer when posted, not when waited for */
	int64_t fail_put; /* this one */
	int64_t fail_get;
	int64_t lose_put;     /* reports success and writes nothing */
	int64_t corrupt_put;  /* one bit of the payload flips */
	int64_t truncate_put; /* the medium ends in the middle of it */
	int64_t row;	      /* so many requests from each of the above on; 0: 1 */
	int64_t gone_after;   /* every put and get after this many requests fails */
	uint64_t full_at;     /* puts fail with -ENOSPC once this many bytes were taken */
	unsigned delay_us;    /* each wait takes that much longer */
	double byte_seconds;  /* a byte takes so long at least: a channel each way, in order */
	int no_format;	      /* formatting answers -ENOSPC */
	int64_t hang_put;     /* never made; the wait ends by its patience, or by `released` */
	int64_t hang_get;
	int64_t hang_after; /* every put and get after this many requests hangs */
	atomic_int released;
};

struct neap__fault_counts {
	int64_t puts, gets, failed, hung;
};

/* Takes `inner`. `faults` is borrowed and read at every call. */
int neap__fault_open(
	struct neap_tier **tier, struct neap_tier *inner, const struct neap__faults *faults);
struct neap__fault_counts neap__fault_counts(const struct neap_tier *tier);

#endif

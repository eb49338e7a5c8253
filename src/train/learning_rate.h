/* SPDX-License-Identifier: Apache-2.0 */
/* learning_rate.h: the learning rate as a function of the update's number. */
#ifndef NEAP_TRAIN_LEARNING_RATE_H
#define NEAP_TRAIN_LEARNING_RATE_H

#include <stdint.h>
#include <neap/status.h>

#define NEAP__LARGE_RATE 0.05 /* chosen: smaller rates seldom make Adam diverge */

struct neap__learning_rate {
	const char *name;
	/* Returns the share of the base rate; `done` in [0, 1): updates after the warm-up so far.
	 */
	double (*share)(double done);
};

/* Finds a schedule by name; NULL with a detail line where there is none. */
const struct neap__learning_rate *neap__learning_rate_find(const char *name);

/*
 * Returns the rate of update `update` (0 is the first) of `total`. It rises linearly over the first
 * `warmup` updates, reaches `base` with the last of them, and follows the schedule afterwards.
 */
double neap__learning_rate_at(const struct neap__learning_rate *schedule, double base,
	int64_t warmup, int64_t update, int64_t total);

#endif

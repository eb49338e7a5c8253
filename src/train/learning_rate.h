/* SPDX-License-Identifier: Apache-2.0 */
/* learning_rate.h: the learning rate as a function of the update's number. */
#ifndef NEAP_TRAIN_LEARNING_RATE_H
#define NEAP_TRAIN_LEARNING_RATE_H

#include <stdint.h>
#include <neap/status.h>

struct neap__learning_rate {
	const char *name;
	/* Share of the base rate at `done` in [0, 1) of the way after warm-up. */
	double (*share)(double done);
};

/* By name; NULL with a detail line when there is none of it. */
NEAP_API const struct neap__learning_rate *neap__learning_rate_find(const char *name);

/*
 * Rate of update `update` (0 is the first) of `total`: a linear rise over the
 * first `warmup` updates, reaching `base` with the last of them, then the schedule.
 */
NEAP_API double neap__learning_rate_at(const struct neap__learning_rate *schedule, double base,
	int64_t warmup, int64_t update, int64_t total);

#endif

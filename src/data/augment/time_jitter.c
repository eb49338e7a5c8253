/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_jitter.c: time jitter: moves each event by a normal random number of seconds, rounded to
 * whole steps. Without the rounding, times that are multiples of a step would move half a step
 * back on average, since bins round down. The sample keeps its length; bins.c drops events that
 * leave it.
 */
#include "data/augment/augment.h"
#include "base/half.h"
#include "base/fail.h"
#include "base/philox.h"

#include <math.h>
#include <string.h>

static int check(const struct neap_augment *o)
{
	if (o->jitter >= 0 && o->jitter <= 1e3)
		return 0;
	return neap__fail(
		NEAP_EUSAGE, "--jitter is %g s; it must be between 0 and 1000 s", o->jitter);
}

static int used(const struct neap_augment *o)
{
	return o->jitter > 0;
}

/* The random number depends on the event's time and unit, not on its place in a file. */
static double moved(const struct neap__augment *augment, uint64_t key, double time, uint16_t unit)
{
	double draw = neap__random_normal(key, NEAP__STREAM_AUGMENT, unit, neap__double_bits(time));
	return time + rint(draw * augment->options.jitter / augment->dt) * augment->dt;
}

static void apply(const struct neap__augment *augment, uint64_t key, struct neap_events *events)
{
	for (int64_t i = 0; i < events->count; i++)
		events->time[i] = moved(augment, key, events->time[i], events->unit[i]);
}

/* No normal number made of 53 bits is beyond sqrt(2 log 2^53) = 8.6 deviations. */
static void reach(const struct neap__augment *augment, uint64_t key, double *from, double *to)
{
	(void)key;
	double most = 9 * augment->options.jitter + augment->dt;
	*from -= most;
	*to += most;
}

const struct neap__augmentation neap__time_jitter = {
	.number = 2,
	.check = check,
	.used = used,
	.apply = apply,
	.reach = reach,
};

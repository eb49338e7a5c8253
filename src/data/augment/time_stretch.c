/* SPDX-License-Identifier: Apache-2.0 */
/* time_stretch.c: time stretch: multiplies all times of a sample and its length by one random
 * number. */
#include "data/augment/augment.h"
#include "base/fail.h"
#include "base/philox.h"

static int check(const struct neap_augment *o)
{
	double low = o->stretch_low, high = o->stretch_high;
	if ((low == 0 && high == 0) || (low >= 0.01 && high >= low && high <= 100))
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"--stretch is %g:%g; it must be within 0.01:100, the smaller number first", low,
		high);
}

static int used(const struct neap_augment *o)
{
	return o->stretch_high > 0 && (o->stretch_low != 1 || o->stretch_high != 1);
}

static double factor(const struct neap__augment *augment, uint64_t key)
{
	const struct neap_augment *o = &augment->options;
	return o->stretch_low + (o->stretch_high - o->stretch_low) *
					neap__random_uniform(key, NEAP__STREAM_AUGMENT, 0, 0);
}

static void apply(const struct neap__augment *augment, uint64_t key, struct neap_events *events)
{
	double by = factor(augment, key);
	for (int64_t i = 0; i < events->count; i++)
		events->time[i] *= by;
}

static void reach(const struct neap__augment *augment, uint64_t key, double *from, double *to)
{
	double by = factor(augment, key);
	*from /= by;
	*to /= by;
}

static void extent(const struct neap__augment *augment, uint64_t key, struct neap__sample_extent *e)
{
	double by = factor(augment, key);
	e->duration *= by;
	e->last *= by;
}

static double longest(const struct neap_augment *o, double duration)
{
	return duration * o->stretch_high;
}

const struct neap__augmentation neap__time_stretch = {
	.number = 1,
	.check = check,
	.used = used,
	.apply = apply,
	.reach = reach,
	.extent = extent,
	.longest = longest,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time jitter: each event moves by a normal draw of its own, rounded to whole steps:
 * where times are multiples of a step, cutting them down to steps again would pull
 * them half a step back. The sample keeps its length; what leaves it is dropped with the bins.
 */
#include "data/augment.h"
#include "base/fail.h"
#include "base/philox.h"

#include <math.h>
#include <string.h>

static int check(const struct neap_augment *o)
{
	if (o->jitter >= 0 && o->jitter <= 1e3)
		return 0;
	return neap__fail(
		NEAP_EUSAGE, "a time jitter of %g s; 0 to 1000 s are accepted", o->jitter);
}

static int used(const struct neap_augment *o)
{
	return o->jitter > 0;
}

/* The draw is the event's own: it depends on its time and unit, not on its place in a file. */
static double moved(const struct neap__augment *augment, uint64_t key, double time, uint16_t unit)
{
	uint64_t bits;
	memcpy(&bits, &time, sizeof bits);
	double draw = neap__random_normal(key, NEAP__STREAM_AUGMENT, unit, bits);
	return time + rint(draw * augment->options.jitter / augment->dt) * augment->dt;
}

static void apply(const struct neap__augment *augment, uint64_t key, struct neap_events *events)
{
	for (int64_t i = 0; i < events->count; i++)
		events->time[i] = moved(augment, key, events->time[i], events->unit[i]);
}

/* No draw is beyond sqrt(2 log 2^53) = 8.6. */
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

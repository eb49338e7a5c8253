/* SPDX-License-Identifier: Apache-2.0 */
/* channel_shift.c: channel shift: adds one random number of channels to all units of a sample.
 * Events that leave the range of channels are dropped. */
#include "data/augment/augment.h"
#include "base/fail.h"
#include "base/philox.h"

static int check(const struct neap_augment *o)
{
	if (o->shift >= 0 && o->shift <= 65535)
		return 0;
	return neap__fail(NEAP_EUSAGE, "--shift is %d; it must be between 0 and 65535", o->shift);
}

static int used(const struct neap_augment *o)
{
	return o->shift > 0;
}

static void apply(const struct neap__augment *augment, uint64_t key, struct neap_events *events)
{
	uint64_t draws = 2 * (uint64_t)augment->options.shift + 1;
	int by = (int)neap__random_below(key, NEAP__STREAM_AUGMENT, 0, 0, draws) -
		 augment->options.shift;
	int64_t kept = 0;
	for (int64_t i = 0; i < events->count; i++) {
		int unit = events->unit[i] + by;
		if (unit < 0 || unit >= augment->inputs)
			continue;
		events->time[kept] = events->time[i];
		events->unit[kept++] = (uint16_t)unit;
	}
	events->count = kept;
}

const struct neap__augmentation neap__channel_shift = {
	.number = 3,
	.check = check,
	.used = used,
	.apply = apply,
};

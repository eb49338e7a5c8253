/* SPDX-License-Identifier: Apache-2.0 */
/* augment.c: the table of kinds of augmentation, and their application in its order. */
#include "data/augment/augment.h"
#include "base/fail.h"
#include "base/philox.h"

/* In the order of application. */
static const struct neap__augmentation *const rows[] = {
	&neap__time_stretch,
	&neap__time_jitter,
	&neap__channel_shift,
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static uint64_t key_of(
	const struct neap__augment *augment, int64_t index, const struct neap__augmentation *row)
{
	return neap__random_u64(augment->seed, NEAP__STREAM_AUGMENT, augment->epoch,
		(uint64_t)index << 8 | row->number);
}

int neap__augment_check(const struct neap_augment *options)
{
	for (int i = 0; i < ROWS; i++)
		NEAP_TRY(rows[i]->check(options));
	return 0;
}

int neap__augment_used(const struct neap_augment *options)
{
	for (int i = 0; i < ROWS; i++)
		if (rows[i]->used(options))
			return 1;
	return 0;
}

double neap__augment_longest(const struct neap_augment *options, double duration)
{
	for (int i = 0; i < ROWS; i++)
		if (rows[i]->used(options) && rows[i]->longest)
			duration = rows[i]->longest(options, duration);
	return duration;
}

void neap__augment_apply(
	const struct neap__augment *augment, int64_t index, struct neap_events *events)
{
	for (int i = 0; i < ROWS; i++)
		if (rows[i]->used(&augment->options))
			rows[i]->apply(augment, key_of(augment, index, rows[i]), events);
}

void neap__augment_reach(
	const struct neap__augment *augment, int64_t index, double *from, double *to)
{
	for (int i = ROWS - 1; i >= 0; i--)
		if (rows[i]->used(&augment->options) && rows[i]->reach)
			rows[i]->reach(augment, key_of(augment, index, rows[i]), from, to);
}

void neap__augment_extent(
	const struct neap__augment *augment, int64_t index, struct neap__sample_extent *extent)
{
	for (int i = 0; i < ROWS; i++)
		if (rows[i]->used(&augment->options) && rows[i]->extent)
			rows[i]->extent(augment, key_of(augment, index, rows[i]), extent);
}

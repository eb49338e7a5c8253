/* SPDX-License-Identifier: Apache-2.0 */
#include "store/tier.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int neap_tier_wrap(struct neap_tier **out, const struct neap_tier_ops *ops,
	const struct neap_tier_spec *spec, void *self)
{
	struct neap_tier_ops full = {0};
	if (!ops || ops->size < sizeof(uint32_t) || ops->size > sizeof full)
		return neap__fail(NEAP_EUSAGE, "neap_tier_ops: set size to its sizeof");
	memcpy(&full, ops, ops->size);
	if (!full.format || !full.put || !full.get || !full.wait || !spec)
		return neap__fail(NEAP_EUSAGE,
			"neap_tier_ops: format, put, get, wait and a spec are required");
	struct neap_tier *tier = calloc(1, sizeof *tier);
	if (!tier)
		return neap__fail_errno(ENOMEM, "slow tier");
	tier->ops = full;
	tier->self = self;
	tier->spec = *spec;
	tier->spec.name[sizeof tier->spec.name - 1] = '\0';
	snprintf(tier->about, sizeof tier->about, "%s", tier->spec.name);
	*out = tier;
	return 0;
}

int neap_tier_format(struct neap_tier *tier, uint64_t bytes, int64_t places, void *staging)
{
	if (bytes == 0 || places < 0)
		return neap__fail(NEAP_EUSAGE, "%s: %lld places of %llu bytes", tier->about,
			(long long)places, (unsigned long long)bytes);
	tier->bytes = 0;
	NEAP_TRY(tier->ops.format(tier->self, bytes, places, staging));
	tier->bytes = bytes;
	tier->places = places;
	tier->staging = staging;
	return 0;
}

int neap__tier_fits(
	const struct neap_tier *tier, uint64_t bytes, int64_t places, const void *staging)
{
	return tier->bytes == bytes && tier->places >= places && tier->staging == staging;
}

static int check(const struct neap_tier *tier, int64_t place, uint64_t bytes)
{
	if (place < 0 || place >= tier->places || bytes == 0 || bytes > tier->bytes)
		return neap__fail(NEAP_EUSAGE,
			"%s: no place %lld for %llu bytes (%lld places of %llu bytes)", tier->about,
			(long long)place, (unsigned long long)bytes, (long long)tier->places,
			(unsigned long long)tier->bytes);
	return 0;
}

int neap_tier_put(struct neap_tier *tier, int64_t place, uint64_t tag, const void *from,
	uint64_t bytes, int64_t *ticket)
{
	NEAP_TRY(check(tier, place, bytes));
	return tier->ops.put(tier->self, place, tag, from, bytes, ticket);
}

int neap_tier_get(struct neap_tier *tier, int64_t place, uint64_t tag, void *into, uint64_t bytes,
	int64_t *ticket)
{
	NEAP_TRY(check(tier, place, bytes));
	return tier->ops.get(tier->self, place, tag, into, bytes, ticket);
}

int neap_tier_wait(struct neap_tier *tier, int64_t ticket)
{
	return tier->ops.wait(tier->self, ticket);
}

int neap_tier_forget(struct neap_tier *tier, int64_t place)
{
	return tier->ops.forget ? tier->ops.forget(tier->self, place) : 0;
}

void neap_tier_describe(struct neap_tier *tier, uint64_t bytes, struct neap_tier_spec *spec)
{
	*spec = tier->spec;
	spec->staging = tier->ops.staging ? tier->ops.staging(tier->self, bytes) : 0;
	if (!tier->footprint || bytes == 0 || spec->capacity == NEAP_INFINITE)
		return;
	uint64_t footprint = tier->footprint(tier->self, bytes);
	spec->capacity = neap__sat_mul(spec->capacity / footprint, bytes);
}

void neap_tier_set_rates(
	struct neap_tier *tier, double write_rate, double read_rate, double latency)
{
	tier->spec.write_rate = write_rate;
	tier->spec.read_rate = read_rate;
	tier->spec.write_fixed = tier->spec.read_fixed = latency;
}

int neap__tier_poke(struct neap_tier *tier, int64_t place, uint64_t offset, unsigned mask)
{
	if (!tier->poke)
		return neap__fail(NEAP_EUSAGE, "%s cannot be damaged", tier->about);
	return tier->poke(tier->self, place, offset, mask);
}

const char *neap_tier_about(const struct neap_tier *tier)
{
	return tier->about;
}

void neap_tier_close(struct neap_tier *tier)
{
	if (!tier)
		return;
	if (tier->ops.close)
		tier->ops.close(tier->self);
	free(tier);
}

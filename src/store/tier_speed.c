/* SPDX-License-Identifier: Apache-2.0 */
/* tier_speed.c: measures how fast a tier takes and gives records of one size, two in flight. */
#include "store/tier_cost.h"
#include "store/tier_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/clock.h"

#define IN_FLIGHT 2		     /* requests, so that the tier never waits for the next one */
#define MEDIUM (UINT64_C(256) << 20) /* bytes of the tier that are used, at most */

/*
 * Moves records in one direction for `seconds`: *rate in bytes a second, *passed: places that
 * were used.
 */
static int one_way(struct neap_tier *tier, int write, uint64_t bytes, int64_t places,
	unsigned char *buffer, double seconds, double *rate, int64_t *passed)
{
	int64_t ticket[IN_FLIGHT];
	int64_t begun = 0, waited = 0;
	double start = neap__seconds(), now = start;
	int rc = 0;

	while (rc == 0 && (now - start < seconds || begun < places)) {
		if (begun - waited == IN_FLIGHT) {
			rc = neap__tier_wait(tier, ticket[waited++ % IN_FLIGHT]);
			now = neap__seconds();
			if (rc < 0 || (now - start > 4 * seconds && waited >= IN_FLIGHT))
				break;
		}
		void *data = buffer + (uint64_t)(begun % IN_FLIGHT) * bytes;
		int64_t place = begun % places;
		rc = write ? neap__tier_put(tier, place, (uint64_t)place, data, bytes,
				     &ticket[begun % IN_FLIGHT])
			   : neap__tier_get(tier, place, (uint64_t)place, data, bytes,
				     &ticket[begun % IN_FLIGHT]);
		begun += rc == 0;
	}
	while (waited < begun) {
		int answer = neap__tier_wait(tier, ticket[waited++ % IN_FLIGHT]);
		rc = rc < 0 ? rc : answer;
	}
	now = neap__seconds();
	*passed = begun < places ? begun : places;
	if (rc == 0)
		*rate = (double)begun * (double)bytes / (now > start ? now - start : 1e-9);
	return rc;
}

int neap__tier_measure(struct neap_tier *tier, uint64_t bytes, double seconds)
{
	uint64_t both, footprint = neap__tier_footprint(tier, bytes);
	if (bytes == 0 || !(seconds > 0) || neap__mul_u64(&both, bytes, IN_FLIGHT) < 0)
		return neap__fail(NEAP_EUSAGE, "cannot measure with records of %llu bytes",
			(unsigned long long)bytes);
	if (tier->journalled)
		return 0;
	uint64_t space = tier->spec.capacity < MEDIUM ? tier->spec.capacity : MEDIUM;
	uint64_t fit = space / footprint;
	if (tier->spec.capacity / footprint < IN_FLIGHT)
		return neap__fail(NEAP_EINFEASIBLE,
			"slow memory of %llu bytes (%s) is too small. Use at least %llu bytes",
			(unsigned long long)tier->spec.capacity, tier->about,
			(unsigned long long)neap__sat_mul(footprint, IN_FLIGHT));
	int64_t places = fit < IN_FLIGHT ? IN_FLIGHT : fit > 256 ? 256 : (int64_t)fit;
	NEAP_TRY(neap__tier_format(tier, bytes, places, &(struct neap__staging){0}));
	unsigned char *buffer;
	NEAP_TRY(neap__tier_map(tier, &buffer, both));
	double write_rate = 0, read_rate = 0;
	int64_t passed = 0;
	int rc = one_way(tier, 1, bytes, places, buffer, seconds / 2, &write_rate, &passed);
	if (rc == 0)
		rc = one_way(tier, 0, bytes, passed, buffer, seconds / 2, &read_rate, &passed);
	neap__tier_unmap(tier, buffer, both);
	tier->bytes = 0; /* the next user formats the tier again */
	if (rc == 0)
		neap_tier_set_rates(tier, write_rate, read_rate, 0);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* transfer_time.c: seconds of a transfer, and seconds that it costs the computation beside it. */
#include <neap/chain.h>

double neap_tier_seconds(const struct neap_tier_spec *tier, int write, uint64_t bytes)
{
	if (!tier)
		return 0;
	double rate = write ? tier->write_rate : tier->read_rate;
	double fixed = write ? tier->write_fixed : tier->read_fixed;
	return rate > 0 ? fixed + (double)bytes / rate : fixed;
}

double neap_tier_lost(const struct neap_tier_spec *tier, uint64_t bytes)
{
	if (!tier)
		return 0;
	return tier->flags & NEAP_TIER_SYNC ? 0 : tier->cpu_fixed + tier->cpu * (double)bytes;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tiers.h"
#include "base/fail.h"
#include "sys/memory.h"

int neap__tiers_open(struct neap__tiers *tiers, const struct neap_sweep_settings *settings)
{
	struct neap_file_options options = {.size = sizeof options,
		.page_cache = settings->page_cache != 0,
		.in_memory = settings->slow_in_memory != 0};

	*tiers = (struct neap__tiers){0};
	if (!settings->slow)
		return 0;
	return neap_tiers_open(tiers->tier, &tiers->count, settings->slow, &options);
}

int neap__tiers_measure(struct neap__tiers *tiers, const struct neap_sweep_settings *settings,
	uint64_t bytes, double seconds)
{
	const struct neap_problem *known = settings->costs;

	if (known && known->ntiers > 0 && known->ntiers != tiers->count)
		return neap__fail(NEAP_EUSAGE, "--chain tells of %d slow tiers, --slow of %d",
			known->ntiers, tiers->count);
	for (int i = 0; i < tiers->count; i++) {
		const struct neap_tier_spec *spec = known ? &known->tiers[i] : NULL;
		if (known && known->ntiers > 0)
			neap_tier_set_rates(tiers->tier[i], spec->write_rate, spec->read_rate,
				spec->write_fixed);
		else
			NEAP_TRY(neap_tier_measure(tiers->tier[i], bytes, seconds));
	}
	return 0;
}

void neap__tiers_close(struct neap__tiers *tiers)
{
	for (int i = 0; i < tiers->count; i++)
		neap_tier_close(tiers->tier[i]);
	*tiers = (struct neap__tiers){0};
}

uint64_t neap__memory_budget(const struct neap_sweep_settings *settings)
{
	return settings->memory ? settings->memory : neap__memory_free() / 2;
}

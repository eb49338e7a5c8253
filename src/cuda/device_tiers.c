/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_tiers.c: opens tiers for a device from a list. neap's other tiers cannot touch the memory
 * of a device, so each item is opened here: as pinned memory, or behind a ring of pinned pieces.
 */
#include "cuda/device.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PINNED "pinned:"

static int open_pinned(struct neap_device *device, struct neap_tier **tier, const char *item)
{
	uint64_t size;
	if (neap__units_size(&size, item + strlen(PINNED)) < 0 || size == 0)
		return neap__fail(NEAP_EUSAGE,
			"slow memory '%s' has no valid size; write pinned:64M or pinned:64MiB",
			item);
	return neap__pinned_open(tier, device, size);
}

static int open_item(struct neap_device *device, struct neap_tier **tier, const char *item,
	const struct neap_file_options *options)
{
	struct neap_tier *inner[NEAP_TIERS_MAX];
	int count;
	if (strncmp(item, PINNED, strlen(PINNED)) == 0)
		return open_pinned(device, tier, item);
	NEAP_TRY(neap_tiers_open(inner, &count, item, options));
	return neap__bounce_open(tier, device, inner[0]);
}

int neap_device_tiers_open(struct neap_device *device, struct neap_tier **tiers, int *count,
	const char *list, const struct neap_file_options *options)
{
	NEAP_NEED(device, tiers, count, list);
	int n = 0, rc = 0;
	struct neap_file_options own = {.size = sizeof own};
	if (options)
		NEAP_TRY(neap__struct_take(&own, sizeof own, options, "neap_file_options"));
	own.keep = 0;
	char *copy = strdup(list);
	if (!copy)
		return neap__fail_errno(ENOMEM, "tiers '%s'", list);
	for (char *item = copy, *next; item && rc == 0; item = next) {
		next = strchr(item, ',');
		if (next)
			*next++ = '\0';
		rc = n == NEAP_TIERS_MAX
			     ? neap__fail(NEAP_EUSAGE, "slow memory '%s': more than %d tiers", list,
				       NEAP_TIERS_MAX)
			     : open_item(device, &tiers[n], item, &own);
		n += rc == 0;
	}
	free(copy);
	while (rc < 0 && n > 0)
		neap_tier_close(tiers[--n]);
	*count = n;
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier_list.c: opens tiers from a list, "DIR[+DIR...]|FILE|mem:SIZE[,...]". A kind of tier with a
 * prefix of its own is a row of `kinds`.
 */
#include "store/tier_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int open_memory(struct neap_tier **tier, const char *item, const char *rest)
{
	uint64_t size;
	if (neap__units_size(&size, rest) < 0 || size == 0)
		return neap__fail(NEAP_EUSAGE,
			"slow memory '%s' has no valid size; write mem:64M or mem:64MiB", item);
	return neap_tier_open_memory(tier, size);
}

static int refuse_pinned(struct neap_tier **tier, const char *item, const char *rest)
{
	(void)tier;
	return neap__fail(NEAP_EUSAGE,
		"slow memory '%s' needs a CUDA device, which copies to pinned memory. Without a "
		"device, write mem:%s",
		item, rest);
}

/* Kinds that an item names by its prefix; any other item is a directory or a file. */
static const struct kind {
	const char *prefix, *form;
	int (*open)(struct neap_tier **tier, const char *item, const char *rest);
} kinds[] = {
	{"mem:", "mem:SIZE", open_memory},
	{"pinned:", NULL, refuse_pinned}, /* libneap-cuda opens it, for a device */
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int open_one(
	struct neap_tier **tier, const char *item, const struct neap_file_options *options)
{
	for (int i = 0; i < KINDS; i++) {
		size_t n = strlen(kinds[i].prefix);
		if (strncmp(item, kinds[i].prefix, n) == 0)
			return kinds[i].open(tier, item, item + n);
	}
	return neap_tier_open_file(tier, item, options);
}

/* An item is missing: says what it could be. */
static int refuse_empty(const char *list)
{
	char forms[128] = "";
	for (int i = 0, n = 0; i < KINDS && n < (int)sizeof forms; i++)
		if (kinds[i].form)
			n += neap__print(
				forms + n, sizeof forms - (size_t)n, " or %s", kinds[i].form);
	return neap__fail(NEAP_EUSAGE,
		"slow memory '%s' is not valid; expected a directory, a file%s", list, forms);
}

int neap_tiers_open(struct neap_tier **tiers, int *count, const char *list,
	const struct neap_file_options *options)
{
	NEAP_NEED(tiers, count);
	int n = 0, rc = 0;
	char *copy = strdup(list ? list : "");
	if (!copy)
		return neap__fail_errno(ENOMEM, "tiers '%s'", list);
	for (char *item = copy, *next; item && rc == 0; item = next) {
		next = strchr(item, ',');
		if (next)
			*next++ = '\0';
		if (n == NEAP_TIERS_MAX)
			rc = neap__fail(NEAP_EUSAGE, "more than %d tiers of slow memory in '%s'",
				NEAP_TIERS_MAX, list);
		else if (*item == '\0')
			rc = refuse_empty(list);
		else
			rc = open_one(&tiers[n], item, options);
		n += rc == 0;
	}
	free(copy);
	while (rc < 0 && n > 0)
		neap_tier_close(tiers[--n]);
	*count = n;
	return rc;
}
